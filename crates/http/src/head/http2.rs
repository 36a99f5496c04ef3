//! A head whose fields came by HTTP/2: how it is put together.

use super::{CHUNKED, CONTINUE, Head, LENGTH, Span, TO_END, UPGRADE, Version};
use crate::fields::INDEXED;
use crate::method::Method;
use crate::target::TargetForm;

/// What stands behind the records, so that a head is as long as one of HTTP/1 with its blank line.
const END: &[u8; 2] = b"\r\n";

impl Head {
    /// A head without anything.
    pub(crate) fn of_http2() -> Self {
        Self {
            content_length: 0,
            indexed: [Span::default(); INDEXED],
            target: Span::default(),
            fields: Span::default(),
            path_start: 0,
            query: 0,
            flags: 0,
            method: Method::Other,
            version: Version::Http2,
            form: TargetForm::Origin,
        }
    }

    /// Sets the method and the form of the target.
    pub(crate) fn set_line(&mut self, method: Method, form: TargetForm) {
        (self.method, self.form) = (method, form);
    }

    /// Sets the place of the target.
    ///
    /// - `path_len`: its bytes in front of the query; 0 for one that has no path.
    pub(crate) fn set_target(&mut self, target: Span, path_len: usize) {
        self.target = target;
        self.path_start = if path_len == 0 { target.end } else { target.start };
        let query = Span::new(0, usize::from(target.start) + path_len).end;
        self.query = if path_len == 0 || query == target.end { 0 } else { query };
    }

    /// Sets the announced length of the body. Returns whether there was none.
    pub(crate) fn set_length(&mut self, bytes: u64) -> bool {
        let is_first = !self.has(LENGTH);
        self.flags |= LENGTH;
        self.content_length = bytes;
        is_first
    }

    /// Notes that the client waits for `100 Continue`.
    pub(crate) fn set_continue(&mut self) {
        self.flags |= CONTINUE;
    }

    /// Notes that it asks for a tunnel in a protocol, which stands in front of the target (RFC 8441
    /// §4).
    pub(crate) fn set_protocol(&mut self) {
        self.flags |= UPGRADE;
    }

    /// Begins the records of the fields.
    pub(crate) fn begin_records(&mut self, at: usize) {
        self.fields = Span::new(at, at);
    }

    /// Ends the records. Returns whether the announced length agrees with the stream.
    pub(crate) fn end_records(&mut self, bytes: &mut Vec<u8>, has_body: bool) -> bool {
        self.fields = Span::new(usize::from(self.fields.start), bytes.len());
        bytes.extend_from_slice(END);
        debug_assert!(!self.has(CHUNKED));
        if has_body && !self.has(LENGTH) {
            self.flags |= TO_END;
        }
        has_body || self.content_length == 0
    }
}
