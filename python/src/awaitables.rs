//! Awaitables that `send(…)` and `receive()` return.
//!
//! Usually there is nothing to wait for, and no future is made. All of them pass for coroutines, so
//! that `asyncio.create_task(receive())` works as with any other server.

#![expect(clippy::unused_self, reason = "Python calls methods")]

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;

use crate::awaitable::{awaitable, finished};
use crate::guarded::Guarded;

/// A value that is ready. It can be awaited once.
#[pyclass(frozen, freelist = 64, module = "gustnado._gustnado")]
pub(crate) struct ReadyValue(Guarded<Option<Py<PyAny>>>);

/// A `None` that is ready. One object serves all.
#[pyclass(frozen, module = "gustnado._gustnado")]
pub(crate) struct ReadyNone;

/// A future of the loop.
#[pyclass(frozen, module = "gustnado._gustnado")]
pub(crate) struct LoopFuture(Py<PyAny>);

impl ReadyValue {
    pub(crate) fn new(value: Py<PyAny>) -> Self {
        Self(Guarded::new(Some(value)))
    }
}

impl ReadyValue {
    fn resume(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let value = self.0.borrow_mut().take();
        Err(match value {
            Some(value) => finished(value.bind(py)),
            None => PyRuntimeError::new_err("this was awaited before"),
        })
    }
}

awaitable!(ReadyValue);

impl ReadyNone {
    #[expect(clippy::unnecessary_wraps, reason = "the others can fail")]
    fn resume(&self, _: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        Ok(None)
    }
}

awaitable!(ReadyNone);

impl LoopFuture {
    /// - `future`: of the running loop.
    pub(crate) fn new(future: &Bound<'_, PyAny>) -> PyResult<Self> {
        future.call_method0(intern!(future.py(), "__await__")).map(|steps| Self(steps.unbind()))
    }
}

#[pymethods]
impl LoopFuture {
    fn __await__(&self, py: Python<'_>) -> Py<PyAny> {
        self.0.clone_ref(py)
    }

    fn send<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = value.py();
        self.0.bind(py).call_method1(intern!(py, "send"), (value,))
    }

    #[pyo3(signature = (kind, value = None, trace = None))]
    fn throw<'py>(
        &self,
        kind: &Bound<'py, PyAny>,
        value: Option<&Bound<'py, PyAny>>,
        trace: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (steps, name) = (self.0.bind(kind.py()), intern!(kind.py(), "throw"));
        match (value, trace) {
            (None, _) => steps.call_method1(name, (kind,)),
            (Some(value), None) => steps.call_method1(name, (kind, value)),
            (Some(value), Some(trace)) => steps.call_method1(name, (kind, value, trace)),
        }
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.bind(py).call_method0(intern!(py, "close")).map(drop)
    }
}
