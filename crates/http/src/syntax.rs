//! Which bytes may stand where (RFC 9110 §5.5, §5.6.2; RFC 3986), and the scans built on it.

/// A byte of a token: method, field name (RFC 9110 §5.6.2).
pub(crate) const TOKEN: u8 = 1;
/// A byte of a request target. RFC 3986 also bars `\ ^ { | }`, `[ ]` and the backtick outside of an
/// IP literal, but every browser sends them as they are in a query, so they pass here; `"`, `#`,
/// `<`, `>` do not.
pub(crate) const TARGET: u8 = 2;
/// A byte of a registered name or an IPv4 address (RFC 3986 §3.2.2), `%` excepted.
pub(crate) const HOST: u8 = 4;
/// A byte of a field value: visible, space, tab, or obs-text (RFC 9110 §5.5).
pub(crate) const VALUE: u8 = 8;
/// A byte of a request target up to its query: [`TARGET`] without `?`, and without `\`, which some
/// take for `/` (browsers send it as `/`).
pub(crate) const PATH: u8 = 16;
/// A byte that may stand in a segment of a path as it is (pchar, RFC 3986 §3.3, `%` excepted).
pub(crate) const SEGMENT: u8 = 32;

static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut at = 0;
    while at < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "at is below 256")]
        let byte = at as u8;
        let mut class = 0;
        if byte.is_ascii_alphanumeric() || contains(b"!#$%&'*+-.^_`|~", byte) {
            class |= TOKEN;
        }
        if byte > b' ' && byte < 0x7f && !contains(b"\"#<>", byte) {
            class |= if contains(b"?\\", byte) { TARGET } else { TARGET | PATH };
        }
        if byte.is_ascii_alphanumeric() || contains(b"-._~!$&'()*+,;=", byte) {
            class |= HOST;
        }
        if byte.is_ascii_alphanumeric() || contains(b"-._~!$&'()*+,;=:@", byte) {
            class |= SEGMENT;
        }
        if byte == b'\t' || (byte >= b' ' && byte != 0x7f) {
            class |= VALUE;
        }
        classes[at] = class;
        at += 1;
    }
    classes
}

const fn contains(bytes: &[u8], byte: u8) -> bool {
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == byte {
            return true;
        }
        at += 1;
    }
    false
}

/// Returns whether a byte is of a class.
#[inline]
pub(crate) fn is(byte: u8, class: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}

/// Returns whether bytes are a token: not empty, and nothing but token bytes.
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|byte| is(*byte, TOKEN))
}

/// Returns what follows the bytes of a class that `bytes` starts with.
///
/// Eight bytes a step, each with its own way out: 3.4 instructions a byte instead of 6.
#[inline]
pub(crate) fn skip(bytes: &[u8], class: u8) -> &[u8] {
    let mut rest = bytes;
    while let Some((chunk, next)) = rest.split_first_chunk::<8>() {
        for (lane, byte) in chunk.iter().enumerate() {
            if !is(*byte, class) {
                return &rest[lane..];
            }
        }
        rest = next;
    }
    while let [byte, next @ ..] = rest {
        if !is(*byte, class) {
            break;
        }
        rest = next;
    }
    rest
}

/// Returns what follows the query of a request target, if there is one: `behind` is what follows
/// its path.
#[inline]
pub(crate) fn skip_query(behind: &[u8]) -> &[u8] {
    if behind.first() == Some(&b'?') { skip(behind, TARGET) } else { behind }
}

/// Returns what follows the letters and hyphens that `bytes` starts with: all of most field names.
/// May stop early.
#[expect(clippy::inline_always, reason = "a call costs 20 instructions for each field")]
#[inline(always)]
pub(crate) fn skip_plain_name(bytes: &[u8]) -> &[u8] {
    skip_words(bytes, Word::beside_letters_and_hyphens)
}

/// Returns what follows the field value that `bytes` starts with, from the first control byte on.
/// May stop early: at a tab, or near the end of `bytes`.
///
/// Values are most of a head: sixteen bytes go in one vector comparison, which the compiler makes
/// of the fold, and the last few by words.
#[expect(clippy::inline_always, reason = "a call costs 13 instructions for each field")]
#[inline(always)]
pub(crate) fn skip_plain_value(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    while let Some(lanes) = rest.first_chunk::<16>() {
        let is_control = |byte: u8| byte < b' ' || byte == 0x7f;
        if lanes.iter().fold(false, |any, byte| any | is_control(*byte)) {
            break;
        }
        rest = &rest[16..];
    }
    skip_words(rest, Word::controls)
}

/// Returns what follows the bytes that `stops` does not mark. Stops early when fewer than eight are
/// left.
#[expect(clippy::inline_always, reason = "see its callers")]
#[inline(always)]
fn skip_words(bytes: &[u8], stops: impl Fn(Word) -> u64) -> &[u8] {
    let mut rest = bytes;
    while let Some(word) = rest.first_chunk::<8>() {
        let stops = stops(Word(u64::from_le_bytes(*word)));
        if stops != 0 {
            return &rest[stops.trailing_zeros() as usize / 8..];
        }
        rest = &rest[8..];
    }
    rest
}

/// Eight bytes at once, the first one lowest. Each function marks the first byte it is named for
/// with its high bit, and none before it; what it says of later bytes is not to be relied on.
///
/// The additions carry a byte's answer into its high bit. A carry into the next byte needs a byte
/// from 0x80 on: where that is no stop itself, the high bits are cleared before.
#[derive(Clone, Copy)]
struct Word(u64);

impl Word {
    const HIGH: u64 = Self::each(0x80);

    const fn each(byte: u8) -> u64 {
        byte as u64 * 0x0101_0101_0101_0101
    }

    /// Bytes below 0x20, and 0x7f.
    #[inline]
    fn controls(self) -> u64 {
        let low = self.0 & !Self::HIGH;
        let delete = low + Self::each(0x80 - 0x7f); // carries into the high bit from 0x7f on
        let visible = low + Self::each(0x80 - 0x20);
        (delete | !visible) & !self.0 & Self::HIGH
    }

    /// Bytes other than `A-Z a-z -`.
    #[inline]
    fn beside_letters_and_hyphens(self) -> u64 {
        let beside_hyphen = (self.0 ^ Self::each(b'-')).wrapping_add(Self::each(0x7f));
        (!self.letters() & beside_hyphen | self.0) & Self::HIGH
    }

    /// In the high bits: which bytes are letters. Only for bytes below 0x80.
    #[inline]
    fn letters(self) -> u64 {
        let lower = self.0 | Self::each(0x20);
        let from_a = lower.wrapping_add(Self::each(0x80 - b'a'));
        let past_z = lower.wrapping_add(Self::each(0x80 - b'z' - 1));
        from_a ^ past_z
    }
}

/// Without the spaces and tabs at both ends (OWS, RFC 9110 §5.6.3).
pub(crate) fn trim(bytes: &[u8]) -> &[u8] {
    let from = bytes.iter().position(|byte| !is_space(*byte)).unwrap_or(bytes.len());
    let end = bytes.iter().rposition(|byte| !is_space(*byte)).map_or(from, |last| last + 1);
    &bytes[from..end]
}

/// Space or tab.
#[inline]
pub(crate) fn is_space(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Returns the elements of a comma-separated list, each without the space around it. Empty ones are
/// given too.
pub(crate) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(trim)
}

/// `1*DIGIT` of at most 64 bits: no sign, no space, no underscore.
pub(crate) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scans_agree_with_the_bytes_for_every_byte_in_every_lane() {
        for byte in 0..=255_u8 {
            for lane in 0..24 {
                for after in [b'a', 0xff, 0x00, 0x7f] {
                    let mut bytes = [b'a'; 48];
                    bytes[lane..].fill(after);
                    bytes[lane] = byte;
                    let first =
                        |stops: fn(u8) -> bool| bytes.iter().position(|b| stops(*b)).unwrap_or(48);
                    let case = format!("{byte:#x} in {lane}, then {after:#x}");
                    let at = |rest: &[u8]| 48 - rest.len();
                    assert_eq!(at(skip(&bytes, VALUE)), first(|b| !is(b, VALUE)), "{case}");
                    let control = first(|b| b < b' ' || b == 0x7f);
                    assert_eq!(at(skip_plain_value(&bytes)), control, "{case}");
                    let beside = first(|b| !b.is_ascii_alphabetic() && b != b'-');
                    assert_eq!(at(skip_plain_name(&bytes)), beside, "{case}");
                }
            }
        }
    }

    #[test]
    fn a_scan_of_a_few_bytes_stops_within_them() {
        assert_eq!(skip(b"a\tb\tlonger than sixteen\r\n", VALUE), b"\r\n");
        assert_eq!(skip(b"\t\t", VALUE), b"");
        assert_eq!(skip(b"", VALUE), b"");
        assert_eq!(skip(b"a_1: b", TOKEN), b": b");
        assert_eq!(skip_plain_value(b"a\r\n"), b"a\r\n");
        assert_eq!(skip_plain_name(b""), b"");
    }

    #[test]
    fn lists_are_split_at_commas_and_trimmed() {
        let parts: Vec<&[u8]> = list(b" a ,\tb,, ").collect();
        assert_eq!(parts, [b"a".as_slice(), b"b", b"", b""]);
        assert_eq!(trim(b" \t "), b"");
    }
}
