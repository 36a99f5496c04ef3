//! A connection in the hands of another protocol than HTTP.

use std::fmt;
use std::io;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use gustnado_config::millis;
use gustnado_tasks::{Connection, ConnectionError, Endpoint, ProgressTimeout, TaskMark};
use gustnado_tcp::{Protocol, Reason};
use gustnado_tls::{SendFailed, Socket};

/// Bytes up to this many are copied into the buffer that is sent; more are sent from where they
/// lie.
const COPIED_BYTES_MAX: usize = 4 << 10;

/// A connection after an upgrade, or after CONNECT: bytes in both directions, in a protocol that is
/// not HTTP. See [`Response::upgrade`](crate::response::Response::upgrade).
///
/// It belongs to the task of its connection, which lasts as long as the function that got it: when
/// that returns, the connection is closed. Operations elsewhere fail. The connection still counts
/// for `connections-max`, and keeps its pace.
///
/// No time limit of HTTP holds for it, except that sends have to make progress within
/// `write-timeout`: see [`Tunnel::set_timeout`].
pub struct Tunnel {
    lent: Arc<Lent>,
    /// Bytes that came behind the request.
    unread: Vec<u8>,
    /// How slow the peer may be to take bytes.
    write: ProgressTimeout,
    /// How long the peer may send nothing; `u64::MAX` is no limit.
    silence_ms: u64,
    /// It was told that the server ends.
    knows_end: bool,
    task: TaskMark,
}

/// The socket of a tunnel. The connection's task keeps it, so that it is closed there, wherever the
/// tunnel has gone.
pub struct Lent {
    socket: Mutex<Option<Socket>>,
    /// Bytes that have left.
    sent: Arc<AtomicU64>,
}

impl Lent {
    fn socket(&self) -> MutexGuard<'_, Option<Socket>> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the socket back, and how many bytes have left. There is no socket if a protocol has
    /// closed it.
    pub fn end(&self) -> (Option<Socket>, u64) {
        (self.socket().take(), self.sent.load(Ordering::Relaxed))
    }
}

impl Tunnel {
    /// - `task`: the connection's.
    /// - `write`: how slow the peer may be to take bytes.
    #[doc(hidden)]
    pub fn new(socket: Socket, unread: Vec<u8>, task: TaskMark, write: ProgressTimeout) -> Self {
        let lent = Arc::new(Lent { socket: Mutex::new(Some(socket)), sent: Arc::default() });
        Self { lent, unread, write, silence_ms: u64::MAX, knows_end: false, task }
    }

    #[doc(hidden)]
    pub fn lent(&self) -> Arc<Lent> {
        Arc::clone(&self.lent)
    }

    /// Receives what the peer has sent, as soon as there is something: some bytes of a stream, cut
    /// anywhere. No bytes are the peer's end.
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`TunnelError`]. [`TunnelError::Ending`] comes once, when the server begins to end; after
    /// that the tunnel may go on until the end of the server's patience.
    pub async fn recv(&mut self) -> Result<Bytes, TunnelError> {
        let (idle, silence_ms) = (!self.knows_end, self.silence_ms);
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
        self.knows_end |= matches!(received, Err(ConnectionError::Ending));
        Ok(received?)
    }

    /// Sends bytes, and waits until the kernel has taken them. If that fails, the connection is
    /// closed: what the peer has got would have a hole in it.
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
            drop(socket.into_socket());
            failed.error.into()
        })
    }

    /// Sends the peer an end of stream. It may still send.
    ///
    /// # Errors
    /// [`TunnelError::Closed`]: the connection was closed, or this is not its task.
    pub fn shutdown(&mut self) -> Result<(), TunnelError> {
        self.borrow()?.shutdown_write();
        Ok(())
    }

    /// Sets for how long the peer may send nothing, and take nothing of what is sent to it. `None`
    /// is no limit. Whole milliseconds count.
    pub fn set_timeout(&mut self, time: Option<Duration>) {
        self.silence_ms = time.map_or(u64::MAX, millis);
        self.write = ProgressTimeout { silence_ms: self.silence_ms, rate_min: 0 };
    }

    /// Returns the address of the peer. A Unix socket's peer mostly has no name, which is an empty
    /// path.
    ///
    /// # Errors
    /// The kernel does not know it, or the tunnel is used outside its task.
    pub fn peer(&self) -> io::Result<Endpoint> {
        self.borrow().map_err(io::Error::other)?.peer()
    }

    /// Returns the local address.
    ///
    /// # Errors
    /// As [`Tunnel::peer`].
    pub fn local(&self) -> io::Result<Endpoint> {
        self.borrow().map_err(io::Error::other)?.local()
    }

    /// Runs a [`Protocol`] on the connection until it is over: bytes
    /// that came behind the request are the first that it receives. Its time limit is
    /// [`Transport::set_timeout`](crate::protocol::Transport::set_timeout); what it sends and
    /// receives has no pace.
    ///
    /// # Errors
    /// [`TunnelError::Closed`]: the connection was closed, or this is not its task.
    pub async fn run(self, protocol: impl Protocol + 'static) -> Result<Reason, TunnelError> {
        let mut socket = self.borrow()?;
        finish_send(&mut socket, self.write).await.map_err(|failed| failed.error)?;
        let (socket, protocol) = (socket.into_socket(), Box::new(protocol));
        let (sent, closing_ms) = (Arc::clone(&self.lent.sent), self.write.silence_ms);
        Ok(gustnado_tcp::run_on(socket, self.unread, sent, protocol, closing_ms).await)
    }

    /// Takes the socket for one operation.
    fn borrow(&self) -> Result<Borrowed, TunnelError> {
        if !self.task.is_here() {
            return Err(TunnelError::Closed);
        }
        let socket = self.lent.socket().take();
        let socket = Some(socket.ok_or(TunnelError::Closed)?);
        Ok(Borrowed { lent: Arc::clone(&self.lent), socket })
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

/// The socket during one operation, after which it is put back.
struct Borrowed {
    lent: Arc<Lent>,
    socket: Option<Socket>,
}

impl Borrowed {
    /// Takes it for good.
    fn into_socket(mut self) -> Socket {
        self.socket.take().expect("it is put back only by the drop")
    }
}

impl Deref for Borrowed {
    type Target = Socket;

    fn deref(&self) -> &Socket {
        self.socket.as_ref().expect("it is put back only by the drop")
    }
}

impl DerefMut for Borrowed {
    fn deref_mut(&mut self) -> &mut Socket {
        self.socket.as_mut().expect("it is put back only by the drop")
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if let Some(socket) = self.socket.take() {
            *self.lent.socket() = Some(socket);
        }
    }
}

/// Error of an operation on a [`Tunnel`].
#[non_exhaustive]
pub enum TunnelError {
    /// The peer was silent for longer than it may be.
    TimedOut,
    /// The server is draining.
    Ending,
    /// The peer has gone, or the network failed.
    Broken(io::Error),
    /// The connection was closed, or this is not its task.
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

impl fmt::Display for TunnelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "the peer was silent for too long",
            Self::Ending => "the server ends",
            Self::Broken(_) => "the connection broke",
            Self::Closed => "the tunnel is closed, or used outside of its task",
        })
    }
}

impl std::error::Error for TunnelError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Broken(error) => Some(error),
            _ => None,
        }
    }
}
