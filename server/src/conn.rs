//! One connection, from its first byte to its last. The only place that decides what comes next.
//!
//! ```text
//! receive ─▶ answer all that is there ─▶ send it at once ─▶ finish what is left ─▶ receive …
//!                                                           (a file, a body, the end)
//! ```
//!
//! Bytes are parsed where they arrived and copied only when a request is incomplete; an idle
//! connection holds no buffer. What is rare is boxed, so that the future stays small.

mod body;
mod turn;

use std::future::poll_fn;
use std::sync::Arc;

use gustnado_http::answer::Persist;
use gustnado_http::status::Status;
use gustnado_tasks::{Link, LinkError, Outgoing};

use crate::app::App;
use crate::reply::Segment;
use crate::stats::{Added, Fault};
use turn::{Next, Turned};

/// How long, and for how many bytes, a peer that was refused is listened to, so that it can read
/// the reason: closing on unread bytes would reset the connection and destroy it.
const LINGER_MS: u64 = 5_000;
const LINGER_BYTES_MAX: usize = 16 << 20;

/// A connection and what is known of it between two requests.
pub(crate) struct Conn {
    link: Link,
    app: Arc<App>,
    /// Bytes that were received and not used yet: the beginning of a request, or what was behind a
    /// request that took its time.
    unread: Option<Box<Unread>>,
    requests: u64,
}

/// Bytes on hold.
#[derive(Debug, Default)]
struct Unread {
    bytes: Vec<u8>,
    /// How far the search for the head's end has come.
    seen: usize,
    /// They are to be looked at before more is received.
    ready: bool,
}

/// Serves one connection until either side closes it.
///
/// Faults of the peer and of the network end it; they are counted, and nobody is told.
pub(crate) async fn serve(link: Link, app: Arc<App>) {
    let mut conn = Conn { link, app, unread: None, requests: 0 };
    conn.link.set_deadline(conn.link.now_ms() + conn.app.times.header_ms);
    while let Ok(Turned { out, next }) = conn.turn().await {
        if conn.send(out).await.is_err() {
            return;
        }
        let goes_on = match next {
            Next::Receive => true,
            Next::Close => false,
            next => Box::pin(conn.finish(next)).await.is_ok(),
        };
        if !goes_on {
            return;
        }
        conn.expect_request();
    }
}

impl Conn {
    /// Receives bytes until they hold a request, and answers all requests in them. Nothing is sent.
    ///
    /// # Errors
    /// The connection is over, and all that was due has been sent.
    async fn turn(&mut self) -> Result<Turned, LinkError> {
        loop {
            if self.unread.as_ref().is_some_and(|unread| unread.ready) {
                if let Some(turned) = self.answer_unread() {
                    return Ok(turned);
                }
                self.expect_request();
            }
            match self.link.recv(self.unread.is_none()).await {
                Ok(piece) if piece.bytes().is_empty() => return Err(LinkError::Ending),
                Ok(piece) => {
                    if let Some(turned) = self.answer_piece(piece.bytes()) {
                        return Ok(turned);
                    }
                }
                Err(LinkError::TimedOut) if self.unread.is_some() => {
                    return Ok(self.refuse(Status::REQUEST_TIMEOUT));
                }
                Err(error) => return Err(self.counted(error)),
            }
        }
    }

    /// Does what is left to be done after the answers of a turn were sent.
    ///
    /// # Errors
    /// The connection is over.
    async fn finish(&mut self, mut next: Next) -> Result<(), LinkError> {
        loop {
            next = match next {
                Next::Receive => return Ok(()),
                Next::Close => return Err(LinkError::Ending),
                Next::Linger => {
                    self.linger().await;
                    return Err(LinkError::Ending);
                }
                Next::Segments { segments, persist } => {
                    for segment in *segments {
                        self.send_segment(segment).await?;
                    }
                    match persist {
                        // Bytes behind the last request are not thrown back at the peer.
                        Persist::Close if self.unread.is_some() => Next::Linger,
                        Persist::Close => Next::Close,
                        _ => Next::Receive,
                    }
                }
                Next::Body(request) => {
                    let body = self.read_body(&request).await?;
                    let turned = self.answer_with_body(&request, body);
                    self.send(turned.out).await?;
                    turned.next
                }
            }
        }
    }

    /// Sends bytes, as long as the peer takes them at a bearable pace.
    async fn send(&mut self, out: Box<Outgoing>) -> Result<(), LinkError> {
        let patience = self.app.times.write;
        let bytes = out.rest().len() as u64;
        let earned_ms = (bytes * 1000).checked_div(patience.rate_min).unwrap_or(0);
        self.link.set_deadline(self.link.now_ms() + patience.silence_ms + earned_ms);
        self.link.start_send(out);
        poll_fn(|_| self.link.poll_sent()).await.map_err(|error| self.counted(error))
    }

    async fn send_segment(&mut self, segment: Segment) -> Result<(), LinkError> {
        let bytes_sent = match segment {
            Segment::Bytes(bytes) => {
                let len = bytes.len() as u64;
                let mut out = Link::outgoing();
                out.bytes = bytes;
                self.send(out).await?;
                len
            }
            Segment::File { file, offset, len } => {
                let patience = self.app.times.write;
                let sent = self.link.send_file(&file, offset, len, patience).await;
                sent.map_err(|error| self.counted(error))?;
                len
            }
        };
        self.app.count(&Added { bytes_sent, ..Added::default() });
        Ok(())
    }

    /// Says that this was all, and listens until the peer has said the same.
    async fn linger(&mut self) {
        self.link.shutdown_write();
        self.link.set_deadline(self.link.now_ms() + LINGER_MS);
        let mut thrown_away = 0;
        while let Ok(piece) = self.link.recv(false).await {
            thrown_away += piece.bytes().len();
            if piece.bytes().is_empty() || thrown_away > LINGER_BYTES_MAX {
                return;
            }
        }
    }

    /// Sets the time by which the next request must have come: all of its head if some of it is
    /// here, else its first byte.
    fn expect_request(&mut self) {
        let times = &self.app.times;
        let wait_ms = if self.unread.is_some() { times.header_ms } else { times.keep_alive_ms };
        self.link.set_deadline(self.link.now_ms() + wait_ms);
    }

    /// Whether the answer to a request with this head is the connection's last.
    fn is_last(&self, keep_alive: bool) -> bool {
        !keep_alive || self.requests >= self.app.requests_max || self.app.is_draining()
    }

    fn counted(&self, error: LinkError) -> LinkError {
        let fault = match error {
            LinkError::TimedOut => Some(Fault::TooSlow),
            LinkError::FileTruncated => Some(Fault::FileCut),
            _ => None,
        };
        if fault.is_some() {
            self.app.count(&Added { fault, ..Added::default() });
        }
        error
    }
}
