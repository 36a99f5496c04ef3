//! A connection as a protocol's loop uses it.

#[cfg(feature = "tls")]
mod handshaking;
mod paced;
#[cfg(feature = "tls")]
mod record_sizes;
#[cfg(feature = "tls")]
mod sealed;
#[cfg(feature = "tls")]
mod sealed_files;
mod sending;
#[cfg(feature = "tls")]
mod transient_bytes;

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Poll, ready};

use gustnado_http::proxy::ProxyInfo;
use gustnado_tasks::{
    Connection, ConnectionError, ConnectionId, Discarded, Endpoint, Now, RecvBuf, SendBuf,
    SocketAddrs,
};

use crate::pacer::Pacer;
#[cfg(feature = "tls")]
use sealed::Sealed;

pub use sending::{MoreTime, SendFailed};

/// A connection that may have a pace, and may be sealed by TLS.
///
/// Everything on it happens in one task. Its deadline bounds every operation; when the server ends,
/// operations fail with [`ConnectionError::Ending`]. Dropping it closes the connection.
#[derive(Debug)]
pub struct Socket {
    connection: Connection,
    /// Allocated only where something is paced or sealed, or a proxy says more than addresses.
    more: Option<Box<More>>,
}

/// What few connections have.
#[derive(Debug, Default)]
struct More {
    pacer: Option<Box<Pacer>>,
    proxy_info: Option<Arc<ProxyInfo>>,
    #[cfg(feature = "tls")]
    sealed: Option<Box<Sealed>>,
}

impl Socket {
    /// Creates a socket without a pace, and without TLS.
    #[inline]
    pub fn new(connection: Connection) -> Self {
        Self { connection, more: None }
    }

    /// Takes the connection out, with its pace and its TLS, for an owner that cannot be moved out
    /// of.
    ///
    /// The rest counts as closed: operations on it that need a connection panic.
    #[must_use = "dropping it closes the connection"]
    pub fn take(&mut self) -> Self {
        Self { connection: self.connection.take(), more: self.more.take() }
    }

    /// Returns whether [`Socket::take`] has not been called.
    pub fn is_open(&self) -> bool {
        self.connection.is_open()
    }

    /// Returns the time of the last operation.
    #[inline]
    pub fn now(&self) -> Now {
        self.connection.now()
    }

    /// Reads the clock, for a step that follows no operation directly.
    pub fn refresh_now(&mut self) {
        self.connection.refresh_now();
    }

    /// Sets the time, in milliseconds of [`Now::mono_ms`], past which operations fail.
    #[inline]
    pub fn set_deadline(&mut self, at_ms: u64) {
        self.connection.set_deadline(at_ms);
    }

    /// Returns the time past which operations fail.
    #[inline]
    pub fn deadline_ms(&self) -> u64 {
        self.connection.deadline_ms()
    }

    /// Waits only for the deadline, or the server's end.
    ///
    /// - `idle`: as for [`Socket::poll_recv`].
    pub fn poll_deadline(&mut self, idle: bool) -> Poll<ConnectionError> {
        self.connection.poll_deadline(idle)
    }

    /// Returns the id of this connection, for code in its task that does not hold it.
    #[inline]
    pub fn id(&self) -> ConnectionId {
        self.connection.id()
    }

    /// Returns the address of the peer.
    ///
    /// # Errors
    /// As [`Connection::peer`].
    pub fn peer(&self) -> io::Result<Endpoint> {
        self.connection.peer()
    }

    /// Returns the address of this end.
    ///
    /// # Errors
    /// As [`Connection::local`].
    pub fn local(&self) -> io::Result<Endpoint> {
        self.connection.local()
    }

    /// Overrides the peer and local address, e.g. from a PROXY header.
    pub fn override_addrs(&self, names: SocketAddrs) {
        self.connection.override_addrs(names);
    }

    /// Sets what a PROXY header says besides addresses.
    pub fn set_proxy_info(&mut self, info: Arc<ProxyInfo>) {
        self.more.get_or_insert_default().proxy_info = Some(info);
    }

    /// Returns what a PROXY header says besides addresses, if one does.
    #[inline]
    pub fn proxy_info(&self) -> Option<&Arc<ProxyInfo>> {
        self.more.as_ref()?.proxy_info.as_ref()
    }

    /// Receives bytes at once, whatever the pace. An empty buffer is the peer's end.
    ///
    /// - `idle`: no response is due, so the server's drain ends the wait.
    ///
    /// # Errors
    /// [`ConnectionError`].
    #[inline]
    pub fn poll_recv(&mut self, idle: bool) -> Poll<Result<RecvBuf, ConnectionError>> {
        let received = self.connection.poll_recv(idle);
        if self.is_sealed() && (received.is_ready() || self.has_closed()) {
            return self.open(received, idle, |connection| connection.poll_recv(idle));
        }
        received
    }

    /// Receives for a loop that responds before it receives again: only the send is charged to the
    /// task's budget. On a sealed socket [`Socket::open_bytes`] opens what comes.
    ///
    /// # Errors
    /// [`ConnectionError`].
    #[inline]
    pub fn poll_recv_request(&mut self, idle: bool) -> Poll<Result<RecvBuf, ConnectionError>> {
        self.connection.poll_recv_request(idle)
    }

    /// Like [`Socket::poll_recv`], but while it is `idle`, it may fail with
    /// [`ConnectionError::GiveWay`], and while it is not, with [`ConnectionError::Cut`]: then the
    /// rest of a head is waited for.
    ///
    /// # Errors
    /// [`ConnectionError`].
    pub fn poll_recv_or_give_way(&mut self, idle: bool) -> Poll<Result<RecvBuf, ConnectionError>> {
        let received = self.connection.poll_recv_or_give_way(idle);
        if self.is_sealed() && (received.is_ready() || self.has_closed()) {
            return self.open(received, idle, |connection| connection.poll_recv_or_give_way(idle));
        }
        received
    }

    /// Returns the address of the peer without keeping it, as [`Connection::peer_unkept`].
    ///
    /// # Errors
    /// As [`Connection::peer`].
    pub fn peer_unkept(&self) -> io::Result<Endpoint> {
        self.connection.peer_unkept()
    }

    /// Says after [`ConnectionError::GiveWay`] that the connection may be closed. Returns whether
    /// it is to be.
    ///
    /// - `client`: as for [`Connection::give_way`].
    pub fn give_way(&self, client: impl FnOnce() -> Option<u64>) -> bool {
        self.connection.give_way(client)
    }

    /// Counts the connection as closed to make room for others.
    pub fn count_evicted(&self) {
        self.connection.count_evicted();
    }

    /// Like [`Socket::poll_recv`], for a body that is known to be large: bytes come in a large
    /// buffer, where one is left.
    ///
    /// # Errors
    /// [`ConnectionError`].
    pub fn poll_recv_large(&mut self, idle: bool) -> Poll<Result<RecvBuf, ConnectionError>> {
        // At a pace few bytes come at a time, and sealed ones are opened into another buffer.
        if self.more.is_some() {
            return self.poll_recv(idle);
        }
        self.connection.poll_recv_large(idle)
    }

    /// Like [`Socket::poll_recv_large`], behind the bytes of a body that is read whole. `None`:
    /// they were appended to `bytes`.
    ///
    /// - `room`: for how many bytes room is made, once some are here.
    ///
    /// # Errors
    /// [`ConnectionError`].
    pub fn poll_recv_onto(
        &mut self,
        idle: bool,
        bytes: &mut Vec<u8>,
        room: usize,
    ) -> Poll<Result<Option<RecvBuf>, ConnectionError>> {
        if self.more.is_some() {
            return self.poll_recv(idle).map_ok(Some);
        }
        self.connection.poll_recv_onto(idle, bytes, room)
    }

    /// Discards up to `bytes_max` bytes, at least 1, without a copy where that is possible. Once
    /// under way, ask again until it is ready, or close: what is received would lack those bytes.
    ///
    /// # Errors
    /// [`ConnectionError`].
    pub fn poll_discard(
        &mut self,
        idle: bool,
        bytes_max: u64,
    ) -> Poll<Result<Discarded, ConnectionError>> {
        // A pace counts what is received, and sealed bytes have to be opened to be counted.
        if self.more.is_some() {
            return self.poll_recv(idle).map_ok(Discarded::Received);
        }
        self.connection.poll_discard(idle, bytes_max)
    }

    /// [`Socket::poll_recv`] as a future.
    ///
    /// # Errors
    /// [`ConnectionError`].
    pub async fn recv(&mut self, idle: bool) -> Result<RecvBuf, ConnectionError> {
        poll_fn(|_| self.poll_recv(idle)).await
    }

    /// Stops reading ahead: from now on unread bytes stay in the kernel, which makes the peer wait.
    pub fn receive_on_demand(&mut self) {
        self.connection.receive_on_demand();
    }

    /// Takes over bytes to send; [`Socket::poll_sent`] sends them, and seals them before that.
    #[inline]
    pub fn start_send(&mut self, out: Box<SendBuf>) {
        if self.is_sealed() {
            return self.start_send_sealed(out);
        }
        self.connection.start_send(out);
    }

    /// Takes back the bytes of [`Socket::start_send`], if none of them was sent yet.
    pub fn take_unsent(&mut self) -> Option<Box<SendBuf>> {
        if self.is_sealed() {
            return self.take_unsent_sealed();
        }
        self.connection.take_unsent()
    }

    /// Returns whether bytes of [`Socket::start_send`] were not sent yet.
    #[inline]
    pub fn is_sending(&self) -> bool {
        self.connection.is_sending()
    }

    /// Sends the bytes of [`Socket::start_send`] at once, whatever the pace.
    ///
    /// # Errors
    /// [`ConnectionError`].
    #[inline]
    pub fn poll_sent(&mut self) -> Poll<Result<(), ConnectionError>> {
        if self.is_sealed() {
            return self.poll_sent_sealed();
        }
        self.connection.poll_sent()
    }

    /// Returns whether bytes are held back that [wait for more](SendBuf::wait_for_more).
    #[inline]
    pub fn holds_back(&self) -> bool {
        self.connection.holds_back()
    }

    /// Returns the bytes of a failed send that the kernel has not taken.
    pub fn unsent_bytes(&self) -> u64 {
        if self.is_sealed() {
            return self.left_sealed();
        }
        self.connection.unsent_bytes()
    }

    /// Shuts down the sending side. By TLS that is an alert (RFC 8446 §6.1), which may still be on
    /// its way to the kernel: shutting the socket down would cut it off.
    pub fn shutdown_write(&mut self) {
        if self.is_sealed() {
            return self.queue_close();
        }
        self.connection.shutdown_write();
    }

    /// Shuts down the sending side, and reads until the peer does the same: closing on unread bytes
    /// would reset the connection, and destroy data that the peer has not read yet.
    ///
    /// - `wait_ms`, `bytes_max`: bounds of this, in time and bytes.
    /// - `idle`: as for [`Socket::poll_recv`].
    pub async fn linger(&mut self, wait_ms: u64, bytes_max: usize, idle: bool) {
        if self.is_sealed() {
            // Boxed, as this future is part of every connection's.
            Box::pin(self.close()).await;
        }
        self.connection.shutdown_write();
        self.set_deadline(self.now().mono_ms.saturating_add(wait_ms));
        let mut left = bytes_max;
        // Polled in one place, as this future is part of every connection's.
        poll_fn(|_| {
            loop {
                let Ok(discarded) = ready!(self.poll_discard(idle, left as u64 + 1)) else {
                    return Poll::Ready(());
                };
                let bytes = discarded.len();
                if bytes == 0 || bytes > left {
                    return Poll::Ready(());
                }
                left -= bytes;
            }
        })
        .await;
    }

    /// Bounds what the kernel takes to be sent, as [`Connection::set_unsent_max`].
    pub fn set_unsent_max(&self, bytes: usize) {
        self.connection.set_unsent_max(bytes);
    }

    /// Makes the later drop reset the connection: the peer learns that the exchange is incomplete.
    pub fn reset_on_drop(&self) {
        self.connection.reset_on_drop();
    }

    /// Does the same where the end of the connection would be the end of content: nothing says that
    /// it has ended in order.
    pub fn cut_on_drop(&mut self) {
        if self.is_sealed() {
            self.leave_open();
        }
        self.reset_on_drop();
    }
}
