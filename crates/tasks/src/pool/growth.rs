//! How many workers there ought to be: the rules, without threads or a clock.

use std::time::Duration;

/// When workers are added beside those of the start, and when they go again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Growth {
    /// Workers at most; where this is not more than the plan's workers, none are added.
    pub workers_max: usize,
    /// How long all places must have been taken, or all workers held, before one worker is added.
    pub grow_after: Duration,
    /// How often it is looked whether there are too many; zero: never.
    pub shrink_period: Duration,
    /// Whether the thread of a worker that is not needed stays, with its reactor, for
    /// when it is needed again.
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

/// What the workers have to do at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Workers that always stay.
    pub(crate) floor: usize,
    /// Workers there are.
    pub(crate) workers: usize,
    /// Open connections, and how many there is room for.
    pub(crate) open: usize,
    pub(crate) capacity: usize,
    /// Workers that do not come round.
    pub(crate) held: usize,
}

impl Load {
    /// How many workers may go now. One more stays than the connections fill or tasks hold, and
    /// only a sixth goes at a time, and one.
    pub(crate) fn surplus(self) -> usize {
        let Self { floor, workers, open, capacity, held } = self;
        let filled = open.saturating_mul(workers) / capacity.max(1);
        let wanted = filled.max(held).saturating_add(1).max(floor);
        workers.saturating_sub(wanted).min(1 + workers / 6)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const IDLE: Load = Load { floor: 2, workers: 24, open: 0, capacity: 240, held: 0 };

    #[test]
    fn a_sixth_and_one_go_at_a_time_until_the_floor_is_left() {
        let mut workers = 24;
        let mut steps = Vec::new();
        loop {
            let surplus = Load { workers, capacity: workers * 10, ..IDLE }.surplus();
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
        assert_eq!(Load { open: 199, ..IDLE }.surplus(), 4, "19 are filled");
        assert_eq!(Load { open: 230, ..IDLE }.surplus(), 0);
        assert_eq!(Load { open: 229, ..IDLE }.surplus(), 1);
        assert_eq!(Load { held: 21, ..IDLE }.surplus(), 2);
        assert_eq!(Load { held: 24, ..IDLE }.surplus(), 0);
        assert_eq!(Load { open: usize::MAX, capacity: 0, ..IDLE }.surplus(), 0);
    }
}
