//! Messages that an application sends: the head of its response, content, files.

use std::io::ErrorKind::NotFound;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyWeakrefMethods, PyWeakrefReference};

use gustnado::{ForeignHead, Method, Request, Response, Status};

use super::{AsgiExchange, ExchangeState, ResponseSink, SendPhase};
use crate::asgi::message::{add_fields, check_length, expect};
use crate::bytes_like::bytes_of;
use crate::pipe::{PipeSpace, PipeWriter, pipe};
use crate::regular;

/// Longest piece for the connection: one send takes a whole piece, and other connections wait for
/// it.
const PIECE_BYTES_MAX: usize = 64 << 10;
/// Maximum delay of sent content while the application continues without waiting.
const HOLD: Duration = Duration::from_millis(1);

/// How long an application may send content that its response never has.
const DISCARD_SECONDS: f64 = 10.0;

/// The callback that ends such a response.
#[pyclass(frozen, module = "gustnado._gustnado")]
struct LoseLater(Py<PyWeakrefReference>);

#[pymethods]
impl LoseLater {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        if let Some(exchange) = self.0.bind(py).upgrade_as::<AsgiExchange>()? {
            AsgiExchange::lose(&exchange);
        }
        Ok(())
    }
}

/// The action after a message.
pub(in crate::asgi) enum SendOutcome {
    /// Continue: it is kept for what follows.
    Kept,
    /// Send it before the application continues, which may compute for long.
    Leaves,
    /// The same, and the response is complete: most applications end with it.
    Whole,
    /// Wait for space: too much is queued.
    Fills(PipeSpace),
}

impl AsgiExchange {
    /// Takes the head of the response.
    pub(in crate::asgi) fn begin(&self, message: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = message.py();
        let status: u16 = expect(message, intern!(py, "status"))?.extract()?;
        let mut head = ForeignHead::new(status, "").map_err(|_| {
            PyValueError::new_err(format!("expected a status from 200 to 999, found {status}"))
        })?;
        if let Some(fields) = message.get_item(intern!(py, "headers"))? {
            add_fields(&mut head, &fields)?;
        }
        let mut state = self.state();
        match state.phase {
            SendPhase::Head => {
                state.phase = SendPhase::Content(head);
                Ok(())
            }
            SendPhase::Lost => Err(state.lost()),
            _ => Err(PyRuntimeError::new_err("http.response.start was sent before")),
        }
    }

    /// Sends links ahead of the response. Once its head has left there is no place for them, and
    /// they are left out.
    pub(super) fn hint(&self, message: &Bound<'_, PyDict>) -> PyResult<()> {
        let mut values = Vec::new();
        for link in expect(message, intern!(message.py(), "links"))?.try_iter()? {
            let link = bytes_of(&link?, "a link of an early hint")?;
            let text = String::from_utf8(link.to_vec());
            values.push(text.map_err(|_| PyValueError::new_err("a link is no text"))?);
        }
        let mut state = self.state();
        match state.phase {
            SendPhase::Head | SendPhase::Content(_) => {
                let fields: Vec<_> = values.iter().map(|value| ("Link", value.as_str())).collect();
                let sent = state.request.early_hints(&fields);
                sent.map_err(|error| PyValueError::new_err(format!("a link: {error}")))
            }
            SendPhase::More(_) | SendPhase::Discarded => Ok(()),
            SendPhase::Lost => Err(state.lost()),
            SendPhase::Over => {
                Err(PyRuntimeError::new_err("the response has been sent, up to its end"))
            }
        }
    }

    /// Takes content, the first or more of it.
    pub(in crate::asgi) fn go_on(
        slf: &Bound<'_, Self>,
        message: &Bound<'_, PyDict>,
    ) -> PyResult<SendOutcome> {
        let py = message.py();
        let body = match message.get_item(intern!(py, "body"))? {
            Some(body) if !body.is_none() => bytes_of(&body, "the body of a response")?,
            _ => Bytes::new(),
        };
        let more = message.get_item(intern!(py, "more_body"))?;
        let more = more.map(|more| more.is_truthy()).transpose()?.unwrap_or(false);
        let mut state = slf.get().state();
        match std::mem::replace(&mut state.phase, SendPhase::Over) {
            SendPhase::Content(head) if more && is_unsent(&state.request, &head) => {
                state.phase = SendPhase::Discarded;
                state.left = Some(Instant::now());
                drop(state);
                slf.get().give(head.without_content());
                Self::lose_later(slf)?;
                Ok(SendOutcome::Leaves)
            }
            SendPhase::Content(head) if more => {
                let (writer, content) = pipe();
                let space = push(&writer, body);
                state.phase = SendPhase::More(writer);
                state.left = Some(Instant::now());
                drop(state);
                content.on_lost(Self::later(slf, Self::lose)?);
                slf.get().give(head.stream(content));
                Ok(space.map_or(SendOutcome::Leaves, SendOutcome::Fills))
            }
            SendPhase::Content(head) => {
                if is_unsent(&state.request, &head) {
                    drop(state);
                    let is_said = head.length().is_some() || !head.may_have_content();
                    let response = if is_said { head.without_content() } else { head.bytes(body) };
                    slf.get().give(response);
                } else if let Err(error) = check_length(&head, body.len() as u64) {
                    state.phase = SendPhase::Content(head);
                    return Err(error);
                } else {
                    drop(state);
                    slf.get().give(head.bytes(body));
                }
                Self::tell_receivers(slf);
                Ok(SendOutcome::Whole)
            }
            SendPhase::More(writer) => {
                let space = push(&writer, body);
                if more {
                    state.phase = SendPhase::More(writer);
                    return Ok(space.map_or_else(|| state.hold(), SendOutcome::Fills));
                }
                drop(state);
                writer.end();
                Self::tell_receivers(slf);
                Ok(SendOutcome::Leaves)
            }
            SendPhase::Discarded => {
                if more {
                    state.phase = SendPhase::Discarded;
                    return Ok(state.hold());
                }
                drop(state);
                Self::tell_receivers(slf);
                Ok(SendOutcome::Leaves)
            }
            phase => Err(state.refuse(phase)),
        }
    }

    /// Ends a response without content later: its client has all of it, and an application that
    /// sends events would never know that nobody gets them.
    fn lose_later(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        let lose = Bound::new(py, LoseLater(PyWeakrefReference::new(slf)?.unbind()))?;
        let event_loop = slf.get().event_loop.bind(py);
        event_loop.call_method1(intern!(py, "call_later"), (DISCARD_SECONDS, lose)).map(drop)
    }

    /// Sends a file by its path as the content.
    pub(super) fn send_file(slf: &Bound<'_, Self>, message: &Bound<'_, PyDict>) -> PyResult<()> {
        let path: PathBuf = expect(message, intern!(message.py(), "path"))?.extract()?;
        let opened = regular::open(&path);
        let is_missing = opened.as_ref().is_err_and(|error| error.kind() == NotFound);
        let opened = if is_missing { None } else { opened? };
        if opened.is_none() && !is_missing {
            let path = path.display();
            let text = format!("expected a regular file to send, found another: {path}");
            return Err(PyOSError::new_err(text));
        }
        let mut state = slf.get().state();
        let head = match std::mem::replace(&mut state.phase, SendPhase::Over) {
            SendPhase::Content(head) => head,
            phase => return Err(state.refuse(phase)),
        };
        let Some((file, found)) = opened else {
            // Nothing was sent, so the client gets the correct status instead of the head.
            state.missing = Some(path);
            drop(state);
            slf.get().give(Response::new(Status::NOT_FOUND));
            Self::tell_receivers(slf);
            return Ok(());
        };
        let length = found.len();
        if let Err(error) = check_length(&head, length) {
            state.phase = SendPhase::Content(head);
            return Err(error);
        }
        drop(state);
        slf.get().give(head.file(Arc::new(file), 0, length));
        Self::tell_receivers(slf);
        Ok(())
    }

    /// Passes a response to its consumer, or keeps it.
    fn give(&self, response: Response) {
        // Without the lock: if the client has disconnected, dropping the response calls back.
        let to = std::mem::replace(&mut self.state().to, ResponseSink::Given);
        match to {
            ResponseSink::Client(replier) => _ = replier.respond(response),
            ResponseSink::Unclaimed => self.state().to = ResponseSink::Kept(Box::new(response)),
            ResponseSink::Kept(_) | ResponseSink::Given => {}
        }
    }

    /// Returns a future that is done once more content may be sent.
    pub(super) fn wait_for<'py>(
        &self,
        py: Python<'py>,
        space: &PipeSpace,
    ) -> PyResult<Bound<'py, PyAny>> {
        let future = self.event_loop.bind(py).call_method0(intern!(py, "create_future"))?;
        let there = future.clone().unbind();
        space.call(move || {
            Python::attach(|py| {
                if let Err(error) = set(there.bind(py)) {
                    error.write_unraisable(py, None);
                }
            });
        });
        Ok(future)
    }
}

impl ExchangeState {
    /// Queues a later piece: pieces in quick succession leave together.
    fn hold(&mut self) -> SendOutcome {
        let now = Instant::now();
        if self.left.is_some_and(|left| now - left < HOLD) {
            return SendOutcome::Kept;
        }
        self.left = Some(now);
        SendOutcome::Leaves
    }
}

/// Queues content, split into parts of limited length.
fn push(writer: &PipeWriter, mut body: Bytes) -> Option<PipeSpace> {
    while body.len() > PIECE_BYTES_MAX {
        _ = writer.push(body.split_to(PIECE_BYTES_MAX));
    }
    writer.push(body)
}

/// Returns whether the response never has content, such as one to HEAD.
fn is_unsent(request: &Request, head: &ForeignHead) -> bool {
    request.method() == Method::Head || !head.may_have_content()
}

fn set(future: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = future.py();
    if !future.call_method0(intern!(py, "done"))?.is_truthy()? {
        future.call_method1(intern!(py, "set_result"), (py.None(),))?;
    }
    Ok(())
}
