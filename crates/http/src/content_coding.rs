//! Content codings (RFC 9110 §8.4.1) and the `Accept-Encoding` field (§12.5.3): which of the
//! representations that exist a client gets. Nothing here compresses.

/// A content coding that representations may have.
///
/// In the order of preference: of two that a client wants alike, the later one is smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ContentCoding {
    /// None: the bytes as they are.
    Identity,
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
    /// RFC 7932.
    Brotli,
    /// Zstandard with a dictionary that the client has (RFC 9842 §5).
    DictionaryZstd,
}

impl ContentCoding {
    /// How many there are.
    pub const COUNT: usize = 5;
    /// Every coding, in the order of preference.
    pub const ALL: [Self; Self::COUNT] =
        [Self::Identity, Self::Gzip, Self::Zstd, Self::Brotli, Self::DictionaryZstd];

    /// Returns the name, as `Content-Encoding` has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Brotli => "br",
            Self::DictionaryZstd => "dcz",
        }
    }

    /// Returns the coding of a name; case does not matter.
    pub fn of(name: &[u8]) -> Option<Self> {
        // RFC 9110 §8.4.1.3: the old name means the same.
        if name.eq_ignore_ascii_case(b"x-gzip") {
            return Some(Self::Gzip);
        }
        Self::ALL.into_iter().find(|coding| name.eq_ignore_ascii_case(coding.name().as_bytes()))
    }
}

/// A set of codings, such as those that a file exists in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CodingSet(u8);

impl CodingSet {
    /// Returns it with one more.
    #[must_use]
    pub const fn with(self, coding: ContentCoding) -> Self {
        Self(self.0 | 1 << coding as u8)
    }

    /// Returns it with all of another one.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether `coding` is one of them.
    pub const fn has(self, coding: ContentCoding) -> bool {
        self.0 & 1 << coding as u8 != 0
    }

    /// Returns whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<ContentCoding> for CodingSet {
    fn from_iter<I: IntoIterator<Item = ContentCoding>>(codings: I) -> Self {
        codings.into_iter().fold(Self::default(), Self::with)
    }
}

/// A weight in thousandths (RFC 9110 §12.4.2): 0 is "not acceptable".
type Weight = u16;

/// The weight of what is listed without one.
const FULL: Weight = 1_000;

/// What a client says of content codings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcceptedCodings {
    weights: [Option<Weight>; ContentCoding::COUNT],
    /// That of `*`.
    others: Option<Weight>,
}

impl AcceptedCodings {
    /// Reads the values of all `Accept-Encoding` fields of a request.
    ///
    /// A member that is not understood is skipped, and of two for one coding the last one counts.
    /// No field at all means that every coding is acceptable (RFC 9110 §12.5.3); clients that send
    /// none often understand none, so only the identity is chosen for them.
    pub fn of<'v>(values: impl IntoIterator<Item = &'v [u8]>) -> Self {
        let mut accepted = Self::default();
        for member in values.into_iter().flat_map(|value| value.split(|byte| *byte == b',')) {
            let Some((name, weight)) = read_member(member) else { continue };
            if name == b"*" {
                accepted.others = Some(weight);
            } else if let Some(coding) = ContentCoding::of(name) {
                accepted.weights[coding as usize] = Some(weight);
            }
        }
        accepted
    }

    /// Returns how much a coding is wanted, in thousandths; `None` if it is not acceptable.
    ///
    /// The identity is acceptable unless it is excluded, and comes after all that is listed. A
    /// coding with a dictionary has to be named (RFC 9842 §6.1).
    pub fn weight(&self, coding: ContentCoding) -> Option<u16> {
        let weight = match coding {
            ContentCoding::Identity => {
                let excluded = self.others.filter(|weight| *weight == 0);
                self.weights[coding as usize].or(excluded).unwrap_or(1)
            }
            ContentCoding::DictionaryZstd => self.weights[coding as usize].unwrap_or(0),
            coding => self.weights[coding as usize].or(self.others).unwrap_or(0),
        };
        (weight > 0).then_some(weight)
    }

    /// Returns the coding to send of those that exist: the one that is wanted most, and of several
    /// the smallest. `None`: none of them is acceptable.
    pub fn choose(&self, available: CodingSet) -> Option<ContentCoding> {
        let weighted = ContentCoding::ALL.into_iter().filter(|coding| available.has(*coding));
        let weighted = weighted.filter_map(|coding| Some((self.weight(coding)?, coding)));
        weighted.max().map(|(_, coding)| coding)
    }
}

/// Returns whether a response has to pass as it is: `no-transform` (RFC 9111 §5.2.2.6).
///
/// - `cache_control`: the values of its `Cache-Control` fields.
pub fn forbids_change<'v>(cache_control: impl IntoIterator<Item = &'v [u8]>) -> bool {
    let values = cache_control.into_iter();
    let mut members = values.flat_map(|value| value.split(|byte| *byte == b','));
    members.any(|member| member.trim_ascii().eq_ignore_ascii_case(b"no-transform"))
}

/// Reads `name` or `name;q=0.5`. `None`: it is neither.
fn read_member(member: &[u8]) -> Option<(&[u8], Weight)> {
    let mut parts = member.splitn(2, |byte| *byte == b';');
    let name = parts.next()?.trim_ascii();
    let is_name = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
    let weight = parts.next().map_or(Some(FULL), read_weight)?;
    is_name.then_some((name, weight))
}

/// Reads `q=0.5` (RFC 9110 §12.4.2).
fn read_weight(parameter: &[u8]) -> Option<Weight> {
    let (name, value) = parameter.trim_ascii().split_at_checked(2)?;
    if name.eq_ignore_ascii_case(b"q=") { weight_of(value) } else { None }
}

/// Returns a weight, such as `0.5`, in thousandths (RFC 9110 §12.4.2); `None` if it is none.
pub fn weight_of(value: &[u8]) -> Option<u16> {
    let (whole, decimals) = match value {
        [whole] | [whole, b'.'] => (whole, &[][..]),
        [whole, b'.', decimals @ ..] => (whole, decimals),
        _ => return None,
    };
    if decimals.len() > 3 || !decimals.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digit = |at: usize| decimals.get(at).map_or(0, |digit| Weight::from(digit - b'0'));
    let thousandths = 100 * digit(0) + 10 * digit(1) + digit(2);
    match whole {
        b'0' => Some(thousandths),
        b'1' if thousandths == 0 => Some(FULL),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ContentCoding::{Brotli, DictionaryZstd, Gzip, Identity, Zstd};
    use proptest::prelude::*;

    fn accepted(value: &str) -> AcceptedCodings {
        AcceptedCodings::of([value.as_bytes()])
    }

    #[test]
    fn the_smallest_of_what_is_wanted_alike_is_chosen() {
        let files: CodingSet = [Identity, Gzip, Zstd, Brotli].into_iter().collect();
        for (value, expected) in [
            ("gzip, deflate, br, zstd", Some(Brotli)),
            ("gzip, deflate, zstd", Some(Zstd)),
            ("gzip", Some(Gzip)),
            ("X-GZip", Some(Gzip)),
            ("GZIP;Q=1, br;q=0.999", Some(Gzip)),
            ("deflate", Some(Identity)),
            ("", Some(Identity)),
            ("*", Some(Brotli)),
            ("*;q=0.5, gzip", Some(Gzip)),
            ("*, br;q=0", Some(Zstd)),
            ("br;q=0, gzip;q=0", Some(Identity)),
            ("identity", Some(Identity)),
            ("identity, gzip;q=0.5", Some(Identity)),
            ("identity;q=0.5, gzip;q=0.5", Some(Gzip)),
            ("gzip;q=0.001", Some(Gzip)),
            ("*;q=0", None),
            ("identity;q=0", None),
            ("identity;q=0, *", Some(Brotli)),
            ("*;q=0, identity", Some(Identity)),
            ("*;q=0, zstd;q=0.1", Some(Zstd)),
            ("br ; q=0.3 , gzip\t;\tq=0.4", Some(Gzip)),
        ] {
            assert_eq!(accepted(value).choose(files), expected, "{value:?}");
        }
        let plain = CodingSet::default().with(Identity);
        assert_eq!(accepted("br, identity;q=0").choose(plain), None);
        assert_eq!(accepted("br, *;q=0").choose(plain), None);
        assert_eq!(accepted("br").choose(plain), Some(Identity));
        assert_eq!(AcceptedCodings::of([]).choose(files), Some(Identity));
    }

    #[test]
    fn several_fields_are_one_list() {
        let accepted = AcceptedCodings::of([b"gzip;q=0.1".as_slice(), b"zstd;q=0.2, gzip;q=0.3"]);
        assert_eq!(accepted.choose(ContentCoding::ALL.into_iter().collect()), Some(Gzip));
    }

    #[test]
    fn what_is_no_weight_takes_its_member_with_it() {
        for value in [
            "gzip;q=1.1",
            "gzip;q=2",
            "gzip;q=-1",
            "gzip;q=0.1234",
            "gzip;q=",
            "gzip;x=1",
            "gzip;q",
        ] {
            assert_eq!(accepted(value), AcceptedCodings::default(), "{value}");
        }
        assert_eq!(accepted("gzip;q=0.").weight(Gzip), None);
        assert_eq!(accepted("gzip;q=1.").weight(Gzip), Some(1_000));
        assert_eq!(accepted("gzip;q=1.000").weight(Gzip), Some(1_000));
        assert_eq!(accepted("gzip;q=0.07").weight(Gzip), Some(70));
    }

    #[test]
    fn a_coding_with_a_dictionary_has_to_be_named() {
        let files = ContentCoding::ALL.into_iter().collect();
        for (value, expected) in [
            ("gzip, deflate, br, zstd, dcb, dcz", Some(DictionaryZstd)),
            ("gzip, br, dcz;q=0.5", Some(Brotli)),
            ("gzip, br, dcz;q=0", Some(Brotli)),
            ("DCZ", Some(DictionaryZstd)),
            ("*", Some(Brotli)),
            ("gzip, *", Some(Brotli)),
        ] {
            assert_eq!(accepted(value).choose(files), expected, "{value:?}");
        }
    }

    #[test]
    fn a_set_holds_what_is_put_into_it() {
        let set = CodingSet::default().with(Zstd).with(Identity);
        assert!(set.has(Zstd) && set.has(Identity) && !set.has(Gzip) && !set.is_empty());
        assert!(CodingSet::default().is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_choose_something_that_exists_and_is_acceptable(
            value in proptest::collection::vec(any::<u8>(), 0..200),
            bits in 0_u8..32,
        ) {
            let exists = |coding: &ContentCoding| bits & 1 << *coding as u8 != 0;
            let available: CodingSet = ContentCoding::ALL.into_iter().filter(exists).collect();
            let accepted = AcceptedCodings::of([value.as_slice()]);
            match accepted.choose(available) {
                Some(coding) => {
                    prop_assert!(available.has(coding) && accepted.weight(coding).is_some());
                    for other in ContentCoding::ALL {
                        let is_better = accepted.weight(other) > accepted.weight(coding);
                        prop_assert!(!is_better || !available.has(other));
                    }
                }
                None => for coding in ContentCoding::ALL {
                    prop_assert!(!available.has(coding) || accepted.weight(coding).is_none());
                },
            }
        }

        #[test]
        fn a_list_that_is_written_is_read(
            weights in proptest::collection::vec(0_u16..=1_000, ContentCoding::COUNT),
        ) {
            let member = |(coding, weight): (&ContentCoding, &u16)| {
                format!("{};q={}.{:03}", coding.name(), weight / 1_000, weight % 1_000)
            };
            let all = ContentCoding::ALL.iter().zip(&weights);
            let members: Vec<String> = all.map(member).collect();
            let accepted = accepted(&members.join(" , "));
            for (coding, weight) in ContentCoding::ALL.into_iter().zip(weights) {
                prop_assert_eq!(accepted.weight(coding), (weight > 0).then_some(weight));
            }
        }

        #[test]
        fn where_the_commas_are_does_not_matter(
            members in proptest::collection::vec(
                "(gzip|br|zstd|\\*|identity)(;q=(0|1|0\\.[0-9]{1,3}))?", 1..6),
            cut in 0_usize..6,
        ) {
            let cut = cut.min(members.len());
            let (first, second) = (members[..cut].join(","), members[cut..].join(", ,"));
            let split = AcceptedCodings::of([first.as_bytes(), second.as_bytes()]);
            prop_assert_eq!(split, accepted(&members.join(",")));
        }
    }
}
