//! Steps of tasks that wait for a message, kept by their sockets.
//!
//! A task that waits for a future asks it five things each time. The task of a WebSocket's handler
//! yields nothing instead: asyncio then passes the task's next step to `loop.call_soon` at once. It
//! is trapped there, and run when a message has come.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::guarded::Guarded;

/// The next step of a task, and its context.
pub(crate) struct KeptStep {
    callback: Py<PyAny>,
    context: Option<Py<PyAny>>,
}

impl KeptStep {
    /// Runs it. Only between tasks of the loop.
    pub(super) fn run(&self, py: Python<'_>) -> PyResult<()> {
        match &self.context {
            Some(context) => context.call_method1(py, intern!(py, "run"), (&self.callback,)),
            None => self.callback.call0(py),
        }
        .map(drop)
    }

    /// Leaves it to the loop.
    pub(super) fn pass_on(self, event_loop: &Bound<'_, PyAny>) -> PyResult<()> {
        let options = options(event_loop.py(), self.context)?;
        let name = intern!(event_loop.py(), "call_soon");
        event_loop.call_method(name, (self.callback,), Some(&options)).map(drop)
    }
}

/// Traps the next step of a task whose step the engine runs. There is one for each loop.
pub(crate) struct StepTrap {
    keeper: Py<StepKeeper>,
    /// Its method, which takes the place of `loop.call_soon` while the trap is set.
    keep: Py<PyAny>,
}

#[pyclass(frozen, module = "gustnado._gustnado")]
struct StepKeeper {
    event_loop: Py<PyAny>,
    /// The attributes of the loop object itself.
    attributes: Py<PyDict>,
    state: Guarded<TrapState>,
}

#[derive(Default)]
struct TrapState {
    /// The address of the task whose step the engine runs; 0: it runs none.
    running: usize,
    is_set: bool,
    trapped: Option<KeptStep>,
}

impl StepTrap {
    /// - `event_loop`: one whose object has its own attributes.
    pub(crate) fn new(event_loop: &Bound<'_, PyAny>) -> PyResult<Self> {
        let attributes = event_loop.getattr("__dict__")?.cast_into::<PyDict>()?.unbind();
        let event_loop_py = event_loop.clone().unbind();
        let keeper =
            StepKeeper { event_loop: event_loop_py, attributes, state: Guarded::default() };
        let keeper = Bound::new(event_loop.py(), keeper)?;
        let keep = keeper.getattr("keep")?.unbind();
        Ok(Self { keeper: keeper.unbind(), keep })
    }

    /// Runs a step of a task. Also returns its next one, if the task waits for a message.
    ///
    /// - `task`: its address.
    pub(crate) fn run<T>(
        &self,
        py: Python<'_>,
        task: usize,
        step: impl FnOnce() -> PyResult<T>,
    ) -> (PyResult<T>, Option<KeptStep>) {
        let keeper = self.keeper.get();
        let before = std::mem::replace(&mut keeper.state.borrow_mut().running, task);
        let ran = step();
        let mut state = keeper.state.borrow_mut();
        state.running = before;
        let (trapped, is_set) = (state.trapped.take(), std::mem::take(&mut state.is_set));
        drop(state);
        if is_set {
            self.remove(py);
        }
        (ran, trapped)
    }

    /// Removes the trap, where a coroutine in between has not passed on what was yielded.
    #[cold]
    fn remove(&self, py: Python<'_>) {
        let (attributes, name) = (self.keeper.get().attributes.bind(py), intern!(py, "call_soon"));
        let there = attributes.get_item(name).ok().flatten();
        if there.is_some_and(|there| there.is(&self.keep)) {
            _ = attributes.del_item(name);
        }
    }

    /// Sets the trap, if the engine runs a step of this task. Returns whether it does.
    pub(super) fn set(&self, py: Python<'_>, task: usize) -> PyResult<bool> {
        let keeper = self.keeper.get();
        let mut state = keeper.state.borrow_mut();
        if task == 0 || state.running != task {
            return Ok(false);
        }
        state.is_set = true;
        drop(state);
        keeper.attributes.bind(py).set_item(intern!(py, "call_soon"), &self.keep)?;
        Ok(true)
    }
}

#[pymethods]
impl StepKeeper {
    /// Keeps the next step of the running task, and passes on every other callback.
    #[pyo3(signature = (callback, *arguments, context = None))]
    fn keep(
        &self,
        callback: &Bound<'_, PyAny>,
        arguments: &Bound<'_, PyTuple>,
        context: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let py = callback.py();
        let name = intern!(py, "call_soon");
        let expected = {
            let state = self.state.borrow_mut();
            if state.is_set { state.running } else { 0 }
        };
        let of = callback.getattr(intern!(py, "__self__"));
        if expected != 0 && of.is_ok_and(|task| task.as_ptr() as usize == expected) {
            self.attributes.bind(py).del_item(name)?;
            let mut state = self.state.borrow_mut();
            state.is_set = false;
            state.trapped = Some(KeptStep { callback: callback.clone().unbind(), context });
            return Ok(py.None());
        }
        let event_loop = self.event_loop.bind(py);
        let passed = [event_loop.clone(), callback.clone()].into_iter().chain(arguments.iter());
        let passed = PyTuple::new(py, passed.collect::<Vec<_>>())?;
        let call_soon = event_loop.get_type().getattr(name)?;
        call_soon.call(passed, Some(&options(py, context)?)).map(Bound::unbind)
    }
}

fn options(py: Python<'_>, context: Option<Py<PyAny>>) -> PyResult<Bound<'_, PyDict>> {
    let options = PyDict::new(py);
    options.set_item(intern!(py, "context"), context)?;
    Ok(options)
}
