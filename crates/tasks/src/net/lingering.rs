//! The lingering close: reading on after the last byte was sent, so that the peer can read it.

use crate::net::connection::Connection;

impl Connection {
    /// Discards what the peer sends until its end, so that the connection can be closed.
    ///
    /// Closing a socket that holds unread bytes resets the connection, and a reset destroys what
    /// the peer has received and not read yet.
    ///
    /// - `idle`: as for [`Connection::poll_recv`].
    /// - `wait_ms`: how long at most.
    /// - `bytes_max`: how many bytes at most.
    pub async fn linger(&mut self, idle: bool, wait_ms: u64, bytes_max: usize) {
        self.set_deadline(self.now().mono_ms + wait_ms);
        let mut discarded = 0;
        while let Ok(received) = self.recv(idle).await {
            discarded += received.bytes().len();
            if received.bytes().is_empty() || discarded > bytes_max {
                return;
            }
        }
    }
}
