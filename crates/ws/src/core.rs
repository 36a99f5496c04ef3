//! One WebSocket: frames in, frames out, the end of it. It decides what comes next.

mod busy;
mod client;
mod elsewhere;
mod reading;
pub(crate) mod sending;

use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::BytesMut;
use gustnado_config::millis;
use gustnado_http::websocket::{
    CloseCode, CloseReason, MessageReader, Opcode, Role, Utf8Check, Violation,
};
use gustnado_observe::stats::WebSocketCount;
use gustnado_tasks::{Bucket, now};
use gustnado_web::tunnel::{Tunnel, TunnelError};

use crate::deflate::Deflate;
use crate::error::WebSocketError;
use crate::message::{CloseFrame, MessagePiece, WebSocketMessage};
use crate::options::WebSocketOptions;
use busy::Busy;
use elsewhere::Elsewhere;

/// As much is gathered before a sender waits for the peer.
const GATHERED_BYTES_MAX: usize = 64 << 10;

/// A WebSocket. It belongs to the task of its connection, but for what others may add to be sent,
/// and may ask for.
#[expect(clippy::struct_excessive_bools, reason = "each is set and asked for by itself")]
pub(crate) struct Core {
    tunnel: Tunnel,
    role: Role,
    options: Arc<WebSocketOptions>,
    reader: MessageReader,
    /// What is under way.
    busy: Option<Box<Busy>>,
    text: Utf8Check,
    /// Whether anything has come since a ping was sent.
    is_pinged: bool,
    /// Bytes are on their way.
    is_sending: bool,
    /// A message is being sent in pieces.
    is_within_message: bool,
    /// A close frame was sent, or is about to be.
    has_closed: bool,
    /// The code of the close frame that came first, the peer's or this side's.
    first_close: Option<CloseCode>,
    deflate: Option<Box<Deflate>>,
    /// Why nothing more is received.
    end: Option<Box<WebSocketEnd>>,
    /// When the peer's silence is looked at, in milliseconds of the clock.
    look_at_ms: u64,
    /// What the peer may still send now.
    allowance: Bucket,
    /// Messages that were not counted yet.
    received: u32,
    sent: u32,
    /// Halves that receive: the connection stays open for them.
    holders: u32,
    /// The server drains, and the peer was told so.
    is_ending: bool,
    /// The connection's task has ended.
    is_over: bool,
    /// Wakes the connection's task.
    task: Option<Waker>,
    /// A receiver in another task.
    elsewhere: Option<Box<Elsewhere>>,
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
        deflate: Option<Box<Deflate>>,
    ) -> Self {
        let mut core = Self {
            tunnel,
            role,
            options,
            reader: MessageReader::new(role),
            busy: None,
            text: Utf8Check::default(),
            is_pinged: false,
            is_sending: false,
            is_within_message: false,
            has_closed: false,
            first_close: None,
            deflate,
            end: None,
            look_at_ms: 0,
            allowance: Bucket::default(),
            received: 0,
            sent: 0,
            holders: 1,
            is_ending: false,
            is_over: false,
            task: None,
            elsewhere: None,
        };
        core.note_heard();
        core.options.count(WebSocketCount::Opened);
        core
    }

    /// Receives the next message; `None`: the WebSocket is closed.
    pub(crate) fn poll_recv(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<WebSocketMessage>, WebSocketError>> {
        loop {
            match ready!(self.poll_piece(context, true))? {
                None => return Poll::Ready(Ok(None)),
                Some(piece) if piece.is_last => {
                    let bytes = mem::take(&mut self.busy().message);
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
        loop {
            if self.end.is_some() {
                return Poll::Ready(self.end_of_input());
            }
            match self.read_piece(gathers) {
                Ok(Some(piece)) => return Poll::Ready(Ok(Some(piece))),
                Ok(None) if self.end.is_some() => continue,
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
            match self.tunnel.poll_recv(context, self.look_at_ms) {
                Poll::Ready(Ok(Some(bytes))) if bytes.is_empty() => {
                    self.lose(WebSocketError::Lost(None));
                }
                Poll::Ready(Ok(Some(bytes))) => {
                    self.note_heard();
                    self.append(bytes);
                }
                Poll::Ready(Ok(None)) => self.look(),
                // It is told once. The peer has the drain's time to close; then it is cut.
                Poll::Ready(Err(TunnelError::Ending)) if !self.is_ending => self.drain(),
                Poll::Ready(Err(error)) => self.lose(error.into()),
                Poll::Pending => match self.poll_flush(context) {
                    Poll::Ready(Err(error)) => self.lose(error.into()),
                    _ => return Poll::Pending,
                },
            }
        }
    }

    /// The server drains: the peer is told so.
    #[cold]
    fn drain(&mut self) {
        self.is_ending = true;
        if self.role == Role::Client {
            self.close(CloseCode::GOING_AWAY, "the client ends");
        } else if self.options.is_restarting() {
            self.close(CloseCode::SERVICE_RESTART, "the server starts again");
        } else {
            self.close(CloseCode::GOING_AWAY, "the server ends");
        }
    }

    /// The peer has been silent for as long as it may be: it is pinged, or was, and is lost.
    #[cold]
    fn look(&mut self) {
        self.give_back();
        if self.is_sending {
            // It still takes what was sent before, within the time of sends, and a ping is behind
            // that.
            let time = self.options.ping.unwrap_or(self.options.ping_timeout);
            self.look_at_ms = now().mono_ms.saturating_add(millis(time));
            return;
        }
        if self.is_pinged {
            self.options.count(WebSocketCount::PingLost);
            return self.lose(WebSocketError::TimedOut);
        }
        self.is_pinged = true;
        self.control(Opcode::Ping, &[]);
        self.look_at_ms = now().mono_ms.saturating_add(millis(self.options.ping_timeout));
    }

    fn note_heard(&mut self) {
        self.is_pinged = false;
        self.look_at_ms = match self.options.ping {
            Some(interval) => now().mono_ms.saturating_add(millis(interval)),
            None => u64::MAX,
        };
    }

    /// The peer closes: it is answered, and nothing more is read.
    fn after_close(&mut self, close: CloseReason<'_>) {
        self.first_close.get_or_insert(close.code);
        self.close(
            if close.code == CloseCode::NO_STATUS { CloseCode::NORMAL } else { close.code },
            "",
        );
        let close = CloseFrame { code: close.code, reason: close.text.to_owned() };
        self.end = Some(Box::new(WebSocketEnd { close, error: None }));
    }

    /// The peer has broken a rule: it is told so, and nothing more is read.
    fn refuse(&mut self, violation: Violation) {
        if violation.code != CloseCode::TRY_AGAIN_LATER {
            self.options.count(WebSocketCount::Violation);
        }
        self.close(violation.code, violation.reason);
        let close = CloseFrame { code: CloseCode::ABNORMAL, reason: violation.reason.to_owned() };
        let error = Some(WebSocketError::Violation(violation));
        self.end = Some(Box::new(WebSocketEnd { close, error }));
        let busy = self.busy();
        (busy.message, busy.unread) = (Vec::new(), BytesMut::new());
    }

    /// The connection is of no use any more.
    fn lose(&mut self, error: WebSocketError) {
        self.has_closed = true;
        self.is_sending = false;
        let close = CloseFrame { code: CloseCode::ABNORMAL, reason: error.to_string() };
        self.end.get_or_insert_with(|| Box::new(WebSocketEnd { close, error: Some(error) }));
        self.wake_senders();
        self.busy = None;
    }

    fn end_of_input(&mut self) -> Result<Option<MessagePiece>, WebSocketError> {
        match self.end.as_mut().and_then(|end| end.error.take()) {
            Some(error) => Err(error),
            None => Ok(None),
        }
    }

    /// Returns what the peer has said at the end; `None`: it goes on.
    pub(crate) fn peer_close(&self) -> Option<&CloseFrame> {
        self.end.as_ref().map(|end| &end.close)
    }

    /// Closes this side. What was sent before is sent; nothing is afterwards.
    pub(crate) fn close(&mut self, code: CloseCode, reason: &str) {
        if self.has_closed {
            return;
        }
        self.has_closed = true;
        self.first_close.get_or_insert(code);
        let mut payload = Vec::new();
        CloseReason { code, text: reason }.write(&mut payload);
        self.frame(Opcode::Close, true, false, &payload);
        self.wake_senders();
    }

    /// The handler waits: what it has sent leaves, and so does what others add from now on. What
    /// another task waits for is received.
    pub(crate) fn poll_idle(&mut self, context: &mut Context<'_>) {
        self.poll_for_others(context);
        if let Poll::Ready(Err(error)) = self.poll_flush(context) {
            self.lose(error.into());
        }
        self.count_messages();
        self.recharge();
        self.settle();
        self.task = Some(context.waker().clone());
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

    /// Returns whether halves are left that receive.
    pub(crate) fn is_held(&self) -> bool {
        self.holders > 0
    }

    /// Ends with the connection's task, and counts that.
    pub(crate) fn end_with_task(&mut self) {
        self.has_closed = true;
        self.wake_senders();
        self.busy = None;
        self.end_elsewhere();
        self.count_messages();
        let code = self.first_close.map(|code| code.0);
        self.options.count(WebSocketCount::Closed { code });
    }

    fn count_messages(&mut self) {
        let (received, sent) = (mem::take(&mut self.received), mem::take(&mut self.sent));
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
        let bytes = size_of::<std::sync::Mutex<Core>>();
        assert!(bytes <= 264, "{bytes} bytes, {} of its tunnel", size_of::<Tunnel>());
    }
}
