//! The lingering close: reading on after the last byte was sent, so that the peer can read it.

use std::future::{Future, poll_fn};
use std::task::{Poll, ready};

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
    pub fn linger(
        &mut self,
        idle: bool,
        wait_ms: u64,
        bytes_max: usize,
    ) -> impl Future<Output = ()> + Send + '_ {
        self.set_deadline(self.now().mono_ms + wait_ms);
        let mut left = bytes_max;
        // No `async fn`: each idle connection has room for the largest of its futures.
        poll_fn(move |_| {
            loop {
                match ready!(self.poll_recv(idle)) {
                    Ok(received) if !received.bytes().is_empty() => {
                        let Some(rest) = left.checked_sub(received.bytes().len()) else {
                            return Poll::Ready(());
                        };
                        left = rest;
                    }
                    _ => return Poll::Ready(()),
                }
            }
        })
    }
}
