//! The future of a WebSocket's connection: it receives, and hands messages to Python.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use gustnado::websocket::{CloseCode, WebSocket, WebSocketError};

use super::link::{CloseOrigin, ReceiveTurn, SocketEnd, SocketLink};

/// So many messages are handed over before other connections have their turn.
const BUDGET: usize = 64;

/// The connection's end of a link. It ends the link where it is dropped before the connection's
/// future has it: the client has gone before its WebSocket was open.
pub(crate) struct LinkEnd(Arc<SocketLink>);

/// The future of a WebSocket's connection.
pub(crate) struct Pump {
    socket: WebSocket,
    link_end: LinkEnd,
}

impl LinkEnd {
    pub(crate) fn new(link: &Arc<SocketLink>) -> Self {
        Self(Arc::clone(link))
    }
}

impl Drop for LinkEnd {
    fn drop(&mut self) {
        self.0.end(SocketEnd::without_frame(CloseOrigin::Peer));
    }
}

impl Pump {
    /// Opens the link.
    pub(crate) fn new(link_end: LinkEnd, mut socket: WebSocket) -> Self {
        link_end.0.open(socket.sender());
        if let Some(end) = link_end.0.ended() {
            // The program has not waited for it to open.
            socket.close(CloseCode(end.code), end.reason.as_deref().unwrap_or_default());
        }
        Self { socket, link_end }
    }

    /// Returns how the WebSocket has ended.
    fn end(&self, error: Option<WebSocketError>) -> SocketEnd {
        let (code, reason) = match (error, self.socket.peer_close()) {
            // It was told so by its close frame.
            (Some(WebSocketError::Violation(violation)), _) => {
                (violation.code, violation.reason.into())
            }
            (None, Some(close)) => (close.code, close.reason.into()),
            _ => return SocketEnd::without_frame(CloseOrigin::Peer),
        };
        SocketEnd { code: code.0, reason: Some(reason), by: CloseOrigin::Peer }
    }
}

impl Future for Pump {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        for _ in 0..BUDGET {
            match this.link_end.0.poll_connection(context) {
                ReceiveTurn::Receive => {}
                ReceiveTurn::Pause => return Poll::Pending,
                ReceiveTurn::End => return Poll::Ready(()),
            }
            let error = match this.socket.poll_recv(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(Some(message))) => {
                    this.link_end.0.deliver(message);
                    continue;
                }
                Poll::Ready(Ok(None)) => None,
                Poll::Ready(Err(error)) => Some(error),
            };
            this.link_end.0.end(this.end(error));
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
