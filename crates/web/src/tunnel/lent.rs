//! A tunnel that has a connection for itself: its socket is lent by the connection's task.

use std::future::poll_fn;
use std::io;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, ready};

use bytes::Bytes;
use gustnado_tasks::{
    Connection, ConnectionError, Endpoint, ProgressTimeout, SendBuf, SendWatch, now,
};
use gustnado_tcp::{Protocol, Reason};
use gustnado_tls::{Grant, Socket};

use super::TunnelError;

/// Up to this many bytes are copied into the send buffer; more are sent without a copy.
const COPIED_BYTES_MAX: usize = 4 << 10;

/// The most bytes in one step at a pace, however fast it is: a larger one would be a burst.
const STEP_BYTES_MAX: u64 = 64 << 10;

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
///
/// Both directions are polled by one task, and the socket has one deadline: it is the earliest that
/// either direction waits for, and is looked at by both when it has passed.
pub(super) struct SocketTunnel {
    lent: Arc<Lent>,
    /// Bytes that arrived behind the request.
    unread: Vec<u8>,
    sending: TunnelSend,
    /// When the peer has to have sent something, for a receive that has such a time.
    silent_until_ms: u64,
}

/// A send that is under way.
#[derive(Default)]
struct TunnelSend {
    /// Bytes of the step that the socket has; 0: it has none.
    bytes: usize,
    began_ms: u64,
    /// When there is something to do; `u64::MAX` is never.
    at_ms: u64,
    /// Made at the first look: most sends are over before that.
    watch: Option<Box<SendWatch>>,
    /// What the socket does not have yet, at a pace.
    paced: Option<Box<PacedSend>>,
}

/// A send at a pace: it leaves in steps.
struct PacedSend {
    rest: Bytes,
    /// The next step: how many bytes, and when. `None`: it was not granted yet.
    step: Option<Grant>,
    /// How slowly the peer may take the step that is under way.
    patience: ProgressTimeout,
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

impl TunnelSend {
    /// Hands a step to the socket.
    fn begin_step(&mut self, socket: &mut Socket, step: Bytes, write: ProgressTimeout) {
        socket.refresh_now();
        self.bytes = step.len();
        self.began_ms = socket.now().mono_ms;
        let patience = match &mut self.paced {
            Some(paced) => {
                paced.patience = socket.step_patience(write, self.began_ms);
                paced.patience
            }
            None => write,
        };
        self.at_ms = self.began_ms.saturating_add(patience.first_look_ms());
        socket.start_send(outgoing(step));
    }

    /// Looks at the step that is under way, if it is time. Returns false if the peer has had its
    /// time.
    fn look(&mut self, socket: &mut Socket, write: ProgressTimeout) -> bool {
        if self.bytes == 0 || socket.now().mono_ms < self.at_ms {
            return true;
        }
        let patience = self.paced.as_ref().map_or(write, |paced| paced.patience);
        let watch = self.watch.get_or_insert_with(|| SendWatch::new(self.began_ms).into());
        let is_in_time = socket.look_at_send(watch, patience);
        self.at_ms = socket.deadline_ms();
        is_in_time
    }

    /// Notes that the socket has no step any more. Returns how many bytes it was given.
    fn end_step(&mut self, socket: &mut Socket) -> u64 {
        if self.paced.is_some() && self.bytes > 0 {
            socket.note_sent(self.began_ms, self.bytes as u64);
        }
        (self.at_ms, self.watch) = (u64::MAX, None);
        mem::take(&mut self.bytes) as u64
    }

    /// Takes the next step of a send at a pace, if it may leave now; [`TunnelSend::at_ms`] is when
    /// it may otherwise.
    fn take_step(&mut self, socket: &mut Socket) -> PacedStep {
        let now_ms = socket.now().mono_ms;
        let Some(paced) = &mut self.paced else { return PacedStep::None };
        if paced.rest.is_empty() {
            self.paced = None;
            return PacedStep::None;
        }
        let wanted = (paced.rest.len() as u64).min(STEP_BYTES_MAX);
        let grant = *paced.step.get_or_insert_with(|| socket.grant(now_ms, wanted));
        if grant.at_ms > now_ms {
            self.at_ms = grant.at_ms;
            return PacedStep::Later;
        }
        paced.step = None;
        let bytes = usize::try_from(grant.bytes).map_or(paced.rest.len(), |bytes| bytes);
        PacedStep::Now(paced.rest.split_to(bytes.min(paced.rest.len())))
    }
}

/// What of a send at a pace is next.
enum PacedStep {
    Now(Bytes),
    Later,
    None,
}

impl SocketTunnel {
    pub(super) fn new(lent: Arc<Lent>, unread: Vec<u8>) -> Self {
        let sending = TunnelSend { at_ms: u64::MAX, ..TunnelSend::default() };
        Self { lent, unread, sending, silent_until_ms: u64::MAX }
    }

    /// Sets when the peer has to have sent something; `u64::MAX` is never.
    pub(super) fn expect_until(&mut self, at_ms: u64) {
        self.silent_until_ms = at_ms;
    }

    /// Sets how long the peer may send nothing from now on; `u64::MAX` is for ever. A pause that
    /// the server makes itself is no silence of the peer.
    pub(super) fn expect_within(&mut self, silence_ms: u64) {
        self.silent_until_ms = u64::MAX;
        if silence_ms < u64::MAX {
            let lent = self.lent.socket();
            let pause_ms = lent.as_ref().map_or(0, |socket| read_pause_ms(socket).unwrap_or(0));
            self.silent_until_ms = now().mono_ms.max(pause_ms).saturating_add(silence_ms);
        }
    }

    /// Receives what has come, at the connection's pace; no bytes are the peer's end, and `None` is
    /// that it has been silent for too long. A send may be under way meanwhile.
    ///
    /// - `idle`: as for [`Socket::poll_recv`].
    /// - `write`: how slowly the peer may take that send.
    pub(super) fn poll_recv(
        &mut self,
        idle: bool,
        write: ProgressTimeout,
    ) -> Poll<Result<Option<Bytes>, TunnelError>> {
        let mut lent = self.lent.socket();
        let socket = lent.as_mut().ok_or(TunnelError::Closed)?;
        if !self.unread.is_empty() {
            return Poll::Ready(Ok(Some(mem::take(&mut self.unread).into())));
        }
        loop {
            socket.refresh_now();
            if !self.sending.look(socket, write) {
                return Poll::Ready(Err(TunnelError::TimedOut));
            }
            set_next_deadline(socket, self.silent_until_ms, self.sending.at_ms);
            let received = match read_pause_ms(socket) {
                None => socket.poll_recv(idle),
                Some(_) => socket.poll_deadline(idle).map(Err),
            };
            match received {
                Poll::Ready(Ok(piece)) => {
                    if socket.is_paced() {
                        socket.charge_read(&piece);
                    }
                    return Poll::Ready(Ok(Some(Bytes::copy_from_slice(piece.bytes()))));
                }
                Poll::Ready(Err(ConnectionError::TimedOut)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                // Only now: what has come before the task looked is no silence.
                Poll::Pending if socket.now().mono_ms >= self.silent_until_ms => {
                    return Poll::Ready(Ok(None));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Begins to send. The send before must have ended.
    pub(super) fn start_send(&mut self, bytes: Bytes, write: ProgressTimeout) {
        let mut lent = self.lent.socket();
        let Some(socket) = lent.as_mut().filter(|_| !bytes.is_empty()) else { return };
        if socket.is_paced() {
            let paced = PacedSend { rest: bytes, step: None, patience: write };
            self.sending.paced = Some(Box::new(paced));
            return;
        }
        self.sending.begin_step(socket, bytes, write);
    }

    /// Waits until the bytes that are being sent have left. If that fails, the connection is
    /// closed.
    pub(super) fn poll_sent(&mut self, write: ProgressTimeout) -> Poll<Result<(), TunnelError>> {
        let mut lent = self.lent.socket();
        let socket = lent.as_mut().ok_or(TunnelError::Closed)?;
        let sending = &mut self.sending;
        let error = loop {
            socket.refresh_now();
            if sending.bytes == 0 {
                match sending.take_step(socket) {
                    PacedStep::None => return Poll::Ready(Ok(())),
                    PacedStep::Now(step) => sending.begin_step(socket, step, write),
                    PacedStep::Later => {}
                }
            }
            if !sending.look(socket, write) {
                break ConnectionError::TimedOut;
            }
            set_next_deadline(socket, self.silent_until_ms, sending.at_ms);
            let is_granted = sending.bytes > 0;
            let sent = if is_granted {
                ready!(socket.poll_sent())
            } else {
                Err(ready!(socket.poll_deadline(false)))
            };
            match sent {
                Ok(()) => {
                    self.lent.sent.fetch_add(sending.end_step(socket), Ordering::Relaxed);
                }
                Err(ConnectionError::TimedOut) => {}
                Err(error) => break error,
            }
        };
        let unsent = socket.unsent_bytes();
        let sent = sending.end_step(socket).saturating_sub(unsent);
        self.lent.sent.fetch_add(sent, Ordering::Relaxed);
        drop(lent.take());
        Poll::Ready(Err(error.into()))
    }

    pub(super) fn shutdown(&self) -> Result<(), TunnelError> {
        self.lent.socket().as_mut().ok_or(TunnelError::Closed)?.shutdown_write();
        Ok(())
    }

    pub(super) fn peer(&self) -> io::Result<Endpoint> {
        self.with_socket(Socket::peer)
    }

    pub(super) fn local(&self) -> io::Result<Endpoint> {
        self.with_socket(Socket::local)
    }

    fn with_socket(&self, read: fn(&Socket) -> io::Result<Endpoint>) -> io::Result<Endpoint> {
        self.lent
            .socket()
            .as_ref()
            .ok_or(TunnelError::Closed)
            .map_err(io::Error::other)
            .and_then(read)
    }

    pub(super) async fn run(
        mut self,
        protocol: Box<dyn Protocol>,
        write: ProgressTimeout,
    ) -> Result<Reason, TunnelError> {
        poll_fn(|_| self.poll_sent(write)).await?;
        let socket = self.lent.socket().take().ok_or(TunnelError::Closed)?;
        let sent = Arc::clone(&self.lent.sent);
        Ok(gustnado_tcp::run_on(socket, self.unread, sent, protocol, write.silence_ms).await)
    }
}

/// Returns when something may be received again, if that is not now.
fn read_pause_ms(socket: &Socket) -> Option<u64> {
    Some(socket.read_pause_ms()).filter(|at_ms| *at_ms < u64::MAX)
}

/// Sets the deadline to what is awaited next in either direction. A time that has passed was looked
/// at: it must not end the next operation.
fn set_next_deadline(socket: &mut Socket, silent_until_ms: u64, send_at_ms: u64) {
    let now_ms = socket.now().mono_ms;
    let times = [silent_until_ms, send_at_ms, socket.read_pause_ms()];
    let next_ms = times.into_iter().filter(|at_ms| *at_ms > now_ms).min();
    socket.set_deadline(next_ms.unwrap_or(u64::MAX));
}
