//! The iterable of content that an application returns.

use std::collections::VecDeque;
use std::fs::File;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use futures_core::Stream;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyIterator, PyList, PyTuple};

use gustnado::task::charge_step;
use gustnado::{ForeignHead, Method, Request, Response};

use super::WsgiApp;
use super::start::StartResponse;
use crate::pipe::{ContentCut, PipeWriter, owned};
use crate::{hang_watch, regular};

/// Most bytes of a piece in one send: with their framing they are one packet of loopback. Pieces of
/// 64 KiB, which are just above it, cost twice the CPU for the second one.
const STEP_BYTES: usize = 60 << 10;

/// The result of a call.
pub(super) enum CallEnd {
    Whole(Response),
    /// A head, and content to iterate.
    Iterated(ForeignHead, Iterated),
    /// Content to iterate behind the head and written bytes, which were sent.
    Behind(PipeWriter, Iterated),
}

/// Content that an application makes piece by piece.
pub(super) struct Iterated {
    app: Arc<WsgiApp>,
    /// Content from before the head was final.
    first: VecDeque<Bytes>,
    pieces: Py<PyIterator>,
    returned: ReturnedIterable,
    /// What is left of the last piece.
    rest: Bytes,
    /// Something was returned that has not been sent.
    is_given: bool,
    /// About the request, for the log.
    line: String,
}

/// The return value of an application, whose `close` is always called in the end.
struct ReturnedIterable(Option<Py<PyAny>>);

/// Inspects the return value of an application.
pub(super) fn of(
    app: &Arc<WsgiApp>,
    returned: &Bound<'_, PyAny>,
    start: &Bound<'_, StartResponse>,
    request: &Request,
) -> PyResult<CallEnd> {
    let py = returned.py();
    let mut closing = ReturnedIterable::new(returned);
    if let Some(writer) = start.get().take_writer() {
        let pieces = returned.try_iter()?;
        let iterated = Iterated::new(app, VecDeque::new(), &pieces, closing, request);
        return Ok(CallEnd::Behind(writer, iterated));
    }
    if let Some(whole) = whole_of(returned)? {
        let (head, written) = start.get().take()?;
        return Ok(CallEnd::Whole(whole_response(head, joined(written, whole), request)));
    }
    if returned.get_type().is(&app.file_wrapper)
        && start.get().is_said()
        && let Some((file, offset, length)) = file_of(returned)
    {
        let (head, written) = start.get().take()?;
        if written.is_empty() {
            let length = head.length().map_or(length, |said| said.min(length));
            closing.close(py)?;
            return Ok(CallEnd::Whole(head.file(Arc::new(file), offset, length)));
        }
        let (pieces, first) = (returned.try_iter()?, [written].into());
        let iterated = Iterated::new(app, first, &pieces, closing, request);
        return Ok(CallEnd::Iterated(head, iterated));
    }
    let pieces = returned.try_iter()?;
    // It makes the head final.
    let first_piece = next_of(&pieces)?;
    let is_over = first_piece.is_none();
    let mut first: VecDeque<_> = first_piece.into_iter().collect();
    if let Some(writer) = start.get().take_writer() {
        // A generator has written before its first piece.
        let iterated = Iterated::new(app, first, &pieces, closing, request);
        return Ok(CallEnd::Behind(writer, iterated));
    }
    let (head, written) = start.get().take()?;
    if !written.is_empty() {
        first.push_front(written);
    }
    let length: usize = first.iter().map(Bytes::len).sum();
    if is_over || head.length() == Some(length as u64) {
        // The iterable should be exhausted.
        while let Some(piece) = pieces.clone().next() {
            piece?;
        }
        closing.close(py)?;
        let whole = first.into_iter().reduce(joined).unwrap_or_default();
        return Ok(CallEnd::Whole(whole_response(head, whole, request)));
    }
    if request.method() == Method::Head {
        closing.close(py)?;
        return Ok(CallEnd::Whole(head.without_content()));
    }
    let iterated = Iterated::new(app, first, &pieces, closing, request);
    Ok(CallEnd::Iterated(head, iterated))
}

/// Returns the next piece that is not empty.
fn next_of(pieces: &Bound<'_, PyIterator>) -> PyResult<Option<Bytes>> {
    for piece in pieces.clone() {
        let piece = piece_of(&piece?)?;
        if !piece.is_empty() {
            return Ok(Some(piece));
        }
    }
    Ok(None)
}

/// Returns all of the content, if it is a list or a tuple.
fn whole_of(returned: &Bound<'_, PyAny>) -> PyResult<Option<Bytes>> {
    if let Ok(list) = returned.cast_exact::<PyList>() {
        return join(list.iter()).map(Some);
    }
    if let Ok(tuple) = returned.cast_exact::<PyTuple>() {
        return join(tuple.iter()).map(Some);
    }
    Ok(None)
}

fn join<'py>(mut pieces: impl Iterator<Item = Bound<'py, PyAny>>) -> PyResult<Bytes> {
    pieces.try_fold(Bytes::new(), |whole, piece| Ok(joined(whole, piece_of(&piece)?)))
}

fn piece_of(piece: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    let wrong = |_| {
        let found = piece.get_type();
        PyTypeError::new_err(format!("expected bytes as content, found {found}"))
    };
    piece.extract::<PyBackedBytes>().map(owned).map_err(wrong)
}

fn joined(first: Bytes, second: Bytes) -> Bytes {
    match (first.is_empty(), second.is_empty()) {
        (true, _) => second,
        (_, true) => first,
        _ => [first, second].concat().into(),
    }
}

/// Returns a response with complete content.
fn whole_response(head: ForeignHead, content: Bytes, request: &Request) -> Response {
    let is_head = request.method() == Method::Head;
    if !head.may_have_content() || (is_head && head.length().is_some()) {
        return head.without_content();
    }
    match head.length() {
        // A wrong length declaration cuts the connection.
        Some(said) if said != content.len() as u64 && !is_head => {
            head.stream(SinglePiece(Some(content)))
        }
        _ => head.bytes(content),
    }
}

/// Returns the file of a `FileWrapper` from its position on, if the kernel can send it.
fn file_of(wrapper: &Bound<'_, PyAny>) -> Option<(File, u64, u64)> {
    let py = wrapper.py();
    let inner = wrapper.getattr(intern!(py, "filelike")).ok()?;
    let number: i32 = inner.call_method0(intern!(py, "fileno")).ok()?.extract().ok()?;
    let position: u64 = inner.call_method0(intern!(py, "tell")).ok()?.extract().ok()?;
    // Opened again, so that the application cannot close it.
    let (file, found) = regular::open(format!("/proc/self/fd/{number}")).ok()??;
    Some((file, position, found.len().saturating_sub(position)))
}

impl Iterated {
    fn new(
        app: &Arc<WsgiApp>,
        first: VecDeque<Bytes>,
        pieces: &Bound<'_, PyIterator>,
        returned: ReturnedIterable,
        request: &Request,
    ) -> Self {
        let (app, line) = (Arc::clone(app), super::line(request));
        let pieces = pieces.clone().unbind();
        Self { app, first, pieces, returned, rest: Bytes::new(), is_given: false, line }
    }

    /// Returns the next piece, and reports an exception.
    fn next(&mut self, py: Python<'_>) -> Option<Result<Bytes, ContentCut>> {
        if let Some(first) = self.first.pop_front() {
            return Some(Ok(first));
        }
        let piece = match self.pieces.bind(py).clone().next()? {
            Ok(piece) => piece_of(&piece),
            Err(error) => Err(error),
        };
        Some(piece.map_err(|error| {
            let what = format!("{} has failed within its content", self.line);
            self.app.reporter.report(py, Some(&error), &what);
            ContentCut
        }))
    }

    /// Writes all of it, on a thread that may block.
    pub(super) fn write_to(mut self, py: Python<'_>, writer: &PipeWriter) {
        while let Some(piece) = self.next(py) {
            let Ok(piece) = piece else { return };
            let space = writer.push(piece);
            if space.is_some_and(|space| !py.detach(|| space.wait())) {
                return;
            }
        }
        writer.end();
        self.close(py);
    }

    fn close(&mut self, py: Python<'_>) {
        if let Err(error) = self.returned.close(py) {
            let what = format!("{} has failed when it was closed", self.line);
            self.app.reporter.report(py, Some(&error), &what);
        }
    }
}

impl Stream for Iterated {
    type Item = Result<Bytes, ContentCut>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if std::mem::take(&mut self.is_given) {
            // Each piece is sent before the next one is requested (PEP 3333).
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.rest.is_empty() {
            let began = Instant::now();
            let next = Python::attach(|py| {
                hang_watch::note_call(py);
                let next = self.next(py);
                if next.is_none() {
                    self.close(py);
                }
                next
            });
            // Other connections get a turn after a slow piece.
            charge_step(began.elapsed());
            match next {
                Some(Ok(piece)) => self.rest = piece,
                ended => return Poll::Ready(ended),
            }
        }
        // What the application has written leaves with its first piece.
        self.is_given = self.first.is_empty();
        Poll::Ready(Some(Ok(take_step(&mut self.rest))))
    }
}

/// Takes the next step of a piece. All steps of one are even.
fn take_step(piece: &mut Bytes) -> Bytes {
    let bytes = piece.len();
    piece.split_to(bytes.div_ceil(bytes.div_ceil(STEP_BYTES).max(1)))
}

impl ReturnedIterable {
    fn new(returned: &Bound<'_, PyAny>) -> Self {
        // A check without result costs as much as everything else.
        let has_none =
            returned.is_exact_instance_of::<PyList>() || returned.is_exact_instance_of::<PyTuple>();
        Self((!has_none).then(|| returned.clone().unbind()))
    }

    fn close(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(returned) = self.0.take() else { return Ok(()) };
        match returned.bind(py).getattr_opt(intern!(py, "close"))? {
            Some(close) => close.call0().map(drop),
            None => Ok(()),
        }
    }
}

impl Drop for ReturnedIterable {
    fn drop(&mut self) {
        if self.0.is_some() {
            Python::attach(|py| {
                if let Err(error) = self.close(py) {
                    error.write_unraisable(py, None);
                }
            });
        }
    }
}

/// Content of one piece, sent with any declared length.
struct SinglePiece(Option<Bytes>);

impl Stream for SinglePiece {
    type Item = Result<Bytes, ContentCut>;

    fn poll_next(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.take().map(Ok))
    }
}
