//! Masking: what clients send is combined with four bytes by exclusive or (RFC 6455 §5.3).

/// Masks bytes, or unmasks them, which is the same. Returns the mask of the bytes that follow.
///
/// - `mask`: of the first byte on.
pub fn apply(mask: [u8; 4], bytes: &mut [u8]) -> [u8; 4] {
    let [a, b, c, d] = mask;
    let word = u128::from_ne_bytes([a, b, c, d, a, b, c, d, a, b, c, d, a, b, c, d]);
    let (words, rest) = bytes.as_chunks_mut::<16>();
    for chunk in words {
        *chunk = (u128::from_ne_bytes(*chunk) ^ word).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
    let mut next = mask;
    next.rotate_left(rest.len() % 4);
    next
}
