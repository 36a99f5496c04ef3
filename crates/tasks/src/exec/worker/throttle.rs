//! Throttles of accepting and of workers, and the spinning before a sleep.

use crate::sync::bucket::{Rate, SharedBucket};

/// Throttles of accepting and of the workers. Zeros: there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Throttle {
    /// Milliseconds that an acceptor rests after each connection.
    pub accept_delay_ms: u64,
    /// Connections accepted per second, over all acceptors.
    pub accepts_per_second: u64,
    /// Microseconds that a worker pauses after each round of its loop that did work.
    pub pass_delay_us: u64,
    /// Microseconds that a worker without work lets pass before it looks at the kernel again, so
    /// that events come together; only then it sleeps there.
    pub no_io_wait_us: u64,
}

/// When workers and acceptors do nothing though they could, or look for work though there is none.
#[derive(Debug)]
pub(crate) struct ThrottleState {
    /// There is something to do before a worker sleeps: one of the next two is not zero.
    pub(crate) before_sleep: bool,
    pub(crate) spin_us: u64,
    pub(crate) no_io_wait_us: u64,
    pub(crate) pass_delay_us: u64,
    /// How many connections one request to the kernel may bring in.
    pub(crate) accept_room_max: usize,
    pub(crate) accept_delay_ms: u64,
    /// What all acceptors together may accept.
    pub(crate) accepts: Option<(Rate, SharedBucket)>,
}

impl ThrottleState {
    pub(crate) fn new(spin_us: u64, throttle: Throttle) -> Self {
        // Who accepts at a pace must not let the kernel go ahead.
        let is_paced = throttle.accepts_per_second > 0 || throttle.accept_delay_ms > 0;
        Self {
            before_sleep: spin_us > 0 || throttle.no_io_wait_us > 0,
            spin_us,
            no_io_wait_us: throttle.no_io_wait_us,
            pass_delay_us: throttle.pass_delay_us,
            accept_room_max: if is_paced { 1 } else { usize::MAX },
            accept_delay_ms: throttle.accept_delay_ms,
            accepts: Rate::steady(throttle.accepts_per_second, 1)
                .map(|rate| (rate, SharedBucket::default())),
        }
    }

    /// Returns whether acceptors wait between two connections.
    pub(crate) fn has_paced_accepts(&self) -> bool {
        self.accept_room_max == 1
    }

    /// Returns how long an acceptor rests after a connection. So each may be one ahead of the pace,
    /// and no accepted connection waits.
    pub(crate) fn rest_after_accept_ms(&self, now_ms: u64) -> u64 {
        let due_ms =
            self.accepts.as_ref().map_or(0, |(rate, bucket)| bucket.take(*rate, now_ms, 1));
        due_ms.saturating_sub(now_ms).max(self.accept_delay_ms)
    }
}
