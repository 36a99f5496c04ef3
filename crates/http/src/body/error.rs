//! What can be wrong with a request body.

use std::error::Error;
use std::fmt;

use super::{BODY_EXTENSION_BYTES_MAX, CHUNK_EXTENSION_BYTES_MAX, SIZE_DIGITS_MAX};
use crate::status::Status;

/// Why a request body was refused. The connection cannot go on after any of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BodyDecodeError {
    /// The body has, or is announced to have, more bytes than the limit.
    TooLarge {
        /// The limit that was passed.
        limit_bytes: u64,
    },
    /// A chunk size that is not 1 to 16 hexadecimal digits.
    ChunkSize,
    /// A byte in a chunk extension that cannot stand there.
    ChunkExtension,
    /// More bytes of extensions than a chunk or a body may have.
    ChunkExtensionTooLong,
    /// A chunk's data is not followed by a line end.
    ChunkEnd,
    /// A carriage return alone.
    LineEnd,
    /// A trailer line that is no field line.
    Trailer,
    /// More bytes of trailers than the limit.
    TrailersTooLarge {
        /// The limit that was passed.
        limit_bytes: u32,
    },
    /// More trailer lines than the limit.
    TooManyTrailers {
        /// The limit that was passed.
        limit: u32,
    },
}

impl BodyDecodeError {
    /// Returns the status that tells the client.
    pub const fn status(&self) -> Status {
        match self {
            Self::TooLarge { .. } => Status::CONTENT_TOO_LARGE,
            Self::TrailersTooLarge { .. } | Self::TooManyTrailers { .. } => {
                Status::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            _ => Status::BAD_REQUEST,
        }
    }

    /// Returns the label under which it is counted.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "body_too_large",
            Self::ChunkSize => "chunk_size",
            Self::ChunkExtension => "chunk_extension",
            Self::ChunkExtensionTooLong => "chunk_extension_too_long",
            Self::ChunkEnd => "chunk_end",
            Self::LineEnd => "chunk_line_end",
            Self::Trailer => "trailer",
            Self::TrailersTooLarge { .. } => "trailers_too_large",
            Self::TooManyTrailers { .. } => "too_many_trailers",
        }
    }
}

impl fmt::Display for BodyDecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { limit_bytes } => {
                write!(f, "the body is longer than {limit_bytes} bytes")
            }
            Self::ChunkSize => {
                write!(f, "a chunk size must be 1 to {SIZE_DIGITS_MAX} hexadecimal digits")
            }
            Self::ChunkExtension => f.write_str("a chunk extension is malformed"),
            Self::ChunkExtensionTooLong => write!(
                f,
                "chunk extensions are longer than {CHUNK_EXTENSION_BYTES_MAX} bytes in a chunk \
                 or {BODY_EXTENSION_BYTES_MAX} in a body"
            ),
            Self::ChunkEnd => f.write_str("a chunk's data must end with a line end"),
            Self::LineEnd => f.write_str("a carriage return must be followed by a line feed"),
            Self::Trailer => f.write_str("a trailer line is malformed"),
            Self::TrailersTooLarge { limit_bytes } => {
                write!(f, "the trailers are longer than {limit_bytes} bytes")
            }
            Self::TooManyTrailers { limit } => write!(f, "more than {limit} trailers"),
        }
    }
}

impl Error for BodyDecodeError {}
