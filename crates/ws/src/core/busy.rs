//! What a WebSocket holds while something is under way, and not while it waits.

use std::task::Waker;

use bytes::BytesMut;
use gustnado_tasks::Charge;

use super::Core;
use crate::outbox::FrameQueue;

/// What is under way in both directions. It is in a box that only exists meanwhile: most of many
/// sockets wait.
#[derive(Default)]
pub(super) struct Busy {
    /// Received and not read: a part of a header or of a control frame, or messages that nobody
    /// has asked for yet.
    pub(super) unread: BytesMut,
    /// The message that is being received, if it is wanted whole or is compressed.
    pub(super) message: Vec<u8>,
    pub(super) out: FrameQueue,
    /// Of the pongs since nothing was to be sent.
    pub(super) pong_bytes: usize,
    /// What it holds, once that is much.
    pub(super) charge: Option<Box<Charge>>,
    /// Senders that wait until `out` is shorter.
    pub(super) waiting: Vec<Waker>,
}

impl Busy {
    fn is_idle(&self) -> bool {
        self.unread.is_empty()
            && self.message.is_empty()
            && self.out.own_bytes() + self.out.bytes() == 0
            && self.waiting.is_empty()
    }
}

impl Core {
    /// Returns what is under way, to add to it.
    pub(super) fn busy(&mut self) -> &mut Busy {
        self.busy.get_or_insert_default()
    }

    /// Returns how many bytes wait to be sent.
    pub(crate) fn unsent_bytes(&self) -> usize {
        self.busy.as_ref().map_or(0, |busy| busy.out.bytes())
    }

    /// Returns how many bytes of pongs wait to be sent, at most.
    pub(super) fn pong_bytes(&self) -> usize {
        self.busy.as_ref().map_or(0, |busy| busy.pong_bytes)
    }

    /// Returns how long the message is that is being received.
    pub(super) fn message_bytes(&self) -> usize {
        self.busy.as_ref().map_or(0, |busy| busy.message.len())
    }

    /// Drops what is of no use while it waits.
    pub(super) fn settle(&mut self) {
        if self.busy.as_ref().is_some_and(|busy| busy.is_idle()) {
            self.busy = None;
        }
    }
}
