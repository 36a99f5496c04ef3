//! One WebSocket as an ASGI application sees it: `receive` and `send`.
//!
//! Until the application accepts, it is a request that has no response. Then its messages go
//! through a [`SocketLink`].

use std::borrow::Cow;
use std::sync::{Arc, MutexGuard};

use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyWeakrefMethods, PyWeakrefReference};

use gustnado::websocket::{CloseCode, MessageKind, WebSocketOffer};
use gustnado::{ForeignHead, Reply, Request, Response, Status, reply_later};

use super::callee::AsgiCallee;
use super::exchange::{AsgiExchange, ResponseSink, SendOutcome};
use super::message::{add_fields, expect};
use crate::awaitables::{ReadyNone, ReadyValue};
use crate::bytes_like::bytes_of;
use crate::coroutine::Pause;
use crate::errors::client_disconnected;
use crate::guarded::Guarded;
use crate::websocket::{
    CloseOrigin, LinkEnd, MessageAwaitable, Pump, ReceiveForm, SocketEnd, SocketLink,
};

/// A WebSocket of an application.
#[pyclass(frozen, weakref, module = "gustnado._gustnado")]
pub(super) struct AsgiSocket {
    link: Arc<SocketLink>,
    state: Guarded<AsgiSocketState>,
    /// For the log: the target of its request.
    target: Box<str>,
    done: Py<ReadyNone>,
    pause: Py<Pause>,
}

struct AsgiSocketState {
    phase: SocketPhase,
    /// `websocket.connect` was received.
    is_connected: bool,
}

/// What the application may do next.
enum SocketPhase {
    /// Answer the handshake.
    Asked(Box<OpenHandshake>),
    /// Send the rest of a response in its place.
    Denying(Py<AsgiExchange>),
    /// Nothing: the handshake was answered, and the response is to be taken.
    Answered(ResponseSink),
    /// Send and receive.
    Accepted(ResponseSink),
}

/// A handshake without an answer.
struct OpenHandshake {
    request: Request,
    offer: WebSocketOffer,
    to: ResponseSink,
}

impl AsgiSocket {
    pub(super) fn new(
        (request, offer): (Request, WebSocketOffer),
        link: Arc<SocketLink>,
        done: Py<ReadyNone>,
        pause: Py<Pause>,
    ) -> Self {
        let target = request.target().into();
        let handshake = OpenHandshake { request, offer, to: ResponseSink::Unclaimed };
        let phase = SocketPhase::Asked(Box::new(handshake));
        let state = Guarded::new(AsgiSocketState { phase, is_connected: false });
        Self { link, state, target, done, pause }
    }

    fn state(&self) -> MutexGuard<'_, AsgiSocketState> {
        self.state.borrow_mut()
    }

    /// Takes the handshake for an answer.
    ///
    /// # Errors
    /// It was answered, or the client has gone.
    fn take_handshake(&self, kind: &str) -> PyResult<Box<OpenHandshake>> {
        self.check_peer()?;
        let mut state = self.state();
        let given = SocketPhase::Answered(ResponseSink::Given);
        match std::mem::replace(&mut state.phase, given) {
            SocketPhase::Asked(handshake) => Ok(handshake),
            other => {
                state.phase = other;
                Err(PyRuntimeError::new_err(format!("{kind}: the handshake was answered before")))
            }
        }
    }

    fn check_peer(&self) -> PyResult<()> {
        match self.link.ended() {
            Some(end) if end.by == CloseOrigin::Peer => {
                self.link.note_loss_known();
                Err(client_disconnected("the client has disconnected"))
            }
            _ => Ok(()),
        }
    }

    /// Passes the answer to its consumer, or keeps it.
    fn give(to: ResponseSink, response: Response) -> ResponseSink {
        match to {
            ResponseSink::Client(replier) => {
                _ = replier.respond(response);
                ResponseSink::Given
            }
            ResponseSink::Unclaimed => ResponseSink::Kept(Box::new(response)),
            other => other,
        }
    }

    /// Opens the WebSocket. Returns what to await: until then nothing can be sent.
    fn accept<'py>(&self, message: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
        let py = message.py();
        let status = Status::UPGRADE_REQUIRED.code();
        let mut head = ForeignHead::new(status, "").expect("it is a status");
        if let Some(fields) = message.get_item(intern!(py, "headers"))?
            && !fields.is_none()
        {
            add_fields(&mut head, &fields)?;
        }
        let subprotocol = match message.get_item(intern!(py, "subprotocol"))? {
            Some(name) if !name.is_none() => Some(name.extract::<String>()?),
            _ => None,
        };
        check_subprotocol(subprotocol.as_deref())?;
        let handshake = self.take_handshake("websocket.accept")?;
        let OpenHandshake { offer, to, request } = *handshake;
        let opening = self.link.wait_for_open(py)?;
        let link_end = LinkEnd::new(&self.link);
        let base = own_fields_removed(head.without_content(), subprotocol.is_some());
        let response = offer
            .speaking(subprotocol.as_deref())
            .accept(base, move |socket| Pump::new(link_end, socket));
        drop(request);
        let to = Self::give(to, response);
        self.state().phase = SocketPhase::Accepted(to);
        Ok(opening)
    }

    /// Refuses the handshake, or closes.
    fn close(&self, message: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = message.py();
        let code = match message.get_item(intern!(py, "code"))? {
            Some(code) if !code.is_none() => CloseCode(code.extract()?),
            _ => CloseCode::NORMAL,
        };
        if !code.may_be_sent() {
            let text = format!("expected a close code such as 1000 or 3000 to 4999, found {code}");
            return Err(PyValueError::new_err(text));
        }
        let reason = match message.get_item(intern!(py, "reason"))? {
            Some(reason) if !reason.is_none() => reason.extract::<String>()?,
            _ => String::new(),
        };
        self.check_peer()?;
        if matches!(self.state().phase, SocketPhase::Asked(_)) {
            let handshake = self.take_handshake("websocket.close")?;
            let to = Self::give(handshake.to, Response::new(Status::FORBIDDEN));
            self.state().phase = SocketPhase::Answered(to);
            self.link.end(SocketEnd::without_frame(CloseOrigin::Program));
            return Ok(());
        }
        if self.link.ended().is_some() || !matches!(self.state().phase, SocketPhase::Accepted(_)) {
            return Err(PyRuntimeError::new_err("websocket.close: the WebSocket is closed"));
        }
        self.link.close(code, &reason);
        Ok(())
    }

    /// Sends a message.
    fn send_message<'py>(&self, message: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
        let py = message.py();
        if matches!(self.state().phase, SocketPhase::Asked(_)) {
            self.check_peer()?;
            return Err(PyRuntimeError::new_err("websocket.accept has to be sent first"));
        }
        if let Some(bytes) = message.get_item(intern!(py, "bytes"))?
            && !bytes.is_none()
        {
            if let Ok(bytes) = bytes.cast::<PyBytes>() {
                return self.link.send(py, MessageKind::Binary, bytes.as_bytes());
            }
            let bytes = bytes_of(&bytes, "the bytes of a message")?;
            return self.link.send(py, MessageKind::Binary, &bytes);
        }
        match message.get_item(intern!(py, "text"))? {
            Some(text) if !text.is_none() => {
                let text = text.cast::<PyString>()?;
                self.link.send(py, MessageKind::Text, text.to_str()?.as_bytes())
            }
            _ => Err(PyTypeError::new_err(format!(
                "expected a message with bytes or text, found {message}"
            ))),
        }
    }

    /// Begins a response in place of the WebSocket.
    fn deny<'py>(&self, message: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
        let py = message.py();
        let OpenHandshake { request, offer, to } =
            *self.take_handshake("websocket.http.response.start")?;
        drop(offer);
        let exchange = Bound::new(
            py,
            AsgiExchange::responding_to(
                request,
                self.link.context().event_loop.clone_ref(py),
                self.done.clone_ref(py),
                self.pause.clone_ref(py),
                to,
            ),
        )?;
        self.state().phase = SocketPhase::Denying(exchange.clone().unbind());
        exchange.get().begin(message)?;
        AsgiExchange::awaitable(&exchange, SendOutcome::Kept)
    }

    /// Sends content of that response.
    fn deny_more<'py>(&self, message: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
        let py = message.py();
        let exchange = if let SocketPhase::Denying(exchange) = &self.state().phase {
            exchange.clone_ref(py).into_bound(py)
        } else {
            let text = "websocket.http.response.start has to be sent first";
            return Err(PyRuntimeError::new_err(text));
        };
        let outcome = AsgiExchange::go_on(&exchange, message)?;
        if exchange.get().is_complete() {
            self.link.end(SocketEnd::without_frame(CloseOrigin::Program));
        }
        AsgiExchange::awaitable(&exchange, outcome)
    }

    /// The client has gone, or has its response.
    fn lose(slf: &Bound<'_, Self>) {
        let exchange = match &slf.get().state().phase {
            SocketPhase::Denying(exchange) => Some(exchange.clone_ref(slf.py())),
            _ => None,
        };
        if let Some(exchange) = exchange {
            AsgiExchange::lose(exchange.bind(slf.py()));
        }
        slf.get().link.end(SocketEnd::without_frame(CloseOrigin::Peer));
    }
}

impl AsgiCallee for AsgiSocket {
    fn link<'s>(slf: &'s Bound<'_, Self>) -> Option<&'s Arc<SocketLink>> {
        Some(&slf.get().link)
    }

    fn take_response(slf: &Bound<'_, Self>) -> Option<Response> {
        let mut state = slf.get().state();
        match &mut state.phase {
            SocketPhase::Asked(_) => None,
            SocketPhase::Denying(exchange) => {
                let exchange = exchange.clone_ref(slf.py());
                drop(state);
                AsgiExchange::take_response(exchange.bind(slf.py()))
            }
            SocketPhase::Answered(to) | SocketPhase::Accepted(to) => to.take_kept(),
        }
    }

    fn wait(slf: &Bound<'_, Self>) -> PyResult<Reply> {
        let (replier, reply) = reply_later();
        let weak = PyWeakrefReference::new(slf)?.unbind();
        replier.on_lost(move || {
            Python::attach(|py| {
                if let Ok(Some(socket)) = weak.bind(py).upgrade_as::<Self>() {
                    Self::lose(&socket);
                }
            });
        });
        let mut state = slf.get().state();
        match &mut state.phase {
            SocketPhase::Asked(handshake) => handshake.to = ResponseSink::Client(replier),
            SocketPhase::Denying(exchange) => {
                exchange.get().set_sink(ResponseSink::Client(replier));
            }
            SocketPhase::Answered(to) | SocketPhase::Accepted(to) => {
                *to = ResponseSink::Client(replier);
            }
        }
        Ok(reply)
    }

    fn end(slf: &Bound<'_, Self>, has_failed: bool) -> Option<Cow<'static, str>> {
        let mut state = slf.get().state();
        match &mut state.phase {
            SocketPhase::Asked(handshake) => {
                // A missing response becomes 500.
                let to = std::mem::replace(&mut handshake.to, ResponseSink::Given);
                drop(state);
                drop(to);
                let is_lost = slf.get().link.ended().is_some();
                // A task of the application may still wait for an event.
                slf.get().link.end(SocketEnd::without_frame(CloseOrigin::Program));
                (!is_lost).then_some("has not answered the handshake".into())
            }
            SocketPhase::Denying(exchange) => {
                let exchange = exchange.clone_ref(slf.py());
                drop(state);
                slf.get().link.end(SocketEnd::without_frame(CloseOrigin::Program));
                AsgiExchange::end(exchange.bind(slf.py()), has_failed)
            }
            SocketPhase::Answered(_) => None,
            SocketPhase::Accepted(_) => {
                drop(state);
                let code = if has_failed { CloseCode::INTERNAL_ERROR } else { CloseCode::NORMAL };
                slf.get().link.close(code, "");
                None
            }
        }
    }

    fn name(slf: &Bound<'_, Self>) -> String {
        format!("WebSocket {}", slf.get().target)
    }

    fn knows_loss(slf: &Bound<'_, Self>) -> bool {
        slf.get().link.is_loss_known()
    }
}

#[pymethods]
impl AsgiSocket {
    fn receive<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if !std::mem::replace(&mut slf.get().state().is_connected, true) {
            let event = PyDict::new(py);
            event.set_item(intern!(py, "type"), intern!(py, "websocket.connect"))?;
            let ready = ReadyValue::new(event.into_any().unbind());
            return Ok(Bound::new(py, ready)?.into_any());
        }
        let (link, form) = (&slf.get().link, ReceiveForm::Asgi);
        match form.next(py, link)? {
            Some(event) => Ok(Bound::new(py, ReadyValue::new(event.unbind()))?.into_any()),
            None => MessageAwaitable::next(py, link, form),
        }
    }

    fn send<'py>(&self, message: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
        let py = message.py();
        let kind = expect(message, intern!(py, "type"))?;
        let done = || self.done.bind(py).clone().into_any();
        match kind.cast::<PyString>()?.to_str()? {
            "websocket.send" => self.send_message(message),
            "websocket.accept" => self.accept(message),
            "websocket.close" => self.close(message).map(|()| done()),
            "websocket.http.response.start" => self.deny(message),
            "websocket.http.response.body" => self.deny_more(message),
            other => Err(PyValueError::new_err(format!(
                "expected websocket.accept, websocket.send, websocket.close or \
                 websocket.http.response.start, found {other:?}"
            ))),
        }
    }
}

/// Raises `ValueError` for a subprotocol that no field can have.
fn check_subprotocol(name: Option<&str>) -> PyResult<()> {
    let is_of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let is_token = |name: &str| !name.is_empty() && name.bytes().all(is_of_token);
    match name {
        Some(name) if !is_token(name) => {
            let text = format!("expected a subprotocol, which is a token, found {name:?}");
            Err(PyValueError::new_err(text))
        }
        _ => Ok(()),
    }
}

/// Removes what the handshake says itself.
fn own_fields_removed(mut response: Response, has_subprotocol: bool) -> Response {
    response.remove_header("sec-websocket-accept");
    response.remove_header("sec-websocket-extensions");
    if has_subprotocol {
        response.remove_header("sec-websocket-protocol");
    }
    response
}
