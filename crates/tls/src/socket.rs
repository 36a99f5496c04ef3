//! A connection as a protocol's loop sees it.

mod paced;
mod sending;

use std::future::poll_fn;
use std::io;
use std::task::{Poll, ready};

use gustnado_tasks::{
    Connection, ConnectionError, ConnectionId, Endpoint, Names, Now, RecvBuf, SendBuf,
};

use crate::pacer::Pacer;

pub use sending::{MoreTime, SendFailed};

/// A connection that may have a pace.
///
/// Everything on it happens in one task. Its deadline bounds every operation; when the server ends,
/// operations fail with [`ConnectionError::Ending`]. Dropping it closes the connection.
#[derive(Debug)]
pub struct Socket {
    connection: Connection,
    /// Allocated only where something is paced: most connections have none.
    pacer: Option<Box<Pacer>>,
}

impl Socket {
    /// A socket without a pace.
    #[inline]
    pub fn new(connection: Connection) -> Self {
        Self { connection, pacer: None }
    }

    /// Takes the connection and its pace out, for an owner that cannot be taken apart.
    ///
    /// What is left is closed: operations on it that need a connection panic.
    #[must_use = "dropping it closes the connection"]
    pub fn take(&mut self) -> Self {
        Self { connection: self.connection.take(), pacer: self.pacer.take() }
    }

    /// Whether [`Socket::take`] has not taken the connection out.
    pub fn is_open(&self) -> bool {
        self.connection.is_open()
    }

    /// The time as of the last operation.
    #[inline]
    pub fn now(&self) -> Now {
        self.connection.now()
    }

    /// Reads the time: for a step that no operation came just before.
    pub fn refresh_now(&mut self) {
        self.connection.refresh_now();
    }

    /// Sets the time, in milliseconds of [`Now::mono_ms`], past which operations fail.
    #[inline]
    pub fn set_deadline(&mut self, at_ms: u64) {
        self.connection.set_deadline(at_ms);
    }

    /// The time past which operations fail.
    #[inline]
    pub fn deadline_ms(&self) -> u64 {
        self.connection.deadline_ms()
    }

    /// Waits for the deadline, or the server's end, and nothing else.
    ///
    /// - `idle`: as for [`Socket::poll_recv`].
    pub fn poll_deadline(&mut self, idle: bool) -> Poll<ConnectionError> {
        self.connection.poll_deadline(idle)
    }

    /// The name of this connection for what runs in its task without holding it.
    #[inline]
    pub fn id(&self) -> ConnectionId {
        self.connection.id()
    }

    /// The address of the peer.
    ///
    /// # Errors
    /// As [`Connection::peer`].
    pub fn peer(&self) -> io::Result<Endpoint> {
        self.connection.peer()
    }

    /// The address of this end.
    ///
    /// # Errors
    /// As [`Connection::local`].
    pub fn local(&self) -> io::Result<Endpoint> {
        self.connection.local()
    }

    /// Overrides the peer and local address, e.g. from a PROXY header.
    pub fn override_addrs(&self, names: Names) {
        self.connection.rename(names);
    }

    /// Receives bytes at once, whatever the pace; no bytes are the peer's end.
    ///
    /// - `idle`: nothing is owed to the peer, so the server's drain ends the wait.
    ///
    /// # Errors
    /// [`ConnectionError`].
    #[inline]
    pub fn poll_recv(&mut self, idle: bool) -> Poll<Result<RecvBuf, ConnectionError>> {
        self.connection.poll_recv(idle)
    }

    /// The same for a loop that responds before it receives again: the send alone counts against
    /// what the task may do in one run.
    ///
    /// # Errors
    /// [`ConnectionError`].
    #[inline]
    pub fn poll_recv_request(&mut self, idle: bool) -> Poll<Result<RecvBuf, ConnectionError>> {
        self.connection.poll_recv_request(idle)
    }

    /// [`Socket::poll_recv`] as a future.
    ///
    /// # Errors
    /// [`ConnectionError`].
    pub async fn recv(&mut self, idle: bool) -> Result<RecvBuf, ConnectionError> {
        poll_fn(|_| self.poll_recv(idle)).await
    }

    /// Receives from now on only when it is asked to: what the peer sends meanwhile stays in the
    /// kernel, which makes the peer wait.
    pub fn receive_on_demand(&mut self) {
        self.connection.receive_on_demand();
    }

    /// Takes over bytes to send; [`Socket::poll_sent`] sends them.
    #[inline]
    pub fn start_send(&mut self, out: Box<SendBuf>) {
        self.connection.start_send(out);
    }

    /// Takes back what [`Socket::start_send`] took over, if nothing of it was sent yet.
    pub fn take_unsent(&mut self) -> Option<Box<SendBuf>> {
        self.connection.take_unsent()
    }

    /// Whether something that [`Socket::start_send`] took over was not sent yet.
    #[inline]
    pub fn is_sending(&self) -> bool {
        self.connection.is_sending()
    }

    /// Sends what [`Socket::start_send`] took over at once, whatever the pace.
    ///
    /// # Errors
    /// [`ConnectionError`].
    #[inline]
    pub fn poll_sent(&mut self) -> Poll<Result<(), ConnectionError>> {
        self.connection.poll_sent()
    }

    /// Bytes of a send that was given up which the kernel has not taken.
    pub fn unsent_bytes(&self) -> u64 {
        self.connection.unsent_bytes()
    }

    /// Tells the peer that nothing more will come.
    pub fn shutdown_write(&mut self) {
        self.connection.shutdown_write();
    }

    /// Tells the peer that nothing more will come, and listens until it says the same: closing on
    /// bytes that were not received would reset the connection, and destroy what the peer has not
    /// read yet.
    ///
    /// - `wait_ms`, `bytes_max`: for how long, and for how many bytes, at most.
    /// - `idle`: as for [`Socket::poll_recv`].
    pub async fn linger(&mut self, wait_ms: u64, bytes_max: usize, idle: bool) {
        self.shutdown_write();
        self.set_deadline(self.now().mono_ms.saturating_add(wait_ms));
        let mut left = bytes_max;
        // (Polled in one place: the future is a part of every connection's.)
        poll_fn(|_| {
            loop {
                let Ok(piece) = ready!(self.poll_recv(idle)) else { return Poll::Ready(()) };
                let bytes = piece.bytes().len();
                if bytes == 0 || bytes > left {
                    return Poll::Ready(());
                }
                left -= bytes;
            }
        })
        .await;
    }

    /// Tells the peer by a reset, once this is dropped, that not everything was received and sent.
    pub fn reset_on_drop(&self) {
        self.connection.reset_on_drop();
    }
}
