//! `start_response` and its `write` callable.

use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use bytes::Bytes;
use pyo3::exceptions::{PyAssertionError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyString, PyTuple};

use gustnado::{ForeignHead, Replier, Response};

use crate::errors::client_disconnected;
use crate::guarded::Guarded;
use crate::pipe::{PipeSpace, PipeWriter, owned, pipe};

/// Most bytes that wait in memory until an application returns.
const WRITTEN_BYTES_MAX: usize = 64 << 20;
/// How long an application may write content that nobody gets.
const DISCARD_TIME: Duration = Duration::from_secs(10);

/// The `start_response` callable of one request.
#[pyclass(frozen, freelist = 64, module = "gustnado._gustnado")]
#[derive(Default)]
pub(super) struct StartResponse(Guarded<StartedResponse>);

#[derive(Default)]
struct StartedResponse {
    head: Option<ForeignHead>,
    /// It was called, and the head may have been sent by now.
    was_called: bool,
    /// The request is a HEAD, or the status allows no content: what is written is discarded.
    is_unsent: bool,
    /// When content was discarded first.
    discards_since: Option<Instant>,
    /// The client has left, and the application was told so.
    knows_loss: bool,
    sink: WriteSink,
}

/// The consumer of what the callable that it returns writes.
enum WriteSink {
    /// Memory, until the application returns: its own thread cannot send meanwhile.
    Memory(Vec<u8>),
    /// The client, which gets the head with the first bytes.
    Client(Replier),
    /// The client, which has the head.
    Pipe(PipeWriter),
}

impl Default for WriteSink {
    fn default() -> Self {
        Self::Memory(Vec::new())
    }
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
        if let WriteSink::Memory(written) = &mut said.sink {
            // A page for an error replaces what was written.
            written.clear();
        }
        said.head = Some(head);
        said.was_called = true;
        drop(said);
        slf.getattr(intern!(py, "write"))
    }

    /// Writes content, for applications that use no iterable. It waits while much is queued.
    fn write(&self, py: Python<'_>, piece: PyBackedBytes) -> PyResult<()> {
        let space = self.said().write(piece)?;
        if space.is_none_or(|space| py.detach(|| space.wait())) {
            return Ok(());
        }
        let mut said = self.said();
        if said.is_unsent {
            // Nothing tells that the client has left: an application that writes on and on ends.
            let since = *said.discards_since.get_or_insert_with(Instant::now);
            if since.elapsed() < DISCARD_TIME {
                return Ok(());
            }
        }
        said.knows_loss = true;
        drop(said);
        Err(client_disconnected("the client has disconnected"))
    }
}

impl StartResponse {
    /// The same for an application on a thread that may wait for the client.
    pub(super) fn to_client(replier: Replier, is_head: bool) -> Self {
        let sink = WriteSink::Client(replier);
        let said = StartedResponse { is_unsent: is_head, sink, ..StartedResponse::default() };
        Self(Guarded::new(said))
    }

    fn said(&self) -> MutexGuard<'_, StartedResponse> {
        self.0.borrow_mut()
    }

    pub(super) fn is_said(&self) -> bool {
        self.said().was_called
    }

    /// Returns whether the application got the disconnect, which then explains its exception.
    pub(super) fn knows_loss(&self) -> bool {
        self.said().knows_loss
    }

    /// Takes the head, which is final then, and the written bytes.
    pub(super) fn take(&self) -> PyResult<(ForeignHead, Bytes)> {
        let mut said = self.said();
        let written = match &mut said.sink {
            WriteSink::Memory(written) => std::mem::take(written).into(),
            WriteSink::Client(_) | WriteSink::Pipe(_) => Bytes::new(),
        };
        let head = said.head.take().ok_or_else(|| {
            PyAssertionError::new_err("the application has returned without calling start_response")
        })?;
        Ok((head, written))
    }

    /// Takes what the rest of the content is sent by, if the head was sent with written bytes.
    pub(super) fn take_writer(&self) -> Option<PipeWriter> {
        let mut said = self.said();
        match std::mem::take(&mut said.sink) {
            WriteSink::Pipe(writer) => Some(writer),
            other => {
                said.sink = other;
                None
            }
        }
    }

    /// Sends a response to the client. One that has a head already is cut off.
    pub(super) fn respond(&self, response: Response) {
        let sink = std::mem::take(&mut self.said().sink);
        if let WriteSink::Client(replier) = sink {
            replier.respond(response);
        }
    }
}

impl StartedResponse {
    /// Takes written bytes. Returns what to wait for before the next ones, if the queue is full or
    /// the client has disconnected.
    fn write(&mut self, piece: PyBackedBytes) -> PyResult<Option<PipeSpace>> {
        self.sink = match (std::mem::take(&mut self.sink), self.head.take()) {
            (WriteSink::Client(replier), Some(head)) => self.begin(replier, head),
            (sink, head) => {
                self.head = head;
                sink
            }
        };
        match &mut self.sink {
            WriteSink::Pipe(writer) => Ok(writer.push(owned(piece))),
            WriteSink::Memory(written) if self.head.is_some() => {
                if written.len() + piece.len() > WRITTEN_BYTES_MAX {
                    return Err(PyRuntimeError::new_err(format!(
                        "more than {WRITTEN_BYTES_MAX} bytes were written, which are sent once the \
                         application returns; return an iterable, or set --threads 2"
                    )));
                }
                written.extend_from_slice(&piece);
                Ok(None)
            }
            WriteSink::Memory(_) | WriteSink::Client(_) => Err(PyAssertionError::new_err(
                "write was called before start_response, or within the iterable",
            )),
        }
    }

    /// Sends the head.
    fn begin(&mut self, replier: Replier, head: ForeignHead) -> WriteSink {
        let (writer, content) = pipe();
        self.is_unsent |= !head.may_have_content();
        let response = if self.is_unsent { head.without_content() } else { head.stream(content) };
        replier.respond(response);
        WriteSink::Pipe(writer)
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
