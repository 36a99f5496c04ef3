//! Compression in advance: as small as each coding gets, however long it takes.

use gustnado_http::content_coding::ContentCoding;

use crate::encoder::{EncodeError, Level};
use crate::whole::WholeEncoder;

/// As much work as is worth it.
const BEST: Level = Level { gzip: 12, zstd: 19 };

/// Compresses a file as well as its coding can: Brotli at quality 11, Zstandard at level 19, gzip
/// at level 12 of libdeflate.
///
/// # Errors
/// [`EncodeError`]: no memory is free, or this program has no encoder of the coding.
pub fn compress_in_advance(coding: ContentCoding, input: &[u8]) -> Result<Vec<u8>, EncodeError> {
    match coding {
        #[cfg(feature = "brotli")]
        ContentCoding::Brotli => brotli_of(input),
        coding => Ok(WholeEncoder::of_level(coding, BEST)?.encode(input)?.to_vec()),
    }
}

#[cfg(feature = "brotli")]
fn brotli_of(input: &[u8]) -> Result<Vec<u8>, EncodeError> {
    use brotli::enc::BrotliEncoderParams;

    let parameters = BrotliEncoderParams {
        quality: 11,
        // RFC 7932 §9.1: the largest window that every client has.
        lgwin: 24,
        size_hint: input.len(),
        ..BrotliEncoderParams::default()
    };
    let mut out = Vec::new();
    brotli::BrotliCompress(&mut &*input, &mut out, &parameters).map_err(|_| EncodeError)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress;
    use crate::decoded::{decoded, text};

    #[test]
    fn the_best_is_smaller_than_the_usual() {
        let input = text(300_000);
        for coding in [ContentCoding::Gzip, ContentCoding::Zstd] {
            let best = compress_in_advance(coding, &input).expect("it is encoded");
            let usual = compress(coding, Level::default(), &input).expect("it is encoded");
            assert!(best.len() <= usual.len(), "{coding:?} {} {}", best.len(), usual.len());
            assert!(decoded(coding, &best) == input);
        }
    }

    #[cfg(feature = "brotli")]
    #[test]
    fn brotli_is_the_smallest() {
        let input = text(300_000);
        let best = compress_in_advance(ContentCoding::Brotli, &input).expect("it is encoded");
        let zstd = compress_in_advance(ContentCoding::Zstd, &input).expect("it is encoded");
        assert!(best.len() < zstd.len());
        let mut back = Vec::new();
        brotli::BrotliDecompress(&mut &*best, &mut back).expect("it is Brotli");
        assert!(back == input);
    }
}
