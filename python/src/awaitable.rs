//! The methods through which Python awaits an object: those of a coroutine, so that
//! `asyncio.create_task` takes it too.

use pyo3::exceptions::PyStopIteration;
use pyo3::prelude::*;

/// Implements them for a class over its method `resume(&self, py) -> PyResult<Option<Py<PyAny>>>`,
/// which returns what to yield, `None` to finish without a value, or an exception (`StopIteration`
/// to finish with one).
///
/// A macro, since `PyO3` takes no generic class.
macro_rules! awaitable {
    ($class:ty) => {
        #[pyo3::pymethods]
        impl $class {
            fn __await__(slf: Py<Self>) -> Py<Self> {
                slf
            }

            fn __iter__(slf: Py<Self>) -> Py<Self> {
                slf
            }

            fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
                self.resume(py)
            }

            fn send(&self, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                let resumed = self.resume(value.py())?;
                resumed.ok_or_else(|| pyo3::exceptions::PyStopIteration::new_err(()))
            }

            #[pyo3(signature = (kind, value = None, _trace = None))]
            fn throw(
                &self,
                kind: &Bound<'_, PyAny>,
                value: Option<&Bound<'_, PyAny>>,
                _trace: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<()> {
                // (A method that returns a `PyErr` returns the exception, and does not raise it.)
                Err($crate::awaitable::thrown(kind, value))
            }

            fn close(&self) {}
        }
    };
}
pub(crate) use awaitable;

/// Returns what an awaitable raises to finish with this value.
pub(crate) fn finished(value: &Bound<'_, PyAny>) -> PyErr {
    // A made exception: one that is made when it is raised costs twice as much.
    let stop = value.py().get_type::<PyStopIteration>().call1((value,));
    stop.map_or_else(|error| error, PyErr::from_value)
}

/// Returns the exception that Python throws into an object with nothing to clean up.
pub(crate) fn thrown(kind: &Bound<'_, PyAny>, value: Option<&Bound<'_, PyAny>>) -> PyErr {
    PyErr::from_value(value.filter(|value| !value.is_none()).unwrap_or(kind).clone())
}
