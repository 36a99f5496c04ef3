//! The Huffman code of HPACK (RFC 7541 §5.2, appendix B).
//!
//! The code is canonical: codes of one length follow each other in the order of their symbols, and
//! a shorter one precedes a longer one. So the lengths alone are the table; the rest is computed
//! when this is compiled.

use super::HpackError;

/// The symbols: every byte, and the end of a string, which no string may hold.
const SYMBOLS: usize = 257;
const LENGTH_MAX: usize = 30;

/// How many bits each symbol's code has.
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// Codes of up to so many bits are found by one look: those of every byte that is usual in fields.
const SHORT_BITS: usize = 10;

/// The symbols in the order of their codes, and for each length the first code and its place.
struct Code {
    sorted: [u16; SYMBOLS],
    /// Of the codes of a length: the first one, and where its symbol stands in `sorted`. In the
    /// last place are those of no length.
    first: [(u32, u16); LENGTH_MAX + 2],
    of_symbol: [u32; SYMBOLS],
    /// By the next bits of a string: the symbol, and the length of its code; 0 where it is longer.
    short: [(u8, u8); 1 << SHORT_BITS],
}

static CODE: Code = code();

#[expect(clippy::cast_possible_truncation, reason = "symbols, places and lengths are small")]
const fn code() -> Code {
    let mut code = Code {
        sorted: [0; SYMBOLS],
        first: [(0, 0); LENGTH_MAX + 2],
        of_symbol: [0; SYMBOLS],
        short: [(0, 0); 1 << SHORT_BITS],
    };
    let (mut next, mut place, mut length) = (0_u32, 0_u16, 1);
    while length <= LENGTH_MAX {
        code.first[length] = (next, place);
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                code.sorted[place as usize] = symbol as u16;
                code.of_symbol[symbol] = next;
                if length <= SHORT_BITS {
                    let from = (next as usize) << (SHORT_BITS - length);
                    let mut at = from;
                    while at < from + (1 << (SHORT_BITS - length)) {
                        code.short[at] = (symbol as u8, length as u8);
                        at += 1;
                    }
                }
                next += 1;
                place += 1;
            }
            symbol += 1;
        }
        next <<= 1;
        length += 1;
    }
    code.first[LENGTH_MAX + 1] = (u32::MAX, place);
    code
}

/// Decodes a string, and appends it. At most 8 bytes come of 5.
///
/// # Errors
/// [`HpackError`]: the padding is longer than 7 bits or has a zero, or the end's code is in the
/// string.
pub(super) fn decode(input: &[u8], out: &mut Vec<u8>) -> Result<(), HpackError> {
    // As long as it can become: so each symbol is one store, and the length stays in a register.
    let start = out.len();
    out.resize(start + input.len() * 8 / 5 + 1, 0);
    let len = symbols(input, &mut out[start..])?;
    out.truncate(start + len);
    Ok(())
}

/// Decodes a string to the beginning of `out`. Returns how many symbols it has.
fn symbols(input: &[u8], out: &mut [u8]) -> Result<usize, HpackError> {
    let (mut rest, mut len) = (input, 0);
    // The next bits of the string, from the highest on, and how many there are.
    let (mut bits, mut count) = (0_u64, 0);
    loop {
        if count < u32::from(LENGTHS[SYMBOLS - 1]) {
            (bits, count, rest) = refill(bits, count, rest);
        }
        let (symbol, length) = CODE.short[(bits >> (64 - SHORT_BITS)) as usize];
        let length = u32::from(length);
        if length != 0 && length <= count {
            out[len] = symbol;
            len += 1;
            bits <<= length;
            count -= length;
            continue;
        }
        if count < 8 && bits.leading_ones() >= count {
            return Ok(len);
        }
        if length != 0 {
            return Err(HpackError::Padding);
        }
        let (symbol, length) = long(bits, count)?;
        out[len] = symbol;
        len += 1;
        bits <<= length;
        count -= length;
    }
}

/// Takes as many bytes as there is room for.
#[inline]
fn refill(bits: u64, count: u32, rest: &[u8]) -> (u64, u32, &[u8]) {
    if let Some((word, _)) = rest.split_first_chunk::<8>() {
        let bytes = (64 - count) / 8;
        let taken = u64::from_be_bytes(*word) >> count;
        // Bits of a byte that is not whole are taken again with it.
        let kept = count + bytes * 8;
        let mask = if kept == 64 { u64::MAX } else { !(u64::MAX >> kept) };
        return (bits | taken & mask, kept, &rest[bytes as usize..]);
    }
    let (mut bits, mut count, mut rest) = (bits, count, rest);
    while let [byte, behind @ ..] = rest
        && count <= 56
    {
        bits |= u64::from(*byte) << (56 - count);
        count += 8;
        rest = behind;
    }
    (bits, count, rest)
}

/// Returns the symbol of a code that is longer than most, and its length.
#[cold]
fn long(bits: u64, count: u32) -> Result<(u8, u32), HpackError> {
    for length in SHORT_BITS + 1..=LENGTH_MAX {
        let (first, place) = CODE.first[length];
        let places = usize::from(CODE.first[length + 1].1 - place);
        #[expect(clippy::cast_possible_truncation, reason = "at most 30 bits are left")]
        let code = (bits >> (64 - length)) as u32;
        if let Some(at) = code.checked_sub(first).filter(|at| (*at as usize) < places) {
            let length = u32::try_from(length).unwrap_or(u32::MAX);
            let symbol = CODE.sorted[usize::from(place) + at as usize];
            return match u8::try_from(symbol) {
                Ok(symbol) if length <= count => Ok((symbol, length)),
                _ => Err(HpackError::Padding),
            };
        }
    }
    Err(HpackError::Padding)
}

/// Returns how many bytes a string takes when it is encoded.
pub(super) fn encoded_len(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|byte| usize::from(LENGTHS[usize::from(*byte)])).sum();
    bits.div_ceil(8)
}

/// Encodes a string, and appends it.
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut count) = (0_u64, 0);
    for byte in text {
        let symbol = usize::from(*byte);
        let length = u32::from(LENGTHS[symbol]);
        bits = bits << length | u64::from(CODE.of_symbol[symbol]);
        count += length;
        while count >= 8 {
            count -= 8;
            #[expect(clippy::cast_possible_truncation, reason = "the lowest byte is meant")]
            out.push((bits >> count) as u8);
        }
    }
    if count > 0 {
        // Padded with ones, as the end's code begins.
        #[expect(clippy::cast_possible_truncation, reason = "the lowest byte is meant")]
        out.push((bits << (8 - count)) as u8 | 0xff >> count);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(input: &[u8]) -> Result<Vec<u8>, HpackError> {
        let mut out = Vec::new();
        decode(input, &mut out).map(|()| out)
    }

    fn encoded(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(text, &mut out);
        out
    }

    #[test]
    fn the_examples_of_the_rfc_hold() {
        // RFC 7541, C.4.1 and C.6.1.
        let host = [0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];
        assert_eq!(encoded(b"www.example.com"), host);
        assert_eq!(decoded(&host), Ok(b"www.example.com".to_vec()));
        assert_eq!(decoded(&[0x64, 0x02]), Ok(b"302".to_vec()));
        assert_eq!(encoded(b"private"), [0xae, 0xc3, 0x77, 0x1a, 0x4b]);
    }

    #[test]
    fn the_codes_that_the_rfc_gives_come_of_the_lengths() {
        assert_eq!(CODE.of_symbol[usize::from(b'0')], 0);
        assert_eq!(CODE.of_symbol[usize::from(b'a')], 0x3);
        assert_eq!(CODE.of_symbol[0], 0x1ff8);
        assert_eq!(CODE.of_symbol[255], 0x3ff_ffee);
        assert_eq!(CODE.of_symbol[256], 0x3fff_ffff);
    }

    #[test]
    fn a_string_of_every_byte_comes_back() {
        let every: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
        assert_eq!(decoded(&encoded(&every)), Ok(every));
    }

    #[test]
    fn padding_is_shorter_than_a_byte_and_has_no_zero() {
        assert_eq!(decoded(&[0b0001_1111]), Ok(b"a".to_vec()), "three bits of padding");
        for bad in [
            &[0b0001_1110][..],
            &[0b0001_1111, 0xff],
            &[0xff],
            &[0xff, 0xff, 0xff, 0xff],
            &[0xff, 0xff, 0xff, 0xfc],
        ] {
            assert_eq!(decoded(bad), Err(HpackError::Padding), "{bad:x?}");
        }
    }

    proptest! {
        #[test]
        fn every_string_comes_back(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let coded = encoded(&text);
            prop_assert_eq!(coded.len(), encoded_len(&text));
            prop_assert_eq!(decoded(&coded), Ok(text));
        }

        #[test]
        fn what_is_decoded_is_the_only_way_to_encode_it(
            input in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            if let Ok(text) = decoded(&input) {
                prop_assert_eq!(encoded(&text), input);
            }
        }
    }
}
