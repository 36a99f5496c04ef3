//! The end of a connection by TLS: in order, with the alert that says so, or without.

use std::future::poll_fn;
use std::mem;

use super::super::Socket;

/// How long the last record waits for room in the kernel.
const CLOSE_MS: u64 = 1_000;

impl Socket {
    /// Ends this direction in order: the peer knows then that nothing was cut off. Content that was
    /// given up is cut off.
    #[inline(never)] // It would take registers from the way of plain connections.
    pub(in super::super) fn queue_close(&mut self) {
        let (connection, sealed) = self.sealed();
        let has_content =
            sealed.out.is_some() || connection.is_sending() || connection.holds_back();
        let has_unsent = has_content || sealed.has_failed();
        if !has_unsent && !mem::replace(&mut sealed.is_closed, true) {
            let mut records = Vec::new();
            _ = sealed.session.close(&mut records);
            sealed.held.add_records(records);
            sealed.flush(connection);
        }
    }

    /// Leaves this direction without an end in order: the peer takes what has come for a part.
    pub(in super::super) fn leave_open(&mut self) {
        self.sealed().1.is_closed = true;
    }

    /// Closes in order: what says so leaves before the socket is closed.
    pub async fn close(&mut self) {
        // A send that has failed is not tried once more: its peer has had its time.
        if !self.is_sealed() || self.sealed().1.has_failed() {
            return;
        }
        self.queue_close();
        self.refresh_now();
        self.set_deadline(self.now().mono_ms.saturating_add(CLOSE_MS));
        _ = poll_fn(|_| self.poll_sent()).await;
    }
}
