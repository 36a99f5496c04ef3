//! Words of Twisted's access log.

use std::fmt::Write as _;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// What Twisted's own `_escape` says: a bytes literal without its quotes, in which double quotes
/// are escaped and single ones are not.
#[pyfunction]
pub(crate) fn escape_for_log<'py>(word: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    let py = word.py();
    if let Ok(bytes) = word.cast::<PyBytes>() {
        return Ok(PyString::new(py, &escaped(bytes.as_bytes())));
    }
    // (Text of other letters is an error there, too.)
    let encoded = word.call_method1("encode", ("ascii",))?;
    Ok(PyString::new(py, &escaped(encoded.cast::<PyBytes>()?.as_bytes())))
}

fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 8);
    for byte in bytes {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'\t' => text.push_str("\\t"),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b' '..=b'~' => text.push(char::from(*byte)),
            // (A string takes all text.)
            _ => _ = write!(text, "\\x{byte:02x}"),
        }
    }
    text
}
