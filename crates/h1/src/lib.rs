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
mod folder;
mod gathered;
mod in_flight;
mod limit;
mod log;
mod pace;
mod pathless;
mod pending;
mod proxy_protocol;
mod refusal;
mod respond;
mod route;
mod send;
mod timeouts;
mod turn;
mod upgrade;

use std::future::{Future, poll_fn};
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use gustnado_http::request::Request as View;
use gustnado_http::response_writer::WrittenHead;
use gustnado_http::status::Status;
use gustnado_tasks::{Connection, ConnectionError, RecvBuf};
use gustnado_tls::{SendFailed, Socket};

use gustnado_app::app::App;
use gustnado_app::hooks::ClosedConnection;
use gustnado_observe::access_log::Journal;
use gustnado_web::contained::contained;
use gustnado_web::response::OnUpgrade;

use arrived::HeadAt;
use body::{Body, BodyRequest};
use body_end::Ending;
use in_flight::InFlight;
use limit::Missed;
use pace::Held;
use pending::PendingContent;
use proxy_protocol::NoProxyHeader;
use upgrade::TunnelEnd;

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
pub struct Conn {
    socket: Socket,
    app: Arc<App>,
    /// Bytes that were received and not used yet: the beginning of a request, or what was behind a
    /// request that took its time.
    unread: Option<Box<Unread>>,
    /// Requests so far, up to the limit.
    requests: u32,
    /// When it began, in milliseconds that begin anew after 49 days.
    began_ms: u32,
    /// Its requests whose lines in the access log are still to be written, where there is one.
    journal: Option<Box<Journal>>,
}

impl Drop for Conn {
    fn drop(&mut self) {
        if self.journal.is_some() {
            self.log_cut();
        }
        let Some(hook) = &self.app.hooks.closed else { return };
        let lasted_ms = low_half(self.socket.now().mono_ms).wrapping_sub(self.began_ms);
        let lasted = Duration::from_millis(lasted_ms.into());
        let closed = ClosedConnection::new(self.requests, lasted, gustnado_tasks::worker());
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
    ProxyHeader,
    /// Receive the next request.
    Receive,
    /// This, behind so many bytes of the body, which came with its head and have been used.
    BodyToo(Box<(usize, Next)>),
    /// Answer what is on hold already.
    Again,
    /// The same two, at the pace of all connections.
    ReceiveAtPace,
    AgainAtPace,
    /// Read the last request's body, without which it is not answered.
    Body(Box<BodyRequest>),
    /// Answer the last request by the configuration that counts by now.
    Renew(Box<Unread>),
    /// Wait for the last request's handler.
    InFlight(Box<InFlight>),
    /// Send what a handler's answer has besides its head.
    PendingContent(Box<PendingContent>),
    /// Go on sending what the peer has not taken by its first deadline, and receive then.
    SendOn,
    /// Give the connection to another protocol.
    Tunnel(Box<OnUpgrade>),
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
///
/// Where all connections have a pace, each of its steps is a rare one: the usual ones ask nothing.
pub fn serve(connection: Connection, app: Arc<App>) -> impl Future<Output = ()> + Send {
    // Made out here: an `async fn` would keep room for its arguments beside what they moved into.
    let mut conn = Conn::new(connection, app);
    async move {
        let mut next = conn.first_step();
        loop {
            next = match next {
                Next::Receive => {
                    // There is nothing in it: forgetting it spares the look that dropping takes,
                    // and the future the room to keep it over the waits here.
                    mem::forget(next);
                    if conn.socket.is_sending() {
                        match poll_fn(|_| conn.socket.poll_sent()).await {
                            Ok(()) => conn.note_sent(),
                            Err(error) => {
                                next = conn.after_failed_send(error);
                                continue;
                            }
                        }
                    }
                    poll_fn(|context| {
                        let received = conn.socket.poll_recv_request(conn.unread.is_none());
                        received.map(|received| conn.answer_received(received, context))
                    })
                    .await
                }
                Next::Close if !conn.socket.is_sending() => return,
                rare => Box::pin(conn.finish(rare)).await,
            };
        }
    }
}

impl Conn {
    #[inline]
    fn new(connection: Connection, app: Arc<App>) -> Self {
        let mut socket = Socket::new(connection);
        let now_ms = socket.now().mono_ms;
        socket.set_deadline(now_ms + app.times.first_ms);
        Self { socket, app, unread: None, requests: 0, began_ms: low_half(now_ms), journal: None }
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
            Err(ConnectionError::TimedOut) => {
                let missed = self.miss_request();
                self.after_missed(missed)
            }
            Err(ConnectionError::Ending) => Next::LastCall,
            Err(error) => self.give_up(&error),
        }
    }

    /// What a connection begins with.
    fn first_step(&mut self) -> Next {
        if self.app.proxy_allow.is_some() {
            return Next::ProxyHeader;
        }
        self.set_pace();
        self.at_pace(Next::Receive)
    }

    /// The same step at the pace of all connections, if they have one.
    fn at_pace(&self, next: Next) -> Next {
        match next {
            Next::Receive if self.app.pace().is_some() => Next::ReceiveAtPace,
            Next::Again if self.app.pace().is_some() => Next::AgainAtPace,
            next => next,
        }
    }

    /// Sends what was written, and then does what is rare. Returns what comes next.
    async fn finish(&mut self, next: Next) -> Next {
        let next = self.do_rare(next).await;
        self.at_pace(next)
    }

    /// The body of a request, the rest of a response, an end with a reason; at a pace,
    /// everything.
    async fn do_rare(&mut self, next: Next) -> Next {
        if self.socket.is_sending() {
            match self.send_turn().await {
                Ok(()) => self.note_sent(),
                Err(failed) => return self.end_after(&failed),
            }
        }
        match next {
            Next::ProxyHeader => self.begin().await,
            Next::ReceiveAtPace => self.receive_at_pace().await,
            Next::AgainAtPace => self.answer_at_pace().await,
            Next::Again => poll_fn(|context| Poll::Ready(self.answer_unread(context))).await,
            Next::Body(request) => self.answer_after_body(&request).await,
            Next::Renew(head) => {
                self.renew(head);
                Next::Again
            }
            Next::InFlight(in_flight) => {
                self.await_handler(in_flight).await.unwrap_or_else(|error| self.give_up(&error))
            }
            Next::PendingContent(pending) => {
                self.send_pending(pending).await.unwrap_or_else(|error| self.give_up(&error))
            }
            Next::Tunnel(on_upgrade) => match self.hand_over(*on_upgrade).await {
                TunnelEnd::Returned => Next::Linger,
                TunnelEnd::Closed | TunnelEnd::Panicked => Next::Close,
            },
            Next::SendOn => match self.send_on().await {
                Ok(()) => {
                    self.note_sent();
                    Next::Receive
                }
                Err(failed) => self.end_after(&failed),
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

    /// Begins a connection that has to begin with a PROXY header.
    async fn begin(&mut self) -> Next {
        let introduced = self.read_proxy_header().await;
        // (Whose pace it has was not known before.)
        self.set_pace();
        match introduced {
            Ok(()) if self.unread.is_some() => Next::Again,
            Ok(()) => Next::Receive,
            Err(NoProxyHeader::Refused(status)) => self.refuse_and_end(status, None),
            Err(NoProxyHeader::Missed(missed)) => self.after_missed(missed),
            Err(NoProxyHeader::Closed) => Next::Close,
            Err(NoProxyHeader::Lost(error)) => self.give_up(&error),
        }
    }

    /// Reads the body of a request, and answers it.
    async fn answer_after_body(&mut self, request: &BodyRequest) -> Next {
        match self.read_body(request).await {
            Ok(Body::Refused(status)) => {
                self.refuse_and_end(status, Some(request.head.on(&request.bytes)))
            }
            Ok(mut body) => {
                poll_fn(|context| {
                    Poll::Ready(self.answer_with_body(request, body.pending(), context))
                })
                .await
            }
            Err(error) => self.give_up(&error),
        }
    }

    /// Receives more of a request, not before the pace allows it.
    async fn receive_at_pace(&mut self) -> Next {
        let idle = self.unread.is_none();
        match self.socket.receive(idle).await {
            Ok(piece) if piece.bytes().is_empty() => Next::Close,
            Ok(piece) => {
                self.hold(&piece);
                if idle {
                    // The first bytes of a request start its clock.
                    self.expect_request();
                }
                Next::Again
            }
            Err(ConnectionError::TimedOut) => {
                let missed = self.miss_request();
                self.after_missed(missed)
            }
            Err(error) => self.give_up(&error),
        }
    }

    /// Answers the first request on hold, if all of its head is there.
    async fn answer_at_pace(&mut self) -> Next {
        let rest = match self.take_held() {
            Held::Incomplete => return Next::Receive,
            Held::Broken => None,
            Held::Request(rest) => rest,
            Held::TooMany(request, wait_ms) => {
                return match self.read_body(&request).await {
                    Ok(Body::Refused(status)) => {
                        self.refuse_and_end(status, Some(request.head.on(&request.bytes)))
                    }
                    Ok(mut body) => {
                        let ending = self.wanted(&request.head).with(body.pending().end());
                        self.answer_too_many(&request.head, ending, wait_ms);
                        self.next_after(ending)
                    }
                    Err(error) => self.give_up(&error),
                };
            }
        };
        // The usual way, with this request alone; what is behind it waits here meanwhile.
        let next = poll_fn(|context| Poll::Ready(self.answer_unread(context))).await;
        if rest.is_some() {
            self.unread = rest;
        }
        match next {
            Next::Receive if self.unread.is_some() => Next::Again,
            Next::Close if self.unread.is_some() => Next::Linger,
            next => next,
        }
    }

    /// What comes next after the time for a request has come.
    fn after_missed(&mut self, missed: Missed) -> Next {
        match missed {
            Missed::Extended => Next::Receive,
            Missed::Refused(status) => self.refuse_and_end(status, None),
            Missed::Idle => Next::Close,
        }
    }

    /// Refuses a request, and ends.
    fn refuse_and_end(&mut self, status: Status, request: Option<View<'_>>) -> Next {
        self.refuse(status, request);
        Next::Linger
    }

    /// What comes next after a send has failed: the end, unless that was for its time, of which
    /// there may be more.
    #[cold]
    fn after_failed_send(&mut self, error: ConnectionError) -> Next {
        match error {
            ConnectionError::TimedOut => Next::SendOn,
            error => {
                let unsent = self.socket.unsent_bytes();
                self.app.take_back(unsent);
                self.end_after(&SendFailed { error, unsent })
            }
        }
    }

    /// Ends a connection whose send has failed: the log takes back what has not left.
    fn end_after(&mut self, failed: &SendFailed) -> Next {
        self.log_unsent(failed.unsent);
        self.give_up(&failed.error)
    }

    /// Notes that everything written has been sent.
    fn note_sent(&mut self) {
        self.expect_request();
        if self.journal.is_some() {
            self.log_sent();
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
    async fn linger(&mut self, wait_ms: u64) {
        self.socket.linger(wait_ms, LINGER_BYTES_MAX, false).await;
    }

    /// Sets the time by which the next request must have come: all of its head if some of it is
    /// here, else its first byte.
    fn expect_request(&mut self) {
        let times = &self.app.times;
        let wait_ms = if self.unread.is_some() { times.header_ms } else { times.keep_alive_ms };
        self.socket.set_deadline(self.socket.now().mono_ms + wait_ms);
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
        assert!(bytes <= 120, "{bytes} bytes; 10,000 of them must stay cheap: box what is rare");
    }
}
