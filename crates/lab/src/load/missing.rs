//! Requests of an open loop without a response at the end: the time that they have waited is in the
//! latencies, or a stall that does not end would be in none.

use super::coordinator::Coordinator;
use super::pending::SendPermit;

impl Coordinator {
    /// Records how long a request has waited that had no response by the end.
    pub(super) fn record_unanswered(&mut self, permit: &SendPermit, now: u64) {
        if let Some(due) = permit.due.filter(|_| permit.counted) {
            self.counts.record_missing(now.saturating_sub(due.at), 1);
        }
    }

    /// Records how long requests have waited that were due by the end and never sent. Returns their
    /// number.
    pub(super) fn record_unsent(&mut self, now: u64) -> u64 {
        let (Some(times), Some(schedule)) = (self.times, &self.schedule) else { return 0 };
        let end = now.min(times.until);
        let mut unsent = 0;
        for (at, count) in schedule.overdue(end).into_iter().filter(|(at, _)| *at >= times.from) {
            let count = count.min(self.budget - unsent);
            if count == 0 {
                break;
            }
            self.counts.record_missing(end.saturating_sub(at), count);
            unsent += count;
        }
        unsent
    }
}
