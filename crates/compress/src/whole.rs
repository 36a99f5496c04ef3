//! An encoder of bodies that are at hand, each in one call.
//!
//! Its gzip is libdeflate's, which cannot take a body in pieces: at equal length it takes half the
//! time of the encoder that streams need.

use gustnado_http::content_coding::ContentCoding;
use libdeflater::{CompressionLvl, Compressor};
use zstd_safe::{CCtx, CParameter};

use crate::encoder::{EncodeError, Level};

/// Bits of the largest window that a client has to support (RFC 9659 §3): 8 MiB.
const WINDOW_LOG_MAX: u32 = 23;

/// What libdeflate holds up to level 9: a table of hashes and 50,000 matches.
const GZIP_BYTES: usize = 680 << 10;

/// What Zstandard's holds for a short body at any level, and how much more for each of its bytes.
const ZSTD_BYTES: usize = 600 << 10;
const ZSTD_BYTES_PER_BYTE: usize = 24;

/// Libdeflate's highest level but those that hold some ten megabytes.
const GZIP_LEVEL_MAX: u8 = 9;

/// An encoder of whole bodies, one after the other.
pub struct WholeEncoder {
    state: WholeEncoderState,
    /// The last body.
    out: Vec<u8>,
}

enum WholeEncoderState {
    Gzip(Compressor),
    Zstd(CCtx<'static>),
}

impl WholeEncoder {
    /// Creates an encoder.
    ///
    /// # Errors
    /// [`EncodeError`] if no memory is free, or `coding` is neither gzip nor Zstandard.
    pub fn new(coding: ContentCoding, level: Level) -> Result<Self, EncodeError> {
        let level = Level { gzip: level.gzip.min(GZIP_LEVEL_MAX), ..level };
        Self::of_level(coding, level)
    }

    /// The same up to level 12 of libdeflate.
    pub(crate) fn of_level(coding: ContentCoding, level: Level) -> Result<Self, EncodeError> {
        let state = match coding {
            ContentCoding::Gzip => {
                let level = CompressionLvl::new(i32::from(level.gzip.clamp(1, 12)));
                WholeEncoderState::Gzip(Compressor::new(level.map_err(|_| EncodeError)?))
            }
            ContentCoding::Zstd => {
                let mut context = CCtx::try_create().ok_or(EncodeError)?;
                let level = i32::from(level.zstd.clamp(1, 19));
                let parameter = CParameter::CompressionLevel(level);
                context.set_parameter(parameter).map_err(|_| EncodeError)?;
                WholeEncoderState::Zstd(context)
            }
            _ => return Err(EncodeError),
        };
        Ok(Self { state, out: Vec::new() })
    }

    /// Encodes a body. What it returns is there until the next one.
    ///
    /// # Errors
    /// [`EncodeError`]: no memory is free.
    pub fn encode(&mut self, input: &[u8]) -> Result<&[u8], EncodeError> {
        let written = match &mut self.state {
            WholeEncoderState::Gzip(compressor) => {
                let bound = compressor.gzip_compress_bound(input.len());
                if self.out.len() < bound {
                    self.out.resize(bound, 0);
                }
                compressor.gzip_compress(input, &mut self.out).map_err(|_| EncodeError)?
            }
            WholeEncoderState::Zstd(context) => {
                let bits = usize::BITS - input.len().leading_zeros();
                if bits > WINDOW_LOG_MAX {
                    let window = CParameter::WindowLog(WINDOW_LOG_MAX);
                    context.set_parameter(window).map_err(|_| EncodeError)?;
                }
                self.out.clear();
                self.out.reserve(zstd_safe::compress_bound(input.len()));
                context.compress2(&mut self.out, input).map_err(|_| EncodeError)?
            }
        };
        self.out.get(..written).ok_or(EncodeError)
    }

    /// Returns about the most bytes that an encoder comes to hold with a body, that included.
    ///
    /// - `length`: the body's, at most 8 MiB.
    pub fn bytes_for(coding: ContentCoding, level: Level, length: usize) -> usize {
        let of_level = match level.zstd {
            0..=3 => 1_400,
            4..=6 => 3_200,
            7..=8 => 5_800,
            10.. if length > 1 << 20 => 84_000,
            9..=12 => 11_000,
            _ => 18_000,
        };
        let own = match coding {
            ContentCoding::Gzip => GZIP_BYTES,
            _ => (of_level << 10).min(ZSTD_BYTES + length.saturating_mul(ZSTD_BYTES_PER_BYTE)),
        };
        // What could not be compressed has some bytes more than the body.
        own + length + length / 128
    }

    /// Returns the bytes that it holds, its last body included.
    pub fn heap_bytes(&self) -> usize {
        let own = match &self.state {
            WholeEncoderState::Gzip(_) => GZIP_BYTES,
            WholeEncoderState::Zstd(context) => context.sizeof(),
        };
        own + self.out.capacity()
    }
}

/// Compresses bytes at hand.
///
/// # Errors
/// As [`WholeEncoder::new`].
pub fn compress(coding: ContentCoding, level: Level, input: &[u8]) -> Result<Vec<u8>, EncodeError> {
    Ok(WholeEncoder::new(coding, level)?.encode(input)?.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoded::{decoded, text};

    const BOTH: [ContentCoding; 2] = [ContentCoding::Gzip, ContentCoding::Zstd];

    #[test]
    fn bytes_at_hand_become_fewer_and_come_back() {
        for coding in BOTH {
            for length in [0, 1, 100, 10_000, 3_000_000] {
                let input = text(length);
                let out = compress(coding, Level::default(), &input).expect("it is encoded");
                assert!(decoded(coding, &out) == input, "{coding:?} {length}");
                assert!(length < 1_000 || out.len() < length / 2, "{coding:?} {length}");
            }
        }
    }

    #[test]
    fn every_level_is_taken() {
        let input = text(20_000);
        for number in 0..=255 {
            let level = Level { gzip: number, zstd: number };
            for coding in BOTH {
                if number % 16 == 0 || number < 20 {
                    let out = compress(coding, level, &input).expect("it is encoded");
                    assert!(decoded(coding, &out) == input, "{coding:?} {number}");
                }
            }
        }
    }

    #[test]
    fn an_encoder_serves_one_body_after_the_other() {
        for coding in BOTH {
            let mut encoder = WholeEncoder::new(coding, Level::default()).expect("an encoder");
            for length in [5_000, 10, 0, 20_000] {
                let input = text(length);
                let out = encoder.encode(&input).expect("it is encoded");
                assert!(decoded(coding, out) == input, "{coding:?} {length}");
            }
            assert!((100_000..2_000_000).contains(&encoder.heap_bytes()), "{coding:?}");
        }
    }

    #[test]
    fn what_a_body_takes_is_known_before() {
        for coding in BOTH {
            for (number, length) in [1, 3, 6, 8, 12, 19]
                .into_iter()
                .flat_map(|number| [1_000, 20_000, 100_000, 1 << 20].map(|length| (number, length)))
                .chain([(3, 8 << 20)])
            {
                let level = Level { gzip: number.min(9), zstd: number };
                let known = WholeEncoder::bytes_for(coding, level, length);
                let mut encoder = WholeEncoder::new(coding, level).expect("an encoder");
                encoder.encode(&text(length)).expect("it is encoded");
                // (And some more if it is short.)
                let held = encoder.heap_bytes() - 8_192;
                assert!(known >= held, "{coding:?} {number} {length}: {known} of {held}");
                assert!(known <= 8 * held + (512 << 10), "{coding:?} {number} {length}: {held}");
            }
        }
    }

    #[test]
    fn there_is_no_encoder_of_other_codings() {
        for coding in [ContentCoding::Identity, ContentCoding::Brotli] {
            assert_eq!(compress(coding, Level::default(), b"x"), Err(EncodeError));
        }
    }
}
