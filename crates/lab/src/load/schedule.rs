//! The schedule of an open loop: computed when needed, never stored as a list.
//!
//! All threads share one schedule; of `n` threads, each takes every `n`th request. Times are
//! nanoseconds since the run's origin.

use std::time::Duration;

use crate::plan::{LoadModel, LoadPlan};

/// Groups of overdue requests within a stretch.
const GROUPS_MAX: u64 = 10_000;

/// One due request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Due {
    pub(super) at: u64,
    /// The step of a ramp, from 0.
    pub(super) step: u16,
}

/// An interval with one rate.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    from: u64,
    until: u64,
    /// Nanoseconds between two requests of all threads.
    interval: f64,
    step: u16,
}

/// The due requests of one thread, in order.
#[derive(Clone, Debug)]
pub(super) struct RequestSchedule {
    stretches: Vec<Stretch>,
    threads: u32,
    thread: u32,
    stretch: usize,
    /// Requests of this thread that were taken from the current stretch.
    taken: u64,
}

impl RequestSchedule {
    /// Returns the schedule of a plan; `None` if nothing is ever due.
    ///
    /// - `go`: when the load begins; `from`: when measuring begins; `until`: the end.
    pub(super) fn of(plan: &LoadPlan, go: u64, from: u64, until: u64) -> Option<Self> {
        let mut stretches = Vec::new();
        let mut add = |from: u64, until: u64, rate_per_s: f64, step: u16| {
            let interval = 1e9 / rate_per_s;
            stretches.push(Stretch { from, until, interval, step });
        };
        match &plan.load {
            LoadModel::Closed | LoadModel::Hold { rate_per_s: None, .. } => return None,
            LoadModel::Open { rate_per_s }
            | LoadModel::Hold { rate_per_s: Some(rate_per_s), .. } => {
                add(go, from, *rate_per_s, 0);
                add(from, until, *rate_per_s, 0);
            }
            LoadModel::Ramp { stages } => {
                add(go, from, stages.first()?.rate_per_s, 0);
                let mut begin = from;
                for (index, stage) in (0..).zip(stages) {
                    let end = begin.saturating_add(nanos(stage.length));
                    add(begin, end.min(until), stage.rate_per_s, index);
                    begin = end;
                }
            }
        }
        Some(Self { stretches, threads: 1, thread: 0, stretch: 0, taken: 0 })
    }

    /// Returns one thread's part of it.
    pub(super) fn part(mut self, thread: u32, threads: u32) -> Self {
        (self.thread, self.threads) = (thread, threads);
        self
    }

    /// Returns the next request without taking it; `None` if all were taken.
    pub(super) fn peek(&mut self) -> Option<Due> {
        loop {
            let stretch = *self.stretches.get(self.stretch)?;
            let at = self.due_at(stretch, self.taken);
            if at < stretch.until {
                return Some(Due { at, step: stretch.step });
            }
            self.stretch += 1;
            self.taken = 0;
        }
    }

    /// Takes the request that [`RequestSchedule::peek`] returned.
    pub(super) fn take(&mut self) {
        self.taken += 1;
    }

    /// Returns the requests of this thread that are due by `now` and were not taken, in groups:
    /// when the last of a group was due, and how many it has. Long groups keep the list short.
    pub(super) fn overdue(&self, now: u64) -> Vec<(u64, u64)> {
        let mut left = self.clone();
        let mut groups = Vec::new();
        while let Some(due) = left.peek()
            && due.at <= now
        {
            let stretch = left.stretches[left.stretch];
            let end = stretch.until.min(now + 1);
            // Those of all threads before `end` in this stretch, then this thread's share.
            let all = below(end - stretch.from, stretch.interval);
            let own = (all + u64::from(left.threads - 1 - left.thread)) / u64::from(left.threads);
            let own = own.max(left.taken + 1);
            let most = (own - left.taken).div_ceil(GROUPS_MAX);
            while left.taken < own {
                let count = most.min(own - left.taken);
                left.taken += count;
                groups.push((left.due_at(stretch, left.taken - 1), count));
            }
        }
        groups
    }

    /// When a request of this thread is due in a stretch.
    fn due_at(&self, stretch: Stretch, number: u64) -> u64 {
        let number = number * u64::from(self.threads) + u64::from(self.thread);
        stretch.from + offset(number, stretch.interval)
    }

    /// Counts the requests of a step on all threads.
    pub(super) fn of_step(&self, step: u16) -> u64 {
        let measured = self.stretches.iter().skip(1).filter(|stretch| stretch.step == step);
        measured
            .map(|stretch| below(stretch.until.saturating_sub(stretch.from), stretch.interval))
            .sum()
    }
}

impl LoadPlan {
    /// Counts the requests that are due within so much measured time; `None` without a rate.
    pub(super) fn due_within(&self, duration_s: f64) -> Option<u64> {
        let end = nanos(Duration::try_from_secs_f64(duration_s).unwrap_or_default());
        let schedule = RequestSchedule::of(self, 0, 0, end)?;
        let count = |of: &Stretch| below(of.until.saturating_sub(of.from), of.interval);
        Some(schedule.stretches.iter().map(count).sum())
    }

    /// The begin and end of a ramp's stage, in nanoseconds since measuring began.
    pub(super) fn stage_span(&self, index: u16) -> Option<(u64, u64)> {
        let LoadModel::Ramp { stages } = &self.load else { return None };
        let mut begin = 0_u64;
        for (at, stage) in (0..).zip(stages) {
            let end = begin.saturating_add(nanos(stage.length));
            if at == index {
                return Some((begin, end));
            }
            begin = end;
        }
        None
    }

    /// The length of all stages of a ramp, in nanoseconds.
    pub(super) fn ramp_length(&self) -> Option<u64> {
        let LoadModel::Ramp { stages } = &self.load else { return None };
        let sum = stages.iter().map(|stage| nanos(stage.length));
        Some(sum.fold(0, u64::saturating_add))
    }
}

/// Nanoseconds of a duration, saturating after centuries.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX >> 1)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "numbers of requests and nanoseconds of a run stay far below 2^53"
)]
fn offset(number: u64, interval: f64) -> u64 {
    (number as f64 * interval) as u64
}

/// Counts the offsets below `length`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "as above"
)]
fn below(length: u64, interval: f64) -> u64 {
    (length as f64 / interval).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::RequestSchedule;
    use crate::plan::{LoadModel, LoadPlan};
    use std::time::Duration;

    const SECOND: u64 = 1_000_000_000;

    fn all(schedule: &mut RequestSchedule) -> Vec<u64> {
        let mut found = Vec::new();
        while let Some(due) = schedule.peek() {
            found.push(due.at);
            schedule.take();
        }
        found
    }

    #[test]
    fn threads_share_one_even_schedule() {
        let load = LoadModel::Open { rate_per_s: 100.0 };
        let plan = LoadPlan { load, ..LoadPlan::closed("http://a/", 1) };
        let whole = RequestSchedule::of(&plan, 0, 0, SECOND).expect("there is a rate");
        let mut together: Vec<u64> =
            (0..3).flat_map(|thread| all(&mut whole.clone().part(thread, 3))).collect();
        together.sort_unstable();
        let want: Vec<u64> = (0..100).map(|number| number * SECOND / 100).collect();
        assert_eq!(together, want);
    }

    #[test]
    fn many_that_are_overdue_are_in_few_groups() {
        let load = LoadModel::Open { rate_per_s: 100_000.0 };
        let plan = LoadPlan { load, ..LoadPlan::closed("http://a/", 1) };
        let all = RequestSchedule::of(&plan, 0, 0, SECOND).expect("there is a rate");
        let groups = all.overdue(2 * SECOND);
        assert_eq!(groups.len(), 10_000);
        assert_eq!(groups.iter().map(|(_, count)| count).sum::<u64>(), 100_000);
        assert_eq!((groups[0], groups[9_999].0), ((90_000, 10), SECOND - 10_000));
    }

    #[test]
    fn what_is_overdue_is_counted_without_a_list() {
        let step = Duration::from_secs(1);
        let load = LoadModel::rising((10.0, 30.0), 3, step);
        let plan = LoadPlan { load, ..LoadPlan::closed("http://a/", 1) };
        let whole = RequestSchedule::of(&plan, 0, SECOND, 4 * SECOND).expect("there is a rate");
        for now in [0, 1, SECOND / 2, SECOND, SECOND * 2 + 1, SECOND * 7 / 2, SECOND * 9] {
            for thread in 0..3 {
                let mut part = whole.clone().part(thread, 3);
                let overdue = part.overdue(now);
                let mut listed = all(&mut part);
                listed.retain(|at| *at <= now);
                let each: Vec<_> = listed.into_iter().map(|at| (at, 1)).collect();
                assert_eq!(overdue, each, "{now} {thread}");
            }
        }
        assert_eq!([0, 1, 2].map(|step| whole.of_step(step)), [10, 20, 30]);
    }
}
