//! One connection, from its first byte to its last. The only place that decides what comes next.
//!
//! ```text
//! receive ─▶ answer all that is there ─▶ send it at once ─▶ finish what is left ─▶ receive …
//!                                                           (a file, a body, the end)
//! ```
//!
//! Bytes are parsed where they arrived and copied only when a request is incomplete; an idle
//! connection holds no buffer. What is rare is boxed, so that the future stays small.

mod after;
mod arrived;
mod body;
mod body_end;
mod file_wait;
mod flight;
mod folder;
mod gathered;
mod introduction;
mod limit;
mod log;
mod pace;
mod pathless;
mod refusal;
mod remainder;
mod respond;
mod route;
mod terms;
mod turn;

use std::future::{Future, poll_fn};
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use gustnado_http::response_writer::WrittenHead;
use gustnado_tasks::{Connection, ConnectionError, Patience, RecvBuf, SendBuf};

use crate::access_log::Journal;
use crate::app::App;
use crate::contained::contained;
use crate::files::Segment;
use crate::hooks::{ClosedConnection, Limit};
use crate::pace::Pacer;
use crate::stats::{Added, Fault};

use arrived::HeadAt;
use body::{Body, BodyRequest};
use body_end::Ending;
use flight::Flight;
use remainder::Remainder;

pub(crate) use pace::serve_paced;

/// How long, and for how many bytes, a peer that was refused is listened to, so that it can read
/// the reason: closing on unread bytes would reset the connection and destroy it.
const LINGER_MS: u64 = 2_000;
const LINGER_BYTES_MAX: usize = 16 << 20;

/// For how long after its last request a connection may bring one more while the server ends: that
/// one may be on its way already, and its client has not been told that it would be the last.
const LAST_CALL_MS: u64 = 200;
/// The same for a connection that was idle for longer: as long as what the kernel has of it takes
/// to be seen.
const LAST_LOOK_MS: u64 = 10;
/// For how long after its end a peer is listened to while the server ends. What it sends then is
/// lost, and it sees the end of the connection, with nothing before it, in place of a reset.
const LAST_LINGER_MS: u64 = 100;

/// A connection and what is known of it between two requests.
pub(crate) struct Conn {
    socket: Connection,
    app: Arc<App>,
    /// Bytes that were received and not used yet: the beginning of a request, or what was behind a
    /// request that took its time.
    unread: Option<Box<Unread>>,
    /// Requests so far, up to the limit.
    requests: u32,
    /// When it began, in milliseconds that begin anew after 49 days.
    began_ms: u32,
    /// What most connections have nothing of.
    besides: Option<Box<Besides>>,
}

/// What a connection is given at a pace, or under an access log.
#[derive(Default)]
struct Besides {
    /// What slows it down, if anything does.
    pacer: Option<Box<Pacer>>,
    /// Its requests whose lines are still to be written.
    journal: Journal,
}

impl Drop for Conn {
    fn drop(&mut self) {
        if self.besides.is_some() {
            self.log_cut();
        }
        let Some(hook) = &self.app.hooks.closed else { return };
        let lasted_ms = low_half(self.socket.now().mono_ms).wrapping_sub(self.began_ms);
        let closed = ClosedConnection {
            requests: self.requests,
            lasted: Duration::from_millis(lasted_ms.into()),
            worker: gustnado_tasks::worker(),
        };
        // A panic in it is its own.
        _ = contained(|| hook(&closed));
    }
}

fn low_half(ms: u64) -> u32 {
    u32::try_from(ms & u64::from(u32::MAX)).expect("the low half")
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
    /// Have a proxy say whose connection it is, before anything else.
    Introduction,
    /// Receive the next request.
    Receive,
    /// This, behind so many bytes of the body, which came with its head and have been used.
    BodyToo(Box<(usize, Next)>),
    /// Answer what is on hold already.
    Again,
    /// Read the last request's body, without which it is not answered.
    Body(Box<BodyRequest>),
    /// Answer the last request by the configuration that counts by now.
    Renew(Box<Unread>),
    /// Wait for the last request's handler.
    Flight(Box<Flight>),
    /// Send what a handler's answer has besides its head.
    Remainder(Box<Remainder>),
    /// Go on sending, with more time than the peer had; and then this.
    Delayed(Box<Next>),
    /// End: the peer knows, and nothing of it is unread.
    Close,
    /// End, which the peer may not expect.
    Linger,
    /// The server ends: take one more request, if it is on its way.
    LastCall,
}

/// Serves one connection until either side closes it.
///
/// Faults of the peer and of the network end it; they are counted, and nobody is told.
pub(crate) fn serve(socket: Connection, app: Arc<App>) -> impl Future<Output = ()> + Send {
    // Made out here: an `async fn` would keep room for its arguments beside what they moved into.
    let mut conn = Conn::new(socket, app);
    async move {
        let mut next = conn.first_step();
        loop {
            next = match next {
                receive @ Next::Receive => {
                    // There is nothing in it: forgetting it spares the look that dropping takes.
                    mem::forget(receive);
                    poll_fn(|context| {
                        let received = conn.socket.poll_recv_request(conn.unread.is_none());
                        received.map(|received| conn.answer_received(received, context))
                    })
                    .await
                }
                Next::Again => poll_fn(|context| Poll::Ready(conn.answer_unread(context))).await,
                Next::Close => return,
                rare => Box::pin(conn.finish(rare)).await,
            };
            if conn.socket.is_sending() {
                if let Err(error) = poll_fn(|_| conn.socket.poll_sent()).await {
                    next = conn.fail_send(&error, next);
                    continue;
                }
                conn.expect_request();
                if conn.besides.is_some() {
                    conn.log_sent();
                }
            }
        }
    }
}

impl Conn {
    #[inline]
    fn new(mut socket: Connection, app: Arc<App>) -> Self {
        let now_ms = socket.now().mono_ms;
        socket.set_deadline(now_ms + app.times.first_ms);
        Self { socket, app, unread: None, requests: 0, began_ms: low_half(now_ms), besides: None }
    }

    /// Answers all requests that received bytes complete.
    fn answer_received(
        &mut self,
        received: Result<RecvBuf, ConnectionError>,
        context: &mut Context<'_>,
    ) -> Next {
        match received {
            Ok(piece) => match piece.bytes() {
                [] => Next::Close,
                bytes => self.answer_piece(bytes, context),
            },
            Err(ConnectionError::TimedOut) => self.miss_request(),
            Err(ConnectionError::Ending) => Next::LastCall,
            Err(error) => {
                self.note(&error);
                Next::Close
            }
        }
    }

    /// Does what is rare: the body of a request, the body of an answer, an end with a reason.
    async fn finish(&mut self, next: Next) -> Next {
        match next {
            Next::Introduction => self.introduce().await,
            Next::Body(request) => match self.read_body(&request).await {
                Ok(Body::Refused(status)) => {
                    self.refuse(status, Some(request.head.on(&request.bytes)))
                }
                Ok(mut body) => {
                    poll_fn(|context| {
                        Poll::Ready(self.answer_with_body(&request, body.pending(), context))
                    })
                    .await
                }
                Err(error) => self.give_up(&error),
            },
            Next::Renew(head) => {
                self.renew(head);
                Next::Again
            }
            Next::Flight(flight) => {
                self.fly(flight).await.unwrap_or_else(|error| self.give_up(&error))
            }
            Next::Remainder(remainder) => {
                self.send_remainder(remainder).await.unwrap_or_else(|error| self.give_up(&error))
            }
            Next::Delayed(next) => match self.sent_late().await {
                Ok(()) => {
                    self.log_sent();
                    self.expect_request();
                    *next
                }
                Err(failed) => self.give_up_send(&failed),
            },
            Next::Linger => {
                let is_last = self.app.has_notice() && self.app.is_draining();
                self.linger(if is_last { LAST_LINGER_MS } else { LINGER_MS }).await;
                Next::Close
            }
            Next::LastCall => self.last_call().await,
            usual => usual,
        }
    }

    /// Goes on under the app that counts now, and reads the last request's head again.
    fn renew(&mut self, mut head: Box<Unread>) {
        if let Some(app) = self.app.successor() {
            self.app = app;
        }
        if let Some(behind) = self.unread.take() {
            head.bytes.extend_from_slice(&behind.bytes);
        }
        self.unread = Some(head);
        self.requests = self.requests.saturating_sub(1);
    }

    /// Puts received bytes on hold, behind those that are.
    fn hold(&mut self, piece: &RecvBuf) {
        self.unread.get_or_insert_default().bytes.extend_from_slice(piece.bytes());
    }

    /// What comes after an answer that has been sent in several parts.
    fn next_after(&self, ending: Ending) -> Next {
        match (ending.ends(), self.unread.is_some()) {
            // Bytes behind the last request are not thrown back at the peer.
            (true, is_unread) if is_unread || ending.lingers() => Next::Linger,
            (true, _) => Next::Close,
            (false, true) => Next::Again,
            (false, false) => Next::Receive,
        }
    }

    /// Counts a response that has been written, and says where it lies.
    ///
    /// - `at`: where it begins.
    #[inline]
    fn count_response(&self, written: WrittenHead, at: usize, out: &[u8]) -> HeadAt {
        self.app.count_response(written.status, (out.len() - at) as u64);
        HeadAt { written, at }
    }

    /// Ends a connection that cannot go on.
    fn give_up(&self, error: &ConnectionError) -> Next {
        self.note(error);
        Next::Close
    }

    /// Takes over bytes to send, and sets the time by which the peer must have taken them.
    #[expect(clippy::inline_always, reason = "as a call it costs a plain request instructions")]
    #[inline(always)]
    fn start_send(&mut self, out: Box<SendBuf>) {
        self.socket.set_deadline(self.socket.now().mono_ms + self.app.times.write_look_ms);
        self.socket.start_send(out);
    }

    async fn send_segment(
        &mut self,
        segment: Segment,
        write: Patience,
    ) -> Result<(), ConnectionError> {
        match segment {
            Segment::Bytes(bytes) => {
                let len = bytes.len() as u64;
                let mut out = Connection::outgoing();
                out.bytes = bytes;
                self.send_content(out, len, write).await?;
            }
            Segment::File { file, offset, len, cold } if self.is_paced() => {
                let span = (offset, offset.saturating_add(len));
                Box::pin(self.send_file_paced(&file, span, cold.as_ref(), write)).await?;
            }
            Segment::File { file, offset, len, cold } => {
                let (mut at, mut patience) = (offset, write);
                let end = offset.saturating_add(len);
                loop {
                    let before = at;
                    let until = self.warm(&file, (at, end), cold.as_ref(), patience).await?;
                    let sent = self.socket.send_file(&file, &mut at, until, patience).await;
                    self.count_file(at - before);
                    match sent {
                        Ok(()) if at < end => {}
                        Ok(()) => break,
                        Err(ConnectionError::TimedOut) => {
                            let granted =
                                self.more_time(Limit::Write, write.silence_ms, at - offset, b"");
                            let until_ms = granted.ok_or(ConnectionError::TimedOut)?;
                            // (What was granted holds for the rest of it.)
                            patience.silence_ms = until_ms - self.socket.now().mono_ms;
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        Ok(())
    }

    /// Sends bytes of an answer, and counts them.
    ///
    /// - `content_bytes`: how many of them, from the last one on, are content.
    async fn send_content(
        &mut self,
        out: Box<SendBuf>,
        content_bytes: u64,
        write: Patience,
    ) -> Result<(), ConnectionError> {
        self.app.count_response(0, out.len() as u64);
        let sent = self.send_out(out, write).await;
        self.log_content(match &sent {
            Ok(()) => content_bytes,
            Err(failed) => content_bytes.saturating_sub(failed.unsent),
        });
        Ok(sent?)
    }

    /// Counts bytes of a file that have left.
    fn count_file(&mut self, bytes: u64) {
        self.app.count_response(0, bytes);
        self.log_content(bytes);
    }

    /// Waits for a request that may be on its way while the server ends, and answers it. Clients
    /// that keep connections send their next request whenever they like; so most of those who do
    /// are served once more, and told that it was the last time.
    async fn last_call(&mut self) -> Next {
        let times = &self.app.times;
        let waits_ms = if self.requests == 0 { times.first_ms } else { times.keep_alive_ms };
        let now_ms = self.socket.now().mono_ms;
        let idle_since_ms = self.socket.deadline_ms().saturating_sub(waits_ms);
        let until_ms = idle_since_ms.saturating_add(LAST_CALL_MS);
        self.socket.set_deadline(until_ms.clamp(now_ms + LAST_LOOK_MS, now_ms + LAST_CALL_MS));
        // (A piece must not be held over a wait.)
        let next = poll_fn(|context| {
            let received = ready!(self.socket.poll_recv(false));
            Poll::Ready(match received {
                Err(ConnectionError::TimedOut) => None,
                Err(_) => Some(Next::Close),
                received => Some(self.answer_received(received, context)),
            })
        });
        if let Some(next) = next.await {
            return next;
        }
        self.linger(LAST_LINGER_MS).await;
        Next::Close
    }

    /// Says that this was all, and listens until the peer has said the same.
    ///
    /// - `wait_ms`: for how long at most.
    async fn linger(&mut self, wait_ms: u64) {
        self.socket.shutdown_write();
        self.socket.set_deadline(self.socket.now().mono_ms + wait_ms);
        let mut thrown_away = 0;
        while let Ok(piece) = self.socket.recv(false).await {
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
        self.socket.set_deadline(self.socket.now().mono_ms + wait_ms);
    }

    /// Counts what ended the connection, if that was somebody's fault.
    fn note(&self, error: &ConnectionError) {
        let fault = match error {
            ConnectionError::TimedOut => Fault::TooSlow,
            ConnectionError::FileTruncated => Fault::FileCut,
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
        F: Fn(Connection, Arc<App>) -> O,
    {
        size_of::<O>()
    }

    #[test]
    fn an_idle_connection_is_a_small_future() {
        let bytes = output_bytes(serve);
        assert!(bytes <= 128, "{bytes} bytes; 10,000 of them must stay cheap: box what is rare");
    }
}
