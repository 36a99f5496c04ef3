//! The socket of a tunnel that has a connection for itself. The connection's task owns it, and
//! lends it while it polls what uses the tunnel.
//!
//! So a socket that waits is held once, a tunnel that was moved elsewhere cannot keep it open, and
//! no lock is taken on the way of its bytes.

use std::cell::RefCell;

use gustnado_tasks::{ProgressTimeout, TaskMark};
use gustnado_tls::Socket;

use super::TunnelError;

thread_local! {
    /// That of the task that runs, if it lends one.
    static LENT: RefCell<Option<LentSocket>> = const { RefCell::new(None) };
}

/// A socket that is lent to the tunnel of a task.
pub(super) struct LentSocket {
    task: TaskMark,
    pub(super) socket: Socket,
    /// How slowly the peer may take bytes, unless the tunnel says otherwise.
    pub(super) write: ProgressTimeout,
    /// Bytes that have left meanwhile.
    pub(super) sent: u64,
}

/// Lends a socket to the tunnel of the running task, while `poll` runs. Returns what that returns,
/// and how many bytes have left. Afterwards the socket is open no more if a protocol has taken it,
/// or a send has failed.
///
/// - `task`: the running one; [`TaskMark::ANY`] if the tunnel is dropped and may do nothing more.
/// - `write`: how slowly the peer may take bytes, unless the tunnel says otherwise.
pub fn lend<T>(
    socket: &mut Socket,
    task: TaskMark,
    write: ProgressTimeout,
    poll: impl FnOnce() -> T,
) -> (T, u64) {
    let mut sent = 0;
    let lent = LentSocket { task, socket: socket.take(), write, sent: 0 };
    let before = LENT.replace(Some(lent));
    let lending = Lending { socket, sent: &mut sent, before };
    let polled = poll();
    drop(lending);
    (polled, sent)
}

/// Takes the socket back, also after a panic.
struct Lending<'a> {
    socket: &'a mut Socket,
    sent: &'a mut u64,
    /// What a task lends that runs this one.
    before: Option<LentSocket>,
}

impl Drop for Lending<'_> {
    fn drop(&mut self) {
        if let Some(lent) = LENT.replace(self.before.take()) {
            *self.socket = lent.socket;
            *self.sent = lent.sent;
        }
    }
}

/// Uses the socket that is lent to the tunnel of a task.
///
/// # Errors
/// [`TunnelError::Closed`]: that task does not run, or the socket is closed.
pub(super) fn with<T>(
    task: TaskMark,
    use_it: impl FnOnce(&mut LentSocket) -> T,
) -> Result<T, TunnelError> {
    LENT.with_borrow_mut(|lent| match lent {
        Some(lent) if lent.task == task && lent.socket.is_open() => Ok(use_it(lent)),
        _ => Err(TunnelError::Closed),
    })
}

/// Takes the socket over.
pub(super) fn take(task: TaskMark) -> Result<Socket, TunnelError> {
    with(task, |lent| lent.socket.take())
}

/// Counts bytes that a protocol has sent, for the task that has lent it its socket.
pub(super) fn count_sent(task: TaskMark, sent: u64) {
    LENT.with_borrow_mut(|lent| {
        let is_its = |lent: &&mut LentSocket| [task, TaskMark::ANY].contains(&lent.task);
        if let Some(lent) = lent.as_mut().filter(is_its) {
            lent.sent += sent;
        }
    });
}
