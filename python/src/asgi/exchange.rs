//! One request and its response, as an ASGI application sees them: `receive` and `send`.
//!
//! The connection and the body hold an exchange by weak references only, so the application's task
//! alone keeps it alive. One that is dropped without a response responds with 500.

mod sending;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::thread::{self, ThreadId};
use std::time::Instant;

use bytes::Bytes;
use futures_core::Stream;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyWeakrefMethods, PyWeakrefReference};

use gustnado::{BodyError, ForeignHead, Replier, Reply, Request, Response, reply_later};

use super::callee::AsgiCallee;
use super::message::{self, expect};
use crate::awaitables::{LoopFuture, ReadyNone, ReadyValue};
use crate::coroutine::{LoopTurn, NotOurs, Pause, is_done};
use crate::errors::client_disconnected;
use crate::guarded::Guarded;
use crate::pipe::PipeWriter;
use crate::websocket::SocketLink;
pub(super) use sending::SendOutcome;

/// A request and its response.
#[pyclass(frozen, weakref, module = "gustnado._gustnado")]
pub(super) struct AsgiExchange {
    state: Guarded<ExchangeState>,
    pub(super) event_loop: Py<PyAny>,
    /// Used on the loop only.
    thread: ThreadId,
    done: Py<ReadyNone>,
    pause: Py<Pause>,
}

pub(super) struct ExchangeState {
    pub(super) request: Request,
    /// Bytes of its body that were received.
    taken: u64,
    /// Its body was received up to the end.
    has_all: bool,
    /// The next bytes of the body, or none at its end, that arrived while no `receive` waited.
    ahead: Option<Bytes>,
    pub(super) phase: SendPhase,
    pub(super) to: ResponseSink,
    /// The application got the disconnect of the client.
    knows_loss: bool,
    /// Futures of waiting `receive` calls.
    receivers: VecDeque<Py<PyAny>>,
    /// When a message of the application was last accepted for sending.
    pub(super) left: Option<Instant>,
    /// A file that was to be sent and does not exist.
    pub(super) missing: Option<PathBuf>,
}

/// The messages that the application may send next.
pub(super) enum SendPhase {
    Head,
    /// Content, after this head.
    Content(ForeignHead),
    /// More content: the head was sent.
    More(PipeWriter),
    /// More content, which the response to this request never has: it is discarded.
    Discarded,
    /// None: the response is complete.
    Over,
    /// None: the client has disconnected, or its body is broken.
    Lost,
}

/// The consumer of the response.
pub(super) enum ResponseSink {
    /// None yet: the application is in its first step.
    Unclaimed,
    /// The response is kept for `take_response`.
    Kept(Box<Response>),
    Client(Replier),
    /// It was passed on.
    Given,
}

impl AsgiExchange {
    pub(super) fn new(
        request: Request,
        event_loop: Py<PyAny>,
        done: Py<ReadyNone>,
        pause: Py<Pause>,
    ) -> Self {
        Self::responding_to(request, event_loop, done, pause, ResponseSink::Unclaimed)
    }

    /// The same with a consumer of the response.
    pub(super) fn responding_to(
        request: Request,
        event_loop: Py<PyAny>,
        done: Py<ReadyNone>,
        pause: Py<Pause>,
        to: ResponseSink,
    ) -> Self {
        let phase = SendPhase::Head;
        let state = ExchangeState {
            request,
            taken: 0,
            has_all: false,
            ahead: None,
            phase,
            to,
            knows_loss: false,
            receivers: VecDeque::new(),
            left: None,
            missing: None,
        };
        let thread = thread::current().id();
        Self { state: Guarded::new(state), event_loop, thread, done, pause }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, ExchangeState> {
        self.state.borrow_mut()
    }

    /// The coroutine that a call on another thread returns: it does its work once it is awaited, on
    /// the loop. (Adapters of WSGI call `receive` and `send` on their threads, and await the
    /// results on the loop. With work in both places, events between two steps would be lost.)
    fn elsewhere<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyString>,
        message: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if thread::current().id() == slf.get().thread {
            return Ok(None);
        }
        let later = slf.py().import("gustnado._elsewhere")?.getattr("on_the_loop")?;
        let method = slf.getattr(name)?;
        match message {
            None => later.call1((method,)).map(Some),
            Some(message) => later.call1((method, message)).map(Some),
        }
    }

    /// Calls `read` with the request.
    pub(super) fn with_request<T>(&self, read: impl FnOnce(&Request) -> T) -> T {
        read(&self.state().request)
    }

    /// Replaces the consumer of the response.
    pub(super) fn set_sink(&self, to: ResponseSink) {
        let before = std::mem::replace(&mut self.state().to, to);
        drop(before);
    }

    /// Returns whether no more messages may be sent.
    pub(super) fn is_complete(&self) -> bool {
        self.state().is_over()
    }

    /// Returns a callback for the connection, which does nothing once the exchange is dropped.
    pub(super) fn later(
        slf: &Bound<'_, Self>,
        then: fn(&Bound<'_, Self>),
    ) -> PyResult<impl FnOnce() + Send + 'static> {
        let weak = PyWeakrefReference::new(slf)?.unbind();
        Ok(move || {
            Python::attach(|py| {
                if let Ok(Some(exchange)) = weak.bind(py).upgrade_as::<Self>() {
                    then(&exchange);
                }
            });
        })
    }

    /// Handles a disconnect, or the end of the response.
    pub(super) fn lose(slf: &Bound<'_, Self>) {
        let mut state = slf.get().state();
        let is_over = matches!(state.phase, SendPhase::Over);
        let before = (!is_over).then(|| std::mem::replace(&mut state.phase, SendPhase::Lost));
        drop(state);
        drop(before);
        Self::tell_receivers(slf);
    }

    /// Handles a broken body, which ends the connection: the client gets an error response if
    /// nothing was sent, or else is cut off. This does not wait for the application.
    fn break_off(&self, error: BodyError) {
        let mut state = self.state();
        let phase = std::mem::replace(&mut state.phase, SendPhase::Lost);
        let to = std::mem::replace(&mut state.to, ResponseSink::Given);
        drop(state);
        // If there is a writer, dropping it ends the content early.
        drop(phase);
        let refusal = || Response::new(error.status()).close();
        match to {
            ResponseSink::Client(replier) => _ = replier.respond(refusal()),
            ResponseSink::Unclaimed | ResponseSink::Kept(_) => {
                self.state().to = ResponseSink::Kept(Box::new(refusal()));
            }
            ResponseSink::Given => {}
        }
    }

    /// Passes new bytes, or the end, to waiting `receive` calls in their order.
    pub(super) fn tell_receivers(slf: &Bound<'_, Self>) {
        let py = slf.py();
        let told = || -> PyResult<()> {
            let mut is_taken = false;
            loop {
                let Some(receiver) = slf.get().state().receivers.pop_front() else { break };
                let receiver = receiver.into_bound(py);
                // A cancelled future would lose the bytes.
                if receiver.call_method0(intern!(py, "done"))?.is_truthy()? {
                    continue;
                }
                let Some(message) = Self::next(slf)? else {
                    slf.get().state().receivers.push_front(receiver.unbind());
                    return Ok(());
                };
                is_taken = true;
                receiver.call_method1(intern!(py, "set_result"), (message,))?;
            }
            // Without a waiting call, an error of the body must not go unnoticed.
            if is_taken { Ok(()) } else { Self::look_ahead(slf) }
        };
        if let Err(error) = told() {
            error.write_unraisable(py, None);
        }
    }

    /// Keeps the future of a waiting `receive` call. Cancelled calls leave theirs behind: before
    /// the queue grows it is cleared of them.
    fn add_receiver(slf: &Bound<'_, Self>, future: &Bound<'_, PyAny>) {
        let py = slf.py();
        let mut state = slf.get().state();
        let mut receivers = std::mem::take(&mut state.receivers);
        drop(state);
        if receivers.len() == receivers.capacity() {
            receivers.retain(|receiver| !is_done(receiver.bind(py)).unwrap_or(false));
            // Many that wait are not gone through again soon.
            receivers.reserve(receivers.len() + 1);
        }
        receivers.push_back(future.clone().unbind());
        slf.get().state().receivers = receivers;
    }

    /// Takes the bytes that were assigned to a cancelled `receive`.
    fn look_ahead(slf: &Bound<'_, Self>) -> PyResult<()> {
        let state = slf.get().state();
        if state.is_over() || state.has_all || state.ahead.is_some() {
            return Ok(());
        }
        drop(state);
        if let Poll::Ready(Some(piece)) = Self::poll_body(slf)? {
            slf.get().state().ahead = Some(piece);
        }
        Ok(())
    }

    /// Returns the next bytes of the body, empty at its end; `None`: it is broken, which ends the
    /// exchange.
    fn poll_body(slf: &Bound<'_, Self>) -> PyResult<Poll<Option<Bytes>>> {
        let mut polled = slf.get().state().poll_body_at_once();
        if polled.is_pending() {
            let again = Self::later(slf, Self::tell_receivers)?;
            polled = slf.get().state().request.body_mut().next_or_call(again);
        }
        Ok(polled.map(|next| match next {
            None => Some(Bytes::new()),
            Some(Ok(piece)) => Some(piece),
            Some(Err(error)) => {
                slf.get().break_off(error);
                None
            }
        }))
    }

    /// Returns the next message for the application, if there is one. Otherwise receivers are woken
    /// when there may be one.
    fn next<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let py = slf.py();
        let mut state = slf.get().state();
        let (is_over, ahead) = (state.is_over(), state.ahead.take());
        if state.has_all && !is_over {
            return Ok(None);
        }
        drop(state);
        let polled = match ahead {
            _ if is_over => Poll::Ready(None),
            Some(piece) => Poll::Ready(Some(piece)),
            None => Self::poll_body(slf)?,
        };
        let Poll::Ready(next) = polled else { return Ok(None) };
        let mut state = slf.get().state();
        let Some(piece) = next else {
            state.knows_loss |= matches!(state.phase, SendPhase::Lost);
            drop(state);
            return message::disconnect(py).map(Some);
        };
        state.taken += piece.len() as u64;
        let whole = state.request.body_mut().length() == Some(state.taken);
        state.has_all = whole || piece.is_empty();
        let has_all = state.has_all;
        drop(state);
        message::http_request(py, &piece, !has_all).map(Some)
    }
}

impl AsgiCallee for AsgiExchange {
    fn link<'s>(_: &'s Bound<'_, Self>) -> Option<&'s Arc<SocketLink>> {
        None
    }

    fn take_response(slf: &Bound<'_, Self>) -> Option<Response> {
        slf.get().state().to.take_kept()
    }

    fn wait(slf: &Bound<'_, Self>) -> PyResult<Reply> {
        let (replier, reply) = reply_later();
        replier.on_lost(Self::later(slf, Self::lose)?);
        slf.get().state().to = ResponseSink::Client(replier);
        Ok(reply)
    }

    fn end(slf: &Bound<'_, Self>, _has_failed: bool) -> Option<Cow<'static, str>> {
        let mut state = slf.get().state();
        let is_lost = matches!(state.phase, SendPhase::Lost);
        let phase = if is_lost { SendPhase::Lost } else { SendPhase::Over };
        let owes = match std::mem::replace(&mut state.phase, phase) {
            SendPhase::Head | SendPhase::Content(_) => Some("has sent no response".into()),
            // The dropped writer cuts the content off.
            SendPhase::More(_) | SendPhase::Discarded => {
                Some("has not sent all of its response".into())
            }
            SendPhase::Over | SendPhase::Lost => state.missing.take().map(|path| {
                format!("has sent a file that is not there: {}", path.display()).into()
            }),
        };
        // A kept response is still to be taken.
        let to = match &state.to {
            ResponseSink::Kept(_) => ResponseSink::Given,
            _ => std::mem::replace(&mut state.to, ResponseSink::Given),
        };
        drop(state);
        // A missing response becomes 500.
        drop(to);
        Self::tell_receivers(slf);
        owes
    }

    fn name(slf: &Bound<'_, Self>) -> String {
        slf.get().with_request(|request| format!("{} {}", request.method_str(), request.target()))
    }

    fn knows_loss(slf: &Bound<'_, Self>) -> bool {
        slf.get().state().knows_loss
    }
}

impl ResponseSink {
    /// Takes out the response that is kept.
    pub(super) fn take_kept(&mut self) -> Option<Response> {
        match std::mem::replace(self, Self::Given) {
            Self::Kept(response) => Some(*response),
            other => {
                *self = other;
                None
            }
        }
    }
}

impl ExchangeState {
    /// Returns whether no more messages may be sent.
    fn is_over(&self) -> bool {
        matches!(self.phase, SendPhase::Over | SendPhase::Lost)
    }

    fn poll_body_at_once(&mut self) -> Poll<Option<Result<Bytes, BodyError>>> {
        let mut context = Context::from_waker(Waker::noop());
        Pin::new(self.request.body_mut()).poll_next(&mut context)
    }

    pub(super) fn lost(&mut self) -> PyErr {
        self.knows_loss = true;
        client_disconnected("the client has disconnected")
    }

    /// Restores a phase that does not allow content, and returns the error.
    pub(super) fn refuse(&mut self, phase: SendPhase) -> PyErr {
        let error = match &phase {
            SendPhase::Lost => self.lost(),
            SendPhase::Head => PyRuntimeError::new_err("http.response.start has to be sent first"),
            _ => PyRuntimeError::new_err("the response has been sent, up to its end"),
        };
        self.phase = phase;
        error
    }
}

#[pymethods]
impl AsgiExchange {
    fn receive<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if let Some(later) = Self::elsewhere(slf, intern!(py, "receive"), None)? {
            return Ok(later);
        }
        if let Some(message) = Self::next(slf)? {
            return Ok(Bound::new(py, ReadyValue::new(message.into_any().unbind()))?.into_any());
        }
        let future = slf.get().event_loop.bind(py).call_method0(intern!(py, "create_future"))?;
        Self::add_receiver(slf, &future);
        Ok(Bound::new(py, LoopFuture::new(&future)?)?.into_any())
    }

    fn send<'py>(
        slf: &Bound<'py, Self>,
        message: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if let Some(later) = Self::elsewhere(slf, intern!(py, "send"), Some(message))? {
            return Ok(later);
        }
        let kind = expect(message, intern!(py, "type"))?;
        let taken = match kind.cast::<PyString>()?.to_str()? {
            "http.response.start" => slf.get().begin(message).map(|()| SendOutcome::Kept),
            "http.response.body" => Self::go_on(slf, message),
            "http.response.pathsend" => Self::send_file(slf, message).map(|()| SendOutcome::Leaves),
            "http.response.early_hint" => slf.get().hint(message).map(|()| SendOutcome::Leaves),
            other => {
                let text = format!(
                    "expected http.response.start, http.response.body, http.response.pathsend or \
                     http.response.early_hint, found {other:?}"
                );
                Err(PyValueError::new_err(text))
            }
        };
        Self::awaitable(slf, taken?)
    }
}

impl AsgiExchange {
    /// Returns what the application has to await after a message.
    pub(super) fn awaitable<'py>(
        slf: &Bound<'py, Self>,
        outcome: SendOutcome,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        match outcome {
            SendOutcome::Kept => Ok(slf.get().done.bind(py).clone().into_any()),
            SendOutcome::Leaves => match Pause::give(slf.get().pause.bind(py)) {
                Some(pause) => Ok(pause),
                None => Ok(Bound::new(py, LoopTurn::default())?.into_any()),
            },
            SendOutcome::Whole => {
                let pause = slf.get().pause.bind(py);
                let given = slf
                    .get()
                    .with_request(|request| Pause::give_last(pause, request.raw_path().as_bytes()));
                match given {
                    Ok(Some(pause)) => Ok(pause),
                    Ok(None) => Ok(slf.get().done.bind(py).clone().into_any()),
                    Err(NotOurs) => Ok(Bound::new(py, LoopTurn::default())?.into_any()),
                }
            }
            SendOutcome::Fills(space) => {
                let future = slf.get().wait_for(py, &space)?;
                Ok(Bound::new(py, LoopFuture::new(&future)?)?.into_any())
            }
        }
    }
}
