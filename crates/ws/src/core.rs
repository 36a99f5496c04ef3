//! One WebSocket: frames in, frames out, the end of it. It decides what comes next.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};
use gustnado_http::websocket::{
    CloseCode, CloseReason, MessageKind, MessageReader, Opcode, Role, Utf8Check, Violation,
    WebSocketEvent, WebSocketHeader, write,
};
use gustnado_tasks::{Sleep, sleep};
use gustnado_web::tunnel::{Tunnel, TunnelError};

use crate::deflate::Deflate;
use crate::error::{SendError, WebSocketError};
use crate::message::{CloseFrame, MessagePiece, WebSocketMessage};
use crate::options::WebSocketOptions;
use crate::outbox::FrameQueue;

/// As much is gathered before a sender waits for the peer.
const GATHERED_BYTES_MAX: usize = 64 << 10;

/// A WebSocket. It belongs to the task of its connection, but for what others may add to `out`.
pub(crate) struct Core {
    tunnel: Tunnel,
    options: Arc<WebSocketOptions>,
    reader: MessageReader,
    /// Received and not read: a part of a header or of a control frame, or messages that nobody
    /// has asked for yet.
    unread: BytesMut,
    /// The message that is being received, if it is wanted whole or is compressed.
    message: Vec<u8>,
    text: Utf8Check,
    deflate: Option<Box<Deflate>>,
    out: FrameQueue,
    /// Bytes of `out` are on their way.
    is_sending: bool,
    /// A message is being sent in pieces.
    is_within_message: bool,
    /// A close frame was sent, or is about to be.
    has_closed: bool,
    /// Why nothing more is received.
    end: Option<Box<WebSocketEnd>>,
    ping: PingState,
    alarm: Option<Pin<Box<Sleep>>>,
    /// Wakes the task that sends.
    task: Option<Waker>,
    /// Senders that wait until `out` is shorter.
    waiting: Vec<Waker>,
}

/// Why nothing more is received.
pub(crate) struct WebSocketEnd {
    close: CloseFrame,
    /// What is returned once.
    error: Option<WebSocketError>,
}

/// What is known about the peer's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PingState {
    /// Something came since the last look.
    Heard,
    Silent,
    /// A ping was sent, and nothing came since.
    Asked,
}

impl Core {
    pub(crate) fn new(
        tunnel: Tunnel,
        options: Arc<WebSocketOptions>,
        deflate: Option<Box<Deflate>>,
    ) -> Self {
        Self {
            tunnel,
            options,
            reader: MessageReader::new(Role::Server),
            unread: BytesMut::new(),
            message: Vec::new(),
            text: Utf8Check::default(),
            deflate,
            out: FrameQueue::default(),
            is_sending: false,
            is_within_message: false,
            has_closed: false,
            end: None,
            ping: PingState::Heard,
            alarm: None,
            task: None,
            waiting: Vec::new(),
        }
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
                    let bytes = mem::take(&mut self.message);
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
            // A peer that takes none of the pongs that it asks for is not read any more.
            if self.out.bytes() >= GATHERED_BYTES_MAX
                && let Err(error) = ready!(self.poll_flush(context))
            {
                self.lose(error.into());
                continue;
            }
            match self.tunnel.poll_recv(context) {
                Poll::Ready(Ok(bytes)) if bytes.is_empty() => self.lose(WebSocketError::Lost(None)),
                Poll::Ready(Ok(bytes)) => {
                    self.ping = PingState::Heard;
                    self.append(bytes);
                }
                // It is told once. The peer has the drain's time to close.
                Poll::Ready(Err(TunnelError::Ending)) => {
                    self.close(CloseCode::GOING_AWAY, "the server ends");
                }
                Poll::Ready(Err(error)) => self.lose(error.into()),
                Poll::Pending => {
                    ready!(self.poll_wait(context));
                }
            }
        }
    }

    /// Sends what there is to send, and looks at the time, while nothing comes. It is ready when
    /// there may be more to do.
    fn poll_wait(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Poll::Ready(Err(error)) = self.poll_flush(context) {
            self.lose(error.into());
            return Poll::Ready(());
        }
        let Some(interval) = self.options.ping else { return Poll::Pending };
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep(interval)));
        ready!(alarm.as_mut().poll(context));
        self.alarm = None;
        self.ping = match self.ping {
            PingState::Heard => PingState::Silent,
            PingState::Silent => {
                self.control(Opcode::Ping, &[]);
                PingState::Asked
            }
            PingState::Asked => {
                self.lose(WebSocketError::TimedOut);
                PingState::Asked
            }
        };
        Poll::Ready(())
    }

    /// Reads the next piece of what has come. `None`: there is none, or the WebSocket has ended.
    fn read_piece(&mut self, gathers: bool) -> Result<Option<MessagePiece>, Violation> {
        let limits = self.options.read_limits(self.deflate.is_some());
        let mut unread = mem::take(&mut self.unread);
        let mut input = &mut unread[..];
        let found = loop {
            match self.reader.next(&mut input, &limits)? {
                None => break None,
                Some(WebSocketEvent::Ping(payload)) => {
                    let payload = Bytes::copy_from_slice(payload);
                    self.control(Opcode::Pong, &payload);
                }
                Some(WebSocketEvent::Pong(_)) => {}
                Some(WebSocketEvent::Close(close)) => {
                    self.after_close(close);
                    input = &mut [];
                    break None;
                }
                Some(WebSocketEvent::Data(piece)) => {
                    let (kind, is_last) = (piece.kind, piece.is_last);
                    if kind == MessageKind::Text && !piece.is_compressed {
                        // A text that comes at once is checked when it is made a string.
                        if !(gathers && is_last && self.message.is_empty()) {
                            self.text.check(piece.bytes)?;
                        }
                    }
                    if gathers || piece.is_compressed {
                        self.message.extend_from_slice(piece.bytes);
                    }
                    let bytes = if piece.is_compressed {
                        if !is_last {
                            continue;
                        }
                        self.inflate(kind, gathers)?
                    } else if gathers {
                        Bytes::new()
                    } else {
                        Bytes::copy_from_slice(piece.bytes)
                    };
                    if is_last && !piece.is_compressed {
                        self.text.end()?;
                    }
                    break Some(MessagePiece { kind, bytes, is_last });
                }
            }
        };
        let left = input.len();
        self.keep(unread, left);
        Ok(found)
    }

    /// Inflates the message that has come, and checks its text.
    fn inflate(&mut self, kind: MessageKind, gathers: bool) -> Result<Bytes, Violation> {
        let message = mem::take(&mut self.message);
        let most = self.options.message_bytes_max;
        let Some(deflate) = &mut self.deflate else { return Ok(message.into()) };
        let inflated = deflate.inflate(&message, most)?;
        if gathers {
            self.message = inflated;
            return Ok(Bytes::new());
        }
        if kind == MessageKind::Text {
            self.text.check(&inflated)?;
            self.text.end()?;
        }
        Ok(inflated.into())
    }

    /// Returns a message that has come whole.
    fn whole(
        &mut self,
        kind: MessageKind,
        bytes: Vec<u8>,
    ) -> Result<WebSocketMessage, WebSocketError> {
        match kind {
            MessageKind::Binary => Ok(WebSocketMessage::Binary(bytes)),
            MessageKind::Text => {
                String::from_utf8(bytes).map(WebSocketMessage::Text).map_err(|_| {
                    let violation = Violation::data("a text is not UTF-8");
                    self.refuse(violation);
                    WebSocketError::Violation(violation)
                })
            }
        }
    }

    /// Keeps the last bytes of what was read.
    fn keep(&mut self, mut bytes: BytesMut, left: usize) {
        if left > 0 {
            self.unread = bytes.split_off(bytes.len() - left);
        }
    }

    fn append(&mut self, bytes: Bytes) {
        // Nobody else has what was just received, so it is not copied.
        let bytes = BytesMut::from(bytes);
        if self.unread.is_empty() {
            self.unread = bytes;
        } else {
            self.unread.extend_from_slice(&bytes);
        }
    }

    /// The peer closes: it is answered, and nothing more is read.
    fn after_close(&mut self, close: CloseReason<'_>) {
        self.close(
            if close.code == CloseCode::NO_STATUS { CloseCode::NORMAL } else { close.code },
            "",
        );
        let close = CloseFrame { code: close.code, reason: close.text.to_owned() };
        self.end = Some(Box::new(WebSocketEnd { close, error: None }));
    }

    /// The peer has broken a rule: it is told so, and nothing more is read.
    fn refuse(&mut self, violation: Violation) {
        self.close(violation.code, violation.reason);
        let close = CloseFrame { code: CloseCode::ABNORMAL, reason: violation.reason.to_owned() };
        let error = Some(WebSocketError::Violation(violation));
        self.end = Some(Box::new(WebSocketEnd { close, error }));
    }

    /// The connection is of no use any more.
    fn lose(&mut self, error: WebSocketError) {
        self.has_closed = true;
        self.out.clear();
        self.is_sending = false;
        let close = CloseFrame { code: CloseCode::ABNORMAL, reason: error.to_string() };
        self.end.get_or_insert_with(|| Box::new(WebSocketEnd { close, error: Some(error) }));
        self.wake_senders();
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
        let mut payload = Vec::new();
        CloseReason { code, text: reason }.write(&mut payload);
        self.frame(Opcode::Close, true, false, &payload);
        self.wake_senders();
    }

    /// Adds a message to what is to be sent.
    pub(crate) fn send(&mut self, kind: MessageKind, bytes: &[u8]) -> Result<(), SendError> {
        self.check_open()?;
        let opcode = opcode_of(kind);
        match self.deflate.as_mut().and_then(|deflate| deflate.compress(bytes)) {
            Some(compressed) => self.frame(opcode, true, true, &compressed),
            None => self.frame(opcode, true, false, bytes),
        }
        Ok(())
    }

    /// Adds a piece of a message.
    pub(crate) fn send_piece(
        &mut self,
        kind: MessageKind,
        bytes: &[u8],
        is_last: bool,
    ) -> Result<(), SendError> {
        self.check_open()?;
        let is_first = !mem::replace(&mut self.is_within_message, !is_last);
        let opcode = if is_first { opcode_of(kind) } else { Opcode::Continuation };
        self.frame(opcode, is_last, false, bytes);
        Ok(())
    }

    /// Adds a frame that other sockets send, too.
    pub(crate) fn share(&mut self, frame: &Bytes) -> Result<(), SendError> {
        self.check_open()?;
        self.out.share(frame);
        Ok(())
    }

    fn check_open(&self) -> Result<(), SendError> {
        if self.has_closed { Err(SendError::Closed) } else { Ok(()) }
    }

    fn control(&mut self, opcode: Opcode, payload: &[u8]) {
        if !self.has_closed {
            self.frame(opcode, true, false, payload);
        }
    }

    fn frame(&mut self, opcode: Opcode, is_final: bool, is_compressed: bool, payload: &[u8]) {
        let header = WebSocketHeader { opcode, is_final, is_compressed, mask: None, len: 0 };
        self.out.append(|out| write(header, payload, out));
    }

    /// Waits until so little is to be sent that more may be added.
    pub(crate) fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        self.check_open()?;
        if self.out.bytes() < GATHERED_BYTES_MAX {
            return Poll::Ready(Ok(()));
        }
        if let Poll::Ready(Err(error)) = self.poll_flush(context) {
            self.lose(error.into());
        }
        self.check_open()?;
        if self.out.bytes() < GATHERED_BYTES_MAX { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Waits for room, in a task that is not the connection's.
    pub(crate) fn poll_room_elsewhere(
        &mut self,
        context: &Context<'_>,
    ) -> Poll<Result<(), SendError>> {
        self.check_open()?;
        if self.out.bytes() < self.options.unsent_bytes_max {
            return Poll::Ready(Ok(()));
        }
        self.waiting.push(context.waker().clone());
        Poll::Pending
    }

    /// Returns whether a sender elsewhere may add more.
    pub(crate) fn has_room(&self) -> bool {
        self.out.bytes() < self.options.unsent_bytes_max
    }

    /// Makes the connection's task send what others have added.
    pub(crate) fn wake_task(&mut self) {
        self.task.take().inspect(Waker::wake_by_ref);
    }

    /// Sends what there is to send. It is ready when all of it has left.
    pub(crate) fn poll_flush(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), TunnelError>> {
        loop {
            if self.is_sending {
                ready!(self.tunnel.poll_sent(context))?;
                self.is_sending = false;
                self.wake_senders();
            }
            let Some(next) = self.out.take() else { return Poll::Ready(Ok(())) };
            self.tunnel.start_send(next);
            self.is_sending = true;
        }
    }

    /// The handler waits: what it has sent leaves, and so does what others add from now on.
    pub(crate) fn poll_idle(&mut self, context: &mut Context<'_>) {
        if let Poll::Ready(Err(error)) = self.poll_flush(context) {
            self.lose(error.into());
        }
        self.task = Some(context.waker().clone());
    }

    /// Waits until the peer has closed, too, or the connection has ended.
    pub(crate) fn poll_closed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while let Ok(Some(_)) | Err(_) = ready!(self.poll_piece(context, false)) {}
        // The answer to its close frame still has to leave.
        self.poll_flush(context).map(drop)
    }

    /// The time that the peer has to close.
    pub(crate) fn close_time(&self) -> std::time::Duration {
        self.options.close_time
    }

    fn wake_senders(&mut self) {
        for sender in mem::take(&mut self.waiting) {
            sender.wake();
        }
    }
}

pub(crate) fn opcode_of(kind: MessageKind) -> Opcode {
    match kind {
        MessageKind::Text => Opcode::Text,
        MessageKind::Binary => Opcode::Binary,
    }
}
