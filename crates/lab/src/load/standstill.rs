//! Standstills: intervals in which no request of any connection ended, although each one waited,
//! because the whole server stood still.

/// Shortest standstill, in nanoseconds.
const LEAST: u64 = 100_000_000;
/// Standstills that are kept at most; a run of hours may have nothing else.
const KEPT_MAX: usize = 10_000;
/// Once the server resumes, all waiting requests end within this part of the standstill's length,
/// plus this for each.
const AFTER: u64 = 10;
const AFTER_EACH: u64 = 50_000;

/// Begin and end, in nanoseconds since the run's origin.
pub(super) type Interval = (u64, u64);

/// An interval in which no request has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standstill {
    pub(super) from: u64,
    pub(super) to: u64,
    /// Average time that the waiting requests had been under way at its begin.
    pub(super) lag: u64,
}

/// The standstills of one thread.
#[derive(Debug, Default)]
pub(super) struct Standstills {
    pub(super) noted: Vec<Standstill>,
    /// A standstill that is over, if all requests that waited through it end soon.
    open: Option<OpenStandstill>,
}

#[derive(Debug)]
struct OpenStandstill {
    span: Interval,
    /// Requests that waited through it: all, those without a response so far, and their lags.
    all: u64,
    waiting: u64,
    lags: u64,
    until: u64,
}

impl Standstills {
    /// Notes the end of a request.
    ///
    /// - `since`: when the one before it ended.
    /// - `sent`: when it was sent; `under_way`: all that were, itself included.
    #[inline]
    pub(super) fn ended(&mut self, (since, now): Interval, sent: u64, under_way: u64) {
        if self.open.is_some() || now.saturating_sub(since) >= LEAST {
            self.settle((since, now), sent, under_way);
        }
    }

    #[cold]
    fn settle(&mut self, (since, now): Interval, sent: u64, under_way: u64) {
        if self.open.as_ref().is_some_and(|open| now > open.until) {
            self.open = None;
        }
        if self.open.is_none() && now.saturating_sub(since) >= LEAST {
            let until = now + (now - since) / AFTER + AFTER_EACH * under_way;
            let (span, all) = ((since, now), under_way.max(1));
            self.open = Some(OpenStandstill { span, all, waiting: all, lags: 0, until });
        }
        let Some(open) = &mut self.open else { return };
        if sent > open.span.1 {
            return;
        }
        open.waiting -= 1;
        open.lags += open.span.0.saturating_sub(sent);
        if open.waiting == 0 {
            let ((from, to), lag) = (open.span, open.lags / open.all);
            self.open = None;
            note(&mut self.noted, Standstill { from, to, lag });
        }
    }

    /// Notes the standstill that the end of the run has cut.
    pub(super) fn cut(&mut self, (from, to): Interval) {
        note(&mut self.noted, Standstill { from, to, lag: 0 });
    }
}

/// Keeps an interval if it is long enough.
fn note(noted: &mut Vec<Standstill>, standstill: Standstill) {
    if standstill.to.saturating_sub(standstill.from) >= LEAST && noted.len() < KEPT_MAX {
        noted.push(standstill);
    }
}

/// Returns the overlap of two threads' standstills, each in order.
pub(super) fn common(one: &[Standstill], other: &[Standstill]) -> Vec<Standstill> {
    let mut found = Vec::new();
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    while let (Some(a), Some(b)) = (one.peek(), other.peek()) {
        let (from, to) = (a.from.max(b.from), a.to.min(b.to));
        note(&mut found, Standstill { from, to, lag: a.lag.max(b.lag) });
        let earlier = if a.to <= b.to { &mut one } else { &mut other };
        earlier.next();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{LEAST, Standstill, Standstills, common, note};

    const MS: u64 = 1_000_000;

    #[test]
    fn what_is_short_is_no_standstill() {
        let mut noted = Vec::new();
        note(&mut noted, Standstill { from: 0, to: LEAST - 1, lag: 0 });
        let long = Standstill { from: 5, to: 5 + LEAST, lag: 0 };
        note(&mut noted, long);
        note(&mut noted, Standstill { from: 9, to: 3, lag: 0 });
        assert_eq!(noted, [long]);
    }

    /// Takes the ends of requests, each with its time and when the request was sent, in
    /// milliseconds. Returns begin, end and lag of each standstill.
    fn noted(ends: &[(u64, u64)], connections: u64) -> Vec<(u64, u64, u64)> {
        let (mut all, mut last) = (Standstills::default(), 0);
        for (now, sent) in ends {
            all.ended((last * MS, now * MS), sent * MS, connections);
            last = *now;
        }
        all.noted.iter().map(|one| (one.from / MS, one.to / MS, one.lag / MS)).collect()
    }

    #[test]
    fn a_server_that_goes_on_answers_all_that_waited() {
        // Three connections wait from 10 ms on, and all end at 210 ms.
        let ends = [(8, 7), (9, 8), (10, 9), (210, 8), (211, 9), (212, 10), (213, 210)];
        assert_eq!(noted(&ends, 3), [(10, 210, 1)]);
        assert_eq!(noted(&[(150, 0), (151, 150)], 1), [(0, 150, 0)], "one alone is all there are");
    }

    #[test]
    fn answers_that_are_slow_at_once_end_as_they_began_or_were_sent_long_before() {
        // Three take 150 ms each, from 0, 10 and 20 ms on: nothing ends between 20 and 150 ms.
        let ends = [(10, 9), (20, 19), (150, 0), (160, 10), (170, 20), (171, 170)];
        assert_eq!(noted(&ends, 3), []);
        let again = [(10, 9), (150, 0), (160, 10), (360, 159), (361, 160), (362, 160)];
        assert_eq!(noted(&again, 3), [(160, 360, 0)], "one that is none hides no other");
        // From 0, 9 and 18 ms on, with many quick ones on the others before.
        let near = [(9, 8), (18, 17), (318, 0), (327, 9), (336, 18), (337, 336)];
        assert_eq!(noted(&near, 3), [(18, 318, 9)], "their lag tells them apart");
    }

    #[test]
    fn threads_stand_still_together_where_their_times_overlap_for_long_enough() {
        let of = |tenths: &[(u64, u64)]| -> Vec<_> {
            let standstill = |(from, to): &(u64, u64)| (from * LEAST, to * LEAST);
            tenths
                .iter()
                .map(standstill)
                .map(|(from, to)| Standstill { from, to, lag: 0 })
                .collect()
        };
        let both = common(&of(&[(0, 4), (6, 9), (20, 30)]), &of(&[(2, 7), (8, 12), (21, 22)]));
        assert_eq!(both, of(&[(2, 4), (6, 7), (8, 9), (21, 22)]));
        assert_eq!(common(&of(&[(0, 4)]), &[]), []);
        let one = |from: u64, lag| [Standstill { from, to: from + LEAST, lag }];
        assert_eq!(common(&one(0, 0), &one(1, 0)), [], "a moment less is none");
        assert_eq!(common(&one(0, 3), &one(0, 5)), one(0, 5));
    }
}
