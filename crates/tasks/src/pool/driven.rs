//! A worker on a thread that is its caller's: it works whenever the caller's loop has it take a
//! turn, and watches descriptors of the caller in addition to its own sockets.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use gustnado_reactor::{ReactorWaker, Token, Wants, WatchEvent};

use crate::exec::error::SpawnError;
use crate::exec::error::WorkersStartError;
use crate::exec::executor::block_on;
use crate::exec::executor::context::{self, WorkerContext};
use crate::exec::executor::turn::{end, run_all, take_in};
use crate::exec::wakers::wake_target;
use crate::exec::worker::inbox::Inbox;
use crate::exec::worker::workers_shared::Phase;

/// A worker that the calling thread drives: nothing of it happens but in [`Driven::turn`], on the
/// thread that has started it.
///
/// While it lives, that thread is a worker also between two turns: tasks can be spawned there.
/// Dropping it ends its server, drops its tasks, and gives the thread back; another one may then be
/// started there.
#[must_use = "nothing is served unless it is driven"]
pub struct Driven {
    ctx: Rc<WorkerContext>,
    inbox: Arc<Inbox>,
    wake_target: u16,
    /// What the thread was before.
    before: Cell<Option<Rc<WorkerContext>>>,
    /// Whom the kernel has woken; nothing but its memory between two turns.
    woken: Cell<Vec<Token>>,
    is_turning: Cell<bool>,
    has_ended: Cell<bool>,
}

/// The outcome of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Turned {
    /// A task has run.
    pub has_run: bool,
    /// A signal has ended the wait: its handlers may need to run.
    pub is_interrupted: bool,
}

impl Driven {
    /// Returns whether one can be started on the running thread.
    pub(crate) fn check() -> Result<(), WorkersStartError> {
        let is_taken = context::is_own_thread() || block_on::is_busy() || is_driven();
        if is_taken { Err(WorkersStartError::Nested) } else { Ok(()) }
    }

    /// Makes the running thread the worker `ctx`.
    pub(crate) fn start(ctx: Rc<WorkerContext>, inbox: Arc<Inbox>) -> Self {
        let wake_target = ctx.wake_target;
        let before = Cell::new(ctx.borrow_thread());
        DRIVES.set(true);
        let (woken, is_turning, has_ended) = (Cell::default(), Cell::new(false), Cell::new(false));
        Self { ctx, inbox, wake_target, before, woken, is_turning, has_ended }
    }

    /// Runs one turn: waits until there is something to do, does it, and returns.
    ///
    /// It takes in what other threads have sent, sleeps in the kernel until something happens, and
    /// then runs the tasks that this concerns, at most a few hundred. Where tasks are ready it does
    /// not sleep; and once one has run it returns, so that the caller can do what that has brought
    /// up.
    ///
    /// - `timeout`: how long to sleep at most; zero: not at all; `None`: until something happens.
    /// - `ready`: what is found of [watched](Driven::watch) descriptors is appended here, once for
    ///   each at most.
    /// - `around`: is called only where the turn may really sleep, with the sleep as its argument,
    ///   and must call that once. A lock that others wait for can be given up around it. What it
    ///   must not do is use this worker.
    ///
    /// # Errors
    /// The kernel refuses to wait: nothing can be served any more. Or it was called in a task of
    /// this worker.
    pub fn turn(
        &self,
        timeout: Option<Duration>,
        ready: &mut Vec<WatchEvent>,
        around: &mut dyn FnMut(&mut dyn FnMut()),
    ) -> io::Result<Turned> {
        if self.is_turning.replace(true) {
            return Err(io::Error::other("this worker is in a turn already"));
        }
        let _end = TurnGuard(&self.is_turning);
        let ctx = &*self.ctx;
        // The caller may have been busy for long.
        ctx.reactor.borrow_mut().tick();
        ctx.note_time();
        take_in(ctx, &self.inbox);
        let next_ms = ctx.expire();
        let is_interrupted = if timeout == Some(Duration::ZERO) || ctx.schedule.has_ready() {
            ctx.reactor.borrow_mut().sleep(Some(Duration::ZERO))?
        } else {
            self.sleep(timeout, next_ms, around)?
        };
        let (first, mut woken) = (ready.len(), self.woken.take());
        ctx.reactor.borrow_mut().collect(&mut woken, ready)?;
        ctx.note_time();
        let changes = ctx.reactor.borrow().changes();
        take_in(ctx, &self.inbox);
        ctx.expire();
        let has_run = run_all(ctx, &mut woken);
        self.woken.set(woken);
        if ctx.reactor.borrow().changes() != changes {
            // A task has watched another one under this number, or none.
            let mut at = 0;
            ready.retain(|found| {
                at += 1;
                at <= first || ctx.reactor.borrow().is_current(found)
            });
        }
        if ctx.phase() == Phase::Stopping {
            self.end_work();
        }
        Ok(Turned { has_run, is_interrupted })
    }

    /// Runs a turn for a caller whose loop sleeps itself, and watches [`Driven::descriptor`] for as
    /// long as it can be read: does what there is to do, and does not sleep.
    ///
    /// Returns when the next turn is due, though the descriptor says nothing; zero: at once.
    /// `None`: not before it does.
    ///
    /// # Errors
    /// As [`Driven::turn`].
    pub fn look(&self) -> io::Result<Option<Duration>> {
        let ctx = &*self.ctx;
        ctx.wakes_caller.set(false);
        self.inbox.cancel_sleep();
        // What is watched is so by the caller's own loop.
        self.turn(Some(Duration::ZERO), &mut Vec::new(), &mut |sleep| sleep())?;
        let next_ms = ctx.expire();
        if self.has_ended() {
            return Ok(None);
        }
        if ctx.schedule.has_ready() || !self.inbox.prepare_sleep() {
            return Ok(Some(Duration::ZERO));
        }
        // Outside a turn, a wake-up on this very thread has to make the descriptor readable too:
        // the caller's loop goes to sleep on it without another look at the run queue.
        ctx.wakes_caller.set(true);
        let now_ms = ctx.reactor.borrow().clock().now_ms();
        Ok(next_ms.map(|at| Duration::from_millis(at.saturating_sub(now_ms))))
    }

    /// Returns what can be read once a turn has something to do. It stays the same while nothing is
    /// watched here.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.ctx.reactor.borrow().descriptor()
    }

    /// Sleeps in the kernel, unless something has come meanwhile.
    fn sleep(
        &self,
        timeout: Option<Duration>,
        next_ms: Option<u64>,
        around: &mut dyn FnMut(&mut dyn FnMut()),
    ) -> io::Result<bool> {
        let reactor = &self.ctx.reactor;
        let left_ms = next_ms.map(|at| at.saturating_sub(reactor.borrow().clock().now_ms()));
        let timer = left_ms.map(Duration::from_millis);
        let timeout = timer.into_iter().chain(timeout).min();
        if timeout == Some(Duration::ZERO) || !self.inbox.prepare_sleep() {
            return reactor.borrow_mut().sleep(Some(Duration::ZERO));
        }
        let _up = AwakeGuard(&self.inbox);
        // The wake-up that came with the last phase may have been taken in before.
        let is_stopping = self.ctx.phase() == Phase::Stopping;
        let timeout = if is_stopping { Some(Duration::ZERO) } else { timeout };
        let mut slept = None;
        around(&mut || {
            if slept.is_none() {
                slept = Some(reactor.borrow_mut().sleep(timeout));
            }
        });
        slept.unwrap_or(Ok(false))
    }

    /// Ends the sleep of a turn, from any thread: of the one under way, or else of the next.
    pub fn waker(&self) -> ReactorWaker {
        self.ctx.reactor.borrow().waker()
    }

    /// Watches a descriptor of the caller's: each turn reports what it is ready for, for as long as
    /// it is. Also in a task of this worker.
    ///
    /// - `number`: should stay open until [`Driven::unwatch`]. One that is closed before is not
    ///   reported any more, unless something else holds it open; and what has its number next is
    ///   not taken for it.
    /// - `key`: what it is called in what is found. The number itself will do.
    ///
    /// # Errors
    /// As `epoll_ctl(2)`, with its number: `EPERM` where it cannot be watched (a plain file),
    /// `EEXIST` where it is already, `EBADF` where it is not open.
    pub fn watch(&self, number: RawFd, wants: Wants, key: u64) -> io::Result<()> {
        self.ctx.reactor.borrow_mut().watch(number, wants, key)
    }

    /// Changes what is watched of a descriptor. Its key stays.
    ///
    /// # Errors
    /// `ENOENT` where it is not watched (any more), `EBADF` where it is not open any more.
    pub fn rewatch(&self, number: RawFd, wants: Wants) -> io::Result<()> {
        self.ctx.reactor.borrow_mut().rewatch(number, wants)
    }

    /// Watches a descriptor no longer. It may have been closed already.
    ///
    /// # Errors
    /// `ENOENT` where it is not watched, `EBADF` where the number is negative.
    pub fn unwatch(&self, number: RawFd) -> io::Result<()> {
        self.ctx.reactor.borrow_mut().unwatch(number)
    }

    /// Returns how many descriptors are watched.
    pub fn watches(&self) -> usize {
        self.ctx.reactor.borrow().watches()
    }

    /// Starts a task on this worker. It runs in the next turn, or still in this one.
    ///
    /// # Errors
    /// [`SpawnError::Full`] where tasks have a fixed number of slots and all are taken;
    /// [`SpawnError::Stopped`] once this worker has ended.
    pub fn spawn<F>(&self, future: F) -> Result<(), SpawnError>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if self.has_ended() {
            return Err(SpawnError::Stopped);
        }
        self.ctx.insert(Box::pin(future)).map(drop).map_err(|_| SpawnError::Full)
    }

    /// Returns whether its server has been stopped and it has no tasks any more. Turns then only
    /// watch.
    pub fn has_ended(&self) -> bool {
        self.has_ended.get()
    }

    /// Ends it, and with it its server. The same as dropping it.
    pub fn end(self) {}

    /// Drops all tasks. What is watched stays so.
    fn end_work(&self) {
        if !self.has_ended.replace(true) {
            end(&self.ctx);
            self.inbox.arrivals.close();
        }
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.ctx.shared.advance(Phase::Stopping);
        self.end_work();
        wake_target::leave(self.wake_target);
        WorkerContext::give_back(self.before.take());
        _ = DRIVES.try_with(|drives| drives.set(false));
    }
}

impl fmt::Debug for Driven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driven").field("watches", &self.watches()).finish_non_exhaustive()
    }
}

thread_local! {
    static DRIVES: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether the running thread drives a worker.
fn is_driven() -> bool {
    DRIVES.get()
}

/// A turn is over, also where it has failed.
struct TurnGuard<'a>(&'a Cell<bool>);

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// The worker sleeps no more, also where the caller's `around` has panicked.
struct AwakeGuard<'a>(&'a Inbox);

impl Drop for AwakeGuard<'_> {
    fn drop(&mut self) {
        self.0.cancel_sleep();
    }
}
