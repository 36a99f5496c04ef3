//! An encoder of streams by gzip or Zstandard, and how it is set.

use flate2::{Compress, Compression, FlushCompress, Status};
use gustnado_http::content_coding::ContentCoding;
use thiserror::Error;
use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer};

/// Bits of the window of a stream's Zstandard encoder. Whoever has ten thousand streams open has as
/// many windows: 64 KiB are twice what gzip has.
const STREAM_WINDOW_LOG: u32 = 16;
/// Bits of the tables that go with it.
const STREAM_HASH_LOG: u32 = 15;
const STREAM_CHAIN_LOG: u32 = 14;

/// The same of an archive: few are made at once, and much in one file is found in the next.
const ARCHIVE_WINDOW_LOG: u32 = 21;
const ARCHIVE_HASH_LOG: u32 = 18;
const ARCHIVE_CHAIN_LOG: u32 = 17;

/// Bytes that the output grows by.
const STEP_BYTES: usize = 4 << 10;

/// What gzip's encoder holds: its window twice, hashes, links, and what it has not written yet.
const GZIP_BYTES: usize = 272 << 10;
/// What Zstandard's encoder of a stream holds: its window, tables, a block before and after, and
/// what it has found in the block. The last levels look for more.
const ZSTD_BYTES: usize = 650 << 10;
const ZSTD_BYTES_OF_BEST: usize = 1_110 << 10;

/// How much work an encoder spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Level {
    /// Of gzip, 1 to 9.
    pub gzip: u8,
    /// Of Zstandard, 1 to 19.
    pub zstd: u8,
}

impl Default for Level {
    fn default() -> Self {
        Self { gzip: 6, zstd: 3 }
    }
}

/// What is written of the bytes that an encoder has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// What it is ready to write.
    No,
    /// All, so that the client can read it now.
    Now,
    /// All, and the end.
    End,
}

/// Why bytes were not encoded: no memory, or a coding that there is no encoder of.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the encoder has failed")]
pub struct EncodeError;

/// An encoder of one body, in pieces.
pub struct BodyEncoder(EncoderState);

enum EncoderState {
    Gzip(Box<Compress>),
    Zstd(CCtx<'static>),
}

impl BodyEncoder {
    /// Creates an encoder of a stream, whose length is not known.
    ///
    /// # Errors
    /// [`EncodeError`] if no memory is free, or `coding` is neither gzip nor Zstandard.
    pub fn of_stream(coding: ContentCoding, level: Level) -> Result<Self, EncodeError> {
        Self::with_tables(coding, level, (STREAM_WINDOW_LOG, STREAM_HASH_LOG, STREAM_CHAIN_LOG))
    }

    /// Creates an encoder of an archive, whose length is not known either. With Zstandard it holds
    /// a few MiB, whatever the level.
    ///
    /// # Errors
    /// As [`BodyEncoder::of_stream`].
    pub fn of_archive(coding: ContentCoding, level: Level) -> Result<Self, EncodeError> {
        let logs = (ARCHIVE_WINDOW_LOG, ARCHIVE_HASH_LOG, ARCHIVE_CHAIN_LOG);
        Self::with_tables(coding, level, logs)
    }

    /// - `window`, `hash`, `chain`: bits of what Zstandard's encoder holds, whatever the level.
    fn with_tables(
        coding: ContentCoding,
        level: Level,
        (window, hash, chain): (u32, u32, u32),
    ) -> Result<Self, EncodeError> {
        Ok(Self(match coding {
            ContentCoding::Gzip => {
                let level = Compression::new(u32::from(level.gzip.clamp(1, 9)));
                EncoderState::Gzip(Box::new(Compress::new_gzip(level, 15)))
            }
            ContentCoding::Zstd => {
                let mut context = CCtx::try_create().ok_or(EncodeError)?;
                for parameter in [
                    CParameter::CompressionLevel(i32::from(level.zstd.clamp(1, 19))),
                    CParameter::WindowLog(window),
                    CParameter::HashLog(hash),
                    CParameter::ChainLog(chain),
                ] {
                    context.set_parameter(parameter).map_err(|_| EncodeError)?;
                }
                EncoderState::Zstd(context)
            }
            _ => return Err(EncodeError),
        }))
    }

    /// Encodes a piece, all of it, and appends what is written to `out`.
    ///
    /// # Errors
    /// [`EncodeError`]: the body cannot be continued.
    pub fn encode(
        &mut self,
        input: &[u8],
        flush: Flush,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        match &mut self.0 {
            EncoderState::Gzip(compress) => encode_deflate(compress, input, flush, out),
            EncoderState::Zstd(context) => encode_zstd(context, input, flush, out),
        }
    }

    /// Returns the bytes that an encoder of a stream comes to hold with its first piece, before one
    /// is created.
    pub fn stream_bytes(coding: ContentCoding, level: Level) -> usize {
        match (coding, level.zstd) {
            (ContentCoding::Gzip, _) => GZIP_BYTES,
            (_, 0..=15) => ZSTD_BYTES,
            (_, _) => ZSTD_BYTES_OF_BEST,
        }
    }

    /// Returns the bytes that it holds. Zstandard's takes nearly all of it for its first piece.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            EncoderState::Gzip(_) => GZIP_BYTES,
            EncoderState::Zstd(context) => context.sizeof(),
        }
    }
}

/// Encodes a piece, by gzip or by DEFLATE alone.
pub(crate) fn encode_deflate(
    compress: &mut Compress,
    input: &[u8],
    flush: Flush,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let flush = match flush {
        Flush::No => FlushCompress::None,
        Flush::Now => FlushCompress::Sync,
        Flush::End => FlushCompress::Finish,
    };
    let mut at = 0;
    loop {
        if out.capacity() - out.len() < STEP_BYTES {
            out.reserve(STEP_BYTES.max(out.len() / 2));
        }
        let before = compress.total_in();
        let status = compress.compress_vec(&input[at..], out, flush).map_err(|_| EncodeError)?;
        at += usize::try_from(compress.total_in() - before).map_err(|_| EncodeError)?;
        // With room left in the output, everything that was asked for is in it.
        let is_flushed = at == input.len() && out.len() < out.capacity();
        match status {
            Status::StreamEnd => return Ok(()),
            Status::Ok | Status::BufError if is_flushed && flush != FlushCompress::Finish => {
                return Ok(());
            }
            Status::Ok | Status::BufError => {}
        }
    }
}

fn encode_zstd(
    context: &mut CCtx<'_>,
    input: &[u8],
    flush: Flush,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let directive = match flush {
        Flush::No => ZSTD_EndDirective::ZSTD_e_continue,
        Flush::Now => ZSTD_EndDirective::ZSTD_e_flush,
        Flush::End => ZSTD_EndDirective::ZSTD_e_end,
    };
    let mut input = InBuffer::around(input);
    loop {
        if out.capacity() - out.len() < STEP_BYTES {
            out.reserve(STEP_BYTES.max(out.len() / 2));
        }
        let at = out.len();
        let mut output = OutBuffer::around_pos(out, at);
        let left = context.compress_stream2(&mut output, &mut input, directive);
        let left = left.map_err(|_| EncodeError)?;
        let is_read = input.pos() == input.src.len();
        // `left` is what a flush has still to write; to continue, all has to be read and no more.
        if is_read && (left == 0 || flush == Flush::No) {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoded::{decoded, text};
    use proptest::prelude::*;

    const BOTH: [ContentCoding; 2] = [ContentCoding::Gzip, ContentCoding::Zstd];

    #[test]
    fn a_flush_lets_the_client_read_all() {
        for coding in BOTH {
            let mut encoder = BodyEncoder::of_stream(coding, Level::default()).expect("an encoder");
            let (mut sent, mut out) = (Vec::new(), Vec::new());
            for at in 0..50 {
                let event = format!("data: {at}\n\n");
                sent.extend_from_slice(event.as_bytes());
                encoder.encode(event.as_bytes(), Flush::Now, &mut out).expect("it is encoded");
                assert_eq!(decoded(coding, &out), sent, "{coding:?} {at}");
            }
            encoder.encode(b"", Flush::End, &mut out).expect("it is encoded");
            assert_eq!(decoded(coding, &out), sent);
        }
    }

    #[test]
    fn a_stream_holds_little() {
        for coding in BOTH {
            let mut encoder = BodyEncoder::of_stream(coding, Level::default()).expect("an encoder");
            encoder.encode(&text(1_000_000), Flush::Now, &mut Vec::new()).expect("it is encoded");
            assert!((100_000..700_000).contains(&encoder.heap_bytes()), "{}", encoder.heap_bytes());
        }
    }

    #[test]
    fn what_a_stream_comes_to_hold_is_known_before() {
        for coding in BOTH {
            for number in 1..=19 {
                let level = Level { gzip: number.min(9), zstd: number };
                let known = BodyEncoder::stream_bytes(coding, level);
                let mut encoder = BodyEncoder::of_stream(coding, level).expect("an encoder");
                encoder.encode(&text(100_000), Flush::Now, &mut Vec::new()).expect("it is encoded");
                let held = encoder.heap_bytes();
                assert!((held..=held * 3 / 2).contains(&known), "{coding:?} {number}: {held}");
            }
        }
    }

    #[test]
    fn an_archive_holds_a_few_mebibytes_at_any_level() {
        for zstd in [1, 3, 9, 19] {
            let level = Level { zstd, ..Level::default() };
            let encoder = BodyEncoder::of_archive(ContentCoding::Zstd, level);
            let (mut encoder, mut out) = (encoder.expect("an encoder"), Vec::new());
            let input = text(3_000_000);
            encoder.encode(&input, Flush::End, &mut out).expect("it is encoded");
            assert!(decoded(ContentCoding::Zstd, &out) == input, "{zstd}");
            assert!(encoder.heap_bytes() < 8 << 20, "{zstd}: {}", encoder.heap_bytes());
        }
    }

    proptest! {
        #[test]
        fn any_pieces_come_back(
            pieces in proptest::collection::vec(
                (proptest::collection::vec(any::<u8>(), 0..5_000), any::<bool>()), 0..12),
            zstd: bool,
        ) {
            let coding = BOTH[usize::from(zstd)];
            let mut encoder = BodyEncoder::of_stream(coding, Level::default()).expect("an encoder");
            let (mut whole, mut out) = (Vec::new(), Vec::new());
            for (piece, is_flushed) in &pieces {
                whole.extend_from_slice(piece);
                let flush = if *is_flushed { Flush::Now } else { Flush::No };
                encoder.encode(piece, flush, &mut out).expect("it is encoded");
            }
            encoder.encode(b"", Flush::End, &mut out).expect("it is encoded");
            prop_assert_eq!(decoded(coding, &out), whole);
        }
    }
}
