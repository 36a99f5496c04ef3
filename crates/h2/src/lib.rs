//! One HTTP/2 connection, from its first byte to its last. This file alone decides what comes next.
//!
//! ```text
//! receive ─▶ respond to all requests in it ─▶ add what streams have to send ─▶ send all at once …
//!                │            ▲
//!                ▼            │ responses and pieces, by way of an outbox
//!         tasks of handlers ──┘
//! ```
//!
//! Inline handlers and files respond within the turn, and their streams are never kept. A task
//! handler runs as a task of its own on the same worker. What is received while a send is under way
//! is read all the same, as far as the next send has room: it may be a window, or the end of a
//! stream.
#![forbid(unsafe_code)]

mod active;
mod body_memory;
mod cold;
mod content;
mod disk;
mod ending;
mod exchange;
mod files;
mod gated;
mod guards;
mod input;
mod late;
mod outbox;
mod pace;
mod patience;
mod rare;
mod request_body;
mod respond;
mod send_silence;
mod send_size;
mod stream_body;
mod stream_memory;
mod stream_pace;
mod tasks;
mod time;
mod tunnel;
mod write;

use std::cell::RefCell;
use std::future::Future;
use std::mem;
use std::num::NonZero;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use gustnado_app::app::{App, ConnectionStart};
use gustnado_http::h2::{H2Connection, H2Scratch, Step};
use gustnado_tasks::{Charge, Connection, ConnectionError, MemoryKind, SendBuf};
use gustnado_tls::Socket;

use active::Active;
use ending::ConnPhase;
use rare::Rare;
use send_size::SendSize;
use time::ConnTimers;

/// What one send holds at a pace, and where clients that take nothing hold too much of it.
const SHORT_OUT_BYTES: usize = 8 << 10;

thread_local! {
    /// Memory that this worker's connections use in turn.
    static SCRATCH: RefCell<H2Scratch> = RefCell::default();
}

/// A connection, and the streams whose requests or responses are not over.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Http2Conn {
    socket: Socket,
    app: Arc<App>,
    core: H2Connection<Box<Active>>,
    /// Received and not read yet: the beginning of a frame, or what waits for room to respond.
    unread: Box<[u8]>,
    /// What is sent next, while a send is under way.
    next: Option<Box<SendBuf>>,
    rare: Option<Box<Rare>>,
    timers: ConnTimers,
    sends: SendSize,
    phase: ConnPhase,
    /// The unread bytes may hold whole frames.
    has_unread: bool,
    /// The client and all tunnels were told that the server drains.
    is_end_told: bool,
    /// It has failed: there is nothing to be closed in order.
    is_lost: bool,
    /// The memory of a body is charged, so it may have been granted more, or cut.
    has_charged: bool,
    /// A response waits until it may begin.
    has_held: bool,
    /// The access log's buffer for the lines of this connection, that of its first worker, once
    /// there is a line: they stay in order even if it runs on other workers later.
    log_buffer: Option<NonZero<u8>>,
    /// Counts frames of content, so that streams that share take turns.
    turn: u32,
    /// Requests so far, up to the limit.
    requests: u32,
    /// When it was accepted.
    began: ConnectionStart,
}

/// Serves a connection that speaks HTTP/2, until either side closes it.
///
/// - `received`: what it has sent already.
/// - `began`: when it was accepted.
pub fn serve(
    socket: Socket,
    app: Arc<App>,
    received: Vec<u8>,
    began: ConnectionStart,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(ServedConn::Open(Http2Conn::new(socket, app, received, began)))
}

/// A connection that is served. Written by hand, as HTTP/1's: an `async` block would keep more than
/// the connection.
#[expect(clippy::large_enum_variant, reason = "nearly always it is the large one")]
enum ServedConn {
    Open(Http2Conn),
    /// Its end, which would otherwise be a part of every connection.
    Closing(Pin<Box<dyn Future<Output = ()> + Send>>),
    Closed,
}

impl Future for ServedConn {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if let Self::Open(conn) = this {
            ready!(conn.poll(context));
            if let Self::Open(mut conn) = mem::replace(this, Self::Closed) {
                *this = Self::Closing(Box::pin(async move { conn.close().await }));
            }
        }
        match this {
            Self::Closing(closing) => closing.as_mut().poll(context),
            _ => Poll::Ready(()),
        }
    }
}

/// What a step of the connection has come to.
enum TurnOutcome {
    /// Something has moved: there may be more to do.
    On,
    /// Nothing to do before something comes.
    Waits,
    Ends,
}

impl Http2Conn {
    fn new(socket: Socket, app: Arc<App>, received: Vec<u8>, began: ConnectionStart) -> Self {
        app.count_http2();
        let now_ms = socket.now().mono_ms;
        let mut out = Connection::outgoing();
        let core = SCRATCH.with_borrow_mut(|scratch| {
            H2Connection::new(&mut Step {
                scratch,
                h2: &app.h2,
                limits: &app.limits,
                now_ms,
                out: &mut out.bytes,
            })
        });
        Self {
            socket,
            core,
            unread: received.into_boxed_slice(),
            next: Some(out),
            rare: None,
            timers: ConnTimers::new(now_ms, &app),
            sends: SendSize::default(),
            app,
            phase: ConnPhase::Open,
            has_unread: true,
            is_end_told: false,
            is_lost: false,
            has_charged: false,
            has_held: false,
            log_buffer: None,
            turn: 0,
            requests: 0,
            began,
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            match self.turn(context) {
                TurnOutcome::Ends => return Poll::Ready(()),
                _ if self.gives_turn() => {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                TurnOutcome::On => {}
                TurnOutcome::Waits => return Poll::Pending,
            }
        }
    }

    /// Does what there is to do.
    fn turn(&mut self, context: &mut Context<'_>) -> TurnOutcome {
        let mut moves = false;
        if self.is_sending() {
            match self.socket.poll_sent() {
                Poll::Ready(Ok(())) => {
                    self.note_sent();
                    moves = true;
                }
                Poll::Ready(Err(ConnectionError::TimedOut)) => return self.after_timeout(),
                Poll::Ready(Err(error)) => return self.give_up(&error),
                Poll::Pending => {}
            }
        }
        if !self.still_gives_turn() && self.has_room() {
            match self.poll_input(context) {
                Poll::Ready(Ok(())) => moves = true,
                Poll::Ready(Err(ConnectionError::TimedOut)) => return self.after_timeout(),
                Poll::Ready(Err(error)) => return self.after_failure(&error),
                Poll::Pending => {}
            }
        }
        moves |= self.collect_mail(context);
        moves |= self.retry_bodies(context);
        if !self.is_sending() {
            self.release_held();
            if !self.has_paced_rest() {
                self.fill();
            }
            if self.phase.only_responds() {
                self.end_stuck_streams();
            }
            moves |= self.start_send();
        }
        if self.has_paced_rest()
            && !self.is_sending()
            && let Poll::Ready(error) = self.poll_pause()
        {
            return match error {
                ConnectionError::TimedOut => self.after_timeout(),
                error => self.after_failure(&error),
            };
        }
        self.charge_pieces();
        moves |= self.end_last_call();
        if self.is_over() {
            return TurnOutcome::Ends;
        }
        if moves {
            // Before the socket is polled once more, which takes it over.
            self.set_deadline();
            return TurnOutcome::On;
        }
        // One that waits holds no buffer.
        if let Some(unused) = self.next.take_if(|next| next.is_empty()) {
            Connection::put_back(unused);
        }
        self.drop_rare();
        TurnOutcome::Waits
    }

    /// Returns whether more responses may be written before the next send.
    fn has_room(&self) -> bool {
        let Some(next) = &self.next else { return true };
        next.len() < SHORT_OUT_BYTES || next.len() < self.out_bytes_max()
    }

    /// Returns what one send holds, about.
    fn out_bytes_max(&self) -> usize {
        let is_little = self.socket.is_paced() || self.app.is_short_of(MemoryKind::Sends);
        if is_little { SHORT_OUT_BYTES } else { self.sends.bytes_max() }
    }

    fn is_sending(&self) -> bool {
        self.timers.is_sending()
    }

    /// Begins the next send, if there is something to send.
    fn start_send(&mut self) -> bool {
        if self.socket.is_paced() {
            return self.start_paced_send();
        }
        let Some(mut next) = self.next.take_if(|next| !next.is_empty()) else { return false };
        self.note_sending();
        if next.is_large() {
            self.app.charge_send(&mut next, &self.socket);
        }
        self.begin_content();
        self.timers.begin_send(self.socket.now().mono_ms, self.send_patience());
        self.socket.start_send(next);
        true
    }

    /// Charges the pieces that wait for their turn. Where sends hold too much, fewer are made.
    fn charge_pieces(&mut self) {
        let Some(Rare { mailroom: Some(mailroom), pieces, .. }) = self.rare.as_deref_mut() else {
            return;
        };
        mailroom.set_short(self.app.is_short_of(MemoryKind::Sends));
        match mailroom.bytes() {
            0 => *pieces = None,
            bytes => pieces.get_or_insert_with(|| Charge::new(MemoryKind::Sends)).set(bytes),
        }
    }

    /// Runs `act` with the protocol's state and what it needs.
    fn with_core<T>(
        &mut self,
        act: impl FnOnce(&mut H2Connection<Box<Active>>, &mut Step<'_>) -> T,
    ) -> T {
        let out = self.next.get_or_insert_with(Connection::outgoing);
        let now_ms = self.socket.now().mono_ms;
        SCRATCH.with_borrow_mut(|scratch| {
            let (h2, limits) = (&self.app.h2, &self.app.limits);
            let mut step = Step { scratch, h2, limits, now_ms, out: &mut out.bytes };
            act(&mut self.core, &mut step)
        })
    }
}

impl Drop for Http2Conn {
    fn drop(&mut self) {
        self.app.note_closed(self.began, self.requests, || self.socket.now().mono_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_is_a_small_future() {
        let (bytes, own) = (size_of::<ServedConn>(), size_of::<Http2Conn>());
        let socket = size_of::<Socket>();
        let core = size_of::<H2Connection<Box<Active>>>();
        let timers = size_of::<ConnTimers>();
        // Shown with `--nocapture`.
        println!("{bytes} bytes: {own}, of which {socket} socket, {core} core, {timers} timers");
        assert!(bytes <= 408, "{bytes} bytes; the allocator's next step is above 408");
    }
}
