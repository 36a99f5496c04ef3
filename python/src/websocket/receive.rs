//! The awaitable of the next message.

use std::sync::Arc;

use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use gustnado::websocket::WebSocketMessage;

use super::link::{NextMessage, SocketEnd, SocketLink};
use super::waiter::MessageWaiter;
use crate::awaitable::{finished, thrown};
use crate::errors::client_disconnected;
use crate::guarded::Guarded;

/// What a message and the end are for Python.
#[derive(Clone, Copy)]
pub(crate) enum ReceiveForm {
    /// Dictionaries of ASGI: `websocket.receive`, and `websocket.disconnect` once.
    Asgi,
    /// Text or bytes; `ClientDisconnected` at the end.
    Value,
    /// The same; `StopAsyncIteration` at the end.
    Iteration,
}

/// Awaits the next message. It passes for a coroutine.
#[pyclass(frozen, module = "gustnado._gustnado")]
pub(crate) struct MessageAwaitable {
    link: Arc<SocketLink>,
    form: Guarded<ReceiveForm>,
    wait: Guarded<MessageWait>,
}

/// How the task waits that awaits a message.
#[derive(Default)]
enum MessageWait {
    #[default]
    No,
    /// It is the handler's, and the link keeps its next step.
    ByStep,
    ByWaiter(Py<MessageWaiter>),
}

impl MessageAwaitable {
    /// Returns the awaitable of the next message.
    pub(crate) fn next<'py>(
        py: Python<'py>,
        link: &Arc<SocketLink>,
        form: ReceiveForm,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(spare) = link.spare_awaitable(py) {
            spare.cast::<Self>()?.get().form.set(form);
            return Ok(spare);
        }
        let (form, wait) = (Guarded::new(form), Guarded::default());
        let made = Bound::new(py, Self { link: Arc::clone(link), form, wait })?.into_any();
        link.keep_awaitable(made.clone().unbind());
        Ok(made)
    }

    /// Raises `StopIteration` with the next message, or returns what to wait for.
    fn resume(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.abandon();
        if let Some(message) = self.form.get().next(py, &self.link)? {
            return Err(finished(&message));
        }
        if self.link.hold_step(py)? {
            *self.wait.borrow_mut() = MessageWait::ByStep;
            return Ok(py.None());
        }
        let waiter = Py::new(py, self.link.waiter(py))?;
        self.link.add_waiter(waiter.clone_ref(py));
        *self.wait.borrow_mut() = MessageWait::ByWaiter(waiter.clone_ref(py));
        Ok(waiter.into_any())
    }

    fn abandon(&self) {
        match self.wait.take() {
            MessageWait::No => {}
            MessageWait::ByStep => drop(self.link.take_step()),
            MessageWait::ByWaiter(waiter) => waiter.get().abandon(),
        }
    }
}

#[pymethods]
impl MessageAwaitable {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.resume(py)
    }

    fn send(&self, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.resume(value.py())
    }

    #[pyo3(signature = (kind, value = None, _trace = None))]
    fn throw(
        &self,
        kind: &Bound<'_, PyAny>,
        value: Option<&Bound<'_, PyAny>>,
        _trace: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.abandon();
        Err(thrown(kind, value))
    }

    fn close(&self) {
        self.abandon();
    }
}

impl ReceiveForm {
    /// Takes the next message out, or the end; `None`: there is none yet.
    ///
    /// # Errors
    /// The exception that says that there is no more.
    pub(crate) fn next<'py>(
        self,
        py: Python<'py>,
        link: &SocketLink,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match (link.next(), self) {
            (NextMessage::Nothing, _) => Ok(None),
            (NextMessage::Message(message), Self::Asgi) => asgi_message(py, &message).map(Some),
            (NextMessage::Message(message), _) => Ok(Some(value(py, &message))),
            (NextMessage::End(end), Self::Asgi) => disconnect(py, &end).map(Some),
            (NextMessage::End(_) | NextMessage::Over, Self::Iteration) => {
                Err(PyStopAsyncIteration::new_err(()))
            }
            (NextMessage::End(end), Self::Value) => {
                let reason = end.reason.as_deref().unwrap_or_default();
                let text = format!("the WebSocket is closed: {} {reason}", end.code);
                Err(client_disconnected(text.trim_end()))
            }
            (NextMessage::Over, _) => Err(client_disconnected("the WebSocket is closed")),
        }
    }
}

fn value<'py>(py: Python<'py>, message: &WebSocketMessage) -> Bound<'py, PyAny> {
    match message {
        WebSocketMessage::Text(text) => PyString::new(py, text).into_any(),
        WebSocketMessage::Binary(bytes) => PyBytes::new(py, bytes).into_any(),
    }
}

fn asgi_message<'py>(py: Python<'py>, message: &WebSocketMessage) -> PyResult<Bound<'py, PyAny>> {
    let event = PyDict::new(py);
    event.set_item(intern!(py, "type"), intern!(py, "websocket.receive"))?;
    let key = match message {
        WebSocketMessage::Text(_) => intern!(py, "text"),
        WebSocketMessage::Binary(_) => intern!(py, "bytes"),
    };
    event.set_item(key, value(py, message))?;
    Ok(event.into_any())
}

fn disconnect<'py>(py: Python<'py>, end: &SocketEnd) -> PyResult<Bound<'py, PyAny>> {
    let event = PyDict::new(py);
    event.set_item(intern!(py, "type"), intern!(py, "websocket.disconnect"))?;
    event.set_item(intern!(py, "code"), end.code)?;
    if let Some(reason) = &end.reason {
        event.set_item(intern!(py, "reason"), &**reason)?;
    }
    Ok(event.into_any())
}
