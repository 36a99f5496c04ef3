//! What is to be sent, and who waits until it has left.

use std::mem;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use gustnado_http::websocket::{MessageKind, Opcode, Role, WebSocketHeader, write};
use gustnado_web::tunnel::TunnelError;

use super::traffic::KEPT_BYTES_MAX;
use super::{Core, GATHERED_BYTES_MAX};
use crate::error::SendError;
use crate::message::WebSocketMessage;

impl Core {
    /// Adds a message to what is to be sent.
    pub(crate) fn send(&mut self, kind: MessageKind, bytes: &[u8]) -> Result<(), SendError> {
        self.check_open()?;
        let opcode = opcode_of(kind);
        match self.deflate().and_then(|deflate| deflate.compress(bytes)) {
            Some(compressed) => self.frame(opcode, true, true, &compressed),
            None => self.frame(opcode, true, false, bytes),
        }
        self.traffic().sent += 1;
        Ok(())
    }

    /// Adds a message, and keeps its memory for the next one that is received.
    pub(crate) fn send_own(&mut self, message: WebSocketMessage) -> Result<(), SendError> {
        self.send(message.kind(), message.as_bytes())?;
        let mut bytes = message.into_bytes();
        let kept = &mut self.traffic().message;
        if kept.capacity() == 0 && bytes.capacity() <= KEPT_BYTES_MAX {
            bytes.clear();
            *kept = bytes;
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
        let is_first = !mem::replace(&mut self.traffic().is_within_message, !is_last);
        let opcode = if is_first { opcode_of(kind) } else { Opcode::Continuation };
        self.frame(opcode, is_last, false, bytes);
        self.traffic().sent += u32::from(is_last);
        Ok(())
    }

    /// Adds a frame that other sockets send, too.
    pub(crate) fn share(&mut self, frame: &Bytes) -> Result<(), SendError> {
        self.check_open()?;
        match self.role {
            Role::Server => self.traffic().out.share(frame),
            Role::Client => self.copy(frame),
        }
        self.traffic().sent += 1;
        Ok(())
    }

    fn check_open(&self) -> Result<(), SendError> {
        if self.has_closed { Err(SendError::Closed) } else { Ok(()) }
    }

    pub(super) fn control(&mut self, opcode: Opcode, payload: &[u8]) {
        if !self.has_closed {
            self.frame(opcode, true, false, payload);
        }
    }

    pub(super) fn frame(
        &mut self,
        opcode: Opcode,
        is_final: bool,
        is_compressed: bool,
        payload: &[u8],
    ) {
        let mask = self.mask();
        let header = WebSocketHeader { opcode, is_final, is_compressed, mask, len: 0 };
        self.traffic().out.append(|out| write(header, payload, out));
    }

    /// Waits until so little is to be sent that more may be added.
    pub(crate) fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        if !self.tunnel.is_here() {
            return self.poll_room_in_other_task(context);
        }
        self.check_open()?;
        if self.unsent_bytes() < GATHERED_BYTES_MAX {
            return Poll::Ready(Ok(()));
        }
        if let Poll::Ready(Err(error)) = self.poll_flush(context) {
            self.lose(error.into());
        }
        self.check_open()?;
        if self.unsent_bytes() < GATHERED_BYTES_MAX { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Waits for room, in a task that is not the connection's.
    pub(crate) fn poll_room_in_other_task(
        &mut self,
        context: &Context<'_>,
    ) -> Poll<Result<(), SendError>> {
        self.check_open()?;
        if self.has_room() {
            return Poll::Ready(Ok(()));
        }
        let waiting = &mut self.traffic().waiting;
        // A task may ask many times before there is room.
        if !waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            waiting.push(context.waker().clone());
        }
        Poll::Pending
    }

    /// Returns whether a sender in another task may add more.
    pub(crate) fn has_room(&mut self) -> bool {
        let unsent = self.unsent_bytes();
        if unsent < GATHERED_BYTES_MAX.min(self.options.unsent_bytes_max) {
            return true;
        }
        self.recharge();
        unsent < self.options.unsent_bytes_max && !self.is_short_of_memory()
    }

    /// Makes the connection's task send what others have added.
    pub(crate) fn wake_task(&mut self) {
        if mem::take(&mut self.is_waiting) {
            self.tunnel.wake();
        }
    }

    /// Does the same, if another task has added it.
    pub(crate) fn wake_from_other_task(&mut self) {
        if !self.tunnel.is_here() {
            self.wake_task();
        }
    }

    /// Sends what there is to send. It is ready when all of it has left.
    pub(super) fn poll_flush(&mut self, context: &Context<'_>) -> Poll<Result<(), TunnelError>> {
        loop {
            let Some(traffic) = &mut self.traffic else { return Poll::Ready(Ok(())) };
            if traffic.is_sending {
                ready!(self.tunnel.poll_sent(context))?;
                traffic.is_sending = false;
                traffic.wake_senders();
            }
            if !traffic.out.pass_few(|bytes| self.tunnel.start_copy(bytes)) {
                let Some(next) = traffic.out.take() else {
                    traffic.pong_bytes = 0;
                    return Poll::Ready(Ok(()));
                };
                self.tunnel.start_send(next);
            }
            traffic.is_sending = true;
        }
    }

    pub(super) fn wake_senders(&mut self) {
        if let Some(traffic) = &mut self.traffic {
            traffic.wake_senders();
        }
    }
}

pub(crate) fn opcode_of(kind: MessageKind) -> Opcode {
    match kind {
        MessageKind::Text => Opcode::Text,
        MessageKind::Binary => Opcode::Binary,
    }
}
