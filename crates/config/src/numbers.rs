//! Values as the table of settings keeps them: whole numbers.

use std::time::Duration;

/// In milliseconds.
pub(super) const HOUR: u64 = 3_600_000;
/// In milliseconds.
pub(super) const DAY: u64 = 24 * HOUR;

/// Returns a duration in whole milliseconds, at most half the range: adding two never wraps.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX >> 1)
}

/// Returns the number of a setting in the type of its field.
pub(super) fn narrow<T: TryFrom<u64>>(number: u64) -> T {
    T::try_from(number).ok().expect("each range in the table is within its field's type")
}

/// Returns the number of a field as the table has it.
pub(super) fn wide<T: TryInto<u64>>(number: T) -> u64 {
    number.try_into().ok().expect("no field is wider than 64 bits, or has a sign")
}
