//! Waiting for time to pass.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use gustnado_reactor::{Reactor, TimerKey};

use crate::exec::executor::context::{self, WorkerContext};
use crate::exec::waits::WaitsOn;
use crate::exec::wakers::task_id::TaskId;

/// Waits for at least `duration` (whole milliseconds, rounded up) from its first poll on.
///
/// It is woken through the waker that it is polled with, so it may be one of several futures that
/// something else looks after; and a million of them cost 24 bytes each, and 32 in the timer wheel.
pub fn sleep(duration: Duration) -> Sleep {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX >> 1);
    let whole = millis + u64::from(!duration.subsec_nanos().is_multiple_of(1_000_000));
    Sleep { ms: whole, waiter: TaskId::NONE, key: TimerKey::NONE }
}

/// A wait for time to pass; what [`sleep`] returns. Dropping it disarms its timer.
#[must_use = "no time passes until it is awaited"]
pub struct Sleep {
    /// Before the first poll, how many milliseconds are to pass; then when they will have.
    ms: u64,
    /// The waiter that is woken; none before the first poll.
    waiter: TaskId,
    key: TimerKey,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        context::with(|ctx| {
            if self.waiter == TaskId::NONE {
                // The clock is read, for a turn may have lasted long.
                let now_ms = ctx.reactor.borrow().clock().read_ms();
                self.ms = now_ms.saturating_add(self.ms);
            }
            if ctx.now_ms() >= self.ms {
                return Poll::Ready(());
            }
            if !wakes(ctx, self.waiter, context.waker()) {
                self.disarm(ctx);
                self.waiter = waiter(ctx, context.waker());
                self.key = ctx.arm(self.ms, self.waiter);
            }
            ctx.waits_on(WaitsOn::Timer);
            Poll::Pending
        })
    }
}

impl Sleep {
    /// Disarms the timer, if it was armed here: in another worker's wheel the key would name
    /// another timer. That one fires in vain.
    fn disarm(&mut self, ctx: &WorkerContext) {
        if self.waiter != TaskId::NONE && self.waiter.home() == ctx.wake_target {
            ctx.disarm(self.key);
            ctx.forget(self.waiter);
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if self.waiter != TaskId::NONE {
            context::try_with(|ctx| self.disarm(ctx));
        }
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sleep")
    }
}

/// Waits for `future`, but not longer than `duration`: then it is dropped, and `None` returned.
pub async fn timeout<F: Future>(duration: Duration, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut timer = sleep(duration);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Pin::new(&mut timer).poll(context).map(|()| None),
    })
    .await
}

/// The time as of this worker's last turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds since the workers started; comparable among them.
    pub mono_ms: u64,
    /// Seconds since 1 January 1970 UTC.
    pub unix_secs: u64,
}

impl Now {
    pub(crate) fn of(reactor: &Reactor) -> Self {
        Self { mono_ms: reactor.clock().now_ms(), unix_secs: reactor.clock().unix_secs() }
    }
}

/// Returns the time as of this worker's last turn.
pub fn now() -> Now {
    context::with(|ctx| Now::of(&ctx.reactor.borrow()))
}

/// Returns the number of this worker's turn: it rises whenever the kernel is asked for events.
#[doc(hidden)]
pub fn turn_number() -> u64 {
    context::with(WorkerContext::turn_number)
}

/// Returns whether a timer here that carries `waiter` wakes what `waker` does.
fn wakes(ctx: &WorkerContext, waiter: TaskId, waker: &Waker) -> bool {
    if waiter.home() != ctx.wake_target {
        return false;
    }
    if waiter.is_foreign() {
        return ctx.is_kept(waiter, waker);
    }
    TaskId::of_waker(waker) == Some(waiter)
}

/// Returns what a timer here has to carry to wake what `waker` does.
fn waiter(ctx: &WorkerContext, waker: &Waker) -> TaskId {
    let own = TaskId::of_waker(waker).filter(|task| task.wake_target() == ctx.wake_target);
    own.unwrap_or_else(|| ctx.keep(waker.clone()))
}
