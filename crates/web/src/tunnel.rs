//! A connection that carries another protocol than HTTP.

use std::fmt;
use std::io;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use gustnado_config::millis;
use gustnado_tasks::{Connection, ConnectionError, Endpoint, ProgressTimeout, TaskMark};
use gustnado_tcp::{Protocol, Reason};
use gustnado_tls::{SendFailed, Socket};
use scopeguard::{ScopeGuard, guard};
use thiserror::Error;

/// Up to this many bytes are copied into the send buffer; more are sent without a copy.
const COPIED_BYTES_MAX: usize = 4 << 10;

/// A connection after an upgrade, or after CONNECT: bytes in both directions, in a protocol that is
/// not HTTP. See [`Response::upgrade`](crate::response::Response::upgrade).
///
/// It belongs to the task of its connection: when the function that received it returns, the
/// connection is closed. Operations on other tasks fail. The connection still counts for
/// `connections-max`, and keeps its pace.
///
/// No time-out of HTTP applies, except that sends have to make progress within `write-timeout`: see
/// [`Tunnel::set_timeout`].
pub struct Tunnel {
    lent: Arc<Lent>,
    /// Bytes that arrived behind the request.
    unread: Vec<u8>,
    /// How slowly the peer may take bytes.
    write: ProgressTimeout,
    /// How long the peer may be silent; `u64::MAX` is no limit.
    silence_ms: u64,
    /// [`TunnelError::Ending`] was returned.
    end_reported: bool,
    task: TaskMark,
}

/// The socket of a tunnel. The connection's task keeps it, so that it is closed there, wherever the
/// tunnel is.
pub struct Lent {
    socket: Mutex<Option<Socket>>,
    /// Bytes that have left.
    sent: Arc<AtomicU64>,
}

impl Lent {
    fn socket(&self) -> MutexGuard<'_, Option<Socket>> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the socket back. Returns it with the number of bytes sent; `None` if a protocol has
    /// closed it.
    pub fn end(&self) -> (Option<Socket>, u64) {
        (self.socket().take(), self.sent.load(Ordering::Relaxed))
    }
}

impl Tunnel {
    /// - `task`: the connection's.
    /// - `write`: how slowly the peer may take bytes.
    #[doc(hidden)]
    pub fn new(socket: Socket, unread: Vec<u8>, task: TaskMark, write: ProgressTimeout) -> Self {
        let lent = Arc::new(Lent { socket: Mutex::new(Some(socket)), sent: Arc::default() });
        Self { lent, unread, write, silence_ms: u64::MAX, end_reported: false, task }
    }

    #[doc(hidden)]
    pub fn lent(&self) -> Arc<Lent> {
        Arc::clone(&self.lent)
    }

    /// Receives the next bytes from the peer, as soon as there are any: a part of a stream, cut
    /// anywhere. No bytes mean that the peer has shut its sending side.
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`TunnelError`]. [`TunnelError::Ending`] is returned once, when a drain begins; after that
    /// the tunnel may continue until the drain's deadline.
    pub async fn recv(&mut self) -> Result<Bytes, TunnelError> {
        let (idle, silence_ms) = (!self.end_reported, self.silence_ms);
        let mut socket = self.borrow()?;
        if !self.unread.is_empty() {
            drop(socket);
            return Ok(mem::take(&mut self.unread).into());
        }
        socket.refresh_now();
        let now_ms = socket.now().mono_ms;
        socket.set_deadline(now_ms.saturating_add(silence_ms));
        let received = match socket.receive(idle).await {
            Ok(piece) => Ok(Bytes::copy_from_slice(piece.bytes())),
            Err(error) => Err(error),
        };
        drop(socket);
        self.end_reported |= matches!(received, Err(ConnectionError::Ending));
        Ok(received?)
    }

    /// Sends bytes, and waits until the kernel has taken them. If that fails, the connection is
    /// closed, because the peer has received only a part.
    ///
    /// Dropping the future before that may lose some of them.
    ///
    /// # Errors
    /// [`TunnelError`]: the peer takes nothing for too long or has gone, the server is draining, or
    /// the tunnel is closed.
    pub async fn send(&mut self, bytes: impl Into<Bytes>) -> Result<(), TunnelError> {
        let (bytes, write) = (bytes.into(), self.write);
        let mut socket = self.borrow()?;
        let all = bytes.len() as u64;
        let sent = match finish_send(&mut socket, write).await {
            Ok(()) if all > 0 => {
                let mut out = Connection::outgoing();
                if bytes.len() <= COPIED_BYTES_MAX {
                    out.bytes.extend_from_slice(&bytes);
                } else {
                    out.share(bytes);
                }
                socket.send(out, write, &mut |_| None).await
            }
            sent => sent,
        };
        let unsent = sent.as_ref().map_or_else(|failed| failed.unsent, |()| 0);
        self.lent.sent.fetch_add(all.saturating_sub(unsent), Ordering::Relaxed);
        sent.map_err(|failed| {
            drop(ScopeGuard::into_inner(socket));
            failed.error.into()
        })
    }

    /// Shuts the sending side. The peer may still send.
    ///
    /// # Errors
    /// [`TunnelError::Closed`]: the connection was closed, or this is not its task.
    pub fn shutdown(&mut self) -> Result<(), TunnelError> {
        self.borrow()?.shutdown_write();
        Ok(())
    }

    /// Sets how long the peer may send nothing, and take nothing. `None` is no limit. It is rounded
    /// to whole milliseconds.
    pub fn set_timeout(&mut self, time: Option<Duration>) {
        self.silence_ms = time.map_or(u64::MAX, millis);
        self.write = ProgressTimeout { silence_ms: self.silence_ms, rate_min: 0 };
    }

    /// Returns the address of the peer. The peer of a Unix socket usually has no name, which is an
    /// empty path.
    ///
    /// # Errors
    /// The kernel does not know the address, or this is not the connection's task.
    pub fn peer(&self) -> io::Result<Endpoint> {
        self.borrow().map_err(io::Error::other)?.peer()
    }

    /// Returns the address of this end.
    ///
    /// # Errors
    /// As [`Tunnel::peer`].
    pub fn local(&self) -> io::Result<Endpoint> {
        self.borrow().map_err(io::Error::other)?.local()
    }

    /// Runs a [`Protocol`] on the connection until it ends; bytes that arrived behind the request
    /// are the first that it receives. Its time-out is
    /// [`Transport::set_timeout`](crate::protocol::Transport::set_timeout); its traffic has no
    /// pace.
    ///
    /// # Errors
    /// [`TunnelError::Closed`]: the connection was closed, or this is not its task.
    pub async fn run(self, protocol: impl Protocol + 'static) -> Result<Reason, TunnelError> {
        let mut socket = self.borrow()?;
        finish_send(&mut socket, self.write).await.map_err(|failed| failed.error)?;
        let (socket, protocol) = (ScopeGuard::into_inner(socket), Box::new(protocol));
        let (sent, closing_ms) = (Arc::clone(&self.lent.sent), self.write.silence_ms);
        Ok(gustnado_tcp::run_on(socket, self.unread, sent, protocol, closing_ms).await)
    }

    /// Takes the socket for one operation, after which it is put back.
    fn borrow(&self) -> Result<ScopeGuard<Socket, impl FnOnce(Socket) + use<>>, TunnelError> {
        if !self.task.is_here() {
            return Err(TunnelError::Closed);
        }
        let lent = Arc::clone(&self.lent);
        let socket = lent.socket().take().ok_or(TunnelError::Closed)?;
        Ok(guard(socket, move |socket| *lent.socket() = Some(socket)))
    }
}

impl fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tunnel").field("unread", &self.unread.len()).finish_non_exhaustive()
    }
}

/// Finishes a send whose future was dropped: only one can be under way.
async fn finish_send(socket: &mut Socket, write: ProgressTimeout) -> Result<(), SendFailed> {
    if socket.is_sending() { socket.send_on(write, &mut |_| None).await } else { Ok(()) }
}

/// Error of an operation on a [`Tunnel`].
#[derive(Error)]
#[non_exhaustive]
pub enum TunnelError {
    /// The peer was silent for too long.
    #[error("the peer was silent for too long")]
    TimedOut,
    /// The server is shutting down.
    #[error("the server is shutting down")]
    Ending,
    /// The peer closed the connection, or the network failed.
    #[error("the connection failed")]
    Broken(#[source] io::Error),
    /// The connection was closed, or this is not its task.
    #[error("the tunnel is closed, or this is not the task of its connection")]
    Closed,
}

impl From<ConnectionError> for TunnelError {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::TimedOut => Self::TimedOut,
            ConnectionError::Broken(error) => Self::Broken(error),
            _ => Self::Ending,
        }
    }
}
