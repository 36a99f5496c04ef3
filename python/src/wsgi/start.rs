//! `start_response` and its `write` callable.

use std::sync::MutexGuard;

use bytes::Bytes;
use pyo3::exceptions::{PyAssertionError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyString, PyTuple};

use gustnado::ForeignHead;

use crate::guarded::Guarded;

/// The `start_response` callable of one request.
#[pyclass(frozen, freelist = 64, module = "gustnado._gustnado")]
#[derive(Default)]
pub(super) struct StartResponse(Guarded<StartedResponse>);

#[derive(Default)]
struct StartedResponse {
    head: Option<ForeignHead>,
    /// It was called, and the head may have been sent by now.
    was_called: bool,
    /// Bytes written by the callable that it returns.
    written: Vec<u8>,
}

#[pymethods]
impl StartResponse {
    #[pyo3(signature = (status, headers, exc_info = None))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        status: &Bound<'py, PyString>,
        headers: &Bound<'py, PyAny>,
        exc_info: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let exc_info = exc_info.filter(|given| !given.is_none());
        let head = head_of(status.to_str()?, headers)?;
        let mut said = slf.get().said();
        match exc_info {
            None if said.was_called => {
                let text = "start_response was called before; call it again with exc_info only";
                return Err(PyAssertionError::new_err(text));
            }
            // The head was sent already: only cutting the response is left.
            Some(exc_info) if said.was_called && said.head.is_none() => {
                drop(said);
                let raised = exc_info.cast::<PyTuple>()?.get_item(1)?;
                return Err(PyErr::from_value(raised));
            }
            _ => {}
        }
        said.head = Some(head);
        said.was_called = true;
        drop(said);
        slf.getattr(intern!(py, "write"))
    }

    /// Writes content, for applications that use no iterable.
    #[expect(clippy::needless_pass_by_value, reason = "Python passes it by value")]
    fn write(&self, piece: PyBackedBytes) {
        self.said().written.extend_from_slice(&piece);
    }
}

impl StartResponse {
    fn said(&self) -> MutexGuard<'_, StartedResponse> {
        self.0.borrow_mut()
    }

    pub(super) fn is_said(&self) -> bool {
        self.said().was_called
    }

    /// Takes the head, which is final then, and the written bytes.
    pub(super) fn take(&self) -> PyResult<(ForeignHead, Bytes)> {
        let mut said = self.said();
        let written = std::mem::take(&mut said.written).into();
        let head = said.head.take().ok_or_else(|| {
            PyAssertionError::new_err("the application has returned without calling start_response")
        })?;
        Ok((head, written))
    }
}

/// - `status`: three digits, a space, a phrase.
fn head_of(status: &str, headers: &Bound<'_, PyAny>) -> PyResult<ForeignHead> {
    let (code, reason) = status.split_once(' ').unwrap_or((status, ""));
    let head = code.parse().ok().and_then(|code| ForeignHead::new(code, reason).ok());
    let mut head = head.ok_or_else(|| {
        PyValueError::new_err(format!("expected a status such as '200 OK', found {status:?}"))
    })?;
    for pair in headers.try_iter()? {
        let pair = pair?;
        let wrong = |_| {
            let text = format!("expected a pair of strings as a header field, found {pair:?}");
            PyTypeError::new_err(text)
        };
        let (name, value): (Bound<'_, PyString>, Bound<'_, PyString>) =
            pair.extract().map_err(wrong)?;
        add(&mut head, name.to_str()?, value.to_str()?)?;
    }
    Ok(head)
}

fn add(head: &mut ForeignHead, name: &str, value: &str) -> PyResult<()> {
    let refused = |why: &str| PyValueError::new_err(format!("the header field {name:?}: {why}"));
    let added = if value.is_ascii() {
        head.field(name, value.as_bytes())
    } else {
        let bytes: Result<Vec<u8>, _> = value.chars().map(u8::try_from).collect();
        head.field(name, &bytes.map_err(|_| refused("its value is not Latin-1"))?)
    };
    added.map_err(|error| refused(&error.to_string()))
}
