//! Reading a request's body: for its handler, or to get to the next request.

use std::future::poll_fn;

use gustnado_http::answer::continue_100;
use gustnado_http::body::BodyDecoder;
use gustnado_http::head::{Framing, Head};
use gustnado_http::request::Request;
use gustnado_http::status::Status;
use gustnado_tasks::{Link, LinkError};

use super::Conn;

/// A body that nobody wants is read to its end if it is not longer than this; else the answer comes
/// at once, and the connection ends.
const UNWANTED_BYTES_MAX: u64 = 256 << 10;

/// A request that waits for its body.
#[derive(Debug)]
pub(super) struct BodyRequest {
    pub(super) head: Head,
    pub(super) bytes: Vec<u8>,
}

impl BodyRequest {
    pub(super) fn view(&self) -> Request<'_> {
        self.head.on(&self.bytes)
    }
}

/// What became of a body.
#[derive(Debug)]
pub(super) enum Body {
    /// It was read to its end; empty if nobody wanted it.
    Whole(Vec<u8>),
    /// It was left unread, for nobody wanted it: the connection ends after the answer.
    Skipped,
    /// It is against the rules, past a limit, or late: this is the answer.
    Refused(Status),
}

impl Conn {
    /// Reads a body to its end, and keeps it if it is wanted.
    ///
    /// # Errors
    /// The connection is over.
    pub(super) async fn read_body(&mut self, request: &BodyRequest) -> Result<Body, LinkError> {
        let (wanted, framing) = (self.app.wants_body(&request.view()), request.head.framing());
        let mut limits = self.app.limits;
        if exceeds(framing, limits.body_bytes_max) {
            return Ok(Body::Refused(Status::CONTENT_TOO_LARGE));
        }
        if !wanted {
            // A client that asked first will not send what was refused.
            if request.head.expects_continue() || exceeds(framing, UNWANTED_BYTES_MAX) {
                return Ok(Body::Skipped);
            }
            limits.body_bytes_max = limits.body_bytes_max.min(UNWANTED_BYTES_MAX);
        }
        if request.head.expects_continue() && self.unread.is_none() {
            // RFC 9110 §10.1.1: not where the body is on its way already.
            let mut out = Link::outgoing();
            out.bytes.extend_from_slice(continue_100());
            self.start_send(out);
            poll_fn(|_| self.link.poll_sent()).await?;
        }
        let mut decoder = BodyDecoder::new(framing, &limits);
        let (mut body, began_ms) = (Vec::new(), self.link.now().mono_ms);
        loop {
            match self.decode_unread(&mut decoder, wanted.then_some(&mut body)) {
                Ok(true) => return Ok(Body::Whole(body)),
                Ok(false) => {}
                Err(Status::CONTENT_TOO_LARGE) if !wanted => return Ok(Body::Skipped),
                Err(status) => return Ok(Body::Refused(status)),
            }
            let patience = self.app.times.body;
            let (now_ms, received) = (self.link.now().mono_ms, decoder.received());
            self.link.set_deadline(patience.deadline_ms(began_ms, now_ms, received));
            match self.link.recv(false).await {
                Ok(piece) if piece.bytes().is_empty() => return Err(LinkError::Ending),
                Ok(piece) => {
                    let unread = self.unread.get_or_insert_default();
                    unread.bytes.extend_from_slice(piece.bytes());
                }
                Err(LinkError::TimedOut) => return Ok(Body::Refused(Status::REQUEST_TIMEOUT)),
                Err(error) => return Err(error),
            }
        }
    }

    /// Decodes what is on hold. Returns whether the body has ended; what is behind it stays on
    /// hold.
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
