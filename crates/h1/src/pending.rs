//! What of an answer is left once its head has been written: content that is long, or still to
//! come.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use gustnado_http::response_writer::WrittenHead;
use gustnado_tasks::{Connection, ConnectionError, ProgressTimeout, SendBuf, yield_now};
use gustnado_tls::ResponsePace;

use super::body_end::Ending;
use super::gathered::{Gathered, end_chunks};
use super::in_flight::{ConnAction, InFlight};
use super::timeouts::RouteTimeouts;
use super::{Conn, Next};
use gustnado_app::hooks::Limit;
use gustnado_files::Segment;
use gustnado_web::contained::contained;
use gustnado_web::response::{Content, Failed, OnSent, OnUpgrade, Sent, Streamed, Trailers};

/// Bytes of ready content that are sent in one go. They are not copied.
const STEP_BYTES: usize = 1 << 20;
/// The same at a pace, where they are.
const PACED_STEP_BYTES: usize = 64 << 10;

/// Sent bytes that are a unit of what a task may do in one run.
const UNIT_BYTES: usize = 4 << 10;

/// The rest of an answer.
pub(super) struct PendingContent {
    pub(super) bytes: Bytes,
    pub(super) segments: VecDeque<Segment>,
    pub(super) stream: Option<StreamOut>,
    pub(super) notices: Notices,
    pub(super) ending: Ending,
    /// What is special about its route's time.
    pub(super) timeouts: Option<RouteTimeouts>,
    /// The request whose body may still be coming.
    pub(super) in_flight: Option<Box<InFlight>>,
    /// What takes the connection over.
    pub(super) on_upgrade: Option<Box<OnUpgrade>>,
    /// The pace of its route, if it has one of its own.
    pub(super) paced: Option<Box<Paced>>,
}

/// An answer at a pace: all of it is still to be sent.
pub(super) struct Paced {
    pub(super) pace: Arc<ResponsePace>,
    /// Its head, and short content.
    pub(super) start: Vec<u8>,
    /// The head in it.
    pub(super) written: WrittenHead,
    /// When the request was read.
    pub(super) read_ms: u64,
}

/// Content that comes over time, and how it is framed.
pub(super) struct StreamOut {
    pub(super) streamed: Streamed,
    pub(super) chunked: bool,
    pub(super) trailers: Option<Trailers>,
}

/// Who wants to know that an answer has been sent. Those who were not told are told that it was
/// lost.
pub(super) struct Notices(pub(super) Vec<OnSent>);

impl Notices {
    fn tell(&mut self, sent: Sent) {
        for notice in mem::take(&mut self.0) {
            // A panic in it is its own.
            _ = contained(|| notice(sent));
        }
    }
}

impl Drop for Notices {
    fn drop(&mut self) {
        self.tell(Sent::Lost);
    }
}

impl PendingContent {
    pub(super) fn new(notices: Notices, ending: Ending) -> Self {
        let (bytes, segments) = (Bytes::new(), VecDeque::new());
        Self {
            bytes,
            segments,
            stream: None,
            notices,
            ending,
            timeouts: None,
            in_flight: None,
            on_upgrade: None,
            paced: None,
        }
    }

    /// All of a file, or a part of it.
    pub(super) fn of_segment(segment: Segment, ending: Ending) -> Box<Self> {
        let segments = VecDeque::from([segment]);
        Box::new(Self { segments, ..Self::new(Notices(Vec::new()), ending) })
    }

    /// What is left of an answer while the request's body may still be coming.
    pub(super) fn with_flight(
        rest: Option<Box<Self>>,
        ending: Ending,
        in_flight: Box<InFlight>,
    ) -> Box<Self> {
        let mut rest = rest.unwrap_or_else(|| Box::new(Self::new(Notices(Vec::new()), ending)));
        rest.in_flight = Some(in_flight);
        rest
    }

    /// Puts content behind its head: short bytes into the same buffer, the rest aside.
    ///
    /// - `chunked`: how a stream is framed, and its trailer fields.
    /// - `inline_max`: how many bytes are short.
    pub(super) fn place(
        &mut self,
        content: Content,
        (chunked, trailers): (bool, Option<Trailers>),
        inline_max: usize,
        out: &mut Vec<u8>,
    ) {
        match content {
            Content::Bytes(bytes) if bytes.len() <= inline_max => out.extend_from_slice(&bytes),
            Content::Bytes(bytes) => self.bytes = bytes,
            Content::Stream(streamed) => {
                self.stream = Some(StreamOut { streamed, chunked, trailers });
            }
            Content::File(file) => {
                out.extend_from_slice(file.body());
                self.segments.extend(file.segment());
            }
            Content::Segments { mut segments, .. } => {
                while let Some(Segment::Bytes(bytes)) = segments.front() {
                    out.extend_from_slice(bytes);
                    segments.pop_front();
                }
                self.segments = segments;
            }
            Content::Nothing | Content::Unsent(_) | Content::Path(_) => {}
        }
    }

    /// Says to what was written before it when that is to leave: with the first of the content, if
    /// that is here at once.
    pub(super) fn announce(&self, out: &mut SendBuf) {
        if self.paced.is_some() {
            return;
        }
        if !self.bytes.is_empty() || self.stream.is_some() {
            out.wait_for_more();
        } else if !self.segments.is_empty() {
            out.expect_more();
        }
    }

    /// `None` if nothing is left to be done.
    pub(super) fn boxed(self) -> Option<Box<Self>> {
        let is_empty = self.bytes.is_empty()
            && self.segments.is_empty()
            && self.stream.is_none()
            && self.notices.0.is_empty();
        (!is_empty).then(|| Box::new(self))
    }
}

/// What a look at a stream comes to.
enum Step {
    /// Send what has been gathered.
    Flush,
    End,
    Failed,
}

impl Conn {
    /// Sends the rest of an answer, and gets rid of what is left of the request.
    ///
    /// # Errors
    /// The connection is lost, or has to be cut.
    pub(super) async fn send_pending(
        &mut self,
        mut pending: Box<PendingContent>,
    ) -> Result<Next, ConnectionError> {
        let write = pending.timeouts.map_or(self.app.times.write, |timeouts| timeouts.write);
        if let Some(rate) = pending.in_flight.as_ref().and_then(|in_flight| in_flight.incoming.read)
        {
            self.begin_route_read(rate);
        }
        let is_paced = pending.paced.is_some();
        if let Some(paced) = pending.paced.take() {
            self.socket.begin_route(&paced.pace, paced.read_ms);
            self.app.count_response(paced.written.status, 0);
            let content = paced.start.len() as u64 - u64::from(paced.written.head_bytes);
            let mut out = Connection::outgoing();
            out.bytes = paced.start;
            self.send_content(out, content, write).await?;
        }
        let mut next = Gathered::behind(self.socket.take_unsent());
        let step_bytes = if self.socket.is_paced() { PACED_STEP_BYTES } else { STEP_BYTES };
        while !pending.bytes.is_empty() {
            let step = pending.bytes.split_to(pending.bytes.len().min(step_bytes));
            next.take(step, false);
            self.send_gathered(&mut next, write).await?;
            yield_now().await;
        }
        for segment in mem::take(&mut pending.segments) {
            self.send_segment(segment, write).await?;
        }
        if let Some(stream) = pending.stream.take() {
            let timeouts = pending.timeouts.unwrap_or(RouteTimeouts { write, idle_ms: u64::MAX });
            self.send_stream(stream, timeouts, pending.in_flight.as_deref_mut(), &mut next).await?;
        }
        Connection::put_back(next.out);
        if is_paced {
            self.socket.end_route();
        }
        if let Some(on_upgrade) = pending.on_upgrade.take() {
            pending.notices.tell(Sent::Whole);
            return Ok(Next::Tunnel(on_upgrade));
        }
        self.log_end();
        pending.notices.tell(Sent::Whole);
        if let Some(in_flight) = pending.in_flight.take()
            && !self.drain(*in_flight).await?
        {
            return Ok(Next::Linger);
        }
        self.expect_request();
        Ok(self.next_after(pending.ending))
    }

    async fn send_stream(
        &mut self,
        mut stream: StreamOut,
        timeouts: RouteTimeouts,
        mut in_flight: Option<&mut InFlight>,
        next: &mut Gathered,
    ) -> Result<(), ConnectionError> {
        let mut left = stream.streamed.length;
        self.expect_piece(timeouts, in_flight.as_deref_mut());
        loop {
            let step = poll_fn(|context| {
                self.poll_stream(&mut stream, &mut left, next, in_flight.as_deref_mut(), context)
            });
            match step.await {
                Ok(Step::Flush) => {
                    self.send_gathered(next, timeouts.write).await?;
                    // A stream that always has more, and a client that always takes it, would keep
                    // the worker from everybody else.
                    yield_now().await;
                    self.expect_piece(timeouts, in_flight.as_deref_mut());
                }
                Ok(Step::End) if left.is_none_or(|left| left == 0) => break,
                Ok(Step::End | Step::Failed) => {
                    // What came before is the client's all the same.
                    self.send_gathered(next, timeouts.write).await?;
                    return Err(ConnectionError::FileTruncated);
                }
                Err(ConnectionError::TimedOut)
                    if in_flight.is_none()
                        && self.more_time(Limit::Idle, timeouts.idle_ms, 0, b"").is_some() => {}
                Err(error) => return Err(error),
            }
        }
        if stream.chunked {
            end_chunks(stream.trailers, next);
        }
        self.send_gathered(next, timeouts.write).await
    }

    /// Sets the time by which a stream must have brought something, if there is one.
    fn expect_piece(&mut self, timeouts: RouteTimeouts, in_flight: Option<&mut InFlight>) {
        self.socket.refresh_now();
        let now_ms = self.socket.now().mono_ms;
        self.socket.set_deadline(timeouts.idle_from(now_ms));
        if let Some(in_flight) = in_flight {
            in_flight.note_progress(now_ms);
        }
    }

    /// Gathers what a stream brings; does meanwhile what its request's handler asks for.
    fn poll_stream(
        &mut self,
        stream: &mut StreamOut,
        left: &mut Option<u64>,
        next: &mut Gathered,
        in_flight: Option<&mut InFlight>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Step, ConnectionError>> {
        let mut in_flight = in_flight;
        loop {
            let polled = contained(|| stream.streamed.poll_next(context));
            match polled.unwrap_or(Poll::Ready(Some(Err(Failed)))) {
                Poll::Ready(Some(Ok(piece))) => {
                    if !is_promised(&piece, left) {
                        return Poll::Ready(Ok(Step::Failed));
                    }
                    next.take(piece, stream.chunked);
                    if next.is_full(self.app.stream_buffer_bytes) {
                        return Poll::Ready(Ok(Step::Flush));
                    }
                    continue;
                }
                Poll::Ready(Some(Err(_))) => return Poll::Ready(Ok(Step::Failed)),
                Poll::Ready(None) => return Poll::Ready(Ok(Step::End)),
                Poll::Pending => {}
            }
            if !next.is_empty() {
                return Poll::Ready(Ok(Step::Flush));
            }
            let Some(in_flight) = in_flight.as_deref_mut() else {
                return self.socket.poll_deadline(false).map(Err);
            };
            match ready!(self.poll_action(in_flight, context)) {
                // Behind the answer's head there is no place for it (RFC 9110 §15.2).
                Ok(ConnAction::Fed | ConnAction::Say(_)) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Sends what has been gathered, if that is anything.
    async fn send_gathered(
        &mut self,
        next: &mut Gathered,
        write: ProgressTimeout,
    ) -> Result<(), ConnectionError> {
        if next.is_empty() {
            return Ok(());
        }
        let Gathered { out, counted, content, .. } = mem::replace(next, Gathered::behind(None));
        let bytes = out.len();
        let fresh = (bytes - counted) as u64;
        self.app.count_response(0, fresh);
        if let Err(failed) = self.send_out(out, write).await {
            // (Of chunks, their sizes are taken for content: it is rather told too short.)
            self.log_content(content.saturating_sub(failed.unsent));
            self.log_unsent(failed.unsent.saturating_sub(fresh));
            return Err(failed.error);
        }
        gustnado_tasks::charge(u32::try_from(bytes / UNIT_BYTES).unwrap_or(u32::MAX));
        self.log_content(content);
        Ok(())
    }

    /// Reads what is left of a request's body, if that is worth it. Returns whether the next
    /// request can be read.
    async fn drain(&mut self, mut in_flight: InFlight) -> Result<bool, ConnectionError> {
        in_flight.parts.channel().end(Err(gustnado_web::body::BodyError::Gone));
        let incoming = &mut in_flight.incoming;
        if incoming.is_spoilt || !(incoming.decoder.is_done() || incoming.is_worth_draining()) {
            return Ok(false);
        }
        self.discard_body(&mut incoming.decoder).await
    }
}

/// Whether a piece is within the length that was promised.
fn is_promised(piece: &Bytes, left: &mut Option<u64>) -> bool {
    let Some(left) = left else { return true };
    let rest = left.checked_sub(piece.len() as u64);
    *left = rest.unwrap_or(*left);
    rest.is_some()
}
