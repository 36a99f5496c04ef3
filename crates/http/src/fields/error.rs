//! The check of a field, and why it fails.

use std::error::Error;
use std::fmt;

use super::{FieldName, HeaderId, NAME_BYTES_MAX, VALUE_BYTES_MAX};
use crate::syntax::{VALUE, is_token, skip, skip_plain_value};

/// Checks that a field can be sent in a response: it can neither split the response nor misframe
/// its content (RFC 9110 §5.1, §5.5; RFC 9112 §11.1).
///
/// # Errors
/// [`FieldError`] for the first rule that the field breaks.
pub fn check_field<'n>(name: impl Into<FieldName<'n>>, value: &[u8]) -> Result<(), FieldError> {
    let name = name.into();
    check_syntax(name, value)?;
    if matches!(
        name.id(),
        Some(HeaderId::ContentLength | HeaderId::TransferEncoding | HeaderId::Connection)
    ) {
        // Two of one of these, or one that disagrees with the content, would let the client see a
        // second response.
        return Err(FieldError::Framing);
    }
    Ok(())
}

/// Checks the bytes of a field: its name is a token, and its value holds no control byte.
pub(crate) fn check_syntax(name: FieldName<'_>, value: &[u8]) -> Result<(), FieldError> {
    let text = name.as_str().as_bytes();
    if name.id().is_none() && !(is_token(text) && text.len() <= NAME_BYTES_MAX) {
        return Err(FieldError::Name);
    }
    let is_value = skip(skip_plain_value(value), VALUE).is_empty();
    if !(is_value && value.len() <= VALUE_BYTES_MAX) {
        return Err(FieldError::Value);
    }
    Ok(())
}

/// Error of a field that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldError {
    /// The name is not a token, or has 16 MiB.
    Name,
    /// The value holds a control byte, or has 4 GiB.
    Value,
    /// The field frames the body or the connection: it has its own function.
    Framing,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name => "the field name is not a token",
            Self::Value => "the field value holds a control byte",
            Self::Framing => "the field is written by its own function only",
        })
    }
}

impl Error for FieldError {}
