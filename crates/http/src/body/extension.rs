//! The grammar of chunk extensions (RFC 9112 §7.1.1):
//! `*( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] )`
//!
//! Nothing an extension says has a meaning here. It is checked all the same: what one server takes
//! for an extension and another for data is how requests are smuggled.

use crate::syntax::{TOKEN, VALUE, is, is_space};

/// Where in the extensions of a chunk the reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extension {
    /// In the space before a semicolon.
    Space,
    /// Behind a semicolon, before the name.
    Semicolon,
    Name,
    /// In the space behind a name.
    NameSpace,
    /// Behind an equals sign, before the value.
    Equals,
    Token,
    Quoted,
    /// Behind a backslash between quotation marks.
    Escape,
    /// Behind the second quotation mark.
    QuotedEnd,
}

impl Extension {
    /// Returns where the reader is after a byte. None if the byte cannot stand there.
    pub(super) fn step(self, byte: u8) -> Option<Self> {
        match (self, byte) {
            (Self::Quoted, b'"') => Some(Self::QuotedEnd),
            (Self::Quoted, b'\\') => Some(Self::Escape),
            (Self::Quoted | Self::Escape, _) if is(byte, VALUE) => Some(Self::Quoted),
            (Self::Quoted | Self::Escape, _) => None,
            (Self::Semicolon | Self::Equals, _) if is_space(byte) => Some(self),
            (Self::Name | Self::NameSpace, _) if is_space(byte) => Some(Self::NameSpace),
            (_, _) if is_space(byte) => Some(Self::Space),
            (Self::Semicolon | Self::Name, _) if is(byte, TOKEN) => Some(Self::Name),
            (Self::Equals | Self::Token, _) if is(byte, TOKEN) => Some(Self::Token),
            (Self::Equals, b'"') => Some(Self::Quoted),
            (Self::Name | Self::NameSpace, b'=') => Some(Self::Equals),
            (Self::Semicolon | Self::Equals, _) => None,
            (_, b';') => Some(Self::Semicolon),
            _ => None,
        }
    }

    /// Returns whether the line may end here.
    pub(super) fn may_end(self) -> bool {
        matches!(self, Self::Name | Self::Token | Self::QuotedEnd)
    }
}
