//! Bytes of Python programs: usually `bytes`, or any object with the buffer protocol.

use bytes::Bytes;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

use crate::pipe::owned;

/// The bytes of `bytes`, `bytearray`, `memoryview`, `array.array` and the like. `bytes` are not
/// copied where they are long; what may change later is.
///
/// - `what`: what it is, for the error.
///
/// # Errors
/// `TypeError`: it is none of them.
pub(crate) fn bytes_of(value: &Bound<'_, PyAny>, what: &str) -> PyResult<Bytes> {
    match value.cast::<PyBytes>() {
        Ok(bytes) => Ok(owned(bytes.clone().into())),
        Err(_) => copied(value)?.map(|bytes| owned(bytes.into())).ok_or_else(|| {
            let found = value.get_type();
            PyTypeError::new_err(format!("expected bytes as {what}, found {found}"))
        }),
    }
}

/// The bytes of an object that shows its memory; `None`: it does not.
#[cold]
pub(crate) fn copied<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let py = value.py();
    let Ok(view) = PyMemoryView::from(value) else { return Ok(None) };
    let bytes = view.call_method0(intern!(py, "tobytes"))?.cast_into::<PyBytes>()?;
    view.call_method0(intern!(py, "release"))?;
    Ok(Some(bytes))
}
