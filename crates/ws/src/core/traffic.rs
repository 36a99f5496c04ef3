//! What a WebSocket holds while something is under way, and not while it waits.

use std::cell::RefCell;
use std::mem;
use std::task::Waker;

use bytes::BytesMut;
use gustnado_http::websocket::{MessageReader, Role, Utf8Check};
use gustnado_tasks::Charge;

use super::Core;
use crate::outbox::FrameQueue;

/// The memory of a message is kept for the next one if it has no more bytes: a handler may keep
/// that one, however short it is.
pub(super) const KEPT_BYTES_MAX: usize = 256;

/// What is under way in both directions. It is in a box that only exists meanwhile: most of many
/// sockets wait.
pub(super) struct Traffic {
    pub(super) reader: MessageReader,
    /// The text that is being received in pieces.
    pub(super) text: Utf8Check,
    /// Received and not read: a part of a header or of a control frame, or messages that nobody
    /// has asked for yet.
    pub(super) unread: BytesMut,
    /// The message that is being received, if it is wanted whole or is compressed.
    pub(super) message: Vec<u8>,
    /// The message that is being received is handed on in pieces.
    pub(super) is_in_pieces: bool,
    pub(super) out: FrameQueue,
    /// Bytes are on their way.
    pub(super) is_sending: bool,
    /// A message is being sent in pieces.
    pub(super) is_within_message: bool,
    /// Messages that were not counted yet.
    pub(super) received: u32,
    pub(super) sent: u32,
    /// Of the pongs since nothing was to be sent.
    pub(super) pong_bytes: usize,
    /// What it holds, once that is much.
    pub(super) charge: Option<Box<Charge>>,
    /// Senders that wait until `out` is shorter.
    pub(super) waiting: Vec<Waker>,
}

thread_local! {
    /// One that is idle, for the next socket of this worker: most have one for a moment.
    static SPARE: RefCell<Option<Box<Traffic>>> = const { RefCell::new(None) };
}

impl Traffic {
    #[cold]
    fn take(role: Role) -> Box<Self> {
        let spare = SPARE.take().filter(|spare| spare.reader.role() == role);
        spare.unwrap_or_else(|| Box::new(Self::new(role)))
    }

    /// Returns whether little memory is kept by one that is idle.
    fn is_small(&self) -> bool {
        let kept = self.unread.capacity() + self.waiting.capacity();
        let is_message_small = self.message.capacity() <= KEPT_BYTES_MAX;
        kept == 0 && is_message_small && self.charge.is_none() && self.out.is_small()
    }

    fn new(role: Role) -> Self {
        Self {
            reader: MessageReader::new(role),
            text: Utf8Check::default(),
            unread: BytesMut::new(),
            message: Vec::new(),
            is_in_pieces: false,
            out: FrameQueue::default(),
            is_sending: false,
            is_within_message: false,
            received: 0,
            sent: 0,
            pong_bytes: 0,
            charge: None,
            waiting: Vec::new(),
        }
    }

    /// Wakes the senders that wait until less is to be sent.
    pub(super) fn wake_senders(&mut self) {
        mem::take(&mut self.waiting).into_iter().for_each(Waker::wake);
    }

    fn is_idle(&self) -> bool {
        self.reader.is_idle()
            && !self.is_sending
            && !self.is_within_message
            && self.unread.is_empty()
            && self.message.is_empty()
            && self.out.own_bytes() + self.out.bytes() == 0
            && self.waiting.is_empty()
    }
}

impl Core {
    /// Returns what is under way, to add to it.
    #[inline]
    pub(super) fn traffic(&mut self) -> &mut Traffic {
        self.traffic.get_or_insert_with(|| Traffic::take(self.role))
    }

    /// Returns how many bytes wait to be sent.
    pub(crate) fn unsent_bytes(&self) -> usize {
        self.traffic.as_ref().map_or(0, |traffic| traffic.out.bytes())
    }

    /// Returns whether bytes are on their way.
    pub(super) fn is_sending(&self) -> bool {
        self.traffic.as_ref().is_some_and(|traffic| traffic.is_sending)
    }

    /// Returns how many bytes of pongs wait to be sent, at most.
    pub(super) fn pong_bytes(&self) -> usize {
        self.traffic.as_ref().map_or(0, |traffic| traffic.pong_bytes)
    }

    /// Returns how long the message is that is being received.
    pub(super) fn message_bytes(&self) -> usize {
        self.traffic.as_ref().map_or(0, |traffic| traffic.message.len())
    }

    /// Gives up what is of no use while it waits.
    pub(super) fn settle(&mut self) {
        let Some(mut idle) = self.traffic.take_if(|traffic| traffic.is_idle()) else { return };
        if idle.is_small() {
            // One that has ended by a violation is idle, too: nothing of it may reach another.
            (idle.reader, idle.text) = (MessageReader::new(self.role), Utf8Check::default());
            (idle.is_in_pieces, idle.pong_bytes) = (false, 0);
            SPARE.set(Some(idle));
        }
    }
}
