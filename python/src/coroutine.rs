//! Coroutines as tasks of asyncio, whose first step runs at once.
//!
//! A handler that never waits so costs no turn of the loop, and is a real task all the same: it is
//! the current one while it runs, has its own context, can be cancelled and time out.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::kept::Kept;

/// Starts coroutines on one loop.
pub(crate) struct Starter {
    task_type: Py<PyAny>,
    /// `loop=` the loop.
    options: Py<PyDict>,
    /// The attributes of the loop object itself.
    attributes: Py<PyDict>,
    catcher: Py<Catcher>,
    running: Running,
}

/// Tasks that wait, by their addresses: loops hold them weakly only.
type Running = Arc<Kept<HashMap<usize, Py<PyAny>>>>;

/// Stands for `loop.call_soon` while a task is made, and keeps what it is given: the first step.
#[pyclass(frozen)]
struct Catcher(Kept<Option<Step>>);

/// A callable and its context, if it has one.
type Step = (Py<PyAny>, Option<Py<PyAny>>);

#[pymethods]
impl Catcher {
    #[pyo3(signature = (callback, *_arguments, context = None))]
    fn __call__(
        &self,
        callback: Py<PyAny>,
        _arguments: &Bound<'_, PyTuple>,
        context: Option<Py<PyAny>>,
    ) {
        *self.0.borrow_mut() = Some((callback, context));
    }
}

impl Starter {
    /// - `event_loop`: one whose object has attributes of its own, as those written in Python have.
    pub(crate) fn new(event_loop: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = event_loop.py();
        let options = PyDict::new(py);
        options.set_item("loop", event_loop)?;
        Ok(Self {
            task_type: py.import("asyncio")?.getattr("Task")?.unbind(),
            options: options.unbind(),
            attributes: event_loop.getattr("__dict__")?.cast_into::<PyDict>()?.unbind(),
            catcher: Py::new(py, Catcher(Kept::new(None)))?,
            running: Running::default(),
        })
    }

    /// Makes a task, and runs its first step. Only between the tasks of the running loop.
    pub(crate) fn start<'py>(&self, coroutine: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = coroutine.py();
        let (attributes, name) = (self.attributes.bind(py), intern!(py, "call_soon"));
        attributes.set_item(name, &self.catcher)?;
        let made = self.task_type.bind(py).call((coroutine,), Some(self.options.bind(py)));
        attributes.del_item(name)?;
        let task = made?;
        let caught = self.catcher.get().0.borrow_mut().take();
        let (step, context) = caught.ok_or_else(|| {
            PyRuntimeError::new_err("asyncio.Task has not asked for its first step")
        })?;
        match context {
            Some(context) => context.call_method1(py, intern!(py, "run"), (step,))?,
            None => step.call0(py)?,
        };
        Ok(task)
    }
}

/// What a task has returned or raised; none while it runs.
pub(crate) fn result<'py>(task: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = task.py();
    if task.call_method0(intern!(py, "done"))?.is_truthy()? {
        return task.call_method0(intern!(py, "result")).map(Some);
    }
    Ok(None)
}

impl Starter {
    /// Has `then` called with what a task returns or raises, which is kept until then.
    pub(crate) fn when_done<F>(&self, task: &Bound<'_, PyAny>, then: F) -> PyResult<()>
    where
        F: FnOnce(Python<'_>, PyResult<Bound<'_, PyAny>>) + Send + 'static,
    {
        let (address, running) = (task.as_ptr() as usize, Arc::clone(&self.running));
        let forget = move |py: Python<'_>, ended: PyResult<Bound<'_, PyAny>>| {
            let kept = running.borrow_mut().remove(&address);
            then(py, ended);
            drop(kept);
        };
        let callback = Done(Kept::new(Some(Box::new(forget))));
        task.call_method1(intern!(task.py(), "add_done_callback"), (callback,))?;
        let mut running = self.running.borrow_mut();
        running.insert(address, task.clone().unbind());
        Ok(())
    }
}

type Then = Box<dyn FnOnce(Python<'_>, PyResult<Bound<'_, PyAny>>) + Send>;

/// What a task calls at its end.
#[pyclass(frozen, module = "gustnado._gustnado")]
struct Done(Kept<Option<Then>>);

#[pymethods]
impl Done {
    fn __call__(&self, task: &Bound<'_, PyAny>) {
        let then = self.0.borrow_mut().take();
        if let Some(then) = then {
            then(task.py(), task.call_method0(intern!(task.py(), "result")));
        }
    }
}
