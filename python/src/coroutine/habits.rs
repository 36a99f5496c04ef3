//! Records by path whether an application does work after its last `send`. Usually it does none,
//! and a pause is wasted.
//!
//! A pause costs a tenth of the smallest request. So a path that has often shown no work after the
//! response is paused no longer. If work shows up later, the path is paused again for a long time.

use std::hash::{DefaultHasher, Hasher};
use std::time::{Duration, Instant};

/// Remembered paths. Another path may replace one.
const PLACES: usize = 256;
/// Steps in a row that must end at once before pauses are skipped.
const QUICK_MIN: i32 = 16;
/// Minimum number of pauses after a step that went on.
const CAUTION: i32 = 10_000;
/// A step that takes longer delays its client.
const LONG: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Default)]
struct Habit {
    hash: u64,
    /// Steps in a row that ended at once; negative after one that did not.
    quick: i32,
}

/// The habits of known paths.
pub(super) struct Habits(Vec<Habit>);

/// Work after a response, and when it began.
#[derive(Clone, Copy)]
pub(super) struct Behind {
    hash: u64,
    since: Instant,
}

impl Habits {
    pub(super) fn new() -> Self {
        Self(vec![Habit::default(); PLACES])
    }

    fn place(&mut self, hash: u64) -> &mut Habit {
        let at = usize::try_from(hash % PLACES as u64).expect("there are few places");
        &mut self.0[at]
    }

    /// Notes a response to a request for this path. Also returns whether the step should pause.
    pub(super) fn note_response(&mut self, path: &[u8]) -> (Behind, bool) {
        let mut hasher = DefaultHasher::new();
        hasher.write(path);
        let hash = hasher.finish();
        let habit = self.place(hash);
        if habit.hash != hash {
            *habit = Habit { hash, quick: 0 };
        }
        let pauses = habit.quick < QUICK_MIN;
        (Behind { hash, since: Instant::now() }, pauses)
    }

    /// Notes the end of the step after a response.
    pub(super) fn note(&mut self, behind: Behind) {
        let habit = self.place(behind.hash);
        if habit.hash != behind.hash {
            return;
        }
        habit.quick = match behind.since.elapsed() {
            took if took >= LONG => -CAUTION,
            _ => (habit.quick + 1).min(QUICK_MIN),
        };
    }
}

impl Behind {
    /// Restarts the time after a pause.
    pub(super) fn again(self) -> Self {
        Self { since: Instant::now(), ..self }
    }
}
