//! Compression with a dictionary that the client has (RFC 9842): a new release of a file as the
//! difference to the one before it.

use sha2::{Digest, Sha256};
use zstd_safe::{CCtx, CParameter};

use crate::encoder::EncodeError;

/// What a body with the coding `dcz` begins with (RFC 9842 §5): a frame that decoders skip, which
/// holds the dictionary's hash.
const MAGIC: [u8; 8] = [0x5e, 0x2a, 0x4d, 0x18, 0x20, 0, 0, 0];

/// Bits of the largest window that a client with a small dictionary has to support: 8 MiB.
const WINDOW_LOG_MAX: u32 = 23;

/// Level of a delta: it is made once for each pair.
const LEVEL: i32 = 19;

/// The SHA-256 hash of a dictionary.
pub type DictionaryHash = [u8; 32];

/// Returns the hash by which a client names a dictionary.
pub fn hash(dictionary: &[u8]) -> DictionaryHash {
    Sha256::digest(dictionary).into()
}

/// Compresses a body by means of a dictionary, with the coding `dcz`.
///
/// # Errors
/// [`EncodeError`] if no memory is free.
pub fn compress_with(dictionary: &[u8], input: &[u8]) -> Result<Vec<u8>, EncodeError> {
    let mut context = CCtx::try_create().ok_or(EncodeError)?;
    let bits = usize::BITS - (dictionary.len() + input.len()).leading_zeros();
    for parameter in [
        CParameter::CompressionLevel(LEVEL),
        // So that all of the dictionary is in reach of all of the body.
        CParameter::WindowLog(bits.clamp(10, WINDOW_LOG_MAX)),
        CParameter::EnableLongDistanceMatching(true),
    ] {
        context.set_parameter(parameter).map_err(|_| EncodeError)?;
    }
    context.ref_prefix(dictionary).map_err(|_| EncodeError)?;
    let mut frame = Vec::with_capacity(zstd_safe::compress_bound(input.len()));
    context.compress2(&mut frame, input).map_err(|_| EncodeError)?;
    Ok([MAGIC.as_slice(), &hash(dictionary), &frame].concat())
}

/// Reads the value of `Available-Dictionary`: a hash in base64 between colons (RFC 9842 §2.2, RFC
/// 9651 §3.3.5).
pub fn read_hash(value: &[u8]) -> Option<DictionaryHash> {
    let value = value.trim_ascii();
    let text = value.strip_prefix(b":")?.strip_suffix(b":")?;
    let digits = text.strip_suffix(b"=").filter(|digits| digits.len() == 43)?;
    let (mut hash, mut bits, mut count, mut at) = ([0; 32], 0_u32, 0, 0);
    for digit in digits {
        bits = bits << 6 | u32::from(value_of(*digit)?);
        count += 6;
        if count >= 8 {
            count -= 8;
            hash[at] = u8::try_from(bits >> count & 0xff).ok()?;
            at += 1;
        }
    }
    Some(hash)
}

fn value_of(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoded::{read_zstd, text};
    use proptest::prelude::*;
    use zstd_safe::DCtx;

    /// Reads a delta as a client does.
    fn decoded_with(dictionary: &[u8], bytes: &[u8]) -> Vec<u8> {
        assert_eq!(bytes[..8], MAGIC);
        assert_eq!(bytes[8..40], hash(dictionary));
        let mut decoder = DCtx::create();
        decoder.ref_prefix(dictionary).expect("a dictionary");
        // The frame with the hash is skipped by the decoder itself: it comes first here, too.
        read_zstd(&mut decoder, &bytes[40..], Vec::with_capacity(64 << 10))
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
        let delta = compress_with(&old, &new).expect("it is encoded");
        assert!(decoded_with(&old, &delta) == new);
        assert!(delta.len() * 100 < new.len() * 8, "{} of {}", delta.len(), new.len());
    }

    #[test]
    fn every_size_of_both_comes_back() {
        for (old, new) in [(0, 0), (1, 10), (10, 100_000), (100_000, 10), (9_000_000, 1_000)] {
            let (old, new) = (text(old), text(new));
            let delta = compress_with(&old, &new).expect("it is encoded");
            assert!(decoded_with(&old, &delta) == new);
        }
    }

    #[test]
    fn a_hash_is_read_as_it_is_written() {
        // The example of RFC 9842 §2.2.
        let value = b":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:";
        let hash = read_hash(value).expect("a hash");
        assert_eq!(hash[..4], [0xa5, 0x91, 0xa6, 0xd4]);
        assert_eq!(hash, super::hash(b"Hello World"));
        for value in [
            &b""[..],
            b":",
            b"::",
            b":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=",
            b":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG=:",
            b":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4!=:",
            b":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG*=:",
        ] {
            assert_eq!(read_hash(value), None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_hash_or_none(value in proptest::collection::vec(any::<u8>(), 0..60)) {
            read_hash(&value);
        }
    }
}
