//! A connection as what runs in its task may name it, without holding it.

use std::io;
use std::task::Waker;

use gustnado_reactor::{Io, IoId, SocketAddrs};

use crate::exec::executor::context;
use crate::exec::wakers::task_id::TaskId;

/// Which connection something belongs to: 8 bytes that cost nothing to make.
///
/// It is for the connection's own task, and what that calls. A late question there is answered with
/// `NotFound`; a worker that shares nothing with the connection's own one may know another
/// connection by the same name. Those who may be moved elsewhere keep a [`TaskMark`] beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionId(IoId);

impl ConnectionId {
    /// No connection.
    pub const NONE: Self = Self(IoId::NONE);

    #[inline]
    pub(crate) fn of(io: &Io) -> Self {
        Self(io.id())
    }

    /// Returns the names of the connection's two ends.
    ///
    /// # Errors
    /// As [`crate::Connection::peer`]. `NotFound`: there is no such connection, or this thread is
    /// no worker.
    pub fn addrs(self) -> io::Result<SocketAddrs> {
        let ask = |ctx: &context::WorkerContext| {
            ctx.ask_reactor(|reactor, woken| reactor.addrs(self.0, woken))
        };
        context::try_with(ask).unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()))
    }
}

/// Which task something was made in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskMark(u64);

impl TaskMark {
    /// Of any task.
    pub const ANY: Self = Self(u64::MAX);
    /// Of no task.
    const NONE: Self = Self(u64::MAX - 1);

    /// The task that is woken by this waker. Reading it there is cheaper than asking the thread.
    #[inline]
    pub fn of(waker: &Waker) -> Self {
        TaskId::of_waker(waker).map_or(Self::NONE, |task| Self(task.token()))
    }

    /// Returns whether it was made in the running task, or is of any.
    pub fn is_here(self) -> bool {
        self == Self::ANY || context::try_with(context::WorkerContext::token) == Some(self.0)
    }

    /// Wakes the task, from any thread. Without effect once it has ended, and where it is no task.
    pub fn wake(self) {
        if self != Self::ANY && self != Self::NONE {
            TaskId::of_token(self.0).waker().wake();
        }
    }
}
