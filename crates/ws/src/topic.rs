//! One message to many `WebSocket`s.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use gustnado_http::websocket::{CloseCode, WebSocketHeader, write};

use crate::core::lock;
use crate::core::sending::opcode_of;
use crate::message::WebSocketMessage;
use crate::sender::WebSocketSender;
use crate::socket::WebSocket;

/// What becomes of a WebSocket whose peer takes messages more slowly than they are published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowPeer {
    /// It misses messages until it has taken what waits.
    #[default]
    Skip,
    /// It is closed with 1013.
    Close,
}

/// Sends each message to all `WebSocket`s that have subscribed. It is encoded once, and all share
/// the same bytes. Clones are the same topic.
///
/// A peer is slow when more waits for it than [`unsent_bytes_max`] says.
///
/// [`unsent_bytes_max`]: crate::WebSocketEndpoint::unsent_bytes_max
#[derive(Clone, Default)]
pub struct Topic(Arc<TopicState>);

#[derive(Default)]
struct TopicState {
    slow_peer: SlowPeer,
    subscribers: Mutex<Subscribers>,
}

#[derive(Default)]
struct Subscribers {
    /// By their numbers.
    all: BTreeMap<u64, WebSocketSender>,
    /// The number of the next one.
    next: u64,
}

impl TopicState {
    fn subscribers(&self) -> MutexGuard<'_, Subscribers> {
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Topic {
    /// Creates a topic whose slow peers miss messages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a topic.
    ///
    /// - `slow_peer`: what becomes of slow peers.
    pub fn with(slow_peer: SlowPeer) -> Self {
        Self(Arc::new(TopicState { slow_peer, subscribers: Mutex::default() }))
    }

    /// Makes a WebSocket get what is published from now on, while the subscription is kept. It is
    /// sent while the WebSocket's handler waits, such as in [`WebSocket::recv`].
    pub fn subscribe(&self, socket: &WebSocket) -> Subscription {
        let mut subscribers = self.0.subscribers();
        let number = subscribers.next;
        subscribers.next += 1;
        subscribers.all.insert(number, socket.sender());
        Subscription { topic: Arc::downgrade(&self.0), number }
    }

    /// Sends a message to all subscribers. Returns how many will get it.
    pub fn publish(&self, message: impl Into<WebSocketMessage>) -> usize {
        let message = message.into();
        let opcode = opcode_of(message.kind());
        let header =
            WebSocketHeader { opcode, is_final: true, is_compressed: false, mask: None, len: 0 };
        let mut frame = Vec::new();
        write(header, message.as_bytes(), &mut frame);
        let frame = Bytes::from(frame);
        let mut reached = 0;
        self.0.subscribers().all.retain(|_, subscriber| {
            let Ok(core) = subscriber.core() else { return false };
            let mut core = lock(&core);
            if core.has_room() {
                reached += usize::from(core.share(&frame).is_ok());
                core.wake_task();
            } else if self.0.slow_peer == SlowPeer::Close {
                core.close(CloseCode::TRY_AGAIN_LATER, "messages are taken too slowly");
                core.wake_task();
            }
            true
        });
        reached
    }

    /// Returns how many `WebSocket`s have subscribed.
    pub fn subscribers(&self) -> usize {
        self.0.subscribers().all.len()
    }
}

impl fmt::Debug for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Topic").field("subscribers", &self.subscribers()).finish_non_exhaustive()
    }
}

/// The subscription of a WebSocket to a [`Topic`]. Dropping it ends it.
#[derive(Debug)]
pub struct Subscription {
    topic: Weak<TopicState>,
    number: u64,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(topic) = self.topic.upgrade() {
            topic.subscribers().all.remove(&self.number);
        }
    }
}
