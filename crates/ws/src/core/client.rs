//! What a client does otherwise: it masks, and lets the server end the connection.

use std::task::{Context, Poll, ready};

use gustnado_http::websocket::{Role, WebSocketHeader};

use super::Core;
use crate::random;

impl Core {
    /// Returns the mask of the next frame.
    pub(super) fn mask(&self) -> Option<[u8; 4]> {
        (self.role == Role::Client).then(random::bytes)
    }

    /// Adds a frame that a server would share. Each frame of a client has a mask of its own.
    pub(super) fn copy(&mut self, frame: &[u8]) {
        if let Ok(Some((header, len))) = WebSocketHeader::read(frame) {
            let WebSocketHeader { opcode, is_final, is_compressed, .. } = header;
            self.frame(opcode, is_final, is_compressed, &frame[len..]);
        }
    }

    /// Waits, after both close frames, until the server has ended the connection, which a client
    /// leaves to it (RFC 6455 §7.1.1). A server does not wait.
    pub(crate) fn poll_gone(&mut self, context: &Context<'_>) -> Poll<()> {
        while self.role == Role::Client {
            match ready!(self.tunnel.poll_recv(context, u64::MAX)) {
                Ok(bytes) if bytes.as_ref().is_none_or(|bytes| !bytes.is_empty()) => {}
                _ => break,
            }
        }
        Poll::Ready(())
    }

    /// Waits until the task of the connection has ended.
    pub(crate) fn poll_over(&mut self, context: &Context<'_>) -> Poll<()> {
        if self.is_over {
            return Poll::Ready(());
        }
        self.wait_for_end(context);
        Poll::Pending
    }

    pub(crate) fn is_client(&self) -> bool {
        self.role == Role::Client
    }
}
