//! The handler's end of a WebSocket.

use std::fmt;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use gustnado_http::websocket::{CloseCode, MessageKind};
use gustnado_tasks::timeout;

use crate::core::{Core, SharedCore, lock};
use crate::error::SendError;
use crate::halves::{RecvResult, WebSocketReceiver};
use crate::message::{CloseFrame, MessagePiece, WebSocketMessage};
use crate::sender::WebSocketSender;

/// A WebSocket: messages in both directions.
///
/// Pings are answered while messages are received, and the peer is pinged when it is silent. It
/// may be moved to another task, and [`WebSocket::sender`] makes handles for others. When the
/// function that received it has returned and it is dropped, it is closed with 1000.
///
/// When the server drains, the peer is told so (1001, or 1012 if the server starts again), and
/// `recv` goes on until the peer has closed.
///
/// One that a client has [opened](crate::WebSocketRequest::open) has a task of its own on the
/// worker that opened it. It may be moved to any task; dropping it closes with 1000, too.
pub struct WebSocket(WebSocketReceiver);

impl WebSocket {
    pub(crate) fn new(core: SharedCore) -> Self {
        Self(WebSocketReceiver::new(core))
    }

    fn core(&self) -> &SharedCore {
        self.0.core()
    }

    /// Returns the subprotocol that was agreed on.
    pub fn subprotocol(&self) -> Option<String> {
        lock(self.core()).subprotocol().map(str::to_owned)
    }

    /// Splits it into a half that sends and one that receives, for two branches or two tasks that
    /// use them at the same time. The WebSocket stays open until the one that receives is dropped,
    /// and the handler has returned.
    ///
    /// ```
    /// use gustnado::Routes;
    /// use gustnado::task::spawn;
    /// use gustnado::websocket::{WebSocket, websocket};
    ///
    /// async fn chat(socket: WebSocket) {
    ///     let (sender, mut receiver) = socket.split();
    ///     // What it is sent from other tasks does not wait for messages from the peer.
    ///     drop(spawn(async move { sender.send("welcome").await }));
    ///     while let Ok(Some(message)) = receiver.recv().await {
    ///         println!("{message:?}");
    ///     }
    /// }
    ///
    /// let routes = Routes::new().get("/chat", websocket(chat));
    /// ```
    pub fn split(self) -> (WebSocketSender, WebSocketReceiver) {
        (self.sender(), self.0)
    }

    /// Receives the next message, as soon as all of it is here; `None`: the peer has closed, and
    /// was answered. What is left of a message of which a piece was received is skipped.
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`WebSocketError`](crate::WebSocketError), once; then `None` is returned.
    pub fn recv(&mut self) -> impl Future<Output = RecvResult<WebSocketMessage>> + Send {
        self.0.recv()
    }

    /// [`WebSocket::recv`] as it is polled.
    #[doc(hidden)]
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<RecvResult<WebSocketMessage>> {
        lock(self.core()).poll_recv_anywhere(context)
    }

    /// Receives the next piece of a message, as soon as there is any. A message that is compressed
    /// comes in one piece.
    ///
    /// # Errors
    /// As [`WebSocket::recv`].
    pub fn recv_piece(&mut self) -> impl Future<Output = RecvResult<MessagePiece>> + Send {
        self.0.recv_piece()
    }

    /// Sends a message. It leaves when the handler waits, with all others that it has sent until
    /// then; if many wait to leave, this waits until the peer has taken some.
    ///
    /// # Errors
    /// [`SendError::Closed`].
    pub fn send(
        &mut self,
        message: impl Into<WebSocketMessage>,
    ) -> impl Future<Output = Result<(), SendError>> + Send {
        let mut message = Some(message.into());
        poll_fn(move |context| {
            self.poll_add(context, |core| message.take().map_or(Ok(()), |one| core.send_own(one)))
        })
    }

    /// Sends a text that is not taken over.
    ///
    /// # Errors
    /// As [`WebSocket::send`].
    pub fn send_text(&mut self, text: &str) -> impl Future<Output = Result<(), SendError>> + Send {
        poll_fn(|context| {
            self.poll_add(context, |core| core.send(MessageKind::Text, text.as_bytes()))
        })
    }

    /// Sends bytes that are not taken over.
    ///
    /// # Errors
    /// As [`WebSocket::send`].
    pub fn send_binary(
        &mut self,
        bytes: &[u8],
    ) -> impl Future<Output = Result<(), SendError>> + Send {
        poll_fn(|context| self.poll_add(context, |core| core.send(MessageKind::Binary, bytes)))
    }

    /// Sends a piece of a message as a frame of its own. It is not compressed. Until the last one
    /// no other message may be sent, also not by a [`WebSocketSender`].
    ///
    /// - `is_last`: the message ends with it.
    ///
    /// # Errors
    /// As [`WebSocket::send`].
    pub fn send_piece(
        &mut self,
        kind: MessageKind,
        bytes: &[u8],
        is_last: bool,
    ) -> impl Future<Output = Result<(), SendError>> + Send {
        poll_fn(move |context| self.poll_add(context, |core| core.send_piece(kind, bytes, is_last)))
    }

    /// Begins to close: the peer is told why, and nothing is sent after that. It may still send:
    /// `recv` returns `None` once it has closed, too.
    ///
    /// - `reason`: for its log; cut after 123 bytes.
    pub fn close(&mut self, code: CloseCode, reason: &str) {
        let mut locked = lock(self.core());
        locked.close(code, reason);
        locked.wake_from_other_task();
    }

    /// Closes, and waits until the peer has closed, too; no longer than it has time for that. What
    /// it still sends is dropped.
    ///
    /// - `reason`: as for [`WebSocket::close`].
    pub async fn end(self, code: CloseCode, reason: &str) {
        let shared = Arc::clone(self.core());
        let (is_client, time) = {
            let mut locked = lock(&shared);
            locked.close(code, reason);
            (locked.is_client(), locked.close_timeout())
        };
        if is_client {
            // The task of the connection waits for the peer, once nothing else holds it.
            drop(self);
            poll_fn(|context| lock(&shared).poll_over(context)).await;
        } else {
            // That of a server may still run the handler, which may wait for this.
            timeout(time, poll_fn(|context| lock(&shared).poll_closed_anywhere(context))).await;
        }
    }

    /// Returns what the peer's close frame said, once nothing more comes.
    pub fn peer_close(&self) -> Option<CloseFrame> {
        self.0.peer_close()
    }

    /// Makes a handle that sends on this WebSocket from any task.
    pub fn sender(&self) -> WebSocketSender {
        WebSocketSender::new(self.core())
    }

    /// Adds something to send, once there is room.
    fn poll_add(
        &self,
        context: &mut Context<'_>,
        add: impl FnOnce(&mut Core) -> Result<(), SendError>,
    ) -> Poll<Result<(), SendError>> {
        let mut core = lock(self.core());
        ready!(core.poll_room(context))?;
        let added = add(&mut core);
        core.wake_from_other_task();
        Poll::Ready(added)
    }
}

impl fmt::Debug for WebSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocket")
            .field("subprotocol", &self.subprotocol())
            .finish_non_exhaustive()
    }
}
