//! The receiving half of a WebSocket.

use std::fmt;
use std::future::{Future, poll_fn};

use crate::core::{SharedCore, lock};
use crate::error::WebSocketError;
use crate::message::{CloseFrame, MessagePiece, WebSocketMessage};

/// What a receive comes to; `None`: the peer has closed.
pub type RecvResult<T> = Result<Option<T>, WebSocketError>;

/// The half of a WebSocket that receives: see [`WebSocket::split`](crate::WebSocket::split).
///
/// It may be moved to another task. The WebSocket stays open until it is dropped.
pub struct WebSocketReceiver(SharedCore);

impl WebSocketReceiver {
    pub(crate) fn new(core: SharedCore) -> Self {
        Self(core)
    }

    pub(crate) fn core(&self) -> &SharedCore {
        &self.0
    }

    /// Receives the next message, as soon as all of it is here; `None`: the peer has closed, and
    /// was answered. What is left of a message of which a piece was received is skipped.
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`WebSocketError`], once; then `None` is returned.
    pub fn recv(&mut self) -> impl Future<Output = RecvResult<WebSocketMessage>> + Send {
        poll_fn(|context| lock(&self.0).poll_recv_anywhere(context))
    }

    /// Receives the next piece of a message, as soon as there is any. A message that is compressed
    /// comes in one piece.
    ///
    /// # Errors
    /// As [`WebSocketReceiver::recv`].
    pub fn recv_piece(&mut self) -> impl Future<Output = RecvResult<MessagePiece>> + Send {
        poll_fn(|context| lock(&self.0).poll_piece_anywhere(context))
    }

    /// Returns what the peer's close frame said, once nothing more comes.
    pub fn peer_close(&self) -> Option<CloseFrame> {
        lock(&self.0).peer_close().cloned()
    }
}

impl Drop for WebSocketReceiver {
    fn drop(&mut self) {
        lock(&self.0).release();
    }
}

impl fmt::Debug for WebSocketReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebSocketReceiver")
    }
}
