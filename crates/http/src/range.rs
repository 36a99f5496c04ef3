//! Byte ranges of a `Range` field (RFC 9110 §14.1.2, §14.2): which bytes of a representation are
//! asked for. Whether the field counts at all is judged in `precondition.rs`.

use crate::syntax::decimal;

/// The most ranges that are answered one by one; a request for more gets the whole.
pub const RANGES_MAX: usize = 16;

/// A part of a representation. Never empty, and always within the length it was selected from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// First byte, counted from 0.
    pub offset: u64,
    /// Number of bytes, at least 1.
    pub len: u64,
}

/// What a `Range` field selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selected {
    /// The field is to be ignored: respond with 200 with the whole.
    Whole,
    /// Respond with 206 with this range.
    One(ByteRange),
    /// Respond with 206 and `multipart/byteranges`: 2 to [`RANGES_MAX`], in the field's order.
    Several(Vec<ByteRange>),
    /// No range touches the representation: respond with 416.
    Unsatisfiable,
}

/// Selects the ranges that `value` asks for.
///
/// - `value`: the value of the `Range` field.
/// - `length`: bytes of the whole representation.
///
/// A unit other than `bytes` or a syntax error selects the whole, as §14.2 demands of what is not
/// understood. §14.2 lets a server refuse abuse: more than [`RANGES_MAX`] ranges, or ranges that
/// overlap so much that they are together longer than the whole, select the whole as well. So an
/// answer is never longer than the representation and sixteen part heads.
pub fn select(value: &[u8], length: u64) -> Selected {
    let Some(set) = range_set(value) else {
        return Selected::Whole;
    };
    let mut satisfiable = Vec::new();
    let mut asked = 0;
    for member in set.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
        if member.is_empty() {
            continue; // RFC 9110 §5.6.1.2: empty members are to be skipped
        }
        asked += 1;
        let Some(bounds) = Bounds::read(member) else {
            return Selected::Whole;
        };
        if asked <= RANGES_MAX {
            satisfiable.extend(bounds.within(length));
        }
    }
    if asked == 0 || asked > RANGES_MAX {
        return Selected::Whole;
    }
    chosen(satisfiable, length, set)
}

fn chosen(satisfiable: Vec<ByteRange>, length: u64, set: &[u8]) -> Selected {
    match satisfiable.as_slice() {
        // §14.1.2 calls a suffix of nothing satisfiable, yet Content-Range cannot express it.
        [] if length == 0 && asks_for_suffix(set) => Selected::Whole,
        [] => Selected::Unsatisfiable,
        [one] => Selected::One(*one),
        several => {
            let sum = several.iter().fold(0_u64, |sum, range| sum.saturating_add(range.len));
            if sum > length { Selected::Whole } else { Selected::Several(satisfiable) }
        }
    }
}

/// Returns what follows `bytes=`; the unit's name is case-insensitive (§14.1).
fn range_set(value: &[u8]) -> Option<&[u8]> {
    let (unit, set) = value.split_at_checked(6)?;
    unit.eq_ignore_ascii_case(b"bytes=").then_some(set)
}

fn asks_for_suffix(set: &[u8]) -> bool {
    set.split(|byte| *byte == b',').any(|member| match Bounds::read(member.trim_ascii()) {
        Some(Bounds::Suffix { len }) => len > 0,
        _ => false,
    })
}

/// One `range-spec` as written. Numbers beyond 64 bits are held at the largest: every such
/// position lies behind any representation.
enum Bounds {
    From { first: u64 },
    Between { first: u64, last: u64 },
    Suffix { len: u64 },
}

impl Bounds {
    fn read(member: &[u8]) -> Option<Bounds> {
        let dash = member.iter().position(|byte| *byte == b'-')?;
        let (first, last) = (&member[..dash], &member[dash + 1..]);
        if first.is_empty() {
            return Some(Bounds::Suffix { len: number(last)? });
        }
        let first = number(first)?;
        if last.is_empty() {
            return Some(Bounds::From { first });
        }
        let last = number(last)?;
        // §14.1.2: a last position below the first makes the range invalid.
        (first <= last).then_some(Bounds::Between { first, last })
    }

    fn within(&self, length: u64) -> Option<ByteRange> {
        let (offset, end) = match *self {
            Bounds::From { first } => (first, length),
            Bounds::Between { first, last } => (first, length.min(last.saturating_add(1))),
            Bounds::Suffix { len } => (length.saturating_sub(len), length),
        };
        (offset < end).then(|| ByteRange { offset, len: end - offset })
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| decimal(digits).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(offset: u64, len: u64) -> Selected {
        Selected::One(ByteRange { offset, len })
    }

    #[test]
    fn single_ranges_of_a_thousand_bytes() {
        let cases: [(&str, Selected); 16] = [
            ("bytes=0-0", one(0, 1)),
            ("bytes=0-499", one(0, 500)),
            ("BYTES=500-999", one(500, 500)),
            ("bytes=500-", one(500, 500)),
            ("bytes=999-5000", one(999, 1)),
            ("bytes=0-99999999999999999999999999", one(0, 1000)),
            ("bytes=-1", one(999, 1)),
            ("bytes=-1000", one(0, 1000)),
            ("bytes=-5000", one(0, 1000)),
            ("bytes=, 0-1 ,", one(0, 2)),
            ("bytes=-0", Selected::Unsatisfiable),
            ("bytes=1000-", Selected::Unsatisfiable),
            ("bytes=1000-2000, 5000-", Selected::Unsatisfiable),
            ("bytes=99999999999999999999999999-", Selected::Unsatisfiable),
            ("bytes=2000-, 1-2", one(1, 2)),
            ("bytes=-0,-2", one(998, 2)),
        ];
        for (value, expected) in cases {
            assert_eq!(select(value.as_bytes(), 1000), expected, "{value}");
        }
    }

    #[test]
    fn what_is_not_understood_is_ignored() {
        for value in [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=-",
            "bytes=a-b",
            "bytes=1",
            "bytes=2-1",
            "bytes =0-1",
            "bytes= =0-1",
            "lines=0-1",
            "bytes=0-1;2-3",
            "bytes=+1-2",
            "bytes=1--2",
            "bytes=0x1-2",
            "bytes=0-1, x",
            "bytes=0 -1",
            "bytes:0-1",
            "none",
            "bytes=--1",
        ] {
            assert_eq!(select(value.as_bytes(), 1000), Selected::Whole, "{value}");
        }
    }

    #[test]
    fn an_empty_representation_has_no_ranges() {
        assert_eq!(select(b"bytes=0-", 0), Selected::Unsatisfiable);
        assert_eq!(select(b"bytes=-0", 0), Selected::Unsatisfiable);
        assert_eq!(select(b"bytes=-5", 0), Selected::Whole);
    }

    #[test]
    fn several_ranges_keep_their_order() {
        let ranges = [(500, 100), (0, 1), (999, 1)].map(|(offset, len)| ByteRange { offset, len });
        let expected = Selected::Several(ranges.to_vec());
        assert_eq!(select(b"bytes=500-599,0-0, -1", 1000), expected);
    }

    #[test]
    fn too_many_or_overlapping_ranges_give_the_whole() {
        let many = |count: usize| {
            let members: Vec<String> = (0..count).map(|at| format!("{at}-{at}")).collect();
            select(format!("bytes={}", members.join(",")).as_bytes(), 1000)
        };
        assert!(matches!(many(16), Selected::Several(ranges) if ranges.len() == 16));
        assert_eq!(many(17), Selected::Whole);
        assert_eq!(many(1200), Selected::Whole);
        assert_eq!(select(b"bytes=0-,0-", 1000), Selected::Whole);
        assert_eq!(select(b"bytes=0-599,400-", 1000), Selected::Whole);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(
            value in proptest::collection::vec(any::<u8>(), 0..100), length: u64,
        ) {
            select(&value, length);
        }

        #[test]
        fn ranges_lie_within_the_length(value in "bytes=[0-9, -]{0,40}", length in 0..2000_u64) {
            let ranges = match select(value.as_bytes(), length) {
                Selected::One(range) => vec![range],
                Selected::Several(ranges) => ranges,
                Selected::Whole | Selected::Unsatisfiable => vec![],
            };
            prop_assert!(ranges.len() <= RANGES_MAX);
            prop_assert!(ranges.iter().map(|range| range.len).sum::<u64>() <= length);
            for range in ranges {
                prop_assert!(range.len >= 1 && range.offset + range.len <= length);
            }
        }
    }
}
