//! Requests that arrive in records of TLS.

use std::task::Context;

use super::{Conn, NextStep};

impl Conn {
    /// Responds to received bytes, which have to be opened. Returns what comes next.
    #[cold]
    #[inline(never)]
    pub(super) fn after_sealed(&mut self, bytes: &[u8], context: &mut Context<'_>) -> NextStep {
        match self.socket.open_bytes(bytes, self.unread.is_none()) {
            Ok(None) => NextStep::Receive,
            Ok(Some(opened)) => self.after_content(opened.bytes(), context),
            Err(error) => self.give_up(&error),
        }
    }

    /// Responds to bytes that are not sealed, or not any more. None of it is the peer's end.
    pub(super) fn after_content(&mut self, bytes: &[u8], context: &mut Context<'_>) -> NextStep {
        if bytes.is_empty() {
            return NextStep::Close;
        }
        let end = self.respond_to_piece(bytes, context);
        match self.after_turn(end) {
            // Nothing follows these requests.
            NextStep::Receive if self.socket.has_closed() => NextStep::Close,
            next => next,
        }
    }
}
