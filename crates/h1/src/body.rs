//! Reading a request's body: for its handler, or to get to the next request.

use std::future::poll_fn;
use std::task::Poll;

use gustnado_http::body::BodyDecoder;
use gustnado_http::head::{Framing, Head};
use gustnado_http::request::RequestView;
use gustnado_http::response_writer::continue_100;
use gustnado_http::status::Status;
use gustnado_tasks::{
    Connection, ConnectionError, Discarded, ProgressTimeout, ProgressWindow, RecvBuf,
};

use super::Conn;
use super::body_end::{PendingBody, WholeBody};
use super::body_spool::{BodyStore, memory_of};
use super::in_flight::Incoming;
use super::trailers::TrailerMemory;
use super::unread::Unread;
use gustnado_app::bodies::BodyHold;
use gustnado_app::hooks::Limit;
use gustnado_web::routes::RouteOptions;
use gustnado_web::trailers::RequestTrailers;

/// The longest unwanted body that is read to its end. A longer one gets its response at once, and
/// the connection closes: reading it costs more than a new connection.
pub(super) const UNWANTED_BYTES_MAX: u64 = 256 << 10;

/// The same for a body of known length on a connection without a pace: it is discarded uncopied,
/// which costs less than a new connection. It gets its response first, and the connection goes on.
pub(super) const DISCARDED_BYTES_MAX: u64 = 64 << 20;

/// From this many bytes that are known to come next, a body is received into a large buffer.
const LARGE_BYTES: u64 = 16 << 10;
/// The same for a body in small chunks, once so many bytes have come.
const LARGE_BODY_BYTES: u64 = 64 << 10;

/// With less room than this more is made for a body that is kept; and how much at once, after its
/// first bytes.
const ROOM_BYTES_MIN: usize = 64 << 10;
const ROOM_BYTES_MAX: usize = 1 << 20;

/// A request that waits for its body.
#[derive(Debug)]
pub(super) struct BodyRequest {
    pub(super) head: Head,
    pub(super) bytes: Vec<u8>,
    pub(super) body: BodyUse,
}

/// How a body is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyUse {
    /// Read whole for a handler, within its route's limits.
    Whole(RouteOptions),
    /// Read and discarded within them, to get to the next request.
    Nothing(RouteOptions),
}

/// The outcome of reading a body.
#[derive(Debug)]
pub(super) enum BodyOutcome {
    /// It was read to its end; empty if it was not wanted.
    Whole(WholeBody),
    /// It was unwanted and left unread: the connection closes after the response.
    Skipped,
    /// It is malformed, past a limit, or late: the response is this status.
    Refused(Status),
}

impl BodyOutcome {
    /// Returns the state that the response depends on.
    pub(super) fn pending(&mut self) -> PendingBody<'_> {
        match self {
            Self::Whole(body) => PendingBody::Read(body),
            Self::Skipped | Self::Refused(_) => PendingBody::Unread,
        }
    }
}

/// A body that is being read.
struct Reading<'a> {
    decoder: BodyDecoder,
    window: ProgressWindow,
    patience: ProgressTimeout,
    /// Where it is collected, if it is wanted.
    store: Option<BodyStore>,
    bytes_max: u64,
    request: RequestView<'a>,
}

/// What a receive has brought of a body.
enum BodyInput {
    /// So many bytes, which were discarded or lie in their place.
    Taken(usize),
    /// These bytes; none are the peer's end.
    Received(RecvBuf),
}

impl BodyInput {
    fn is_end(&self) -> bool {
        match self {
            Self::Taken(bytes) => *bytes == 0,
            Self::Received(piece) => piece.bytes().is_empty(),
        }
    }
}

impl Conn {
    /// Reads a body to its end, and keeps it if it is wanted.
    ///
    /// - `hold`: the memory that it takes, to be kept as long as the body.
    ///
    /// # Errors
    /// The connection failed or was closed.
    pub(super) async fn read_body(
        &mut self,
        request: &BodyRequest,
        hold: &mut BodyHold,
    ) -> Result<BodyOutcome, ConnectionError> {
        let framing = request.head.framing();
        let view = request.head.on(&request.bytes);
        let target = view.target();
        let mut limits = self.app.limits;
        let (store, options) = match request.body {
            BodyUse::Whole(options) => (Some(self.body_store(&options)), options),
            BodyUse::Nothing(options) => (None, options),
        };
        limits.body_bytes_max = options.limit_body_bytes.unwrap_or(limits.body_bytes_max);
        let bytes_max = limits.body_bytes_max;
        if let Framing::Length(length) = framing
            && length > bytes_max
        {
            self.note_size(Limit::BodyBytes, (bytes_max, length), target);
            return Ok(BodyOutcome::Refused(Status::CONTENT_TOO_LARGE));
        }
        if store.is_none() {
            // A client that waits for 100 sends no body after a final response.
            if request.head.expects_continue() || exceeds(framing, UNWANTED_BYTES_MAX) {
                return Ok(BodyOutcome::Skipped);
            }
            limits.body_bytes_max = limits.body_bytes_max.min(UNWANTED_BYTES_MAX);
        }
        if request.head.expects_continue() && self.unread.is_none() {
            // RFC 9110 §10.1.1: 100 may be left out if the body is already arriving.
            self.send_continue(target).await?;
        }
        if let Some(rate) = options.read {
            self.begin_route_read(rate);
        }
        let patience = options.body_timeout(self.app.times.body);
        let window = ProgressWindow::new(patience, self.socket.now().mono_ms);
        let mut decoder = BodyDecoder::new(framing, &limits);
        decoder.keep_trailers(store.is_some());
        let reading = Reading { decoder, window, patience, store, bytes_max, request: view };
        self.receive_body(reading, hold).await
    }

    async fn receive_body(
        &mut self,
        reading: Reading<'_>,
        hold: &mut BodyHold,
    ) -> Result<BodyOutcome, ConnectionError> {
        let Reading { mut decoder, mut window, patience, mut store, bytes_max, request } = reading;
        let (mut granted_ms, mut memory) = (0, TrailerMemory::default());
        let mut done = self.decode_unread(&mut decoder, memory_of(&mut store));
        loop {
            let received = decoder.received();
            match done {
                Ok(true) => {
                    let trailers = decoder.take_trailers().map(RequestTrailers::of_lines);
                    let whole = self.finish_body(store, hold).await?;
                    let whole = whole.map(|bytes| WholeBody { bytes, trailers });
                    return Ok(whole.map_or_else(BodyOutcome::Refused, BodyOutcome::Whole));
                }
                Ok(false) if memory.has_room(&decoder, &self.app) => {}
                Ok(false) => return Ok(BodyOutcome::Refused(Status::SERVICE_UNAVAILABLE)),
                Err(Status::CONTENT_TOO_LARGE)
                    if store.is_none() && bytes_max > UNWANTED_BYTES_MAX =>
                {
                    return Ok(BodyOutcome::Skipped);
                }
                Err(status) => {
                    if status == Status::CONTENT_TOO_LARGE {
                        self.note_size(Limit::BodyBytes, (bytes_max, received), request.target());
                    }
                    return Ok(BodyOutcome::Refused(status));
                }
            }
            // Pauses of the server's own, for its pace or for memory, do not count against the
            // client.
            window.extend(self.socket.await_reading(false).await?);
            window.stop(self.socket.now().mono_ms);
            if let Some(store) = &mut store
                && let Some(status) = self.admit_more(store, hold, decoder.left(), request).await?
            {
                return Ok(BodyOutcome::Refused(status));
            }
            let now_ms = self.socket.now().mono_ms;
            window.resume(now_ms);
            let deadline = window.deadline_ms(patience, now_ms, received);
            self.socket.set_deadline(deadline.max(granted_ms));
            done = match self.recv_some(&decoder, memory_of(&mut store), (hold, false)).await {
                // The next admission says so, too.
                Ok(None) => Ok(false),
                Ok(Some(input)) if input.is_end() => return Err(ConnectionError::Ending),
                Ok(Some(input)) => self.take_body(input, &mut decoder, memory_of(&mut store)),
                Err(ConnectionError::TimedOut) => {
                    let silence_ms = patience.silence_ms;
                    match self.more_time(Limit::Body, silence_ms, received, request.target()) {
                        Some(until_ms) => granted_ms = until_ms,
                        None => return Ok(BodyOutcome::Refused(Status::REQUEST_TIMEOUT)),
                    }
                    Ok(false)
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the state of a body that a task reads.
    ///
    /// - `framing`: of the bytes still to be read.
    pub(super) fn incoming(
        &self,
        options: &RouteOptions,
        framing: Framing,
        expects_continue: bool,
    ) -> Incoming {
        let mut limits = self.app.limits;
        limits.body_bytes_max = self.body_bytes_max(options);
        let patience = options.body_timeout(self.app.times.body);
        let mut decoder = BodyDecoder::new(framing, &limits);
        decoder.keep_trailers(true);
        Incoming {
            decoder,
            trailers: TrailerMemory::default(),
            expects_continue,
            began_ms: self.socket.now().mono_ms,
            patience,
            window: ProgressWindow::stopped(patience, self.socket.now().mono_ms),
            hold: BodyHold::default(),
            body_policy: options.body_policy,
            waits_since_ms: None,
            granted_ms: 0,
            handed_ms: self.socket.now().mono_ms,
            read: options.read,
            is_broken: false,
            is_tunnel: false,
            half_close_ms: options.half_close_ms.map_or(self.app.times.half_close_ms, u64::from),
            label: options.label,
        }
    }

    async fn send_continue(&mut self, target: &[u8]) -> Result<(), ConnectionError> {
        let mut out = Connection::outgoing();
        out.bytes.extend_from_slice(continue_100());
        self.app.count_response(0, out.len() as u64);
        Ok(self.send_within(out, self.app.times.write, target).await?)
    }

    /// Reads and discards the rest of a body. Returns whether its end was reached.
    ///
    /// - `goes_on`: the connection persists if so.
    ///
    /// # Errors
    /// The connection failed or was closed.
    pub(super) async fn discard_body(
        &mut self,
        decoder: &mut BodyDecoder,
        goes_on: bool,
    ) -> Result<bool, ConnectionError> {
        decoder.keep_trailers(false);
        let (patience, before) = (self.app.times.body, decoder.received());
        let mut window = ProgressWindow::new(patience, self.socket.now().mono_ms);
        let mut done = self.decode_unread(decoder, None);
        loop {
            // Asked again and again: a server that begins to end waits for no long body.
            let bytes_max = match decoder.left() {
                Some(_) => self.unwanted_bytes_max(goes_on),
                None => UNWANTED_BYTES_MAX,
            };
            match done {
                Ok(true) => return Ok(true),
                Ok(false) if decoder.received() - before <= bytes_max => {}
                _ => return Ok(false),
            }
            window.extend(self.socket.await_reading(false).await?);
            let (now_ms, received) = (self.socket.now().mono_ms, decoder.received() - before);
            self.socket.set_deadline(window.deadline_ms(patience, now_ms, received));
            done = match self.recv_some(decoder, None, (&BodyHold::default(), true)).await {
                Ok(Some(input)) if !input.is_end() => self.take_body(input, decoder, None),
                // The response has left, so a server that ends waits for no more.
                Ok(_) | Err(ConnectionError::Ending) => return Ok(false),
                Err(error) => return Err(error),
            };
        }
    }

    /// Returns how many bytes of an unwanted body are read behind its response, if its length was
    /// announced.
    ///
    /// - `goes_on`: the connection would persist after the response.
    pub(super) fn unwanted_bytes_max(&self, goes_on: bool) -> u64 {
        let is_last = self.app.notice().has_news() && self.app.is_draining();
        if goes_on && !is_last && !self.socket.is_paced() {
            return DISCARDED_BYTES_MAX;
        }
        UNWANTED_BYTES_MAX
    }

    /// Returns whether a response can leave before its request's unwanted body, which is discarded
    /// behind it: a short one is read first, so that the connection goes on as after any request.
    ///
    /// - `goes_on`: as for [`Conn::unwanted_bytes_max`].
    pub(super) fn is_discarded_behind(
        &self,
        head: &Head,
        options: &RouteOptions,
        goes_on: bool,
    ) -> bool {
        let Framing::Length(length) = head.framing() else { return false };
        let bytes_max = self.unwanted_bytes_max(goes_on).min(self.body_bytes_max(options));
        !head.expects_continue() && (UNWANTED_BYTES_MAX + 1..=bytes_max).contains(&length)
    }

    /// Receives more of a body that is read whole, or not wanted; `None` if it is cut meanwhile, or
    /// is to be put to the disk.
    ///
    /// - `keep`: the body so far, if it is wanted.
    /// - `hold`: the memory that it takes.
    /// - `idle`: as for [`Socket::poll_recv`](gustnado_tls::Socket::poll_recv).
    async fn recv_some(
        &mut self,
        decoder: &BodyDecoder,
        mut keep: Option<&mut Vec<u8>>,
        (hold, idle): (&BodyHold, bool),
    ) -> Result<Option<BodyInput>, ConnectionError> {
        let receive = poll_fn(|_| {
            if hold.cut().is_some() || hold.is_to_spill() {
                return Poll::Ready(Ok(None));
            }
            self.poll_recv_some(decoder, keep.as_deref_mut(), (hold, idle)).map_ok(Some)
        });
        receive.await
    }

    /// Receives more of a body: into a large buffer where much is to come.
    ///
    /// - `has_room`: so much may be held.
    /// - `idle`: as for [`Socket::poll_recv`](gustnado_tls::Socket::poll_recv).
    pub(super) fn poll_recv_body(
        &mut self,
        decoder: &BodyDecoder,
        has_room: bool,
        idle: bool,
    ) -> Poll<Result<RecvBuf, ConnectionError>> {
        if has_room && Self::is_large(decoder) {
            return self.socket.poll_recv_large(idle);
        }
        self.socket.poll_recv(idle)
    }

    /// The same where the body is read whole, or not wanted. If its length is known, it is received
    /// behind what is kept of it, or discarded without being received.
    fn poll_recv_some(
        &mut self,
        decoder: &BodyDecoder,
        keep: Option<&mut Vec<u8>>,
        (hold, idle): (&BodyHold, bool),
    ) -> Poll<Result<BodyInput, ConnectionError>> {
        let has_room = keep.as_ref().is_none_or(|body| hold.has_room(body.len()));
        match (decoder.left(), keep) {
            // No byte behind the body: the next request begins there.
            (Some(left), None) => {
                self.socket.poll_discard(idle, left).map_ok(|discarded| match discarded {
                    Discarded::Bytes(bytes) => BodyInput::Taken(bytes),
                    Discarded::Received(piece) => BodyInput::Received(piece),
                })
            }
            (Some(left), Some(body)) if has_room && Self::is_large(decoder) => {
                let before = body.len();
                let room = room_for(body, left);
                let received = self.socket.poll_recv_onto(idle, body, room);
                received.map_ok(|piece| {
                    piece.map_or(BodyInput::Taken(body.len() - before), BodyInput::Received)
                })
            }
            _ => self.poll_recv_body(decoder, has_room, idle).map_ok(BodyInput::Received),
        }
    }

    /// Decodes what was received of a body. Returns whether the body has ended; what follows it
    /// stays unread.
    fn take_body(
        &mut self,
        input: BodyInput,
        decoder: &mut BodyDecoder,
        keep: Option<&mut Vec<u8>>,
    ) -> Result<bool, Status> {
        match input {
            BodyInput::Taken(bytes) => {
                let left = decoder.left().unwrap_or(0);
                let behind = (bytes as u64).saturating_sub(left);
                decoder.skip(bytes as u64 - behind);
                if let (Some(body), Ok(behind)) = (keep, usize::try_from(behind)) {
                    let behind = body.split_off(body.len() - behind);
                    self.keep_behind(&behind);
                }
            }
            BodyInput::Received(piece) => {
                self.socket.charge_read(&piece);
                let used = decode(decoder, piece.bytes(), keep)?;
                self.keep_behind(&piece.bytes()[used..]);
            }
        }
        Ok(decoder.is_done())
    }

    /// Returns whether so much of a body is to come that it is worth a large buffer.
    pub(super) fn is_large(decoder: &BodyDecoder) -> bool {
        decoder.next_run() >= LARGE_BYTES || decoder.received() >= LARGE_BODY_BYTES
    }

    /// Keeps what was received behind a body.
    pub(super) fn keep_behind(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.unread = Some(Box::new(Unread::new(bytes.to_vec())));
        }
    }

    /// Decodes the unread bytes. Returns whether the body has ended; what follows it stays unread.
    fn decode_unread(
        &mut self,
        decoder: &mut BodyDecoder,
        keep: Option<&mut Vec<u8>>,
    ) -> Result<bool, Status> {
        let Some(mut unread) = self.unread.take() else { return Ok(decoder.is_done()) };
        let used = decode(decoder, &unread.bytes, keep)?;
        if used < unread.bytes.len() {
            unread.bytes.drain(..used);
            unread.seen = 0;
            self.unread = Some(unread);
        }
        Ok(decoder.is_done())
    }
}

/// Returns for how many more bytes of a body that is kept there should be room, once some are here:
/// for all of a short one, since growing copies what is there. Of a long one a part comes first: a
/// client that announces much may send little.
fn room_for(body: &Vec<u8>, left: u64) -> usize {
    let left = usize::try_from(left).unwrap_or(usize::MAX);
    if body.capacity() - body.len() >= left.min(ROOM_BYTES_MIN) {
        return 0;
    }
    let is_coming = body.len() >= ROOM_BYTES_MIN;
    left.min(if is_coming { body.len().max(ROOM_BYTES_MAX) } else { 2 * ROOM_BYTES_MIN })
}

/// Decodes bytes of a body, and appends its data to `keep`. Returns how many bytes were used.
fn decode(
    decoder: &mut BodyDecoder,
    bytes: &[u8],
    mut keep: Option<&mut Vec<u8>>,
) -> Result<usize, Status> {
    let mut used = 0;
    while used < bytes.len() && !decoder.is_done() {
        let piece = decoder.decode(&bytes[used..]).map_err(|error| error.status())?;
        used += piece.consumed;
        if let Some(body) = &mut keep {
            body.extend_from_slice(piece.data);
        }
    }
    Ok(used)
}

fn exceeds(framing: Framing, bytes_max: u64) -> bool {
    matches!(framing, Framing::Length(length) if length > bytes_max)
}
