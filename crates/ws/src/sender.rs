//! Sends on a WebSocket from any task.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll};

use gustnado_http::websocket::{CloseCode, MessageKind};

use crate::core::{Core, SharedCore, lock};
use crate::error::SendError;
use crate::message::WebSocketMessage;

/// Sends on a WebSocket from any task, also after its handler has ended: then it fails.
#[derive(Clone)]
pub struct WebSocketSender(Weak<Mutex<Core>>);

impl WebSocketSender {
    pub(crate) fn new(core: &SharedCore) -> Self {
        Self(Arc::downgrade(core))
    }

    /// Sends a message; waits while more is waiting to be sent than may wait.
    ///
    /// # Errors
    /// [`SendError::Closed`].
    pub async fn send(&self, message: impl Into<WebSocketMessage>) -> Result<(), SendError> {
        let (message, core) = (message.into(), self.core()?);
        poll_fn(|context| lock(&core).poll_room_in_other_task(context)).await?;
        add(&core, &message)
    }

    /// Sends a message, if it need not wait.
    ///
    /// # Errors
    /// [`SendError`].
    pub fn try_send(&self, message: impl Into<WebSocketMessage>) -> Result<(), SendError> {
        let core = self.core()?;
        if !lock(&core).has_room() {
            return Err(SendError::Full);
        }
        add(&core, &message.into())
    }

    /// Sends a message that is not taken over, whatever waits to be sent. Returns whether more may
    /// be sent at once; if not, the caller has to wait for [`WebSocketSender::poll_room`].
    ///
    /// # Errors
    /// [`SendError::Closed`].
    #[doc(hidden)]
    pub fn send_now(&self, kind: MessageKind, bytes: &[u8]) -> Result<bool, SendError> {
        let core = self.core()?;
        let mut core = lock(&core);
        core.send(kind, bytes)?;
        core.wake_from_other_task();
        Ok(core.has_room())
    }

    /// Returns how many bytes wait to be sent; 0 once it has ended.
    #[doc(hidden)]
    pub fn unsent_bytes(&self) -> usize {
        self.core().map_or(0, |core| lock(&core).unsent_bytes())
    }

    /// Returns whether a message may be sent without waiting.
    pub fn has_room(&self) -> bool {
        self.core().is_ok_and(|core| lock(&core).has_room())
    }

    /// Waits until more may be sent.
    ///
    /// # Errors
    /// [`SendError::Closed`].
    #[doc(hidden)]
    pub fn poll_room(&self, context: &Context<'_>) -> Poll<Result<(), SendError>> {
        lock(&self.core()?).poll_room_in_other_task(context)
    }

    /// Begins to close, as [`WebSocket::close`](crate::WebSocket::close) does. Without effect on a
    /// WebSocket that is closed.
    pub fn close(&self, code: CloseCode, reason: &str) {
        if let Ok(shared) = self.core() {
            let mut open = lock(&shared);
            open.close(code, reason);
            open.wake_from_other_task();
        }
    }

    /// Returns whether the WebSocket has ended.
    pub fn is_closed(&self) -> bool {
        self.core().map_or(true, |core| lock(&core).has_ended())
    }

    pub(crate) fn core(&self) -> Result<SharedCore, SendError> {
        self.0.upgrade().ok_or(SendError::Closed)
    }
}

fn add(core: &SharedCore, message: &WebSocketMessage) -> Result<(), SendError> {
    let mut core = lock(core);
    core.send(message.kind(), message.as_bytes())?;
    core.wake_task();
    Ok(())
}

impl fmt::Debug for WebSocketSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebSocketSender")
    }
}
