//! A head in the least memory, for as long as nothing asks about it.

use std::sync::Arc;

use gustnado_http::head::Head;
use gustnado_http::path::CanonicalPath;

use super::{RequestHead, RequestHeadRef};

/// A head without room for another one, and without the channel of a body.
pub struct KeptHead {
    head: Head,
    bytes: Box<[u8]>,
    names: Option<Arc<[Box<str>]>>,
    values: Box<[(u32, u32)]>,
    keeps_empty: bool,
    path: Option<Box<CanonicalPath<'static>>>,
}

impl KeptHead {
    pub fn of(head: &RequestHead) -> Self {
        Self {
            head: head.head,
            bytes: head.bytes.as_slice().into(),
            names: head.names.clone(),
            values: head.values.as_slice().into(),
            keeps_empty: head.keeps_empty,
            path: head.path.clone().map(Box::new),
        }
    }

    /// Returns the head as it was.
    pub fn restore(&self) -> RequestHeadRef {
        let mut restored = RequestHead::take(&self.head, &self.bytes);
        let parts = restored.get_mut().expect("it was just made and has no other owner");
        (parts.names, parts.keeps_empty) = (self.names.clone(), self.keeps_empty);
        parts.values.extend(&self.values);
        parts.path = self.path.as_deref().cloned();
        restored
    }
}
