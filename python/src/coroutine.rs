//! Runs coroutines as tasks of asyncio, whose first step runs at once.
//!
//! So a handler that never waits costs no turn of the loop. It is still a real task: it is the
//! current one while it runs, has its own context, can be cancelled and time out.
//!
//! A step that the engine runs ends where its output can be sent (see [`Pause`]). It resumes after
//! the engine's turn, which sends it: [`go_on`].

mod habits;
mod pause;

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::guarded::Guarded;
use habits::Behind;
use pause::{DeferredTask, defer};
pub(crate) use pause::{LoopTurn, NotOurs, Pause, go_on, has_paused};

/// Starts coroutines on one loop.
pub(crate) struct Starter {
    task_type: Py<PyAny>,
    /// `loop=` the loop.
    options: Py<PyDict>,
    trap: Py<CallSoonTrap>,
    pause: Py<Pause>,
    running: RunningTasks,
}

/// Waiting tasks by address, since loops hold only weak references.
type RunningTasks = Arc<Guarded<HashMap<usize, Py<PyAny>>>>;

/// Replaces `loop.call_soon` while a task is created or pauses, and keeps the task's next step. It
/// traps a single call.
#[pyclass(frozen)]
struct CallSoonTrap {
    /// The attributes of the loop object itself.
    attributes: Py<PyDict>,
    trapped: Guarded<Option<TaskStep>>,
}

/// A callback and its context, if it has one.
pub(crate) struct TaskStep {
    callback: Py<PyAny>,
    context: Option<Py<PyAny>>,
    /// The response that was sent before it, if one was.
    behind: Option<Behind>,
}

/// The outcome of a first step: the next one, if it pauses.
pub(crate) type FirstStep = PyResult<Option<TaskStep>>;

/// A task whose first step has run.
pub(crate) struct StartedTask<'py> {
    pub(crate) task: Bound<'py, PyAny>,
    /// Its next step, if it pauses.
    next: Option<TaskStep>,
}

#[pymethods]
impl CallSoonTrap {
    #[pyo3(signature = (callback, *_arguments, context = None))]
    fn __call__(
        &self,
        py: Python<'_>,
        callback: Py<PyAny>,
        _arguments: &Bound<'_, PyTuple>,
        context: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        self.remove(py)?;
        *self.trapped.borrow_mut() = Some(TaskStep { callback, context, behind: None });
        Ok(())
    }
}

impl CallSoonTrap {
    fn put(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        slf.get().attributes.bind(py).set_item(intern!(py, "call_soon"), slf)
    }

    fn remove(&self, py: Python<'_>) -> PyResult<()> {
        self.attributes.bind(py).del_item(intern!(py, "call_soon"))
    }

    fn take(&self) -> Option<TaskStep> {
        self.trapped.borrow_mut().take()
    }
}

impl TaskStep {
    fn run(&self, py: Python<'_>) -> PyResult<()> {
        match &self.context {
            Some(context) => context.call_method1(py, intern!(py, "run"), (&self.callback,)),
            None => self.callback.call0(py),
        }
        .map(drop)
    }
}

impl Starter {
    /// - `event_loop`: one whose object has its own attributes, as loops written in Python have.
    pub(crate) fn new(event_loop: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = event_loop.py();
        let options = PyDict::new(py);
        options.set_item("loop", event_loop)?;
        let attributes = event_loop.getattr("__dict__")?.cast_into::<PyDict>()?.unbind();
        let trap = Py::new(py, CallSoonTrap { attributes, trapped: Guarded::default() })?;
        let pause = Py::new(py, Pause::new(trap.clone_ref(py)))?;
        Ok(Self {
            task_type: py.import("asyncio")?.getattr("Task")?.unbind(),
            options: options.unbind(),
            trap,
            pause,
            running: RunningTasks::default(),
        })
    }

    /// Returns the awaitable with which a step lets its output leave.
    pub(crate) fn pause(&self) -> &Py<Pause> {
        &self.pause
    }

    /// Creates a task and runs its first step. Only between tasks of the running loop.
    pub(crate) fn start<'py>(&self, coroutine: &Bound<'py, PyAny>) -> PyResult<StartedTask<'py>> {
        self.start_as(self.task_type.bind(coroutine.py()), coroutine, |_, step| step())
    }

    /// The same for a task of another type.
    ///
    /// - `around`: is called with the task and its first step, which it runs.
    pub(crate) fn start_as<'py>(
        &self,
        task_type: &Bound<'py, PyAny>,
        coroutine: &Bound<'py, PyAny>,
        around: impl FnOnce(&Bound<'py, PyAny>, &dyn Fn() -> FirstStep) -> FirstStep,
    ) -> PyResult<StartedTask<'py>> {
        let py = coroutine.py();
        let trap = self.trap.bind(py);
        CallSoonTrap::put(trap)?;
        let made = task_type.call((coroutine,), Some(self.options.bind(py)));
        let Some(first) = trap.get().take() else {
            trap.get().remove(py)?;
            made?;
            let text = "asyncio.Task has not scheduled its first step";
            return Err(PyRuntimeError::new_err(text));
        };
        let task = made?;
        let next = around(&task, &|| self.pause.get().run(py, &first))?;
        Ok(StartedTask { task, next })
    }

    /// Calls `then` with what a task returns or raises. A paused task resumes after this turn.
    pub(crate) fn when_done<F>(&self, started: StartedTask<'_>, then: F) -> PyResult<()>
    where
        F: FnOnce(Python<'_>, PyResult<Bound<'_, PyAny>>) + Send + 'static,
    {
        let StartedTask { task, next } = started;
        let task_py = task.py();
        match next {
            None => wait(&self.running, &task, then),
            Some(next) => {
                let (task, running) = (task.unbind(), Arc::clone(&self.running));
                let pause = self.pause.clone_ref(task_py);
                defer(DeferredTask { next, task, pause, running, then: Box::new(then) });
                Ok(())
            }
        }
    }
}

impl StartedTask<'_> {
    /// Returns whether its next step runs after this turn.
    pub(crate) fn is_paused(&self) -> bool {
        self.next.is_some()
    }
}

/// Returns what a task has returned or raised; `None` while it runs.
pub(crate) fn result<'py>(task: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let name = intern!(task.py(), "result");
    if is_done(task)? { task.call_method0(name).map(Some) } else { Ok(None) }
}

/// Returns whether a task has ended.
pub(crate) fn is_done(task: &Bound<'_, PyAny>) -> PyResult<bool> {
    task.call_method0(intern!(task.py(), "done"))?.is_truthy()
}

fn wait<F>(running: &RunningTasks, task: &Bound<'_, PyAny>, then: F) -> PyResult<()>
where
    F: FnOnce(Python<'_>, PyResult<Bound<'_, PyAny>>) + Send + 'static,
{
    let (address, forgotten) = (task.as_ptr() as usize, Arc::clone(running));
    let forget = move |py: Python<'_>, ended: PyResult<Bound<'_, PyAny>>| {
        let forgotten = forgotten.borrow_mut().remove(&address);
        then(py, ended);
        drop(forgotten);
    };
    let callback = OnDone(Guarded::new(Some(Box::new(forget))));
    task.call_method1(intern!(task.py(), "add_done_callback"), (callback,))?;
    running.borrow_mut().insert(address, task.clone().unbind());
    Ok(())
}

/// What is called with the result of a task.
pub(crate) type OnEnd = Box<dyn FnOnce(Python<'_>, PyResult<Bound<'_, PyAny>>) + Send>;

/// The done callback of a task.
#[pyclass(frozen, module = "gustnado._gustnado")]
struct OnDone(Guarded<Option<OnEnd>>);

#[pymethods]
impl OnDone {
    fn __call__(&self, task: &Bound<'_, PyAny>) {
        let then = self.0.borrow_mut().take();
        if let Some(then) = then {
            then(task.py(), task.call_method0(intern!(task.py(), "result")));
        }
    }
}
