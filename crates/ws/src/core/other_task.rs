//! Receiving in a task that is not the connection's. That one alone may use the tunnel: it receives
//! what the other waits for, and wakes it.

use std::mem;
use std::task::{Context, Poll, Waker, ready};

use super::Core;
use crate::error::WebSocketError;
use crate::message::{MessagePiece, WebSocketMessage};

/// A receiver in another task.
#[derive(Default)]
pub(super) struct OtherTask {
    /// Wakes it, while it waits.
    reader: Option<Waker>,
    /// Wakes what waits for the end of the connection's task.
    end: Option<Waker>,
    /// It wants the next piece, not a whole message.
    wants_piece: bool,
    /// What was received for it.
    ready: Option<RecvOutcome>,
}

/// What was received for a task.
enum RecvOutcome {
    Message(WebSocketMessage),
    Piece(MessagePiece),
    End(Option<WebSocketError>),
}

type PolledRecv<T> = Poll<Result<Option<T>, WebSocketError>>;

impl Core {
    /// Receives the next message, in any task.
    pub(crate) fn poll_recv_anywhere(
        &mut self,
        context: &mut Context<'_>,
    ) -> PolledRecv<WebSocketMessage> {
        loop {
            match self.take_ready() {
                Some(RecvOutcome::Message(message)) => return Poll::Ready(Ok(Some(message))),
                // The beginning of a message whose rest is wanted whole.
                Some(RecvOutcome::Piece(piece)) => {
                    let traffic = self.traffic();
                    traffic.is_in_pieces = false;
                    traffic.message.extend_from_slice(&piece.bytes);
                    if piece.is_last {
                        let bytes = mem::take(&mut self.traffic().message);
                        return Poll::Ready(self.whole(piece.kind, bytes).map(Some));
                    }
                }
                Some(RecvOutcome::End(error)) => return Poll::Ready(error.map_or(Ok(None), Err)),
                None if self.is_back_here() => return self.poll_recv(context),
                None => return self.wait_in_other_task(context, false),
            }
        }
    }

    /// Receives the next piece of a message, in any task.
    pub(crate) fn poll_piece_anywhere(
        &mut self,
        context: &mut Context<'_>,
    ) -> PolledRecv<MessagePiece> {
        match self.take_ready() {
            Some(RecvOutcome::Piece(piece)) => Poll::Ready(Ok(Some(piece))),
            Some(RecvOutcome::Message(message)) => {
                let kind = message.kind();
                let bytes = message.into_bytes().into();
                Poll::Ready(Ok(Some(MessagePiece { kind, bytes, is_last: true })))
            }
            Some(RecvOutcome::End(error)) => Poll::Ready(error.map_or(Ok(None), Err)),
            None if self.is_back_here() => self.poll_piece(context, false),
            None => self.wait_in_other_task(context, true),
        }
    }

    /// Waits as [`Core::poll_closed`] does, in any task: the connection's answers the peer.
    pub(crate) fn poll_closed_anywhere(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.tunnel.is_here() {
            return self.poll_closed(context);
        }
        while let Ok(Some(_)) | Err(_) = ready!(self.poll_piece_anywhere(context)) {}
        Poll::Ready(())
    }

    /// Returns whether the running task is the connection's. Then nothing is received for another
    /// one any more: that would take what this one waits for, and wake the other.
    fn is_back_here(&mut self) -> bool {
        let is_here = self.tunnel.is_here();
        if let Some(other_task) = self.other_task().filter(|_| is_here) {
            other_task.reader = None;
        }
        is_here
    }

    fn other_task(&mut self) -> Option<&mut OtherTask> {
        self.extras.as_mut()?.other_task.as_mut()
    }

    fn take_ready(&mut self) -> Option<RecvOutcome> {
        self.other_task()?.ready.take()
    }

    fn wait_in_other_task<T>(&mut self, context: &Context<'_>, wants_piece: bool) -> PolledRecv<T> {
        // The connection's task is gone: nothing comes any more.
        if self.is_over {
            return Poll::Ready(self.end_of_input().map(|_| None));
        }
        let other_task = self.extras().other_task.get_or_insert_default();
        (other_task.reader, other_task.wants_piece) = (Some(context.waker().clone()), wants_piece);
        self.wake_task();
        Poll::Pending
    }

    /// Lets another task wait for the end of the connection's.
    pub(super) fn wait_for_end(&mut self, context: &Context<'_>) {
        self.extras().other_task.get_or_insert_default().end = Some(context.waker().clone());
    }

    /// Receives what another task waits for, in the connection's.
    pub(super) fn poll_for_others(&mut self, context: &mut Context<'_>) {
        let Some(other_task) = self.other_task() else { return };
        if other_task.reader.is_none() || other_task.ready.is_some() {
            return;
        }
        let received = if other_task.wants_piece {
            self.poll_piece(context, false).map_ok(|piece| piece.map(RecvOutcome::Piece))
        } else {
            self.poll_recv(context).map_ok(|message| message.map(RecvOutcome::Message))
        };
        let Poll::Ready(received) = received else { return };
        let Some(other_task) = self.other_task() else { return };
        other_task.ready = Some(match received {
            Ok(Some(received)) => received,
            Ok(None) => RecvOutcome::End(None),
            Err(error) => RecvOutcome::End(Some(error)),
        });
        other_task.reader.take().inspect(Waker::wake_by_ref);
    }

    /// The connection's task ends: what waits in other tasks is woken.
    pub(super) fn end_other_task(&mut self) {
        self.is_over = true;
        if let Some(other_task) = self.other_task() {
            other_task.reader.take().inspect(Waker::wake_by_ref);
            other_task.end.take().inspect(Waker::wake_by_ref);
        }
    }

    /// Notes that a half that receives is dropped.
    pub(crate) fn release(&mut self) {
        self.is_held = false;
        if let Some(extras) = &mut self.extras {
            extras.other_task = None;
        }
        self.wake_task();
    }
}
