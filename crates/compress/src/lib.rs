//! Content codings (RFC 9110 §8.4.1): gzip and Zstandard, of bytes at hand or piece by piece;
//! Brotli for files that are compressed in advance; Zstandard with a dictionary (RFC 9842). For
//! comparing, they are decoded, too.
//!
//! The encoders are libraries. What lives here is how they are set: levels, windows, flushes, and
//! what it costs to hold one. No I/O: bytes in, bytes out.
//!
//! A part of `gustnado`, without a stable API of its own.
#![forbid(unsafe_code)]

mod advance;
mod counts;
#[cfg(feature = "decode")]
mod decode;
#[cfg(test)]
mod decoded;
mod deflate;
mod dictionary;
mod encoder;
mod media_types;
mod whole;

pub use advance::compress_in_advance;
pub use counts::CompressionCounts;
#[cfg(feature = "decode")]
pub use decode::{DecodeError, decompress};
pub use deflate::DeflateEncoder;
pub use dictionary::{DELTA_BYTES_MAX, compress_with};
pub use encoder::{BodyEncoder, EncodeError, Flush, Level};
pub use media_types::{COMPRESSIBLE, is_compressed_already};
pub use whole::{WholeEncoder, compress};
