//! One WebSocket: frames in, frames out, the end of it. It decides what comes next.

mod client;
mod close_wait;
mod other_task;
mod reading;
pub(crate) mod sending;
mod traffic;

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::BytesMut;
use gustnado_config::millis;
use gustnado_http::websocket::{CloseCode, CloseReason, Opcode, Role, Violation};
use gustnado_observe::stats::WebSocketCount;
use gustnado_tasks::{Bucket, now};
use gustnado_web::tunnel::{Tunnel, TunnelError};

use crate::deflate::Deflate;
use crate::error::WebSocketError;
use crate::message::{CloseFrame, MessagePiece, WebSocketMessage};
use crate::options::WebSocketOptions;
use close_wait::CloseWait;
use other_task::OtherTask;
use traffic::Traffic;

/// As much is gathered before a sender waits for the peer.
const GATHERED_BYTES_MAX: usize = 64 << 10;

/// A WebSocket. It belongs to the task of its connection, but for what others may add to be sent,
/// and may ask for.
#[expect(clippy::struct_excessive_bools, reason = "each is set and asked for by itself")]
pub(crate) struct Core {
    /// It also knows when the peer's silence is looked at.
    tunnel: Tunnel,
    options: Arc<WebSocketOptions>,
    /// What is under way.
    traffic: Option<Box<Traffic>>,
    extras: Option<Box<CoreExtras>>,
    role: Role,
    /// A ping was sent, and nothing has come since.
    is_pinged: bool,
    /// A close frame was sent, or is about to be.
    has_closed: bool,
    /// The half that receives is held: the connection stays open for it.
    is_held: bool,
    /// The server drains, and the peer was told so.
    is_ending: bool,
    /// The connection's task has ended.
    is_over: bool,
    /// A message was waited for since the handler last waited.
    is_receiving: bool,
    /// The connection's task waits, and is to be woken when others have added something.
    is_waiting: bool,
}

/// A WebSocket that several handles share.
pub(crate) type SharedCore = Arc<Mutex<Core>>;

pub(crate) fn lock(core: &SharedCore) -> MutexGuard<'_, Core> {
    core.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What few `WebSocket`s have while they wait.
#[derive(Default)]
struct CoreExtras {
    subprotocol: Option<Box<str>>,
    deflate: Option<Deflate>,
    /// The code of the close frame that came first, the peer's or this side's.
    first_close: Option<CloseCode>,
    close_wait: CloseWait,
    /// Why nothing more is received.
    end: Option<WebSocketEnd>,
    /// What the peer may still send now.
    allowance: Bucket,
    /// A receiver in another task.
    other_task: Option<OtherTask>,
}

/// What a handshake has agreed on.
#[derive(Default)]
pub(crate) struct WebSocketTerms {
    pub(crate) subprotocol: Option<Box<str>>,
    pub(crate) deflate: Option<Deflate>,
}

/// Why nothing more is received.
pub(crate) struct WebSocketEnd {
    close: CloseFrame,
    /// What is returned once.
    error: Option<WebSocketError>,
}

impl Core {
    pub(crate) fn new(
        (tunnel, role): (Tunnel, Role),
        options: Arc<WebSocketOptions>,
        terms: WebSocketTerms,
    ) -> Self {
        let WebSocketTerms { subprotocol, deflate } = terms;
        let extras = (subprotocol.is_some() || deflate.is_some())
            .then(|| Box::new(CoreExtras { subprotocol, deflate, ..CoreExtras::default() }));
        let mut core = Self {
            tunnel,
            options,
            traffic: None,
            extras,
            role,
            is_pinged: false,
            has_closed: false,
            is_held: true,
            is_ending: false,
            is_over: false,
            is_receiving: false,
            is_waiting: false,
        };
        core.note_heard();
        core.options.count(WebSocketCount::Opened);
        core
    }

    /// Returns what few have, to add to it.
    fn extras(&mut self) -> &mut CoreExtras {
        self.extras.get_or_insert_default()
    }

    fn deflate(&mut self) -> Option<&mut Deflate> {
        self.extras.as_mut()?.deflate.as_mut()
    }

    /// Returns the subprotocol that was agreed on.
    pub(crate) fn subprotocol(&self) -> Option<&str> {
        self.extras.as_ref()?.subprotocol.as_deref()
    }

    fn has_end(&self) -> bool {
        self.extras.as_ref().is_some_and(|extras| extras.end.is_some())
    }

    /// Receives the next message; `None`: the WebSocket is closed.
    pub(crate) fn poll_recv(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<WebSocketMessage>, WebSocketError>> {
        loop {
            if let Some((kind, bytes)) = self.take_whole() {
                return Poll::Ready(self.whole(kind, bytes).map(Some));
            }
            // The rest of a message that was begun in pieces is none.
            let skips = self.traffic.as_ref().is_some_and(|traffic| traffic.is_in_pieces);
            match ready!(self.poll_piece(context, !skips))? {
                None => return Poll::Ready(Ok(None)),
                Some(piece) if piece.is_last && !skips => {
                    let bytes = mem::take(&mut self.traffic().message);
                    return Poll::Ready(self.whole(piece.kind, bytes).map(Some));
                }
                Some(_) => {}
            }
        }
    }

    /// Receives the next piece of a message.
    ///
    /// - `gathers`: its bytes are appended to `message`, in place of being returned.
    pub(crate) fn poll_piece(
        &mut self,
        context: &mut Context<'_>,
        gathers: bool,
    ) -> Poll<Result<Option<MessagePiece>, WebSocketError>> {
        if !gathers && let Some(begun) = self.take_begun() {
            return Poll::Ready(Ok(Some(begun)));
        }
        loop {
            if self.has_end() {
                return Poll::Ready(self.end_of_input());
            }
            match self.read_piece(gathers) {
                Ok(Some(piece)) => return Poll::Ready(Ok(Some(piece))),
                Ok(None) if self.has_end() => continue,
                Ok(None) => {}
                Err(violation) => {
                    self.refuse(violation);
                    continue;
                }
            }
            // A peer that takes none of the pongs that it asks for is not read any more. (Messages
            // do not count: if both sides send many, both have to go on reading.)
            if self.pong_bytes() >= GATHERED_BYTES_MAX
                && let Err(error) = ready!(self.poll_flush(context))
            {
                self.lose(error.into());
                continue;
            }
            let look_at_ms = self.look_at_ms();
            match self.tunnel.poll_recv(context, look_at_ms) {
                Poll::Ready(Ok(Some(bytes))) if bytes.is_empty() => {
                    self.lose(WebSocketError::Lost(None));
                }
                Poll::Ready(Ok(Some(_))) if self.has_closed && self.ignores_close() => {
                    self.lose(WebSocketError::TimedOut);
                }
                Poll::Ready(Ok(Some(bytes))) => {
                    self.note_heard();
                    self.append(bytes);
                }
                Poll::Ready(Ok(None)) => self.look(),
                // It is told once. The peer has the drain's time to close; then it is cut.
                Poll::Ready(Err(TunnelError::Ending)) if !self.is_ending => self.drain(),
                Poll::Ready(Err(error)) => self.lose(error.into()),
                Poll::Pending => {
                    let Poll::Ready(Err(error)) = self.poll_flush(context) else {
                        self.is_receiving = true;
                        return Poll::Pending;
                    };
                    self.lose(error.into());
                }
            }
        }
    }

    /// The server drains: the peer is told so.
    #[cold]
    fn drain(&mut self) {
        self.is_ending = true;
        if self.role == Role::Client {
            self.send_close(CloseCode::GOING_AWAY, "the client ends");
        } else if self.options.is_restarting() {
            self.send_close(CloseCode::SERVICE_RESTART, "the server starts again");
        } else {
            self.send_close(CloseCode::GOING_AWAY, "the server ends");
        }
    }

    /// The peer has been silent for as long as it may be: it is pinged, or was, and is lost.
    #[cold]
    fn look(&mut self) {
        if self.is_past_close() {
            return self.lose(WebSocketError::TimedOut);
        }
        self.give_back();
        if self.is_sending() {
            // It still takes what was sent before, within the time of sends, and a ping is behind
            // that.
            let time = self.options.ping.unwrap_or(self.options.ping_timeout);
            return self.look_within(time);
        }
        if self.is_pinged {
            self.options.count(WebSocketCount::PingLost);
            return self.lose(WebSocketError::TimedOut);
        }
        self.is_pinged = true;
        self.control(Opcode::Ping, &[]);
        self.look_within(self.options.ping_timeout);
    }

    fn note_heard(&mut self) {
        self.is_pinged = false;
        match self.options.ping {
            Some(interval) => self.look_within(interval),
            None => self.tunnel.expect_until(u64::MAX),
        }
    }

    /// Sets after which time the peer's silence is looked at.
    fn look_within(&mut self, time: Duration) {
        self.tunnel.expect_until(now().mono_ms.saturating_add(millis(time)));
    }

    /// The peer closes: it is answered, and nothing more is read.
    fn after_close(&mut self, close: CloseFrame) {
        self.extras().first_close.get_or_insert(close.code);
        self.send_close(
            if close.code == CloseCode::NO_STATUS { CloseCode::NORMAL } else { close.code },
            "",
        );
        self.extras().end = Some(WebSocketEnd { close, error: None });
    }

    /// The peer has broken a rule: it is told so, and nothing more is read.
    fn refuse(&mut self, violation: Violation) {
        if violation.code != CloseCode::TRY_AGAIN_LATER {
            self.options.count(WebSocketCount::Violation);
        }
        self.send_close(violation.code, violation.reason);
        let close = CloseFrame { code: CloseCode::ABNORMAL, reason: violation.reason.to_owned() };
        let error = Some(WebSocketError::Violation(violation));
        self.extras().end = Some(WebSocketEnd { close, error });
        let traffic = self.traffic();
        (traffic.message, traffic.unread) = (Vec::new(), BytesMut::new());
    }

    /// The connection is of no use any more.
    fn lose(&mut self, error: WebSocketError) {
        self.has_closed = true;
        let close = CloseFrame { code: CloseCode::ABNORMAL, reason: error.to_string() };
        self.extras().end.get_or_insert(WebSocketEnd { close, error: Some(error) });
        self.wake_senders();
        self.count_messages();
        self.traffic = None;
    }

    fn end_of_input(&mut self) -> Result<Option<MessagePiece>, WebSocketError> {
        match self.extras.as_mut().and_then(|extras| extras.end.as_mut()?.error.take()) {
            Some(error) => Err(error),
            None => Ok(None),
        }
    }

    /// Returns what the peer has said at the end; `None`: it goes on.
    pub(crate) fn peer_close(&self) -> Option<&CloseFrame> {
        self.extras.as_ref()?.end.as_ref().map(|end| &end.close)
    }

    /// Closes this side. What was sent before is sent; nothing is afterwards. The peer has its time
    /// to close, too.
    pub(crate) fn close(&mut self, code: CloseCode, reason: &str) {
        if !self.has_closed {
            self.extras().close_wait = CloseWait::Due;
            self.send_close(code, reason);
        }
    }

    fn send_close(&mut self, code: CloseCode, reason: &str) {
        if self.has_closed {
            return;
        }
        self.has_closed = true;
        self.extras().first_close.get_or_insert(code);
        let mut payload = Vec::new();
        CloseReason { code, text: reason }.write(&mut payload);
        self.frame(Opcode::Close, true, false, &payload);
        self.wake_senders();
    }

    /// The handler waits: what it has sent leaves, and so does what others add from now on. What
    /// another task waits for is received.
    pub(crate) fn poll_idle(&mut self, context: &mut Context<'_>) {
        self.poll_for_others(context);
        // A handler that does not receive would not notice.
        let notices_drain = mem::take(&mut self.is_receiving) || self.is_ending || self.has_closed;
        if !notices_drain && self.tunnel.poll_ending(context).is_ready() {
            self.drain();
        }
        if let Poll::Ready(Err(error)) = self.poll_flush(context) {
            self.lose(error.into());
        }
        self.count_messages();
        self.recharge();
        self.settle();
        self.is_waiting = true;
    }

    /// Waits until the peer has closed, too, or the connection has ended.
    pub(crate) fn poll_closed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while let Ok(Some(_)) | Err(_) = ready!(self.poll_piece(context, false)) {}
        // The answer to its close frame still has to leave.
        self.poll_flush(context).map(drop)
    }

    /// The time that the peer has to close.
    pub(crate) fn close_timeout(&self) -> Duration {
        self.options.close_timeout
    }

    /// Returns whether the connection's task has ended, and with it the WebSocket.
    pub(crate) fn has_ended(&self) -> bool {
        self.is_over
    }

    /// Returns whether the half that receives is held.
    pub(crate) fn is_held(&self) -> bool {
        self.is_held
    }

    /// Ends with the connection's task, and counts that.
    pub(crate) fn end_with_task(&mut self) {
        self.has_closed = true;
        self.wake_senders();
        self.count_messages();
        self.traffic = None;
        self.end_other_task();
        let first_close = self.extras.as_ref().and_then(|extras| extras.first_close);
        let code = first_close.map(|code| code.0);
        self.options.count(WebSocketCount::Closed { code });
    }

    fn count_messages(&mut self) {
        let Some(traffic) = &mut self.traffic else { return };
        let (received, sent) = (mem::take(&mut traffic.received), mem::take(&mut traffic.sent));
        if received + sent > 0 {
            let (received, sent) = (received.into(), sent.into());
            self.options.count(WebSocketCount::Messages { received, sent });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_waits_is_small() {
        // As it is allocated: with the counts of an `Arc`.
        let bytes = size_of::<[usize; 2]>() + size_of::<std::sync::Mutex<Core>>();
        assert!(bytes <= 88, "{bytes} bytes, {} of its tunnel", size_of::<Tunnel>());
    }
}
