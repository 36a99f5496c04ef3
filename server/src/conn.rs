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
mod flight;
mod remainder;
mod respond;
mod route;
mod turn;

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use gustnado_http::answer::Persist;
use gustnado_http::status::Status;
use gustnado_tasks::{Link, LinkError, Outgoing, Piece};

use crate::app::App;
use crate::reply::Segment;
use crate::stats::{Added, Fault};
use body::BodyRequest;
use flight::Flight;
use remainder::Remainder;

/// How long, and for how many bytes, a peer that was refused is listened to, so that it can read
/// the reason: closing on unread bytes would reset the connection and destroy it.
const LINGER_MS: u64 = 2_000;
const LINGER_BYTES_MAX: usize = 16 << 20;

/// A connection and what is known of it between two requests.
pub(crate) struct Conn {
    link: Link,
    app: Arc<App>,
    /// Bytes that were received and not used yet: the beginning of a request, or what was behind a
    /// request that took its time.
    unread: Option<Box<Unread>>,
    /// Requests so far, up to the limit.
    requests: u32,
}

/// Bytes on hold.
#[derive(Debug, Default)]
struct Unread {
    bytes: Vec<u8>,
    /// How far the search for the head's end has come.
    seen: usize,
}

/// What comes next on a connection, once what was written has been sent.
enum Next {
    /// Receive the next request.
    Receive,
    /// This, behind so many bytes of the body, which came with its head and have been used.
    BodyToo(Box<(usize, Next)>),
    /// Answer what is on hold already.
    Again,
    /// Send the last answer's body, which lies elsewhere.
    #[expect(clippy::box_collection, reason = "rare, and it would make every step larger")]
    Segments { segments: Box<VecDeque<Segment>>, persist: Persist },
    /// Read the last request's body, without which it is not answered.
    Body(Box<BodyRequest>),
    /// Wait for the last request's handler.
    Flight(Box<Flight>),
    /// Send what a handler's answer has besides its head.
    Remainder(Box<Remainder>),
    /// End: the peer knows, and nothing of it is unread.
    Close,
    /// End, which the peer may not expect.
    Linger,
}

/// Serves one connection until either side closes it.
///
/// Faults of the peer and of the network end it; they are counted, and nobody is told.
pub(crate) fn serve(link: Link, app: Arc<App>) -> impl Future<Output = ()> + Send {
    // Made out here: an `async fn` would keep room for its arguments beside what they moved into.
    let mut conn = Conn { link, app, unread: None, requests: 0 };
    conn.link.set_deadline(conn.link.now().mono_ms + conn.app.times.header_ms);
    async move {
        let mut next = Next::Receive;
        loop {
            next = match next {
                receive @ Next::Receive => {
                    // There is nothing in it: forgetting it spares the look that dropping takes.
                    mem::forget(receive);
                    poll_fn(|context| {
                        let received = conn.link.poll_recv(conn.unread.is_none());
                        received.map(|received| conn.answer_received(received, context))
                    })
                    .await
                }
                Next::Again => poll_fn(|context| Poll::Ready(conn.answer_unread(context))).await,
                Next::Close => return,
                rare => Box::pin(conn.finish(rare)).await,
            };
            if conn.link.is_sending() {
                if poll_fn(|_| conn.link.poll_sent()).await.is_err() {
                    return;
                }
                conn.expect_request();
            }
        }
    }
}

impl Conn {
    /// Answers all requests that received bytes complete.
    fn answer_received(
        &mut self,
        received: Result<Piece, LinkError>,
        context: &mut Context<'_>,
    ) -> Next {
        match received {
            Ok(piece) => match piece.bytes() {
                [] => Next::Close,
                bytes => self.answer_piece(bytes, context),
            },
            Err(LinkError::TimedOut) if self.unread.is_some() => {
                self.refuse(Status::REQUEST_TIMEOUT)
            }
            Err(error) => {
                self.note(&error);
                Next::Close
            }
        }
    }

    /// Does what is rare: the body of a request, the body of an answer, an end with a reason.
    async fn finish(&mut self, next: Next) -> Next {
        match next {
            Next::Segments { segments, persist } => {
                for segment in *segments {
                    if let Err(error) = self.send_segment(segment).await {
                        self.note(&error);
                        return Next::Close;
                    }
                }
                self.expect_request();
                self.next_after(persist)
            }
            Next::Body(request) => match self.read_body(&request).await {
                Ok(body) => {
                    let mut body = Some(body);
                    poll_fn(|context| {
                        let body = body.take().expect("polled once");
                        Poll::Ready(self.answer_with_body(&request, body, context))
                    })
                    .await
                }
                Err(error) => self.give_up(&error),
            },
            Next::Flight(flight) => {
                self.fly(flight).await.unwrap_or_else(|error| self.give_up(&error))
            }
            Next::Remainder(remainder) => {
                self.send_remainder(remainder).await.unwrap_or_else(|error| self.give_up(&error))
            }
            Next::Linger => {
                self.linger().await;
                Next::Close
            }
            usual => usual,
        }
    }

    /// Puts received bytes on hold, behind those that are.
    fn hold(&mut self, piece: &Piece) {
        self.unread.get_or_insert_default().bytes.extend_from_slice(piece.bytes());
    }

    /// What comes after an answer that has been sent in several parts.
    fn next_after(&self, persist: Persist) -> Next {
        match (persist, self.unread.is_some()) {
            // Bytes behind the last request are not thrown back at the peer.
            (Persist::Close, true) => Next::Linger,
            (Persist::Close, false) => Next::Close,
            (_, true) => Next::Again,
            (_, false) => Next::Receive,
        }
    }

    /// Ends a connection that cannot go on.
    fn give_up(&self, error: &LinkError) -> Next {
        self.note(error);
        Next::Close
    }

    /// Takes over bytes to send, and sets the time by which the peer must have taken them.
    fn start_send(&mut self, out: Box<Outgoing>) {
        let patience = self.app.times.write;
        let bytes = out.rest().len() as u64;
        let earned_ms = (bytes * 1000).checked_div(patience.rate_min).unwrap_or(0);
        self.link.set_deadline(self.link.now().mono_ms + patience.silence_ms + earned_ms);
        self.link.start_send(out);
    }

    async fn send_segment(&mut self, segment: Segment) -> Result<(), LinkError> {
        let bytes_sent = match segment {
            Segment::Bytes(bytes) => {
                let len = bytes.len() as u64;
                let mut out = Link::outgoing();
                out.bytes = bytes;
                self.start_send(out);
                poll_fn(|_| self.link.poll_sent()).await?;
                len
            }
            Segment::File { file, offset, len } => {
                self.link.send_file(&file, offset, len, self.app.times.write).await?;
                len
            }
        };
        self.app.count(&Added { bytes_sent, ..Added::default() });
        Ok(())
    }

    /// Says that this was all, and listens until the peer has said the same.
    async fn linger(&mut self) {
        self.link.shutdown_write();
        self.link.set_deadline(self.link.now().mono_ms + LINGER_MS);
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
        self.link.set_deadline(self.link.now().mono_ms + wait_ms);
    }

    /// Whether the answer to a request with this head is the connection's last.
    fn is_last(&self, keep_alive: bool) -> bool {
        !keep_alive
            || self.app.requests_max.is_some_and(|max| u64::from(self.requests) >= max)
            || self.app.is_draining()
    }

    /// Counts what ended the connection, if that was somebody's fault.
    fn note(&self, error: &LinkError) {
        let fault = match error {
            LinkError::TimedOut => Fault::TooSlow,
            LinkError::FileTruncated => Fault::FileCut,
            _ => return,
        };
        self.app.count(&Added { fault: Some(fault), ..Added::default() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of what a function returns, without calling it.
    fn output_bytes<F, O>(_: F) -> usize
    where
        F: Fn(Link, Arc<App>) -> O,
    {
        size_of::<O>()
    }

    #[test]
    fn an_idle_connection_is_a_small_future() {
        let bytes = output_bytes(serve);
        assert!(bytes <= 128, "{bytes} bytes; 10,000 of them must stay cheap: box what is rare");
    }
}
