//! A tunnel that has a connection for itself.
//!
//! Both directions are polled by one task, and the socket has one deadline: it is the earliest that
//! either direction waits for, and is looked at by both when it has passed.

use std::future::poll_fn;
use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, ready};

use bytes::Bytes;
use gustnado_tasks::{ConnectionError, Endpoint, TaskMark, now};
use gustnado_tcp::{Protocol, Reason};
use gustnado_tls::Socket;

use super::sending::PacedStep;
use super::{Tunnel, TunnelError, lent};

impl Tunnel {
    /// Sets how long the peer may send nothing from now on; `u64::MAX` is for ever. A pause that
    /// the server makes itself is no silence of the peer.
    pub(super) fn expect_within(&mut self, silence_ms: u64) {
        self.silent_until_ms = u64::MAX;
        if silence_ms < u64::MAX {
            let pause_ms = lent::with(self.task, |lent| read_pause_ms(&lent.socket));
            let from_ms = now().mono_ms.max(pause_ms.ok().flatten().unwrap_or(0));
            self.silent_until_ms = from_ms.saturating_add(silence_ms);
        }
    }

    /// Receives what has come, at the connection's pace; no bytes are the peer's end, and `None` is
    /// that it has been silent for too long. A send may be under way meanwhile.
    ///
    /// - `idle`: as for [`Socket::poll_recv`].
    pub(super) fn poll_socket_recv(
        &mut self,
        idle: bool,
    ) -> Poll<Result<Option<Bytes>, TunnelError>> {
        let Self { silent_until_ms, more, .. } = self;
        let received = lent::with(self.task, |lent| {
            if let Some(more) = more.as_mut().filter(|more| !more.unread.is_empty()) {
                return Poll::Ready(Ok(Some(mem::take(&mut more.unread).into())));
            }
            let socket = &mut lent.socket;
            loop {
                socket.refresh_now();
                let mut send_at_ms = u64::MAX;
                if let Some(more) = more {
                    let write = more.write().unwrap_or(lent.write);
                    if !more.sending.look(socket, write) {
                        return Poll::Ready(Err(TunnelError::TimedOut));
                    }
                    send_at_ms = more.sending.at_ms;
                }
                set_next_deadline(socket, *silent_until_ms, send_at_ms);
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
                    Poll::Pending if socket.now().mono_ms >= *silent_until_ms => {
                        return Poll::Ready(Ok(None));
                    }
                    Poll::Pending => return Poll::Pending,
                }
            }
        });
        self.settle();
        received.unwrap_or_else(|closed| Poll::Ready(Err(closed)))
    }

    /// Waits until the server drains.
    pub(super) fn poll_socket_ending(&mut self) -> Poll<()> {
        match lent::with(self.task, |lent| lent.socket.poll_deadline(true)) {
            Ok(Poll::Ready(ConnectionError::Ending)) => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }

    /// Begins to send. The send before must have ended.
    pub(super) fn start_socket_send(&mut self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        let more = &mut self.more;
        // A closed socket sends nothing, which is told when that is awaited.
        _ = lent::with(self.task, |lent| {
            let more = more.get_or_insert_default();
            let write = more.write().unwrap_or(lent.write);
            more.sending.start(&mut lent.socket, bytes, write);
        });
    }

    /// Does the same with few bytes, which are copied.
    pub(super) fn start_socket_copy(&mut self, bytes: &[u8]) {
        let more = &mut self.more;
        _ = lent::with(self.task, |lent| {
            let more = more.get_or_insert_default();
            let write = more.write().unwrap_or(lent.write);
            more.sending.start_copy(&mut lent.socket, bytes, write);
        });
    }

    /// Waits until the bytes that are being sent have left. If that fails, the connection is
    /// closed.
    pub(super) fn poll_socket_sent(&mut self) -> Poll<Result<(), TunnelError>> {
        let Self { silent_until_ms, more, .. } = self;
        let sent = lent::with(self.task, |lent| {
            let Some(more) = more else { return Poll::Ready(Ok(())) };
            let write = more.write().unwrap_or(lent.write);
            let (socket, sending) = (&mut lent.socket, &mut more.sending);
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
                set_next_deadline(socket, *silent_until_ms, sending.at_ms);
                let is_granted = sending.bytes > 0;
                let sent = if is_granted {
                    ready!(socket.poll_sent())
                } else {
                    Err(ready!(socket.poll_deadline(false)))
                };
                match sent {
                    Ok(()) => lent.sent += sending.end_step(socket),
                    Err(ConnectionError::TimedOut) => {}
                    Err(error) => break error,
                }
            };
            let unsent = socket.unsent_bytes();
            lent.sent += sending.end_step(socket).saturating_sub(unsent);
            drop(socket.take());
            Poll::Ready(Err(error.into()))
        });
        let sent = ready!(sent.unwrap_or_else(|closed| Poll::Ready(Err(closed))));
        self.settle();
        Poll::Ready(sent)
    }

    pub(super) fn shut_socket(&self) -> Result<(), TunnelError> {
        lent::with(self.task, |lent| lent.socket.shutdown_write())
    }

    pub(super) fn socket_address(
        &self,
        read: fn(&Socket) -> io::Result<Endpoint>,
    ) -> io::Result<Endpoint> {
        lent::with(self.task, |lent| read(&lent.socket)).map_err(io::Error::other)?
    }

    /// Gives the socket to a protocol.
    pub(super) async fn run_on_socket(
        mut self,
        protocol: Box<dyn Protocol>,
    ) -> Result<Reason, TunnelError> {
        poll_fn(|_| self.poll_socket_sent()).await?;
        let write = lent::with(self.task, |lent| lent.write)?;
        let closing_ms = self.own_write().unwrap_or(write).silence_ms;
        let socket = lent::take(self.task)?;
        let sent = ProtocolSent { task: self.task, sent: Arc::default() };
        let unread = self.more.map_or_else(Vec::new, |more| more.unread);
        Ok(gustnado_tcp::run_on(socket, unread, Arc::clone(&sent.sent), protocol, closing_ms).await)
    }
}

/// Counts what a protocol has sent when it ends.
struct ProtocolSent {
    task: TaskMark,
    sent: Arc<AtomicU64>,
}

impl Drop for ProtocolSent {
    fn drop(&mut self) {
        lent::count_sent(self.task, self.sent.load(Ordering::Relaxed));
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
    let later = |at_ms: u64| if at_ms > now_ms { at_ms } else { u64::MAX };
    let next_ms = later(silent_until_ms).min(later(send_at_ms)).min(later(socket.read_pause_ms()));
    socket.set_deadline(next_ms);
}
