//! Bytes of Python programs: usually `bytes`, or any object with the buffer protocol.

use bytes::Bytes;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

use crate::pipe::owned;

/// Returns the bytes of `bytes`, `bytearray`, `memoryview`, `array.array` and the like. Long
/// `bytes` are shared; mutable objects are copied.
///
/// - `what`: what it is, for the error.
///
/// # Errors
/// `TypeError` for any other object.
pub(crate) fn bytes_of(value: &Bound<'_, PyAny>, what: &str) -> PyResult<Bytes> {
    match value.cast::<PyBytes>() {
        Ok(bytes) => Ok(owned(bytes.clone().into())),
        Err(_) => copied(value)?.map(|bytes| owned(bytes.into())).ok_or_else(|| {
            let found = value.get_type();
            PyTypeError::new_err(format!("expected bytes as {what}, found {found}"))
        }),
    }
}

/// Returns the bytes of an object with the buffer protocol; `None` without it.
#[cold]
pub(crate) fn copied<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let py = value.py();
    let Ok(view) = PyMemoryView::from(value) else { return Ok(None) };
    let bytes = view.call_method0(intern!(py, "tobytes"))?.cast_into::<PyBytes>()?;
    view.call_method0(intern!(py, "release"))?;
    Ok(Some(bytes))
}
