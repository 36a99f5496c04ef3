//! A tunnel that has a connection for itself: its socket is lent by the connection's task.

use std::io;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, ready};

use bytes::Bytes;
use gustnado_tasks::{Connection, ConnectionError, Endpoint, ProgressTimeout, SendBuf, SendWatch};
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
    pub(super) watch: PolledSend,
}

/// The time of a send that is polled.
#[derive(Default)]
pub(super) struct PolledSend {
    bytes: usize,
    began_ms: u64,
    /// Made at the first look: most sends are over before that.
    watch: Option<Box<SendWatch>>,
}

impl PolledSend {
    fn begin(&mut self, socket: &mut Socket, bytes: usize, write: ProgressTimeout) {
        socket.refresh_now();
        self.bytes = bytes;
        self.began_ms = socket.now().mono_ms;
        socket.set_deadline(self.began_ms.saturating_add(write.first_look_ms()));
    }

    /// Acts on a deadline that has passed. Returns false if the peer has had its time.
    fn look(&mut self, socket: &mut Socket, write: ProgressTimeout) -> bool {
        if self.bytes == 0 {
            // It was that of something before.
            socket.set_deadline(u64::MAX);
            return true;
        }
        let watch = self.watch.get_or_insert_with(|| SendWatch::new(self.began_ms).into());
        socket.look_at_send(watch, write)
    }

    /// Returns how many bytes were to be sent.
    fn end(&mut self, socket: &mut Socket) -> u64 {
        socket.set_deadline(u64::MAX);
        self.watch = None;
        mem::take(&mut self.bytes) as u64
    }
}

/// Returns bytes as they are sent: few are copied.
#[expect(clippy::unnecessary_box_returns, reason = "sockets take, and give back, the box")]
fn outgoing(bytes: Bytes) -> Box<SendBuf> {
    let mut out = Connection::outgoing();
    if bytes.len() <= COPIED_BYTES_MAX {
        out.bytes.extend_from_slice(&bytes);
    } else {
        out.share(bytes);
    }
    out
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
            Ok(()) if all > 0 => socket.send(outgoing(bytes), write, &mut |_| None).await,
            sent => sent,
        };
        let unsent = sent.as_ref().map_or_else(|failed| failed.unsent, |()| 0);
        self.lent.sent.fetch_add(all.saturating_sub(unsent), Ordering::Relaxed);
        sent.map_err(|failed| {
            drop(ScopeGuard::into_inner(socket));
            failed.error.into()
        })
    }

    /// Receives what has come; none are the peer's end. A send may be under way meanwhile.
    ///
    /// - `idle`: as for [`Socket::poll_recv`].
    /// - `write`: how slowly the peer may take that send.
    pub(super) fn poll_recv(
        &mut self,
        idle: bool,
        write: ProgressTimeout,
    ) -> Poll<Result<Bytes, TunnelError>> {
        let mut socket = self.lent.socket();
        let socket = socket.as_mut().ok_or(TunnelError::Closed)?;
        if !self.unread.is_empty() {
            return Poll::Ready(Ok(mem::take(&mut self.unread).into()));
        }
        loop {
            match ready!(socket.poll_recv(idle)) {
                Ok(piece) => return Poll::Ready(Ok(Bytes::copy_from_slice(piece.bytes()))),
                Err(ConnectionError::TimedOut) if self.watch.look(socket, write) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }

    /// Begins to send. The send before must have ended.
    pub(super) fn start_send(&mut self, bytes: Bytes, write: ProgressTimeout) {
        let mut socket = self.lent.socket();
        let Some(socket) = socket.as_mut() else { return };
        self.watch.begin(socket, bytes.len(), write);
        socket.start_send(outgoing(bytes));
    }

    /// Waits until the bytes that are being sent have left. If that fails, the connection is
    /// closed.
    pub(super) fn poll_sent(&mut self, write: ProgressTimeout) -> Poll<Result<(), TunnelError>> {
        let mut lent = self.lent.socket();
        let socket = lent.as_mut().ok_or(TunnelError::Closed)?;
        loop {
            let error = match ready!(socket.poll_sent()) {
                Ok(()) => {
                    self.lent.sent.fetch_add(self.watch.end(socket), Ordering::Relaxed);
                    return Poll::Ready(Ok(()));
                }
                Err(ConnectionError::TimedOut) if self.watch.look(socket, write) => continue,
                Err(error) => error,
            };
            let unsent = socket.unsent_bytes();
            let sent = self.watch.end(socket).saturating_sub(unsent);
            self.lent.sent.fetch_add(sent, Ordering::Relaxed);
            drop(lent.take());
            return Poll::Ready(Err(error.into()));
        }
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
