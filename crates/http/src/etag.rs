//! Entity tags (RFC 9110 §8.8.3): the one we make for a stored file, and the lists a client sends.
//!
//! What a matching tag means for the answer lives in `precondition.rs`; this file only makes,
//! reads and compares. No I/O: the caller says which numbers stand for the stored bytes.

/// Bytes of a tag as sent: two quotes around sixteen digits.
const TAG_BYTES: usize = 18;

/// The digits of RFC 4648 §5.
const BASE64URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A strong entity tag of ours, ready to be sent, quotes included.
///
/// Always 18 bytes, whatever it was made from: it travels with every answer, and it must not show
/// a client inode numbers or other facts about the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityTag {
    text: [u8; TAG_BYTES],
}

impl EntityTag {
    /// Makes a strong tag of numbers that together change whenever the stored bytes change.
    ///
    /// Two lists of the same length that differ in exactly one number never give the same tag, as
    /// every step is a bijection; otherwise 64 bits keep them apart.
    pub fn strong(parts: &[u64]) -> EntityTag {
        let digest = parts.iter().fold(0, |state, part| mixed(state ^ part));
        let mut text = [b'"'; TAG_BYTES];
        for (at, digit) in text[1..=16].iter_mut().enumerate() {
            let nibble = (digest >> (60 - 4 * at)) & 0xF;
            *digit = b"0123456789abcdef"[usize::try_from(nibble).expect("a nibble is below 16")];
        }
        EntityTag { text }
    }

    /// Makes a strong tag of a digest of the stored bytes, in the alphabet of RFC 4648 §5.
    ///
    /// The same bytes have the same tag on every server.
    pub fn of_digest(digest: &[u8; 12]) -> EntityTag {
        let mut text = [b'"'; TAG_BYTES];
        for (three, four) in digest.chunks_exact(3).zip(text[1..=16].chunks_exact_mut(4)) {
            let bits = three.iter().fold(0, |bits, byte| bits << 8 | usize::from(*byte));
            for (at, letter) in four.iter_mut().enumerate() {
                *letter = BASE64URL[bits >> (18 - 6 * at) & 0x3F];
            }
        }
        EntityTag { text }
    }

    /// Returns the tag as it stands in an `ETag` field, quotes included.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text
    }
}

/// One step of the `SplitMix64` generator, used as a bijective mixer of 64 bits.
fn mixed(input: u64) -> u64 {
    let state = input.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ (state >> 31)
}

/// How two tags are compared (RFC 9110 §8.8.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Equal, and neither is weak: byte for byte the same representation.
    Strong,
    /// Equal, whether or not either is marked `W/`.
    Weak,
}

/// Returns whether a field value of `If-Match` or `If-None-Match` names `tag`, or is `*`.
///
/// - `list`: the field value; several field lines are passed joined by commas (RFC 9110 §5.3).
/// - A malformed member ends the list: what stands before it still counts, what follows does not.
pub fn list_names(list: &[u8], tag: &EntityTag, comparison: Comparison) -> bool {
    is_any(list) || Tags { rest: list }.any(|sent| sent.equals(tag, comparison))
}

/// Returns whether a field value of `If-Match` or `If-None-Match` is `*`.
pub fn is_any(list: &[u8]) -> bool {
    list.trim_ascii() == b"*"
}

/// Returns whether a field value is one single tag equal to `tag` under strong comparison
/// (`If-Range`).
pub fn is_exactly(value: &[u8], tag: &EntityTag) -> bool {
    let mut tags = Tags { rest: value };
    let equal = tags.next().is_some_and(|sent| sent.equals(tag, Comparison::Strong));
    equal && tags.rest.is_empty()
}

/// Returns whether a field value starts as an entity tag does, so that it cannot be a date.
pub fn looks_like_tag(value: &[u8]) -> bool {
    value.starts_with(b"\"") || value.starts_with(b"W/\"")
}

/// A tag as a client sent it.
struct SentTag<'a> {
    weak: bool,
    quoted: &'a [u8],
}

impl SentTag<'_> {
    fn equals(&self, tag: &EntityTag, comparison: Comparison) -> bool {
        self.quoted == tag.as_bytes() && (comparison == Comparison::Weak || !self.weak)
    }
}

/// The members of a comma-separated list of tags. A comma may stand inside a tag, so the quotes
/// decide where a member ends.
struct Tags<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Tags<'a> {
    type Item = SentTag<'a>;

    fn next(&mut self) -> Option<SentTag<'a>> {
        // RFC 9110 §5.6.1.2: empty members are to be skipped.
        let start = self.rest.iter().position(|byte| !matches!(byte, b',' | b' ' | b'\t'));
        let member = &self.rest[start.unwrap_or(self.rest.len())..];
        let (sent, rest) = split_tag(member)?;
        self.rest = rest.trim_ascii_start();
        match self.rest.first() {
            None | Some(b',') => Some(sent),
            Some(_) => None,
        }
    }
}

/// Splits one tag off the front; `None` where none stands there.
fn split_tag(member: &[u8]) -> Option<(SentTag<'_>, &[u8])> {
    let (weak, quoted) = match member.strip_prefix(b"W/") {
        Some(rest) => (true, rest),
        None => (false, member),
    };
    let inner = quoted.strip_prefix(b"\"")?;
    let end = inner.iter().position(|byte| !is_tag_byte(*byte))?;
    if inner[end] != b'"' {
        return None;
    }
    let (quoted, rest) = quoted.split_at(end + 2);
    Some((SentTag { weak, quoted }, rest))
}

/// `etagc` of RFC 9110 §8.8.3: visible without the quote, and obs-text.
fn is_tag_byte(byte: u8) -> bool {
    matches!(byte, 0x21 | 0x23..=0x7E | 0x80..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tag() -> EntityTag {
        EntityTag::strong(&[1, 2, 3])
    }

    fn with_tag(pattern: &str) -> Vec<u8> {
        let text = String::from_utf8(tag().as_bytes().to_vec()).expect("tags are ASCII");
        pattern.replace('T', &text).into_bytes()
    }

    #[test]
    fn a_tag_is_quoted_and_changes_with_each_part() {
        assert_eq!(tag().as_bytes().len(), 18);
        assert!(tag().as_bytes().starts_with(b"\"") && tag().as_bytes().ends_with(b"\""));
        assert_ne!(tag(), EntityTag::strong(&[1, 2, 4]));
        assert_ne!(tag(), EntityTag::strong(&[0, 2, 3]));
        assert_eq!(tag(), EntityTag::strong(&[1, 2, 3]));
    }

    #[test]
    fn a_digest_is_its_own_tag() {
        for (digest, text) in [
            (*b"hello, world", "\"aGVsbG8sIHdvcmxk\""),
            ([0; 12], "\"AAAAAAAAAAAAAAAA\""),
            ([0xFF; 12], "\"________________\""),
        ] {
            let tag = EntityTag::of_digest(&digest);
            assert_eq!(String::from_utf8_lossy(tag.as_bytes()), text);
            assert!(list_names(text.as_bytes(), &tag, Comparison::Strong));
        }
    }

    #[test]
    fn lists_are_compared_as_asked() {
        let cases: [(&str, bool, bool); 16] = [
            ("T", true, true),
            ("W/T", false, true),
            ("*", true, true),
            (" * ", true, true),
            ("\"other\", T", true, true),
            ("\"a,b\" ,\t T", true, true),
            (",, ,T,", true, true),
            ("\"other\", W/T", false, true),
            ("\"other\"", false, false),
            ("", false, false),
            ("w/T", false, false),
            ("T x", false, false),
            ("\"open, T", false, false),
            ("bare, T", false, false),
            ("\"a b\", T", false, false),
            ("\"\", \"*\"", false, false),
        ];
        for (pattern, strong, weak) in cases {
            let list = with_tag(pattern);
            assert_eq!(list_names(&list, &tag(), Comparison::Strong), strong, "{pattern}");
            assert_eq!(list_names(&list, &tag(), Comparison::Weak), weak, "{pattern}");
        }
    }

    #[test]
    fn if_range_takes_one_strong_tag_only() {
        assert!(is_exactly(&with_tag("T"), &tag()));
        for pattern in ["W/T", "T, T", "\"x\", T", "*", "", "Tx"] {
            assert!(!is_exactly(&with_tag(pattern), &tag()), "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(
            list in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            list_names(&list, &tag(), Comparison::Weak);
            is_exactly(&list, &tag());
        }

        #[test]
        fn a_tag_is_found_wherever_it_stands(
            before in proptest::collection::vec("\"[!#-~]{0,9}\"", 0..5),
            after in proptest::collection::vec("\"[!#-~]{0,9}\"", 0..5),
        ) {
            let mut members = before;
            members.push(String::from_utf8_lossy(tag().as_bytes()).into_owned());
            members.extend(after);
            prop_assert!(list_names(members.join(", ").as_bytes(), &tag(), Comparison::Strong));
        }
    }
}
