//! Numbers with a prefix (RFC 7541 §5.1).

use super::HpackError;

/// Reads a number whose prefix has so many bits. Returns it, and what follows.
#[inline]
pub(super) fn read(input: &[u8], prefix_bits: u32) -> Result<(usize, &[u8]), HpackError> {
    let (first, rest) = input.split_first().ok_or(HpackError::Truncated)?;
    let max = (1_u32 << prefix_bits) - 1;
    let value = u32::from(*first) & max;
    if value < max { Ok((value as usize, rest)) } else { read_long(rest, max) }
}

#[cold]
fn read_long(input: &[u8], max: u32) -> Result<(usize, &[u8]), HpackError> {
    let (mut value, mut rest) = (max, input);
    for shift in (0..).step_by(7) {
        let (byte, behind) = rest.split_first().ok_or(HpackError::Truncated)?;
        rest = behind;
        // Five bytes hold any number that can mean something here.
        if shift > 28 {
            return Err(HpackError::Integer);
        }
        let part = u64::from(byte & 0x7f) << shift;
        let sum = u64::from(value) + part;
        value = u32::try_from(sum).map_err(|_| HpackError::Integer)?;
        if byte & 0x80 == 0 {
            break;
        }
    }
    Ok((value as usize, rest))
}

/// Writes a number.
///
/// - `pattern`: the bits in front of the prefix.
#[inline]
pub(super) fn write(value: usize, prefix_bits: u32, pattern: u8, out: &mut Vec<u8>) {
    let max = (1_usize << prefix_bits) - 1;
    #[expect(clippy::cast_possible_truncation, reason = "it is below 256")]
    if value < max {
        out.push(pattern | value as u8);
    } else {
        out.push(pattern | max as u8);
        write_rest(value - max, out);
    }
}

#[expect(clippy::cast_possible_truncation, reason = "seven bits are taken")]
fn write_rest(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
