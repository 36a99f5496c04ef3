//! One request and its answer, as an ASGI application sees them: `receive` and `send`.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, MutexGuard};
use std::task::Poll;

use bytes::Bytes;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyString};

use gustnado::{ForeignHead, Method, Replier, Reply, Request, Response, Status, reply_later};

use super::awaited::{Done, Given, Waiting};
use crate::kept::Kept;
use crate::pipe::{Feed, Room, owned, pipe};

/// A request that is being answered.
#[pyclass(frozen, module = "gustnado._gustnado")]
pub(super) struct Exchange {
    inside: Kept<Inside>,
    event_loop: Py<PyAny>,
    done: Py<Done>,
}

struct Inside {
    request: Request,
    /// Bytes of its body that were handed out.
    taken: u64,
    /// Its body was handed out up to the end.
    has_all: bool,
    stage: Stage,
    to: To,
    /// What `receive` waits for.
    receiver: Option<Py<PyAny>>,
}

/// What the application may send next.
enum Stage {
    Head,
    /// The content, behind this head.
    Content(ForeignHead),
    /// More of the content: the head is on its way.
    More(Feed),
    /// Nothing: the answer is whole.
    Over,
    /// Nothing: the client has gone.
    Lost,
}

/// Where the answer goes.
enum To {
    /// Nobody waits for it yet: the application is in its first step.
    Nobody,
    /// It is kept for who asks next.
    Kept(Box<Response>),
    Client(Replier),
    /// It was given.
    Given,
}

impl Exchange {
    pub(super) fn new(request: Request, event_loop: Py<PyAny>, done: Py<Done>) -> Self {
        let (stage, to) = (Stage::Head, To::Nobody);
        let inside = Inside { request, taken: 0, has_all: false, stage, to, receiver: None };
        Self { inside: Kept::new(inside), event_loop, done }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.borrow_mut()
    }

    /// Looks at the request.
    pub(super) fn with_request<T>(&self, look: impl FnOnce(&Request) -> T) -> T {
        look(&self.inside().request)
    }

    /// The answer, or at least its head, if the application has sent it by now.
    pub(super) fn take_answer(&self) -> Option<Response> {
        let mut inside = self.inside();
        match std::mem::replace(&mut inside.to, To::Nobody) {
            To::Kept(response) => {
                inside.to = To::Given;
                Some(*response)
            }
            other => {
                inside.to = other;
                None
            }
        }
    }

    /// Has the answer sent when the application sends it.
    pub(super) fn wait(slf: &Bound<'_, Self>) -> Reply {
        let (replier, reply) = reply_later();
        let lost = slf.clone().unbind();
        replier.on_lost(move || Python::attach(|py| Self::lose(lost.bind(py))));
        slf.get().inside().to = To::Client(replier);
        reply
    }

    /// The application has ended, well or not. Returns what it owes still, if that is anything.
    pub(super) fn end(slf: &Bound<'_, Self>) -> Option<&'static str> {
        let mut inside = slf.get().inside();
        let (owes, answered) = match std::mem::replace(&mut inside.stage, Stage::Over) {
            Stage::Head | Stage::Content(_) => (Some("has sent no answer"), false),
            // (The content is cut off by its feed.)
            Stage::More(_) => (Some("has not sent all of its answer"), true),
            Stage::Over => (None, true),
            Stage::Lost => {
                inside.stage = Stage::Lost;
                (None, true)
            }
        };
        let to = if answered { To::Given } else { std::mem::replace(&mut inside.to, To::Given) };
        drop(inside);
        if let To::Client(replier) = to {
            replier.answer(Response::new(Status::INTERNAL_SERVER_ERROR));
        }
        Self::tell_receiver(slf);
        owes
    }

    /// The client has gone, or the answer was sent.
    fn lose(slf: &Bound<'_, Self>) {
        let mut inside = slf.get().inside();
        if !matches!(inside.stage, Stage::Over) {
            inside.stage = Stage::Lost;
        }
        drop(inside);
        Self::tell_receiver(slf);
    }

    /// Gives what has come to `receive`, if it waits.
    fn tell_receiver(slf: &Bound<'_, Self>) {
        let py = slf.py();
        let Some(receiver) = slf.get().inside().receiver.take() else { return };
        let receiver = receiver.into_bound(py);
        let told = || -> PyResult<()> {
            // One that was cancelled takes nothing: it would be lost with it.
            if receiver.call_method0(intern!(py, "done"))?.is_truthy()? {
                return Ok(());
            }
            if let Some(message) = Self::next(slf)? {
                receiver.call_method1(intern!(py, "set_result"), (message,))?;
            } else {
                slf.get().inside().receiver = Some(receiver.clone().unbind());
            }
            Ok(())
        };
        if let Err(error) = told() {
            error.write_unraisable(py, None);
        }
    }

    /// The next message for the application, if there is one. Else the receiver is told when it is
    /// worth asking again.
    fn next<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let py = slf.py();
        let mut inside = slf.get().inside();
        if matches!(inside.stage, Stage::Over | Stage::Lost) {
            drop(inside);
            return disconnect(py).map(Some);
        }
        if inside.has_all {
            return Ok(None);
        }
        let again = slf.clone().unbind();
        let more = move || Python::attach(|py| Self::tell_receiver(again.bind(py)));
        let piece = match inside.request.body_mut().next_or_call(more) {
            Poll::Pending => return Ok(None),
            Poll::Ready(None) => Bytes::new(),
            Poll::Ready(Some(Ok(piece))) => piece,
            Poll::Ready(Some(Err(_))) => {
                // What is missing will not come.
                inside.stage = Stage::Lost;
                drop(inside);
                return disconnect(py).map(Some);
            }
        };
        inside.taken += piece.len() as u64;
        let whole = inside.request.body_mut().length() == Some(inside.taken);
        inside.has_all = whole || piece.is_empty();
        let has_all = inside.has_all;
        drop(inside);
        let message = PyDict::new(py);
        message.set_item(intern!(py, "type"), intern!(py, "http.request"))?;
        message.set_item(intern!(py, "body"), PyBytes::new(py, &piece))?;
        message.set_item(intern!(py, "more_body"), !has_all)?;
        Ok(Some(message))
    }

    /// Takes the head of the answer.
    fn begin(&self, message: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = message.py();
        let status: u16 = expect(message, intern!(py, "status"))?.extract()?;
        let mut head = ForeignHead::new(status, "").map_err(|_| {
            PyValueError::new_err(format!("expected a status from 200 to 999, found {status}"))
        })?;
        if let Some(fields) = message.get_item(intern!(py, "headers"))? {
            for pair in fields.try_iter()? {
                let (name, value): (PyBackedBytes, PyBackedBytes) = pair?.extract()?;
                add_field(&mut head, &name, &value)?;
            }
        }
        let mut inside = self.inside();
        match inside.stage {
            Stage::Head => {
                inside.stage = Stage::Content(head);
                Ok(())
            }
            Stage::Lost => Err(gone()),
            _ => Err(PyRuntimeError::new_err("http.response.start was sent before")),
        }
    }

    /// Takes content, the first or more of it. Returns what there is to wait for before more.
    fn go_on(slf: &Bound<'_, Self>, message: &Bound<'_, PyDict>) -> PyResult<Option<Room>> {
        let py = message.py();
        let body = match message.get_item(intern!(py, "body"))? {
            Some(body) => owned(body.extract()?),
            None => Bytes::new(),
        };
        let more = message.get_item(intern!(py, "more_body"))?;
        let more = more.map(|more| more.is_truthy()).transpose()?.unwrap_or(false);
        let mut inside = slf.get().inside();
        match std::mem::replace(&mut inside.stage, Stage::Over) {
            Stage::Content(head) if more => {
                let (feed, content) = pipe();
                let room = feed.push(body);
                let lost = slf.clone().unbind();
                feed.on_lost(move || Python::attach(|py| Self::lose(lost.bind(py))));
                inside.stage = Stage::More(feed);
                let is_unsent = is_unsent(&inside.request, &head);
                drop(inside);
                let response =
                    if is_unsent { head.without_content() } else { head.stream(content) };
                slf.get().give(response);
                Ok(room)
            }
            Stage::Content(head) => {
                if is_unsent(&inside.request, &head) {
                    drop(inside);
                    let is_said = head.length().is_some() || !head.may_have_content();
                    let response = if is_said { head.without_content() } else { head.bytes(body) };
                    slf.get().give(response);
                } else if let Err(error) = check_length(&head, body.len() as u64) {
                    inside.stage = Stage::Content(head);
                    return Err(error);
                } else {
                    drop(inside);
                    slf.get().give(head.bytes(body));
                }
                Self::tell_receiver(slf);
                Ok(None)
            }
            Stage::More(feed) => {
                let room = feed.push(body);
                if more {
                    inside.stage = Stage::More(feed);
                    return Ok(room);
                }
                drop(inside);
                feed.end();
                Self::tell_receiver(slf);
                Ok(None)
            }
            stage => Err(inside.refuse(stage)),
        }
    }

    /// Sends a file by its path, as the content.
    fn send_file(slf: &Bound<'_, Self>, message: &Bound<'_, PyDict>) -> PyResult<()> {
        let path: PathBuf = expect(message, intern!(message.py(), "path"))?.extract()?;
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut inside = slf.get().inside();
        let head = match std::mem::replace(&mut inside.stage, Stage::Over) {
            Stage::Content(head) => head,
            stage => return Err(inside.refuse(stage)),
        };
        if let Err(error) = check_length(&head, length) {
            inside.stage = Stage::Content(head);
            return Err(error);
        }
        drop(inside);
        slf.get().give(head.file(Arc::new(file), 0, length));
        Self::tell_receiver(slf);
        Ok(())
    }

    /// Gives an answer to who waits for it, or keeps it for who asks.
    fn give(&self, response: Response) {
        // (Not under the lock: if the client has gone, the answer is dropped, which calls us.)
        let to = std::mem::replace(&mut self.inside().to, To::Given);
        match to {
            To::Client(replier) => _ = replier.answer(response),
            To::Nobody => self.inside().to = To::Kept(Box::new(response)),
            To::Kept(_) | To::Given => {}
        }
    }

    /// A future that is there once more content may be sent.
    fn wait_for<'py>(&self, py: Python<'py>, room: &Room) -> PyResult<Bound<'py, PyAny>> {
        let future = self.event_loop.bind(py).call_method0(intern!(py, "create_future"))?;
        let there = future.clone().unbind();
        room.call(move || {
            Python::attach(|py| {
                if let Err(error) = set(there.bind(py)) {
                    error.write_unraisable(py, None);
                }
            });
        });
        Ok(future)
    }
}

impl Inside {
    /// Puts a stage back in which content is not wanted, and says why.
    fn refuse(&mut self, stage: Stage) -> PyErr {
        let error = match &stage {
            Stage::Lost => gone(),
            Stage::Head => PyRuntimeError::new_err("http.response.start has to be sent first"),
            _ => PyRuntimeError::new_err("the answer has been sent, up to its end"),
        };
        self.stage = stage;
        error
    }
}

/// Whether no content is sent, whatever the application sends.
fn is_unsent(request: &Request, head: &ForeignHead) -> bool {
    request.method() == Method::Head || !head.may_have_content()
}

#[pymethods]
impl Exchange {
    fn receive<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if let Some(message) = Self::next(slf)? {
            return Ok(Bound::new(py, Given::new(message.into_any().unbind()))?.into_any());
        }
        let future = slf.get().event_loop.bind(py).call_method0(intern!(py, "create_future"))?;
        slf.get().inside().receiver = Some(future.clone().unbind());
        Ok(Bound::new(py, Waiting::new(&future)?)?.into_any())
    }

    fn send<'py>(
        slf: &Bound<'py, Self>,
        message: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let kind = expect(message, intern!(py, "type"))?;
        let room = match kind.cast::<PyString>()?.to_str()? {
            "http.response.start" => slf.get().begin(message).map(|()| None),
            "http.response.body" => Self::go_on(slf, message),
            "http.response.pathsend" => Self::send_file(slf, message).map(|()| None),
            other => {
                let text = format!(
                    "expected http.response.start, http.response.body or http.response.pathsend, \
                     found {other:?}"
                );
                Err(PyValueError::new_err(text))
            }
        };
        match room? {
            None => Ok(slf.get().done.bind(py).clone().into_any()),
            Some(room) => {
                let future = slf.get().wait_for(py, &room)?;
                Ok(Bound::new(py, Waiting::new(&future)?)?.into_any())
            }
        }
    }
}

fn set(future: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = future.py();
    if !future.call_method0(intern!(py, "done"))?.is_truthy()? {
        future.call_method1(intern!(py, "set_result"), (py.None(),))?;
    }
    Ok(())
}

fn disconnect(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let message = PyDict::new(py);
    message.set_item(intern!(py, "type"), intern!(py, "http.disconnect"))?;
    Ok(message)
}

fn expect<'py>(
    message: &Bound<'py, PyDict>,
    key: &Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyAny>> {
    message.get_item(key)?.ok_or_else(|| {
        PyTypeError::new_err(format!("expected a message with {key}, found {message}"))
    })
}

pub(crate) fn add_field(head: &mut ForeignHead, name: &[u8], value: &[u8]) -> PyResult<()> {
    let text = str::from_utf8(name).unwrap_or("");
    head.field(text, value).map_err(|error| {
        let name = String::from_utf8_lossy(name).into_owned();
        PyValueError::new_err(format!("the header field {name:?}: {error}"))
    })
}

fn check_length(head: &ForeignHead, length: u64) -> PyResult<()> {
    match head.length() {
        Some(said) if said != length => Err(PyRuntimeError::new_err(format!(
            "Content-Length says {said} bytes, and the content has {length}"
        ))),
        _ => Ok(()),
    }
}

fn gone() -> PyErr {
    PyOSError::new_err("the client has gone")
}
