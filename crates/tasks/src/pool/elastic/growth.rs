//! Rules for the number of workers, without threads or a clock.

use std::time::Duration;

/// When workers are added to those of the start, and when they are retired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Growth {
    /// Workers at most; where this is not more than the plan's workers, none are added.
    pub workers_max: usize,
    /// How long all slots have to be taken, or all workers held, before one worker is added.
    pub grow_after: Duration,
    /// The time between two checks for idle workers; zero: none is retired.
    pub shrink_period: Duration,
    /// Whether the thread of a retired worker is parked for reuse, with its reactor.
    pub cache_workers: bool,
}

impl Default for Growth {
    /// No worker is added.
    fn default() -> Self {
        Self {
            workers_max: 0,
            grow_after: Duration::from_millis(5),
            shrink_period: Duration::from_secs(10),
            cache_workers: true,
        }
    }
}

/// The work of all workers at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Utilization {
    /// Workers that always stay.
    pub(super) floor: usize,
    /// Workers there are.
    pub(super) workers: usize,
    /// Open connections, and how many there is room for.
    pub(super) open: usize,
    pub(super) capacity: usize,
    /// Workers that a task holds.
    pub(super) held: usize,
}

impl Growth {
    /// [`Growth::grow_after`] in milliseconds, at least one.
    pub(super) fn grow_after_ms(&self) -> u64 {
        millis(self.grow_after)
    }

    /// [`Growth::shrink_period`] in milliseconds; `None`: no worker is retired.
    pub(super) fn shrink_period_ms(&self) -> Option<u64> {
        (!self.shrink_period.is_zero()).then(|| millis(self.shrink_period))
    }
}

/// At least one: a timer of zero would make the autoscaler spin.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).max(1)
}

impl Utilization {
    /// Returns how many workers may be retired now.
    pub(super) fn surplus(self) -> usize {
        let Self { floor, workers, open, capacity, held } = self;
        let filled = open.saturating_mul(workers) / capacity.max(1);
        // One to spare, so that the next connection does not wait for a thread to start.
        let wanted = filled.max(held).saturating_add(1).max(floor);
        // A sixth at a time: load that comes in waves should find most of the workers still there.
        workers.saturating_sub(wanted).min(1 + workers / 6)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const IDLE: Utilization =
        Utilization { floor: 2, workers: 24, open: 0, capacity: 240, held: 0 };

    #[test]
    fn a_sixth_and_one_go_at_a_time_until_the_floor_is_left() {
        let mut workers = 24;
        let mut steps = Vec::new();
        loop {
            let surplus = Utilization { workers, capacity: workers * 10, ..IDLE }.surplus();
            if surplus == 0 {
                break;
            }
            workers -= surplus;
            steps.push(surplus);
        }
        assert_eq!(steps, [5, 4, 3, 3, 2, 2, 1, 1, 1]);
        assert_eq!(workers, 2);
    }

    #[test]
    fn as_many_stay_as_are_filled_or_held_and_one() {
        assert_eq!(Utilization { open: 199, ..IDLE }.surplus(), 4, "19 are filled");
        assert_eq!(Utilization { open: 230, ..IDLE }.surplus(), 0);
        assert_eq!(Utilization { open: 229, ..IDLE }.surplus(), 1);
        assert_eq!(Utilization { held: 21, ..IDLE }.surplus(), 2);
        assert_eq!(Utilization { held: 24, ..IDLE }.surplus(), 0);
        assert_eq!(Utilization { open: usize::MAX, capacity: 0, ..IDLE }.surplus(), 0);
    }
}
