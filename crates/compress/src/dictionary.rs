//! Compression with a dictionary that the client has (RFC 9842): a new release of a file as the
//! difference to the one before it.

use gustnado_http::dictionary::DictionaryHash;
use zstd_safe::{CCtx, CParameter};

use crate::encoder::EncodeError;

/// What a body with the coding `dcz` begins with (RFC 9842 §5): a frame that decoders skip, which
/// holds the dictionary's hash.
const MAGIC: [u8; 8] = [0x5e, 0x2a, 0x4d, 0x18, 0x20, 0, 0, 0];

/// The largest body and the largest dictionary. The window is as large as the body, and has to hold
/// all of it for the dictionary to stay in reach: this is the window that every client supports.
pub const DELTA_BYTES_MAX: u64 = 1 << WINDOW_LOG_MAX;
/// Bits of that window: 8 MiB.
const WINDOW_LOG_MAX: u32 = 23;

/// The level of a delta, which is made once for each pair. With every name of a program changed,
/// 19 leaves a quarter fewer bytes than 9, at 1.4 seconds for a megabyte.
const LEVEL: i32 = 19;
/// That of a delta of larger files, where the same would take many seconds and 200 MB.
const LEVEL_OF_LARGE: i32 = 9;
/// From which size on a body is large.
const LARGE_BYTES: usize = 2 << 20;

/// Compresses a body by means of a dictionary, with the coding `dcz`.
///
/// - `hash`: the dictionary's.
///
/// # Errors
/// [`EncodeError`] if no memory is free, or one of them is larger than [`DELTA_BYTES_MAX`].
pub fn compress_with(
    (dictionary, hash): (&[u8], DictionaryHash),
    input: &[u8],
) -> Result<Vec<u8>, EncodeError> {
    if [dictionary, input].iter().any(|bytes| bytes.len() as u64 > DELTA_BYTES_MAX) {
        return Err(EncodeError);
    }
    let mut context = CCtx::try_create().ok_or(EncodeError)?;
    let bits = usize::BITS - (dictionary.len() + input.len()).leading_zeros();
    let level =
        if dictionary.len().max(input.len()) < LARGE_BYTES { LEVEL } else { LEVEL_OF_LARGE };
    for parameter in [
        CParameter::CompressionLevel(level),
        // So that all of the dictionary is in reach of all of the body.
        CParameter::WindowLog(bits.clamp(10, WINDOW_LOG_MAX)),
        CParameter::EnableLongDistanceMatching(true),
    ] {
        context.set_parameter(parameter).map_err(|_| EncodeError)?;
    }
    context.ref_prefix(dictionary).map_err(|_| EncodeError)?;
    let mut frame = Vec::with_capacity(zstd_safe::compress_bound(input.len()));
    context.compress2(&mut frame, input).map_err(|_| EncodeError)?;
    Ok([MAGIC.as_slice(), &hash, &frame].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoded::{read_zstd, text};
    use proptest::prelude::*;
    use zstd_safe::{DCtx, DParameter};

    const HASH: DictionaryHash = [7; 32];

    /// Reads a delta as a client does that supports no more than it has to.
    fn decoded_with(dictionary: &[u8], bytes: &[u8]) -> Vec<u8> {
        assert_eq!((&bytes[..8], &bytes[8..40]), (&MAGIC[..], &HASH[..]));
        let mut decoder = DCtx::create();
        decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX)).expect("a limit");
        decoder.ref_prefix(dictionary).expect("a dictionary");
        // The frame with the hash is skipped by the decoder itself: it comes first here, too.
        read_zstd(&mut decoder, &bytes[40..], Vec::with_capacity(64 << 10))
    }

    fn delta(dictionary: &[u8], input: &[u8]) -> Vec<u8> {
        compress_with((dictionary, HASH), input).expect("it is encoded")
    }

    #[test]
    fn a_changed_bundle_travels_as_its_difference() {
        let old = text(1_100_000);
        let mut new = old.clone();
        // Changes all over it: a line here and there, one part moved, one part new.
        for at in (0..new.len() - 100).step_by(40_000) {
            new[at..at + 12].copy_from_slice(b"changed here");
        }
        let moved: Vec<u8> = new.drain(200_000..260_000).collect();
        new.splice(800_000..800_000, moved);
        new.extend_from_slice(&text(900_000)[880_000..]);
        let delta = delta(&old, &new);
        assert!(decoded_with(&old, &delta) == new);
        assert!(delta.len() * 100 < new.len() * 8, "{} of {}", delta.len(), new.len());
    }

    #[test]
    fn every_size_of_both_comes_back() {
        let max = usize::try_from(DELTA_BYTES_MAX).expect("it fits");
        for (old, new) in
            [(0, 0), (1, 10), (10, 100_000), (100_000, 10), (max, 1_000), (1_000, max), (max, max)]
        {
            let (old, new) = (text(old), text(new));
            assert!(decoded_with(&old, &delta(&old, &new)) == new);
        }
        let larger = vec![b'x'; max + 1];
        assert_eq!(compress_with((&larger, HASH), b"x"), Err(EncodeError));
        assert_eq!(compress_with((b"x", HASH), &larger), Err(EncodeError));
    }

    #[test]
    fn the_end_of_the_largest_body_finds_the_dictionary() {
        let max = usize::try_from(DELTA_BYTES_MAX).expect("it fits");
        // Bytes that nothing else than the dictionary has.
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_be_bytes()[0]
        };
        let old: Vec<u8> = (0..max).map(|_| next()).collect();
        let mut new = old.clone();
        new[max / 2] ^= 1;
        let delta = delta(&old, &new);
        assert!(decoded_with(&old, &delta) == new);
        assert!(delta.len() < 10_000, "{}", delta.len());
    }

    proptest! {
        #[test]
        fn any_pair_comes_back(
            old in proptest::collection::vec(any::<u8>(), 0..5_000),
            new in proptest::collection::vec(any::<u8>(), 0..5_000),
        ) {
            prop_assert_eq!(decoded_with(&old, &delta(&old, &new)), new);
        }
    }
}
