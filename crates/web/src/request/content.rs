//! Properties of a request's body, and the body as text.

use std::borrow::Cow;

use super::Request;
use crate::body::{BodyError, decoded, encoding_of};

/// The whole body, and what the head states about it.
impl Request {
    /// Returns the value of Content-Type (RFC 9110 §8.3), parameters included.
    pub fn content_type(&self) -> Option<&str> {
        self.header("content-type")
    }

    /// Returns the value of Content-Length (RFC 9110 §8.6) in bytes; a chunked body has none.
    pub fn content_length(&self) -> Option<u64> {
        self.header("content-length")?.parse().ok()
    }

    /// Returns the whole body as text, in inline and blocking handlers. [`crate::Body::text`]
    /// explains charsets, and reads the body in a task.
    ///
    /// # Errors
    /// [`BodyError::UnknownCharset`]; [`BodyError::NotText`] if it has bytes that the charset does
    /// not have; [`BodyError::Unread`] in task handlers, which read it themselves.
    pub fn text(&self) -> Result<Cow<'_, str>, BodyError> {
        let encoding = encoding_of(self.header_bytes("content-type"))?;
        decoded(encoding, self.body.as_whole().ok_or(BodyError::Unread)?)
    }

    /// Returns the body, if it has been read for the handler.
    #[doc(hidden)]
    pub fn whole_body(&self) -> Result<&bytes::Bytes, BodyError> {
        self.body.as_whole().ok_or(BodyError::Unread)
    }
}
