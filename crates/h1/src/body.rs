//! Reading a request's body: for its handler, or to get to the next request.

use gustnado_http::body::BodyDecoder;
use gustnado_http::head::{Framing, Head};
use gustnado_http::response_writer::continue_100;
use gustnado_http::status::Status;
use gustnado_tasks::{Connection, ConnectionError};

use super::Conn;
use super::body_end::PendingBody;
use gustnado_app::hooks::Limit;
use gustnado_web::routes::RouteOptions;

/// The longest unwanted body that is read to its end. A longer one gets its response at once, and
/// the connection closes: reading it costs more than a new connection.
pub(super) const UNWANTED_BYTES_MAX: u64 = 256 << 10;

/// A request that waits for its body.
#[derive(Debug)]
pub(super) struct BodyRequest {
    pub(super) head: Head,
    pub(super) bytes: Vec<u8>,
    pub(super) policy: BodyPolicy,
}

/// How a body is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyPolicy {
    /// Read whole for a handler, within its route's limits.
    Whole(RouteOptions),
    /// Read and discarded, to get to the next request.
    Nothing,
}

/// The outcome of reading a body.
#[derive(Debug)]
pub(super) enum Body {
    /// It was read to its end; empty if it was not wanted.
    Whole(Vec<u8>),
    /// It was unwanted and left unread: the connection closes after the response.
    Skipped,
    /// It is malformed, past a limit, or late: the response is this status.
    Refused(Status),
}

impl Body {
    /// Returns the state that the response depends on.
    pub(super) fn pending(&mut self) -> PendingBody<'_> {
        match self {
            Self::Whole(body) => PendingBody::Read(body),
            Self::Skipped | Self::Refused(_) => PendingBody::Unread,
        }
    }
}

impl Conn {
    /// Reads a body to its end, and keeps it if it is wanted.
    ///
    /// # Errors
    /// The connection failed or was closed.
    pub(super) async fn read_body(
        &mut self,
        request: &BodyRequest,
    ) -> Result<Body, ConnectionError> {
        let framing = request.head.framing();
        let target = request.head.on(&request.bytes).target();
        let mut limits = self.app.limits;
        let (wanted, options) = match request.policy {
            BodyPolicy::Whole(options) => (true, options),
            BodyPolicy::Nothing => (false, RouteOptions::default()),
        };
        limits.body_bytes_max = options.limit_body_bytes.unwrap_or(limits.body_bytes_max);
        let bytes_max = limits.body_bytes_max;
        if let Framing::Length(length) = framing
            && length > bytes_max
        {
            self.note_size(Limit::BodyBytes, (bytes_max, length), target);
            return Ok(Body::Refused(Status::CONTENT_TOO_LARGE));
        }
        if !wanted {
            // A client that waits for 100 sends no body after a final response.
            if request.head.expects_continue() || exceeds(framing, UNWANTED_BYTES_MAX) {
                return Ok(Body::Skipped);
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
        let mut decoder = BodyDecoder::new(framing, &limits);
        let (mut body, mut began_ms, mut granted_ms) = (Vec::new(), self.socket.now().mono_ms, 0);
        loop {
            let done = self.decode_unread(&mut decoder, wanted.then_some(&mut body));
            let received = decoder.received();
            match done {
                Ok(true) => return Ok(Body::Whole(body)),
                Ok(false) => {}
                Err(Status::CONTENT_TOO_LARGE) if !wanted => return Ok(Body::Skipped),
                Err(status) => {
                    if status == Status::CONTENT_TOO_LARGE {
                        self.note_size(Limit::BodyBytes, (bytes_max, received), target);
                    }
                    return Ok(Body::Refused(status));
                }
            }
            // Pauses of the server's own pace do not count against the client.
            began_ms += self.socket.await_reading(false).await?;
            let deadline = patience.deadline_ms(began_ms, self.socket.now().mono_ms, received);
            self.socket.set_deadline(deadline.max(granted_ms));
            match self.socket.recv(false).await {
                Ok(piece) if piece.bytes().is_empty() => return Err(ConnectionError::Ending),
                Ok(piece) => {
                    self.socket.charge_read(&piece);
                    self.keep_unread(&piece);
                }
                Err(ConnectionError::TimedOut) => {
                    match self.more_time(Limit::Body, patience.silence_ms, received, target) {
                        Some(until_ms) => granted_ms = until_ms,
                        None => return Ok(Body::Refused(Status::REQUEST_TIMEOUT)),
                    }
                }
                Err(error) => return Err(error),
            }
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
    /// # Errors
    /// The connection failed or was closed.
    pub(super) async fn discard_body(
        &mut self,
        decoder: &mut BodyDecoder,
    ) -> Result<bool, ConnectionError> {
        let (mut began_ms, before) = (self.socket.now().mono_ms, decoder.received());
        loop {
            match self.decode_unread(decoder, None) {
                Ok(true) => return Ok(true),
                Ok(false) if decoder.received() - before <= UNWANTED_BYTES_MAX => {}
                _ => return Ok(false),
            }
            began_ms += self.socket.await_reading(false).await?;
            let (patience, now_ms) = (self.app.times.body, self.socket.now().mono_ms);
            let received = decoder.received() - before;
            self.socket.set_deadline(patience.deadline_ms(began_ms, now_ms, received));
            let piece = self.socket.recv(false).await?;
            if piece.bytes().is_empty() {
                return Ok(false);
            }
            self.socket.charge_read(&piece);
            self.keep_unread(&piece);
        }
    }

    /// Decodes the unread bytes. Returns whether the body has ended; what follows it stays unread.
    fn decode_unread(
        &mut self,
        decoder: &mut BodyDecoder,
        mut keep: Option<&mut Vec<u8>>,
    ) -> Result<bool, Status> {
        let Some(mut unread) = self.unread.take() else { return Ok(decoder.is_done()) };
        let mut used = 0;
        while used < unread.bytes.len() && !decoder.is_done() {
            let piece = decoder.decode(&unread.bytes[used..]).map_err(|error| error.status())?;
            used += piece.consumed;
            if let Some(body) = &mut keep {
                body.extend_from_slice(piece.data);
            }
        }
        if used < unread.bytes.len() {
            unread.bytes.drain(..used);
            unread.seen = 0;
            self.unread = Some(unread);
        }
        Ok(decoder.is_done())
    }
}

fn exceeds(framing: Framing, bytes_max: u64) -> bool {
    matches!(framing, Framing::Length(length) if length > bytes_max)
}
