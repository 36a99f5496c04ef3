//! The clock that everything on a worker goes by. Only what bounds a shutdown reads another.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Time as a worker sees it: read once a turn, so asking for it costs nothing.
///
/// Clones share their origin, so the milliseconds of all workers of one server compare.
#[derive(Debug, Clone)]
pub struct Clock {
    origin: Instant,
    now_ms: u64,
    unix_secs: u64,
}

impl Clock {
    /// Starts a clock whose milliseconds count from now.
    pub fn start() -> Self {
        Self { origin: Instant::now(), now_ms: 0, unix_secs: unix_secs() }
    }

    /// Milliseconds since [`Clock::start`], as of the last [`Clock::tick`].
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Seconds since 1 January 1970 UTC, as of the last [`Clock::tick`].
    pub fn unix_secs(&self) -> u64 {
        self.unix_secs
    }

    /// Reads the monotonic clock, and the calendar when a new half-second has begun.
    pub fn tick(&mut self) {
        let now_ms = self.read_ms();
        if now_ms / 500 != self.now_ms / 500 {
            self.unix_secs = unix_secs();
        }
        self.now_ms = now_ms;
    }

    /// Milliseconds since [`Clock::start`], read now.
    pub fn read_ms(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Microseconds since [`Clock::start`], read now: for spinning, which is shorter than a
    /// millisecond.
    pub fn read_us(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

fn unix_secs() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
