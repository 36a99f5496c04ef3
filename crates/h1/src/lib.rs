//! One connection, from its first byte to its last. This file alone decides what comes next.
//!
//! ```text
//! receive ─▶ respond to all requests in it ─▶ send them at once ─▶ finish the rest ─▶ receive …
//!                                                                  (a file, a body, the end)
//! ```
//!
//! Bytes are parsed where they arrived and copied only when a request is incomplete; an idle
//! connection holds no buffer. Rare state is boxed, so that the future stays small.
#![forbid(unsafe_code)]

mod body;
mod body_end;
mod body_memory;
mod body_spool;
mod client_limit;
mod exchange;
mod feed;
mod file_wait;
mod folder;
mod gated;
mod guards;
mod http2;
mod in_flight;
mod last_call;
mod limit;
mod next_send;
mod opening;
mod pace;
mod pathless;
mod pending;
mod progress;
mod proxy_protocol;
mod received;
mod refusal;
mod respond;
mod route;
mod sealed;
mod send;
mod serving;
mod timeouts;
mod trailers;
mod turn;
mod unread;
mod upgrade;

use std::future::{Future, poll_fn};
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use gustnado_http::request::RequestView;
use gustnado_http::status::Status;
use gustnado_tasks::{Connection, ConnectionError, RecvBuf, TaskMark};
use gustnado_tls::Socket;

use gustnado_app::app::{App, ConnectionOpening, ConnectionStart};
use gustnado_app::bodies::BodyHold;
use gustnado_observe::exchange::Exchanges;
use gustnado_web::response::OnUpgrade;

use body::{BodyOutcome, BodyRequest};
pub use client_limit::serve_limited;
use in_flight::InFlight;
use limit::RequestTimeout;
use pace::BufferedRequest;
use pending::{ContentEnd, PendingContent};
use progress::{ResponseProgress, TurnEnd};
use serving::Serving;
use unread::Unread;

/// Bounds of the lingering close after a refusal, in time and bytes: closing on unread bytes would
/// reset the connection and destroy the response before the peer has read it.
const LINGER_MS: u64 = 2_000;
const LINGER_BYTES_MAX: usize = 64 << 20;

/// How long a connection that a drain has closed is still read. What arrives is discarded, but the
/// peer sees an orderly end in place of a reset.
const LAST_LINGER_MS: u64 = 100;

/// In place of the count of requests: the connection goes on in another protocol.
const HANDED_OVER: u32 = u32::MAX;

/// A connection and its state between two requests.
pub struct Conn {
    socket: Socket,
    app: Arc<App>,
    /// Bytes received and not parsed yet: the beginning of a request, or what arrived behind a
    /// request whose handler was still running.
    unread: Option<Box<Unread>>,
    /// Requests so far, up to the limit.
    requests: u32,
    /// When it was accepted.
    began: ConnectionStart,
    /// Requests whose responses have not left yet, where a log or a callback reads them.
    exchanges: Option<Box<Exchanges>>,
}

impl Drop for Conn {
    fn drop(&mut self) {
        if self.requests == HANDED_OVER {
            return;
        }
        self.app.note_closed(self.began, self.requests, || self.socket.now().mono_ms);
    }
}

/// The next step of a connection, taken once everything written has been sent.
enum NextStep {
    /// Read what the connection begins with: a PROXY header, a handshake; and set its pace.
    Opening(Box<ConnectionOpening>),
    /// Receive the next request.
    Receive,
    /// Respond to the requests in the unread bytes.
    Again,
    /// The same two steps on a server whose connections all have a pace.
    ReceiveAtPace,
    AgainAtPace,
    /// Read the last request's body, which the response needs or which must be skipped first.
    Body(Box<BodyRequest>),
    /// Parse the last request again under the configuration that a reload has put in force.
    Renew(Box<Unread>),
    /// Wait for the last request's handler.
    InFlight(Box<InFlight>),
    /// Send the content of a response whose head was written.
    PendingContent(Box<PendingContent>),
    /// Go on in HTTP/2, with the unread bytes.
    Http2,
    /// Continue a send that the peer has not taken by its first deadline, then receive.
    SendOn,
    /// Give the connection to another protocol.
    Tunnel(Box<OnUpgrade>),
    /// Close: the peer expects it, and nothing received is unread.
    Close,
    /// Close after listening for a while: the peer may still be sending.
    Linger,
    /// Respond to one more request, if it arrives while the server drains.
    LastCall,
    /// Close to make room for others, unless a request arrives just now.
    GiveWay,
}

/// Serves one connection until either side closes it.
///
/// Faults of the peer and of the network end the connection and are counted; they are not logged as
/// errors.
///
/// On a server with a pace, every step is a rare one, so the usual steps need no check for it.
///
/// - `opening`: what the connection begins with.
pub fn serve(
    connection: Connection,
    app: Arc<App>,
    opening: ConnectionOpening,
) -> impl Future<Output = ()> + Send {
    let conn = Conn::new(connection, app);
    if !opening.is_none() || conn.app.pace().is_some() {
        return Serving::rare(conn, NextStep::Opening(Box::new(opening)));
    }
    Serving::Usual(conn)
}

impl Conn {
    #[inline]
    fn new(connection: Connection, app: Arc<App>) -> Self {
        app.note_opened();
        let mut socket = Socket::new(connection);
        let now_ms = socket.now().mono_ms;
        socket.set_deadline(now_ms + app.times.first_ms);
        Self {
            socket,
            app,
            unread: None,
            requests: 0,
            began: ConnectionStart::at(now_ms),
            exchanges: None,
        }
    }

    /// Takes the usual steps, until a rare one comes or the connection closes.
    #[inline]
    fn poll_usual(&mut self, context: &mut Context<'_>) -> Poll<Option<NextStep>> {
        loop {
            // The responses of the last turn leave before the next receive: a peer that does not
            // read its responses is not read from, which bounds what it can make the server buffer.
            if self.socket.is_sending() {
                match ready!(self.socket.poll_sent()) {
                    Ok(()) => self.note_sent(),
                    Err(error) => return Poll::Ready(Some(self.after_failed_send(error))),
                }
            }
            let received = ready!(self.socket.poll_recv_request(self.unread.is_none()));
            let next = self.after_received(received, context);
            match next {
                // The variant holds nothing: forgetting it saves the call that drops the others.
                NextStep::Receive => mem::forget(next),
                NextStep::Close if !self.socket.is_sending() && !self.socket.is_sealed() => {
                    return Poll::Ready(None);
                }
                rare => return Poll::Ready(Some(rare)),
            }
        }
    }

    /// Takes rare steps, until a usual one comes, or the connection closes.
    async fn take_rare(mut self, mut next: NextStep) -> Serving {
        loop {
            next = self.finish(next).await;
            match next {
                NextStep::Receive if self.socket.has_closed() => next = NextStep::Close,
                NextStep::Receive => return Serving::Usual(self),
                NextStep::Http2 => return self.into_http2(),
                NextStep::Tunnel(on_upgrade) if !self.socket.is_sending() => {
                    let task = poll_fn(|context| Poll::Ready(TaskMark::of(context.waker()))).await;
                    return self.into_tunnel(on_upgrade, task);
                }
                NextStep::Close if !self.socket.is_sending() => {
                    self.socket.close().await;
                    return Serving::Closed;
                }
                _ => {}
            }
        }
    }

    /// Responds to all requests that the received bytes complete. Returns what comes next.
    #[expect(clippy::inline_always, reason = "as a call it costs a plain request 17 instructions")]
    #[inline(always)]
    fn after_received(
        &mut self,
        received: Result<RecvBuf, ConnectionError>,
        context: &mut Context<'_>,
    ) -> NextStep {
        match received {
            Ok(piece) => match piece.bytes() {
                [] => NextStep::Close,
                bytes if self.socket.is_sealed() => self.after_sealed(bytes, context),
                bytes => {
                    let end = self.respond_to_piece(bytes, context);
                    self.after_turn(end)
                }
            },
            Err(ConnectionError::TimedOut) => {
                let timeout = self.request_timeout();
                self.after_request_timeout(timeout)
            }
            Err(ConnectionError::Ending) => NextStep::LastCall,
            Err(ConnectionError::GiveWay) => self.give_way(),
            Err(ConnectionError::Cut) => {
                self.cut_head();
                NextStep::Linger
            }
            Err(error) => self.give_up(&error),
        }
    }

    /// Returns the paced variant of a step if connections have a pace.
    fn at_pace(&self, next: NextStep) -> NextStep {
        match next {
            NextStep::Receive if self.app.pace().is_some() => NextStep::ReceiveAtPace,
            NextStep::Again if self.app.pace().is_some() => NextStep::AgainAtPace,
            next => next,
        }
    }

    /// Sends everything written, then takes the rare step. Returns what comes next.
    async fn finish(&mut self, next: NextStep) -> NextStep {
        let next = self.do_rare(next).await;
        self.at_pace(next)
    }

    /// Takes a rare step: a request's body, the rest of a response, a close with a reason; on a
    /// server with a pace, any step.
    async fn do_rare(&mut self, next: NextStep) -> NextStep {
        // Before any rare step: each of them may wait for long, and responses already written must
        // not wait with it.
        if self.socket.is_sending() {
            match self.send_turn().await {
                Ok(()) => self.expect_request(),
                Err(failed) => return self.give_up(&failed.error),
            }
        }
        match next {
            NextStep::Opening(opening) => self.open(*opening).await,
            NextStep::ReceiveAtPace => self.receive_at_pace().await,
            NextStep::AgainAtPace => self.respond_at_pace().await,
            NextStep::Again => {
                let end = poll_fn(|context| Poll::Ready(self.respond_to_unread(context))).await;
                self.after_turn(end)
            }
            NextStep::Body(request) => self.respond_after_body(&request).await,
            NextStep::Renew(head) => {
                self.renew(head);
                NextStep::Again
            }
            NextStep::InFlight(in_flight) => match self.await_handler(in_flight).await {
                Ok(progress) => self.after_progress(progress),
                Err(error) => self.give_up(&error),
            },
            NextStep::PendingContent(pending) => match self.send_pending(pending).await {
                Ok(ContentEnd::Whole(ending)) => {
                    self.after_progress(ResponseProgress::written(ending))
                }
                Ok(ContentEnd::BodyLeft) => NextStep::Linger,
                Ok(ContentEnd::Upgraded(on_upgrade)) => NextStep::Tunnel(on_upgrade),
                Err(error) => self.give_up(&error),
            },
            NextStep::SendOn => match self.send_on().await {
                Ok(()) => {
                    self.expect_request();
                    NextStep::Receive
                }
                Err(failed) => self.give_up(&failed.error),
            },
            NextStep::Linger => {
                let is_last = self.app.notice().has_news() && self.app.is_draining();
                self.linger(if is_last { LAST_LINGER_MS } else { LINGER_MS }).await;
                NextStep::Close
            }
            NextStep::LastCall => self.last_call().await,
            NextStep::GiveWay => self.close_for_others().await,
            usual => usual,
        }
    }

    /// Reads the body of a request, and responds.
    async fn respond_after_body(&mut self, request: &BodyRequest) -> NextStep {
        let mut hold = BodyHold::default();
        match self.read_body(request, &mut hold).await {
            Ok(BodyOutcome::Refused(status)) => {
                self.refuse_and_end(status, Some(request.head.on(&request.bytes)))
            }
            Ok(mut body) => {
                let progress = poll_fn(|context| {
                    Poll::Ready(self.respond_with_body(request, body.pending(), context))
                });
                let progress = progress.await;
                self.after_progress(progress)
            }
            Err(error) => self.give_up(&error),
        }
    }

    /// Receives more of a request once the pace allows it.
    async fn receive_at_pace(&mut self) -> NextStep {
        let idle = self.unread.is_none();
        match self.socket.receive_request(idle).await {
            Err(ConnectionError::GiveWay) => self.give_way(),
            Err(ConnectionError::Cut) => {
                self.cut_head();
                NextStep::Linger
            }
            Ok(piece) if piece.bytes().is_empty() => NextStep::Close,
            Ok(piece) => {
                self.keep_unread(&piece);
                if idle {
                    // The first bytes of a request start its head timeout.
                    self.expect_request();
                }
                NextStep::Again
            }
            Err(ConnectionError::TimedOut) => {
                let timeout = self.request_timeout();
                self.after_request_timeout(timeout)
            }
            Err(error) => self.give_up(&error),
        }
    }

    /// Responds to the first buffered request if its head is complete.
    async fn respond_at_pace(&mut self) -> NextStep {
        let rest = match self.take_request() {
            BufferedRequest::Incomplete => return NextStep::Receive,
            BufferedRequest::Broken => None,
            BufferedRequest::Request(rest) => rest,
            BufferedRequest::TooMany(request, wait_ms) => {
                return match self.read_body(&request, &mut BodyHold::default()).await {
                    Ok(BodyOutcome::Refused(status)) => {
                        self.refuse_and_end(status, Some(request.head.on(&request.bytes)))
                    }
                    Ok(mut body) => {
                        let ending = self
                            .wanted(&request.head, self.app.notice())
                            .with(body.pending().end());
                        let view = request.head.on(&request.bytes);
                        self.respond_too_many(view, ending, wait_ms);
                        self.after_progress(ResponseProgress::written(ending))
                    }
                    Err(error) => self.give_up(&error),
                };
            }
        };
        // The usual path handles all buffered requests, so it gets this one alone: each counts by
        // itself against the rate. The bytes behind it are put back afterwards.
        let end = poll_fn(|context| Poll::Ready(self.respond_to_unread(context))).await;
        if rest.is_some() {
            self.unread = rest;
        }
        self.after_turn(end)
    }

    /// Returns what comes next after a turn.
    #[inline]
    fn after_turn(&self, end: TurnEnd) -> NextStep {
        match end {
            TurnEnd::Last(progress) => self.after_progress(progress),
            TurnEnd::NeedMore => NextStep::Receive,
            TurnEnd::Full => NextStep::Again,
            TurnEnd::Outdated(head) => NextStep::Renew(head),
            TurnEnd::Http2 => NextStep::Http2,
        }
    }

    /// Returns what comes next after a response, as far as it has come.
    #[inline]
    fn after_progress(&self, progress: ResponseProgress) -> NextStep {
        let is_unread = self.unread.is_some();
        match progress {
            ResponseProgress::Written if is_unread => NextStep::Again,
            ResponseProgress::Written => NextStep::Receive,
            // Closing on unread bytes would reset the connection and could destroy the response.
            ResponseProgress::Last if is_unread => NextStep::Linger,
            ResponseProgress::Last => NextStep::Close,
            ResponseProgress::Lingering => NextStep::Linger,
            ResponseProgress::Begun(rest) => NextStep::PendingContent(rest),
            ResponseProgress::BodyFirst(request) => NextStep::Body(request),
            ResponseProgress::InFlight(in_flight) => NextStep::InFlight(in_flight),
        }
    }

    /// Returns what comes next after a request's time-out.
    fn after_request_timeout(&mut self, timeout: RequestTimeout) -> NextStep {
        match timeout {
            RequestTimeout::Extended => NextStep::Receive,
            RequestTimeout::Refused(status) => self.refuse_and_end(status, None),
            RequestTimeout::Idle => NextStep::Close,
        }
    }

    /// Refuses a request, and closes the connection after a while.
    fn refuse_and_end(&mut self, status: Status, request: Option<RequestView<'_>>) -> NextStep {
        self.refuse(status, request);
        NextStep::Linger
    }

    /// Notes that everything written has been sent.
    fn note_sent(&mut self) {
        self.expect_request();
        self.record_sent();
    }

    /// Appends received bytes to the unread ones.
    fn keep_unread(&mut self, piece: &RecvBuf) {
        self.unread.get_or_insert_default().bytes.extend_from_slice(piece.bytes());
    }

    /// Closes a connection after an error, which is counted.
    fn give_up(&self, error: &ConnectionError) -> NextStep {
        self.note(error);
        NextStep::Close
    }

    /// Shuts down the sending side, and reads until the peer does the same.
    async fn linger(&mut self, wait_ms: u64) {
        self.socket.linger(wait_ms, LINGER_BYTES_MAX, false).await;
    }

    /// Sets the deadline of the next request: for the whole head if a part of it is here, else for
    /// its first byte.
    fn expect_request(&mut self) {
        let times = &self.app.times;
        let wait_ms = if self.unread.is_some() { times.header_ms } else { times.keep_alive_ms };
        self.socket.set_deadline(self.socket.now().mono_ms + wait_ms);
    }
}
