//! A response head whose fields came by HTTP/2: how it is put together.

use super::{ResponseFraming, ResponseHead};
use crate::head::{Span, Version};

/// What stands behind the records, so that a head is as long as one of HTTP/1 with its blank line.
const END: &[u8; 2] = b"\r\n";

impl ResponseHead {
    /// Makes a head of records, and writes its end behind them.
    ///
    /// - `bytes`: the records of all fields, shorter than 64 KiB.
    pub(crate) fn of_http2(status: u16, content_length: Option<u64>, bytes: &mut Vec<u8>) -> Self {
        let fields = Span::new(0, bytes.len());
        bytes.extend_from_slice(END);
        Self {
            framing: ResponseFraming::UntilClose,
            content_length,
            reason: Span::default(),
            fields,
            status,
            version: Version::Http2,
            keep_alive: true,
        }
    }

    /// Says how the body ends, which the stream and the request decide, too.
    ///
    /// - `has_none`: the response cannot have a body, or its stream has ended.
    pub(crate) fn framed(mut self, has_none: bool) -> Self {
        self.framing = match self.content_length {
            _ if has_none => ResponseFraming::None,
            Some(bytes) => ResponseFraming::Length(bytes),
            None => ResponseFraming::UntilClose,
        };
        self
    }
}
