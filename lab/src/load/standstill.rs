//! Standstills: times in which no request of any connection ended, though each waited for one.
//!
//! One slow answer is no standstill: the others go on meanwhile. Each thread notes the times in which
//! nothing has ended on any connection of its own; what all threads have in common are standstills of
//! the server.

/// A shorter time is none, in nanoseconds.
const LEAST: u64 = 100_000_000;
/// More of them are not kept: a run of hours in which nothing but standstills happened.
const KEPT_MAX: usize = 10_000;

/// From when to when, in nanoseconds since the run's origin.
pub(super) type Still = (u64, u64);

/// Notes the time between two ends if it was long.
#[inline]
pub(super) fn note(noted: &mut Vec<Still>, from: u64, to: u64) {
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
        if a.1 <= b.1 { one.next() } else { other.next() };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{LEAST, common, note};

    #[test]
    fn what_is_short_is_no_standstill() {
        let mut noted = Vec::new();
        note(&mut noted, 0, LEAST - 1);
        note(&mut noted, 5, 5 + LEAST);
        note(&mut noted, 9, 3);
        assert_eq!(noted, [(5, 5 + LEAST)]);
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
