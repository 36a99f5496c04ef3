//! The rest of a response whose head was written: content that is long or not there yet.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use gustnado_http::response_writer::WrittenHead;
use gustnado_tasks::{Connection, ConnectionError, ProgressTimeout, SendBuf, contained, yield_now};
use gustnado_tls::ResponsePace;

use super::Conn;
use super::body_end::Ending;
use super::in_flight::{ConnAction, InFlight};
use super::next_send::{NextSend, end_chunks};
use super::timeouts::RouteTimeouts;
use gustnado_app::hooks::Limit;
use gustnado_files::Segment;
use gustnado_web::response::{Content, Failed, OnUpgrade, Streamed, Trailers};

/// Sent bytes that cost one unit of the task's budget.
const UNIT_BYTES: usize = 4 << 10;

/// The rest of a response.
pub(super) struct PendingContent {
    pub(super) bytes: Bytes,
    pub(super) segments: VecDeque<Segment>,
    pub(super) stream: Option<StreamOut>,
    pub(super) ending: Ending,
    /// Time-outs of its route, if it has its own.
    pub(super) timeouts: Option<RouteTimeouts>,
    /// The request whose body may still be coming.
    pub(super) in_flight: Option<Box<InFlight>>,
    /// The protocol that takes the connection over.
    pub(super) on_upgrade: Option<Box<OnUpgrade>>,
    /// The pace of its route, if it has one of its own.
    pub(super) paced: Option<Box<Paced>>,
}

/// A response at a pace, of which nothing was sent yet.
pub(super) struct Paced {
    pub(super) pace: Arc<ResponsePace>,
    /// Its head, and short content.
    pub(super) start: Vec<u8>,
    /// The head in it.
    pub(super) written: WrittenHead,
    /// When the request was read.
    pub(super) read_ms: u64,
}

/// Streamed content and its framing.
pub(super) struct StreamOut {
    pub(super) streamed: Streamed,
    pub(super) chunked: bool,
    pub(super) trailers: Option<Trailers>,
    /// What is left of its last piece.
    pub(super) rest: Bytes,
}

impl PendingContent {
    pub(super) fn new(ending: Ending) -> Self {
        let (bytes, segments) = (Bytes::new(), VecDeque::new());
        Self {
            bytes,
            segments,
            stream: None,
            ending,
            timeouts: None,
            in_flight: None,
            on_upgrade: None,
            paced: None,
        }
    }

    /// Creates the rest of a response of which nothing is left, to attach something to.
    pub(super) fn nothing(ending: Ending) -> Box<Self> {
        Box::new(Self::new(ending))
    }

    /// Creates the rest of a response from a file or a part of one.
    pub(super) fn of_segment(segment: Segment, ending: Ending) -> Box<Self> {
        let mut rest = Self::nothing(ending);
        rest.segments.push_back(segment);
        rest
    }

    /// Attaches the request whose body may still arrive to the rest of its response.
    pub(super) fn with_in_flight(
        rest: Option<Box<Self>>,
        ending: Ending,
        in_flight: Box<InFlight>,
    ) -> Box<Self> {
        let mut rest = rest.unwrap_or_else(|| Self::nothing(ending));
        rest.in_flight = Some(in_flight);
        rest
    }

    /// Adds content to its head: short bytes to the same buffer, the rest to be sent later.
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
                let rest = Bytes::new();
                self.stream = Some(StreamOut { streamed, chunked, trailers, rest });
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

    /// Tells the kernel or the socket that more follows, so that the head leaves with the first
    /// content.
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

    /// Returns `None` if nothing is left to do.
    pub(super) fn boxed(self) -> Option<Box<Self>> {
        let is_empty = self.bytes.is_empty() && self.segments.is_empty() && self.stream.is_none();
        (!is_empty).then(|| Box::new(self))
    }
}

/// How a response that was begun has ended.
pub(super) enum ContentEnd {
    /// All of it was sent.
    Whole(Ending),
    /// The same, and the rest of the request's body is too long to be skipped.
    BodyLeft,
    /// It was sent, and another protocol takes the connection over.
    Upgraded(Box<OnUpgrade>),
}

/// The outcome of polling a stream.
enum StreamPoll {
    /// Send the buffered pieces.
    Flush,
    End,
    Failed,
}

impl Conn {
    /// Sends the rest of a response, then skips the rest of the request's body.
    ///
    /// # Errors
    /// The connection failed, or the response cannot be completed.
    pub(super) async fn send_pending(
        &mut self,
        mut pending: Box<PendingContent>,
    ) -> Result<ContentEnd, ConnectionError> {
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
        // The head was written but not sent: it leaves in one packet with the first content.
        let mut next = NextSend::with_head(self.socket.take_unsent());
        while !pending.bytes.is_empty() {
            next.add(&mut pending.bytes, false, usize::MAX);
            self.flush_next(&mut next, write).await?;
            // A fast reader would otherwise keep the worker from its other connections.
            yield_now().await;
        }
        for segment in mem::take(&mut pending.segments) {
            self.send_segment(segment, write).await?;
        }
        if let Some(stream) = pending.stream.take() {
            let timeouts = pending.timeouts.unwrap_or(RouteTimeouts { write, idle_ms: u64::MAX });
            let ends_by_close = !stream.chunked && stream.streamed.length.is_none();
            let sent =
                self.send_stream(stream, timeouts, pending.in_flight.as_deref_mut(), &mut next);
            if let Err(error) = sent.await {
                if ends_by_close {
                    // An end in order would make what has come of it the whole.
                    self.socket.cut_on_drop();
                }
                return Err(error);
            }
        }
        Connection::put_back(next.out);
        // A tunnel goes on at the pace of its route.
        if is_paced && pending.on_upgrade.is_none() {
            self.socket.end_route();
        }
        if let Some(on_upgrade) = pending.on_upgrade.take() {
            // Before the tunnel starts: the HTTP response ends here, however long the tunnel lives.
            if let Some(exchanges) = &mut self.exchanges {
                exchanges.end_before_tunnel();
            }
            return Ok(ContentEnd::Upgraded(on_upgrade));
        }
        self.record_end();
        if let Some(in_flight) = pending.in_flight.take()
            // The next request begins behind the body, so it can only be found once that was
            // skipped.
            && !self.drain(*in_flight, !pending.ending.ends()).await?
        {
            return Ok(ContentEnd::BodyLeft);
        }
        self.expect_request();
        Ok(ContentEnd::Whole(pending.ending))
    }

    async fn send_stream(
        &mut self,
        mut stream: StreamOut,
        timeouts: RouteTimeouts,
        mut in_flight: Option<&mut InFlight>,
        next: &mut NextSend,
    ) -> Result<(), ConnectionError> {
        let mut left = stream.streamed.length;
        self.expect_piece(timeouts, in_flight.as_deref_mut());
        loop {
            let polled = poll_fn(|context| {
                self.poll_stream(&mut stream, &mut left, next, in_flight.as_deref_mut(), context)
            });
            match polled.await {
                Ok(StreamPoll::Flush) => {
                    self.flush_next(next, timeouts.write).await?;
                    // A stream that always has more and a client that always takes it would
                    // otherwise keep the worker from its other connections.
                    yield_now().await;
                    self.expect_piece(timeouts, in_flight.as_deref_mut());
                }
                Ok(StreamPoll::End) if left.is_none_or(|left| left == 0) => break,
                Ok(StreamPoll::End | StreamPoll::Failed) => {
                    // The pieces before the fault are sent, then the connection is cut: a missing
                    // last chunk or a short length is the only way to tell the client that the
                    // response is incomplete.
                    self.flush_next(next, timeouts.write).await?;
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
        self.flush_next(next, timeouts.write).await
    }

    /// Sets the deadline for a stream's next piece, if its route has an idle time-out.
    fn expect_piece(&mut self, timeouts: RouteTimeouts, in_flight: Option<&mut InFlight>) {
        self.socket.refresh_now();
        let now_ms = self.socket.now().mono_ms;
        self.socket.set_deadline(timeouts.idle_from(now_ms));
        if let Some(in_flight) = in_flight {
            in_flight.note_progress(now_ms);
        }
    }

    /// Buffers a stream's pieces, and meanwhile does what the request's handler asks for.
    fn poll_stream(
        &mut self,
        stream: &mut StreamOut,
        left: &mut Option<u64>,
        next: &mut NextSend,
        in_flight: Option<&mut InFlight>,
        context: &mut Context<'_>,
    ) -> Poll<Result<StreamPoll, ConnectionError>> {
        let mut in_flight = in_flight;
        loop {
            if !next.add(&mut stream.rest, stream.chunked, self.app.stream_buffer_bytes) {
                return Poll::Ready(Ok(StreamPoll::Flush));
            }
            let polled = contained(|| stream.streamed.poll_next(context));
            match polled.unwrap_or(Poll::Ready(Some(Err(Failed)))) {
                Poll::Ready(Some(Ok(piece))) => {
                    if !is_promised(&piece, left) {
                        return Poll::Ready(Ok(StreamPoll::Failed));
                    }
                    stream.rest = piece;
                    continue;
                }
                Poll::Ready(Some(Err(_))) => return Poll::Ready(Ok(StreamPoll::Failed)),
                Poll::Ready(None) => return Poll::Ready(Ok(StreamPoll::End)),
                Poll::Pending => {}
            }
            // The stream has nothing more right now, so what is buffered leaves: latency before
            // packet size.
            if !next.is_empty() {
                return Poll::Ready(Ok(StreamPoll::Flush));
            }
            let Some(in_flight) = in_flight.as_deref_mut() else {
                return self.socket.poll_deadline(false).map(Err);
            };
            match ready!(self.poll_action(in_flight, context)) {
                // Interim responses cannot follow the final head (RFC 9110 §15.2).
                Ok(ConnAction::BodyFed | ConnAction::SendInterim(_)) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Sends the buffered pieces, if there are any.
    async fn flush_next(
        &mut self,
        next: &mut NextSend,
        write: ProgressTimeout,
    ) -> Result<(), ConnectionError> {
        if next.is_empty() {
            return Ok(());
        }
        let NextSend { out, counted, content, .. } = mem::replace(next, NextSend::with_head(None));
        let bytes = out.len();
        self.count_more((bytes - counted) as u64, content);
        self.send_out(out, write).await?;
        gustnado_tasks::charge(u32::try_from(bytes / UNIT_BYTES).unwrap_or(u32::MAX));
        Ok(())
    }

    /// Skips the rest of a request's body if it is short. Returns whether the next request can be
    /// read.
    async fn drain(
        &mut self,
        mut in_flight: InFlight,
        goes_on: bool,
    ) -> Result<bool, ConnectionError> {
        in_flight.parts.channel().end(Err(gustnado_web::body::BodyError::Gone));
        let (incoming, bytes_max) = (&mut in_flight.incoming, self.unwanted_bytes_max(goes_on));
        let is_short = incoming.decoder.is_done() || incoming.is_worth_draining(bytes_max);
        if incoming.is_broken || !is_short {
            return Ok(false);
        }
        self.discard_body(&mut incoming.decoder, goes_on).await
    }
}

/// Returns whether a piece is within the promised length. More bytes would be parsed by the client
/// as the start of the next response.
fn is_promised(piece: &Bytes, left: &mut Option<u64>) -> bool {
    let Some(left) = left else { return true };
    let rest = left.checked_sub(piece.len() as u64);
    *left = rest.unwrap_or(*left);
    rest.is_some()
}
