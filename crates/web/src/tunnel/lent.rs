//! A tunnel that has a connection for itself: its socket is lent by the connection's task.

use std::io;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use gustnado_tasks::{Connection, Endpoint, ProgressTimeout};
use gustnado_tcp::{Protocol, Reason};
use gustnado_tls::{SendFailed, Socket};
use scopeguard::{ScopeGuard, guard};

use super::TunnelError;

/// Up to this many bytes are copied into the send buffer; more are sent without a copy.
const COPIED_BYTES_MAX: usize = 4 << 10;

/// The socket of a tunnel. The connection's task keeps it, so that it is closed there, wherever the
/// tunnel is.
pub struct Lent {
    socket: Mutex<Option<Socket>>,
    /// Bytes that have left.
    sent: Arc<AtomicU64>,
}

impl Lent {
    pub(super) fn new(socket: Socket) -> Arc<Self> {
        Arc::new(Self { socket: Mutex::new(Some(socket)), sent: Arc::default() })
    }

    fn socket(&self) -> MutexGuard<'_, Option<Socket>> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the socket back. Returns it with the number of bytes sent; `None` if a protocol has
    /// closed it.
    pub fn end(&self) -> (Option<Socket>, u64) {
        (self.socket().take(), self.sent.load(Ordering::Relaxed))
    }
}

/// The tunnel's side of a socket that is lent.
pub(super) struct SocketTunnel {
    pub(super) lent: Arc<Lent>,
    /// Bytes that arrived behind the request.
    pub(super) unread: Vec<u8>,
}

impl SocketTunnel {
    /// Receives the next bytes; none are the peer's end.
    ///
    /// - `idle`: as for [`Socket::poll_recv`].
    /// - `silence_ms`: how long the peer may send nothing.
    pub(super) async fn recv(&mut self, idle: bool, silence_ms: u64) -> Result<Bytes, TunnelError> {
        let mut socket = self.borrow()?;
        if !self.unread.is_empty() {
            drop(socket);
            return Ok(mem::take(&mut self.unread).into());
        }
        socket.refresh_now();
        let now_ms = socket.now().mono_ms;
        socket.set_deadline(now_ms.saturating_add(silence_ms));
        let piece = socket.receive(idle).await?;
        Ok(Bytes::copy_from_slice(piece.bytes()))
    }

    pub(super) async fn send(
        &self,
        bytes: Bytes,
        write: ProgressTimeout,
    ) -> Result<(), TunnelError> {
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

    pub(super) fn shutdown(&self) -> Result<(), TunnelError> {
        self.borrow()?.shutdown_write();
        Ok(())
    }

    pub(super) fn peer(&self) -> io::Result<Endpoint> {
        self.borrow().map_err(io::Error::other)?.peer()
    }

    pub(super) fn local(&self) -> io::Result<Endpoint> {
        self.borrow().map_err(io::Error::other)?.local()
    }

    pub(super) async fn run(
        self,
        protocol: Box<dyn Protocol>,
        write: ProgressTimeout,
    ) -> Result<Reason, TunnelError> {
        let mut socket = self.borrow()?;
        finish_send(&mut socket, write).await.map_err(|failed| failed.error)?;
        let socket = ScopeGuard::into_inner(socket);
        let sent = Arc::clone(&self.lent.sent);
        Ok(gustnado_tcp::run_on(socket, self.unread, sent, protocol, write.silence_ms).await)
    }

    /// Takes the socket for one operation, after which it is put back.
    fn borrow(&self) -> Result<ScopeGuard<Socket, impl FnOnce(Socket) + use<>>, TunnelError> {
        let lent = Arc::clone(&self.lent);
        let socket = lent.socket().take().ok_or(TunnelError::Closed)?;
        Ok(guard(socket, move |socket| *lent.socket() = Some(socket)))
    }
}

/// Finishes a send whose future was dropped: only one can be under way.
async fn finish_send(socket: &mut Socket, write: ProgressTimeout) -> Result<(), SendFailed> {
    if socket.is_sending() { socket.send_on(write, &mut |_| None).await } else { Ok(()) }
}
