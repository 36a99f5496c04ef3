//! Content codings (RFC 9110 §8.4.1): gzip and Zstandard, of bytes at hand or piece by piece;
//! Brotli for files that are compressed in advance.
//!
//! The encoders are libraries. What lives here is how they are set: levels, windows, flushes, and
//! what it costs to hold one. No I/O: bytes in, bytes out.
//!
//! A part of `gustnado`, without a stable API of its own.
#![forbid(unsafe_code)]

mod advance;
mod counts;
#[cfg(test)]
mod decoded;
mod deflate;
mod encoder;
mod media_types;

pub use advance::compress_in_advance;
pub use counts::CompressionCounts;
pub use deflate::DeflateEncoder;
pub use encoder::{BodyEncoder, EncodeError, Flush, Level, compress};
pub use media_types::{COMPRESSIBLE, is_compressed_already};
