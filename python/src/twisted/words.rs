//! Field names and log words in Twisted's spelling.

use std::fmt::Write as _;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::name_cache::NameCache;

/// Cached words of heads.
pub(crate) struct HeadWords {
    encode: Py<PyAny>,
    known: NameCache<PyBytes>,
    pub(super) spelled: Spelled,
}

/// The fixed ones.
pub(super) struct Spelled {
    versions: [Py<PyBytes>; 2],
    get: Py<PyBytes>,
    post: Py<PyBytes>,
    pub(super) connection: Py<PyBytes>,
    pub(super) content_length: Py<PyBytes>,
    pub(super) content_type: Py<PyBytes>,
    pub(super) date: Py<PyBytes>,
    pub(super) referer: Py<PyBytes>,
    pub(super) server: Py<PyBytes>,
    pub(super) user_agent: Py<PyBytes>,
}

/// Maximum number of cached field names.
const NAMES_MAX: usize = 1024;

impl HeadWords {
    /// - `encode`: Twisted's own function.
    pub(crate) fn new(py: Python<'_>, encode: Py<PyAny>) -> Self {
        let word = |text: &[u8]| PyBytes::new(py, text).unbind();
        let spelled = Spelled {
            versions: [word(b"HTTP/1.0"), word(b"HTTP/1.1")],
            get: word(b"GET"),
            post: word(b"POST"),
            connection: word(b"Connection"),
            content_length: word(b"Content-Length"),
            content_type: word(b"Content-Type"),
            date: word(b"Date"),
            referer: word(b"Referer"),
            server: word(b"Server"),
            user_agent: word(b"User-Agent"),
        };
        Self { encode, known: NameCache::new(NAMES_MAX), spelled }
    }

    /// Returns a field's name as the channels spell it.
    pub(super) fn of<'py>(&self, py: Python<'py>, name: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        self.known.of(py, name, || {
            let encoded = self.encode.bind(py).call1((PyBytes::new(py, name),))?;
            Ok(encoded.cast_into::<PyBytes>()?)
        })
    }

    pub(super) fn version<'py>(&self, py: Python<'py>, is_old: bool) -> Bound<'py, PyBytes> {
        self.spelled.versions[usize::from(!is_old)].bind(py).clone()
    }

    pub(super) fn method<'py>(&self, py: Python<'py>, method: &[u8]) -> Bound<'py, PyBytes> {
        match method {
            b"GET" => self.spelled.get.bind(py).clone(),
            b"POST" => self.spelled.post.bind(py).clone(),
            _ => PyBytes::new(py, method),
        }
    }

    /// Returns whether it is a usual method; a response to HEAD, for example, has no content.
    pub(super) fn is_usual_method(&self, method: &Bound<'_, PyAny>) -> bool {
        method.is(&self.spelled.get) || method.is(&self.spelled.post)
    }
}

/// Returns what Twisted's `_escape` does: a bytes literal without its quotes, in which double
/// quotes are escaped and single ones are not.
#[pyfunction]
pub(crate) fn escape_for_log<'py>(word: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    let py = word.py();
    if let Ok(bytes) = word.cast::<PyBytes>() {
        return Ok(PyString::new(py, &escaped(bytes.as_bytes())));
    }
    // Text with other letters is an error there, too.
    let encoded = word.call_method1("encode", ("ascii",))?;
    Ok(PyString::new(py, &escaped(encoded.cast::<PyBytes>()?.as_bytes())))
}

pub(super) fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 8);
    for byte in bytes {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'\t' => text.push_str("\\t"),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b' '..=b'~' => text.push(char::from(*byte)),
            // A string takes all text.
            _ => _ = write!(text, "\\x{byte:02x}"),
        }
    }
    text
}
