//! Header compression of HTTP/2 (RFC 7541), both ways.
//!
//! [`Decoder`] hands each field of a block on as it finds it, so that the caller can stop keeping
//! fields that are too many, while the table stays that of the peer. [`Encoder`] keeps in its table
//! what comes again, and knows by heart the lines that every response has.

mod decoder;
mod encoder;
mod huffman;
mod integer;
mod static_table;
mod table;
#[cfg(test)]
mod tests;

pub use decoder::{Decoder, Strings};
pub use encoder::{Encoder, ResponseLines, write_unindexed};

use std::error::Error;
use std::fmt;

/// Why a block of fields cannot be decoded. The peer's table is unknown from there on, so that the
/// connection ends (RFC 9113 §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HpackError {
    /// The block ends in the middle of a field.
    Truncated,
    /// A number has more than 32 bits, or more bytes than it needs for that.
    Integer,
    /// A string's padding is longer than 7 bits, or other than the beginning of the end's code.
    Padding,
    /// An index stands for no field.
    Index,
    /// The size of the table changes behind a field, or is above what was allowed, or does not
    /// change where it has to.
    TableSize,
}

impl fmt::Display for HpackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "a block of fields ends in the middle of one",
            Self::Integer => "a number in a block of fields is too long",
            Self::Padding => "a string in a block of fields has wrong padding",
            Self::Index => "a block of fields names an entry that is not in the table",
            Self::TableSize => "a block of fields changes the table's size where it may not",
        })
    }
}

impl Error for HpackError {}

/// What an entry of the table takes beyond its name and value (RFC 7541 §4.1).
pub const ENTRY_BYTES: usize = 32;

/// How big the table of the peer may be, until a setting says otherwise.
pub const TABLE_BYTES: usize = 4096;
