//! Token buckets: so much per second, and so much at once. Pure arithmetic; time is an argument.
//!
//! A bucket is one number: the moment at which it will be full again. To take something moves that
//! moment on, and tells when what was taken may be used. So whoever comes first is served first,
//! being late loses nothing that the bucket can hold, and several threads may share a bucket
//! without a lock.
//!
//! From the beginning to any moment, never more is given than the burst and what the rate has
//! earned since. The same is true of every window of time but for one portion: one that was taken
//! before the window, and is used in it because its taker was late.

use crate::sync::atomic::{AtomicU64, Ordering};

const SECOND_NS: u128 = 1_000_000_000;
const MS_NS: u64 = 1_000_000;
/// Who waits by a timer asks for a tenth of a second's worth at a time...
const STEPS_PER_SECOND: u64 = 10;
/// ...and so a bucket that holds a quarter of a second's worth bears timers that are late.
const USUAL_BURSTS_PER_SECOND: u64 = 4;
/// A bucket that holds less than a twentieth would lose what it cannot hold to late timers.
const BURSTS_PER_SECOND_MAX: u64 = 20;

/// A rate: how much per second, and how much at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    per_second: u64,
    burst: u64,
}

impl Rate {
    /// - `per_second`: in the long run; 0 is no rate.
    /// - `burst`: how much may be taken at once after a pause; at least 1.
    pub fn new(per_second: u64, burst: u64) -> Option<Self> {
        (per_second > 0).then_some(Self { per_second, burst: burst.max(1) })
    }

    /// A rate at which the taker waits for a timer whenever there is nothing to take.
    ///
    /// - `burst`: as above; 0 is a quarter of a second's worth. Less than a twentieth of a second's
    ///   worth is raised to that: timers are late by milliseconds, which would be lost.
    pub fn steady(per_second: u64, burst: u64) -> Option<Self> {
        let wanted = if burst == 0 { per_second / USUAL_BURSTS_PER_SECOND } else { burst };
        Self::new(per_second, wanted.max(per_second / BURSTS_PER_SECOND_MAX).max(2))
    }

    /// Returns how long it takes to earn so much, rounded up: then never too much is given.
    fn earned_in_ns(self, amount: u64) -> u64 {
        let ns = (u128::from(amount) * SECOND_NS).div_ceil(u128::from(self.per_second));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// Returns what is in a bucket.
    fn level(self, full_at_ns: u64, now_ns: u64) -> u64 {
        let missing_ns = u128::from(full_at_ns.saturating_sub(now_ns));
        let missing = (missing_ns * u128::from(self.per_second)).div_ceil(SECOND_NS);
        self.burst.saturating_sub(u64::try_from(missing).unwrap_or(u64::MAX))
    }

    /// Returns when a bucket will be full after something was taken, and when that may be used.
    fn take(self, full_at_ns: u64, now_ns: u64, amount: u64) -> (u64, u64) {
        let full_at_ns = full_at_ns.max(now_ns).saturating_add(self.earned_in_ns(amount));
        (full_at_ns, full_at_ns.saturating_sub(self.earned_in_ns(self.burst)).max(now_ns))
    }

    /// Returns how much of `wanted` it is best to take: all that is there, or else a step.
    fn portion(self, full_at_ns: u64, now_ns: u64, wanted: u64) -> u64 {
        let step = (self.per_second / STEPS_PER_SECOND).min(self.burst / 2).max(1);
        wanted.min(self.level(full_at_ns, now_ns).max(step))
    }
}

/// A bucket of one owner, full at first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bucket {
    full_at_ns: u64,
}

impl Bucket {
    /// Returns how much of `wanted`, which is at least 1, it is best to take now: never 0.
    pub fn portion(&self, rate: Rate, now_ms: u64, wanted: u64) -> u64 {
        rate.portion(self.full_at_ns, now_ms.saturating_mul(MS_NS), wanted)
    }

    /// Takes so much, and says when it may be used: now, or later. What is more than the burst is
    /// a debt that has been paid by then.
    pub fn take(&mut self, rate: Rate, now_ms: u64, amount: u64) -> u64 {
        let (full_at_ns, at_ns) = rate.take(self.full_at_ns, now_ms.saturating_mul(MS_NS), amount);
        self.full_at_ns = full_at_ns;
        at_ns.div_ceil(MS_NS)
    }
}

/// A bucket that several threads share, full at first.
#[derive(Debug, Default)]
pub struct SharedBucket(AtomicU64);

// The number stands for nothing but itself, so no ordering with other memory is needed.
impl SharedBucket {
    /// [`Bucket::portion`]
    pub fn portion(&self, rate: Rate, now_ms: u64, wanted: u64) -> u64 {
        rate.portion(self.0.load(Ordering::Relaxed), now_ms.saturating_mul(MS_NS), wanted)
    }

    /// [`Bucket::take`]
    pub fn take(&self, rate: Rate, now_ms: u64, amount: u64) -> u64 {
        let take = |full_at_ns| rate.take(full_at_ns, now_ms.saturating_mul(MS_NS), amount);
        let taken = self.update(|full_at_ns| Some(take(full_at_ns).0));
        let (_, at_ns) = take(taken.unwrap_or_else(|full_at_ns| full_at_ns));
        at_ns.div_ceil(MS_NS)
    }

    /// Takes so much if it may be used now. The error takes nothing, and is in how many
    /// milliseconds that would be so.
    pub fn try_take(&self, rate: Rate, now_ms: u64, amount: u64) -> Result<(), u64> {
        let moment_ns = now_ms.saturating_mul(MS_NS);
        let take = |full_at_ns| rate.take(full_at_ns, moment_ns, amount);
        let taken = self.update(|full_at_ns| {
            let (next, at_ns) = take(full_at_ns);
            (at_ns <= moment_ns).then_some(next)
        });
        taken.map(drop).map_err(|full_at_ns| (take(full_at_ns).1 - moment_ns).div_ceil(MS_NS))
    }

    /// Returns whether nothing is missing in it.
    pub fn is_full(&self, now_ms: u64) -> bool {
        self.0.load(Ordering::Relaxed) <= now_ms.saturating_mul(MS_NS)
    }

    /// Moves the bucket on by `next`, or leaves it where that is `None`, which is an error. Returns
    /// what was found either way.
    fn update(&self, next: impl FnMut(u64) -> Option<u64>) -> Result<u64, u64> {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_full_bucket_gives_its_burst_at_once_and_then_the_rate() {
        let rate = Rate::new(1_000, 500).expect("a rate");
        let mut bucket = Bucket::default();
        assert_eq!(bucket.take(rate, 7_000, 500), 7_000);
        assert_eq!(bucket.portion(rate, 7_000, 10_000), 100, "a tenth of a second's worth");
        assert_eq!(bucket.take(rate, 7_000, 100), 7_100);
        assert_eq!(bucket.take(rate, 7_000, 100), 7_200);
        // 300 have been earned since then, which can be had at once.
        assert_eq!(bucket.portion(rate, 7_500, 10_000), 300);
        assert_eq!(bucket.take(rate, 7_500, 300), 7_500);
        assert_eq!(bucket.portion(rate, 60_000, 10_000), 500, "and never more than the burst");
    }

    #[test]
    fn what_is_refused_takes_nothing_and_says_when() {
        let rate = Rate::new(2, 2).expect("a rate");
        let bucket = SharedBucket::default();
        assert_eq!(bucket.try_take(rate, 0, 1), Ok(()));
        assert_eq!(bucket.try_take(rate, 0, 1), Ok(()));
        for _ in 0..3 {
            assert_eq!(bucket.try_take(rate, 0, 1), Err(500));
        }
        assert_eq!(bucket.try_take(rate, 499, 1), Err(1));
        assert_eq!(bucket.try_take(rate, 500, 1), Ok(()));
        assert!(!bucket.is_full(1_499) && bucket.is_full(1_500));
    }

    #[test]
    fn a_rate_of_nothing_is_none_and_a_tiny_burst_is_raised_for_timers() {
        assert_eq!(Rate::new(0, 5), None);
        assert_eq!(Rate::steady(8_192, 0).expect("a rate").burst, 2_048);
        assert_eq!(Rate::steady(8_192, 1).expect("a rate").burst, 409);
        assert_eq!(Rate::steady(1, 0).expect("a rate").burst, 2);
    }

    #[test]
    fn the_largest_numbers_overflow_nothing() {
        for rate in [Rate::new(1, u64::MAX), Rate::new(u64::MAX, 1), Rate::new(1, 1)] {
            let rate = rate.expect("a rate");
            let (mut own, shared) = (Bucket::default(), SharedBucket::default());
            for now_ms in [0, 1, u64::MAX / 2, u64::MAX] {
                assert!(own.portion(rate, now_ms, u64::MAX) > 0);
                own.take(rate, now_ms, u64::MAX);
                shared.take(rate, now_ms, u64::MAX);
                let _ = shared.try_take(rate, now_ms, 1);
            }
        }
    }

    #[test]
    fn threads_share_a_rate() {
        let rate = Rate::new(1_000, 10).expect("a rate");
        let bucket = SharedBucket::default();
        let mut times: Vec<u64> = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..4)
                .map(|_| {
                    let take = || (0..1_000).map(|_| bucket.take(rate, 0, 1)).collect::<Vec<_>>();
                    scope.spawn(take)
                })
                .collect();
            takers.into_iter().flat_map(|taker| taker.join().expect("no panic")).collect()
        });
        times.sort_unstable();
        let due: Vec<u64> = (0..4_000_u64).map(|place| place.saturating_sub(9)).collect();
        assert_eq!(times, due, "ten at once, and then one a millisecond");
    }

    /// A taker that always wants more, and comes late by some milliseconds each time. Returns when
    /// it used how much.
    fn greedy(rate: Rate, late_ms: &[u64], until_ms: u64) -> Vec<(u64, u64)> {
        let (mut bucket, mut now_ms, mut used) = (Bucket::default(), 1_000, Vec::new());
        let mut late_ms = late_ms.iter().cycle();
        while now_ms < until_ms {
            let amount = bucket.portion(rate, now_ms, 1 << 20);
            let at_ms = bucket.take(rate, now_ms, amount);
            if at_ms > now_ms {
                now_ms = at_ms + late_ms.next().expect("a cycle has no end");
            }
            used.push((now_ms, amount));
        }
        used
    }

    proptest! {
        #[test]
        fn never_more_than_the_rate_and_the_burst_in_any_window(
            per_second in 1_u64..100_000_000,
            burst in 1_u64..10_000_000,
            late_ms in prop::collection::vec(0_u64..40, 1..20),
        ) {
            let rate = Rate::new(per_second, burst).expect("a rate");
            let used = greedy(rate, &late_ms, 3_000);
            for from in 0..used.len().min(40) {
                let mut sum = 0_u128;
                for (at_ms, amount) in &used[from..] {
                    sum += u128::from(*amount);
                    let ms = u128::from(at_ms - used[from].0);
                    // A window that begins between two milliseconds is up to one longer.
                    let earned = u128::from(per_second) * (ms + 1) / 1_000;
                    let late = if from == 0 { 0 } else { u128::from(used[from].1) };
                    let most = earned + u128::from(burst) + late + 1;
                    prop_assert!(sum <= most, "{sum} in {ms} ms, which is more than {most}");
                }
            }
        }

        #[test]
        fn never_less_in_the_long_run_though_timers_are_late(
            per_second in 10_u64..100_000_000,
            late_ms in prop::collection::vec(0_u64..20, 1..20),
        ) {
            let rate = Rate::steady(per_second, 0).expect("a rate");
            let used = greedy(rate, &late_ms, 61_000);
            let sum: u128 = used.iter().map(|(_, amount)| u128::from(*amount)).sum();
            // The last step may just have been missed.
            let due = u128::from(per_second) * 60 - u128::from(per_second / 4).max(2);
            prop_assert!(sum >= due, "{sum} of {due}");
        }

        #[test]
        fn what_is_charged_afterwards_is_paid_before_the_next(
            per_second in 1_u64..1_000_000,
            amounts in prop::collection::vec(1_u64..40_000, 1..50),
        ) {
            let rate = Rate::steady(per_second, 0).expect("a rate");
            let (mut bucket, mut now_ms, mut sum) = (Bucket::default(), 0, 0_u64);
            for amount in amounts {
                now_ms = bucket.take(rate, now_ms, amount);
                sum += amount;
                let earned = u128::from(per_second) * u128::from(now_ms) / 1_000;
                prop_assert!(u128::from(sum) <= earned + u128::from(rate.burst) + 1);
            }
        }
    }
}
