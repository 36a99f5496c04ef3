//! Messages to an ASGI application, and the parsing of those it sends.

use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use gustnado::ForeignHead;

use crate::bytes_like::bytes_of;

/// Returns a message with bytes of the body.
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

/// Returns the message of a disconnect, or of the end of the response.
pub(super) fn disconnect(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let message = PyDict::new(py);
    message.set_item(intern!(py, "type"), intern!(py, "http.disconnect"))?;
    Ok(message)
}

/// Returns the value of a required key.
pub(super) fn expect<'py>(
    message: &Bound<'py, PyDict>,
    key: &Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyAny>> {
    message.get_item(key)?.ok_or_else(|| {
        PyTypeError::new_err(format!("expected a message with {key}, found {message}"))
    })
}

/// Adds the fields of an application: any iterable of names and values.
pub(super) fn add_fields(head: &mut ForeignHead, fields: &Bound<'_, PyAny>) -> PyResult<()> {
    for pair in fields.try_iter()? {
        let pair = pair?;
        // Most are tuples of bytes.
        if let Ok(pair) = pair.cast::<PyTuple>()
            && let [name, value] = pair.as_slice()
            && let (Ok(name), Ok(value)) = (name.cast::<PyBytes>(), value.cast::<PyBytes>())
        {
            add_field(head, name.as_bytes(), value.as_bytes())?;
        } else {
            add_pair(head, &pair)?;
        }
    }
    Ok(())
}

/// Adds a field that is another kind of pair, or of another kind of bytes.
#[cold]
fn add_pair(head: &mut ForeignHead, pair: &Bound<'_, PyAny>) -> PyResult<()> {
    let wrong = || {
        let text = format!("expected a name and a value as a header field, found {pair:?}");
        PyTypeError::new_err(text)
    };
    let mut items = pair.try_iter().map_err(|_| wrong())?;
    let (Some(name), Some(value), None) = (items.next(), items.next(), items.next()) else {
        return Err(wrong());
    };
    let name = bytes_of(&name?, "the name of a header field")?;
    add_field(head, &name, &bytes_of(&value?, "the value of a header field")?)
}

fn add_field(head: &mut ForeignHead, name: &[u8], value: &[u8]) -> PyResult<()> {
    let text = str::from_utf8(name).unwrap_or("");
    head.field(text, value).map_err(|error| {
        let name = String::from_utf8_lossy(name).into_owned();
        PyValueError::new_err(format!("the header field {name:?}: {error}"))
    })
}

/// Checks that the content has the length that its head declares.
pub(super) fn check_length(head: &ForeignHead, length: u64) -> PyResult<()> {
    match head.length() {
        Some(said) if said != length => Err(PyRuntimeError::new_err(format!(
            "Content-Length says {said} bytes, and the content has {length}"
        ))),
        _ => Ok(()),
    }
}
