//! What can be wrong with a response head.

use std::error::Error;
use std::fmt;

/// Why a response head was refused. The connection cannot go on after any of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResponseError {
    /// The first bytes are not `HTTP/`: the server speaks something else, or it wrote more than the
    /// response before had room for.
    NotHttp,
    /// The status line is not a version, a space, three digits from 100 on, and a reason phrase.
    StatusLine,
    /// A major version other than 1.
    VersionUnknown,
    /// A field line that does not start with a token and a colon.
    FieldName,
    /// A control byte in a field value.
    FieldValue,
    /// A field line that starts with space: the line before it goes on.
    Folded,
    /// A line feed without a carriage return before it.
    LineEnd,
    /// More field lines than the limit.
    TooManyFields {
        /// The limit that was passed.
        limit: usize,
    },
    /// No head can end within the limit any more.
    TooLarge {
        /// The limit that was passed.
        limit_bytes: usize,
    },
    /// Content-Length is not a number of at most 64 bits, nor a list that begins with one.
    LengthSyntax,
    /// Another length, or something else, where only the same length may be repeated.
    LengthConflict,
    /// Content-Length together with Transfer-Encoding.
    LengthWithCoding,
    /// Transfer-Encoding in HTTP/1.0.
    CodingInOldVersion,
    /// Transfer-Encoding is malformed, or says chunked twice.
    CodingSyntax,
    /// A transfer coding other than chunked: none was asked for.
    CodingUnknown,
}

impl fmt::Display for ResponseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotHttp => "the first bytes are not those of an HTTP/1 response",
            Self::StatusLine => "the status line is malformed",
            Self::VersionUnknown => "the version is not one of HTTP/1",
            Self::FieldName => "a field line must start with a name and a colon",
            Self::FieldValue => "a field value holds a control byte",
            Self::Folded => "a field line starts with space",
            Self::LineEnd => "a line must end with carriage return and line feed",
            Self::TooManyFields { limit } => return write!(f, "more than {limit} fields"),
            Self::TooLarge { limit_bytes } => {
                return write!(f, "the response head is longer than {limit_bytes} bytes");
            }
            Self::LengthSyntax => "the content length is malformed",
            Self::LengthConflict => "the content lengths differ",
            Self::LengthWithCoding => "both a content length and a transfer coding are given",
            Self::CodingInOldVersion => "a transfer coding is given in HTTP/1.0",
            Self::CodingSyntax => "the last transfer coding must be chunked, once",
            Self::CodingUnknown => "a transfer coding was used that was not asked for",
        })
    }
}

impl Error for ResponseError {}
