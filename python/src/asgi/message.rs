//! Messages that an ASGI application receives, and what is read of those that it sends.

use pyo3::exceptions::{PyOSError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use gustnado::ForeignHead;

/// Bytes of the body.
///
/// - `more`: they are not the last.
pub(super) fn http_request<'py>(
    py: Python<'py>,
    piece: &[u8],
    more: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let message = PyDict::new(py);
    message.set_item(intern!(py, "type"), intern!(py, "http.request"))?;
    message.set_item(intern!(py, "body"), PyBytes::new(py, piece))?;
    message.set_item(intern!(py, "more_body"), more)?;
    Ok(message)
}

/// The client has gone, or the answer was sent.
pub(super) fn disconnect(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let message = PyDict::new(py);
    message.set_item(intern!(py, "type"), intern!(py, "http.disconnect"))?;
    Ok(message)
}

/// What a message has under a key that it has to have.
pub(super) fn expect<'py>(
    message: &Bound<'py, PyDict>,
    key: &Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyAny>> {
    message.get_item(key)?.ok_or_else(|| {
        PyTypeError::new_err(format!("expected a message with {key}, found {message}"))
    })
}

/// Adds a field that the application has given.
pub(super) fn add_field(head: &mut ForeignHead, name: &[u8], value: &[u8]) -> PyResult<()> {
    let text = str::from_utf8(name).unwrap_or("");
    head.field(text, value).map_err(|error| {
        let name = String::from_utf8_lossy(name).into_owned();
        PyValueError::new_err(format!("the header field {name:?}: {error}"))
    })
}

/// Checks that all of the content has the length that its head says.
pub(super) fn check_length(head: &ForeignHead, length: u64) -> PyResult<()> {
    match head.length() {
        Some(said) if said != length => Err(PyRuntimeError::new_err(format!(
            "Content-Length says {said} bytes, and the content has {length}"
        ))),
        _ => Ok(()),
    }
}

/// What a send raises when there is nobody to send to.
pub(super) fn gone() -> PyErr {
    PyOSError::new_err("the client has gone")
}
