//! Standstills: times in which no request of any connection ended, though each waited for one.
//!
//! One slow answer is no standstill: the others go on meanwhile. Nor are several that are slow at once:
//! they end one after the other, as they began, while a server that goes on answers all that waited.
//! Each thread notes its own; what all threads have in common are standstills of the server.

/// A shorter time is none, in nanoseconds.
const LEAST: u64 = 100_000_000;
/// More of them are not kept: a run of hours in which nothing but standstills happened.
const KEPT_MAX: usize = 10_000;

/// From when to when, in nanoseconds since the run's origin.
pub(super) type Still = (u64, u64);

/// After a standstill all that waited is answered within so much of its length, and so long for each.
const AFTER: u64 = 10;
const AFTER_EACH: u64 = 50_000;

/// What one thread has noted.
#[derive(Debug, Default)]
pub(super) struct Standstills {
    pub(super) noted: Vec<Still>,
    /// One that is over, if all that waited through it is answered soon.
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    still: Still,
    waiting: u64,
    until: u64,
}

impl Standstills {
    /// A request has ended.
    ///
    /// - `since`: when the one before it did.
    /// - `sent`: when it was sent; `under_way`: all that were, itself included.
    #[inline]
    pub(super) fn ended(&mut self, (since, now): Still, sent: u64, under_way: u64) {
        if self.open.is_some() || now.saturating_sub(since) >= LEAST {
            self.settle((since, now), sent, under_way);
        }
    }

    #[cold]
    fn settle(&mut self, (since, now): Still, sent: u64, under_way: u64) {
        if let Some(open) = &mut self.open {
            if now <= open.until {
                open.waiting -= u64::from(sent <= open.still.1);
                if open.waiting == 0 {
                    let still = open.still;
                    self.open = None;
                    self.note(still);
                }
                return;
            }
            self.open = None;
        }
        let long = now.saturating_sub(since);
        if long >= LEAST && under_way <= 1 {
            self.note((since, now));
        } else if long >= LEAST {
            let until = now + long / AFTER + AFTER_EACH * under_way;
            self.open = Some(Open { still: (since, now), waiting: under_way - 1, until });
        }
    }

    /// Notes one, such as the one that the end of the run has cut.
    pub(super) fn note(&mut self, (from, to): Still) {
        note(&mut self.noted, from, to);
    }
}

/// Notes a time if it was long enough.
fn note(noted: &mut Vec<Still>, from: u64, to: u64) {
    if to.saturating_sub(from) >= LEAST && noted.len() < KEPT_MAX {
        noted.push((from, to));
    }
}

/// What two threads have in common, each with its times in order.
pub(super) fn common(one: &[Still], other: &[Still]) -> Vec<Still> {
    let mut found = Vec::new();
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    while let (Some(a), Some(b)) = (one.peek(), other.peek()) {
        note(&mut found, a.0.max(b.0), a.1.min(b.1));
        if a.1 <= b.1 {
            one.next()
        } else {
            other.next()
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{LEAST, Standstills, common, note};

    const MS: u64 = 1_000_000;

    #[test]
    fn what_is_short_is_no_standstill() {
        let mut noted = Vec::new();
        note(&mut noted, 0, LEAST - 1);
        note(&mut noted, 5, 5 + LEAST);
        note(&mut noted, 9, 3);
        assert_eq!(noted, [(5, 5 + LEAST)]);
    }

    /// Ends of requests, each with when it came and when the request was sent, in milliseconds.
    fn noted(ends: &[(u64, u64)], connections: u64) -> Vec<(u64, u64)> {
        let (mut all, mut last) = (Standstills::default(), 0);
        for (now, sent) in ends {
            all.ended((last * MS, now * MS), sent * MS, connections);
            last = *now;
        }
        all.noted.iter().map(|(from, to)| (from / MS, to / MS)).collect()
    }

    #[test]
    fn a_server_that_goes_on_answers_all_that_waited() {
        // Three connections wait from 10 ms on, and all are answered at 210 ms.
        let ends = [(8, 7), (9, 8), (10, 9), (210, 8), (211, 9), (212, 10), (213, 210)];
        assert_eq!(noted(&ends, 3), [(10, 210)]);
        assert_eq!(noted(&[(150, 1), (151, 150)], 1), [(0, 150)], "one alone is all there are");
    }

    #[test]
    fn answers_that_are_slow_at_once_end_as_they_began() {
        // Three take 150 ms each, from 0, 10 and 20 ms on: nothing ends between 20 and 150 ms.
        let ends = [(10, 9), (20, 19), (150, 0), (160, 10), (170, 20), (171, 170)];
        assert_eq!(noted(&ends, 3), []);
        let again = [(10, 9), (150, 0), (160, 10), (360, 150), (361, 160), (362, 170)];
        assert_eq!(noted(&again, 3), [(160, 360)], "one that is none hides no other");
    }

    #[test]
    fn threads_stand_still_together_where_their_times_overlap_for_long_enough() {
        let of = |tenths: &[(u64, u64)]| -> Vec<_> {
            tenths.iter().map(|(from, to)| (from * LEAST, to * LEAST)).collect()
        };
        let both = common(&of(&[(0, 4), (6, 9), (20, 30)]), &of(&[(2, 7), (8, 12), (21, 22)]));
        assert_eq!(both, of(&[(2, 4), (6, 7), (8, 9), (21, 22)]));
        assert_eq!(common(&of(&[(0, 4)]), &[]), []);
        assert_eq!(common(&[(0, LEAST)], &[(1, LEAST + 1)]), [], "a moment less is none");
    }
}
