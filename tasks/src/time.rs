//! Waiting for time to pass.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use gustnado_reactor::Reactor;

use crate::here::{self, Alarm};

/// Waits for at least `duration` (whole milliseconds, rounded up).
pub async fn sleep(duration: Duration) {
    let mut alarm = Alarm::unset();
    alarm.set(after(duration));
    poll_fn(|_| here::with(|here| alarm.poll(here))).await;
}

/// Waits for `future`, but not longer than `duration`: then it is dropped, and `None` returned.
pub async fn timeout<F: Future>(duration: Duration, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut alarm = Alarm::unset();
    alarm.set(after(duration));
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => here::with(|here| alarm.poll(here)).map(|()| None),
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

/// The time as of this worker's last turn.
pub fn now() -> Now {
    here::with(|here| Now::of(&here.reactor.borrow()))
}

/// The millisecond at which `duration` will have passed. The clock is read, for a turn may have
/// lasted long.
fn after(duration: Duration) -> u64 {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX >> 1);
    let whole = millis + u64::from(!duration.subsec_nanos().is_multiple_of(1_000_000));
    here::with(|here| here.reactor.borrow().clock().read_ms()).saturating_add(whole)
}
