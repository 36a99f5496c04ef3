//! Values as the table of settings keeps them: whole numbers.

use std::time::Duration;

/// In milliseconds.
pub(super) const HOUR: u64 = 3_600_000;
/// In milliseconds.
pub(super) const DAY: u64 = 24 * HOUR;

/// A duration in whole milliseconds, at most half the range: adding two never wraps.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX >> 1)
}

/// In a smaller type, which the range of its setting is within.
pub(super) fn narrow<T: TryFrom<u64>>(number: u64) -> T {
    T::try_from(number).ok().expect("each range above is within its type")
}
