//! The wheel against an ordered set: whatever is armed, cancelled and awaited, both agree.

use std::collections::BTreeSet;

use gustnado_reactor::{TimerKey, Wheel};
use proptest::prelude::*;

/// What can be done with timers.
#[derive(Debug, Clone)]
enum Step {
    /// Arms one for so many milliseconds from now, or before now.
    Arm(i64),
    /// Cancels the nth of all that were ever armed.
    Cancel(usize),
    /// Lets time pass.
    Pass(u64),
    /// Lets time pass until the wheel says that it should be looked at.
    PassToNext,
}

/// Distances of every size: near ones, those around the edges of slots, and far ones.
fn distance() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0_u64..200,
        2 => (0_u32..8, 0_u64..3).prop_map(|(level, off)| (1_u64 << (6 * level)) + off - 1),
        2 => 0_u64..100_000,
        1 => 0_u64..1 << 38,
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => distance().prop_map(|ms| Step::Arm(i64::try_from(ms).expect("38 bits are few"))),
        1 => (1_i64..10_000).prop_map(|ms| Step::Arm(-ms)),
        2 => any::<prop::sample::Index>().prop_map(|at| Step::Cancel(at.index(1 << 16))),
        3 => distance().prop_map(Step::Pass),
        2 => Just(Step::PassToNext),
    ]
}

/// The wheel, and what it should be.
#[derive(Default)]
struct Pair {
    wheel: Wheel,
    /// Deadline and number of each armed timer.
    armed: BTreeSet<(u64, u64)>,
    keys: Vec<(TimerKey, u64)>,
    now_ms: u64,
}

impl Pair {
    fn take(&mut self, step: &Step) {
        match *step {
            Step::Arm(from_now) => {
                let deadline_ms = self.now_ms.saturating_add_signed(from_now);
                let number = self.keys.len() as u64;
                self.keys.push((self.wheel.arm(deadline_ms, number), deadline_ms));
                self.armed.insert((deadline_ms, number));
            }
            Step::Cancel(_) if self.keys.is_empty() => {}
            Step::Cancel(at) => {
                let at = at % self.keys.len();
                let (key, deadline_ms) = self.keys[at];
                let was_armed = self.armed.remove(&(deadline_ms, at as u64));
                assert_eq!(self.wheel.cancel(key), was_armed);
            }
            Step::Pass(millis) => self.pass_to(self.now_ms + millis),
            Step::PassToNext => {
                if let Some(next_ms) = self.wheel.next_ms() {
                    self.pass_to(next_ms.max(self.now_ms));
                }
            }
        }
        self.agree();
    }

    fn pass_to(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        let mut fired = Vec::new();
        self.wheel.expire(now_ms, |number| fired.push(number));
        let later = self.armed.split_off(&(now_ms + 1, 0));
        let due = std::mem::replace(&mut self.armed, later);
        let mut wanted: Vec<u64> = due.into_iter().map(|(_, number)| number).collect();
        wanted.sort_unstable();
        fired.sort_unstable();
        assert_eq!(fired, wanted, "at {now_ms}");
    }

    fn agree(&self) {
        assert_eq!(self.wheel.armed(), self.armed.len());
        let first_ms = self.armed.first().map(|(deadline_ms, _)| *deadline_ms);
        match (self.wheel.next_ms(), first_ms) {
            (Some(next_ms), Some(first_ms)) => {
                assert!(next_ms <= first_ms.max(self.now_ms), "{next_ms} is too late");
            }
            (next_ms, first_ms) => assert_eq!(next_ms.is_some(), first_ms.is_some()),
        }
    }
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_wheel_agrees_with_an_ordered_set(steps in prop::collection::vec(step(), 1..120)) {
        let mut pair = Pair::default();
        for step in &steps {
            pair.take(step);
        }
        // In the end everything fires, in a bounded number of looks.
        let mut looks = 0;
        while pair.wheel.next_ms().is_some() {
            pair.take(&Step::PassToNext);
            looks += 1;
            prop_assert!(looks < 10_000, "it never ends");
        }
    }
}
