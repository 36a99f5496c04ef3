//! A WebSocket as handlers get it: `gustnado.WebSocket`.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use gustnado::KeptRequest;
use gustnado::websocket::{CloseCode, MessageKind};

use super::link::SocketLink;
use super::receive::{MessageAwaitable, ReceiveForm};
use crate::awaitables::{ReadyNone, ReadyValue};
use crate::bytes_like::bytes_of;
use crate::guarded::Guarded;
use crate::request::PyRequest;

/// A WebSocket: messages in both directions, text as `str` and the others as `bytes`.
///
/// `async for message in socket` receives until it is closed.
#[pyclass(frozen, module = "gustnado", name = "WebSocket")]
pub(crate) struct PyWebSocket {
    link: Arc<SocketLink>,
    request: Guarded<SocketRequest>,
    subprotocol: Option<Box<str>>,
}

/// The request of a WebSocket.
pub(crate) enum SocketRequest {
    /// Nothing has asked for it.
    Kept(KeptRequest),
    Made(Py<PyRequest>),
}

impl PyWebSocket {
    pub(crate) fn new(
        link: Arc<SocketLink>,
        request: SocketRequest,
        subprotocol: Option<Box<str>>,
    ) -> Self {
        Self { link, request: Guarded::new(request), subprotocol }
    }

    fn next<'py>(&self, py: Python<'py>, form: ReceiveForm) -> PyResult<Bound<'py, PyAny>> {
        match form.next(py, &self.link)? {
            Some(message) => Ok(Bound::new(py, ReadyValue::new(message.unbind()))?.into_any()),
            None => MessageAwaitable::next(py, &self.link, form),
        }
    }
}

#[pymethods]
impl PyWebSocket {
    /// The request that has asked for it.
    #[getter]
    fn request(&self, py: Python<'_>) -> PyResult<Py<PyRequest>> {
        let restored = match &*self.request.borrow_mut() {
            SocketRequest::Made(request) => return Ok(request.clone_ref(py)),
            SocketRequest::Kept(kept) => kept.restore(),
        };
        let request = Py::new(py, PyRequest::new(restored, None, None))?;
        drop(self.request.replace(SocketRequest::Made(request.clone_ref(py))));
        Ok(request)
    }

    /// The subprotocol that was agreed on.
    #[getter]
    fn subprotocol(&self) -> Option<&str> {
        self.subprotocol.as_deref()
    }

    /// The code it was closed with; `None` while it is open. 1005: the peer gave none. 1006: the
    /// connection was lost.
    #[getter]
    fn close_code(&self) -> Option<u16> {
        self.link.ended().map(|end| end.code)
    }

    /// The reason it was closed for; empty if none was given, `None` while it is open.
    #[getter]
    fn close_reason(&self) -> Option<String> {
        self.link.ended().map(|end| end.reason.unwrap_or_default().into())
    }

    /// Returns an awaitable of the next message. It raises `ClientDisconnected` once the WebSocket
    /// is closed.
    fn receive<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.next(py, ReceiveForm::Value)
    }

    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __anext__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.next(py, ReceiveForm::Iteration)
    }

    /// Sends a message. Returns an awaitable, which waits while much is unsent.
    ///
    /// Raises `ClientDisconnected` if the client has disconnected.
    fn send<'py>(&self, message: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = message.py();
        with_bytes(message, |kind, bytes| self.link.send(py, kind, bytes))?
    }

    /// Sends a message, if that need not wait. Returns whether it was sent: not to a client that
    /// takes messages too slowly, or has disconnected.
    fn try_send(&self, message: &Bound<'_, PyAny>) -> PyResult<bool> {
        with_bytes(message, |kind, bytes| self.link.try_send(kind, bytes))
    }

    /// Closes it. Without effect on one that is closed. Returns an awaitable, which need not be
    /// awaited.
    ///
    /// - `code`: 1000 to 1003, 1007 to 1014, or 3000 to 4999.
    /// - `reason`: for the client; cut after 123 bytes.
    #[pyo3(signature = (code = 1000, reason = ""))]
    fn close(&self, py: Python<'_>, code: u16, reason: &str) -> PyResult<Py<ReadyNone>> {
        let code = CloseCode(code);
        if !code.may_be_sent() {
            let text = format!("expected a close code such as 1000 or 3000 to 4999, found {code}");
            return Err(PyValueError::new_err(text));
        }
        if self.link.ended().is_none() {
            self.link.close(code, reason);
        }
        Ok(self.link.context().done.clone_ref(py))
    }

    fn __repr__(&self) -> &'static str {
        if self.link.ended().is_none() { "<WebSocket>" } else { "<WebSocket closed>" }
    }
}

/// Calls `call` with the bytes of a message: of text, or of an object with the buffer protocol.
fn with_bytes<T>(
    message: &Bound<'_, PyAny>,
    call: impl FnOnce(MessageKind, &[u8]) -> T,
) -> PyResult<T> {
    if let Ok(text) = message.cast::<PyString>() {
        return Ok(call(MessageKind::Text, text.to_str()?.as_bytes()));
    }
    if let Ok(bytes) = message.cast::<PyBytes>() {
        return Ok(call(MessageKind::Binary, bytes.as_bytes()));
    }
    let bytes = bytes_of(message, "a message that is not text")?;
    Ok(call(MessageKind::Binary, &bytes))
}
