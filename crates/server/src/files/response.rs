//! What a folder responds with, before a protocol writes it.

use std::collections::VecDeque;
use std::sync::Arc;

use gustnado_http::fields::{FieldsRef, HeaderId};
use gustnado_http::status::Status;
use gustnado_tasks::BlockingPool;

use super::cached_file::CachedFile;
use super::open_file::OpenFile;
use super::waiting::Lookup;

/// What a folder responds with where that is not all of a file that the worker's cache holds.
pub(crate) enum FolderResponse {
    Ready(Box<FileResponse>),
    /// Unknown until the disk has been waited for.
    Wait(Box<Lookup>),
}

/// A response about a file or a folder.
#[derive(Debug)]
pub(crate) struct FileResponse {
    pub(crate) status: Status,
    pub(crate) fields: FieldsRef,
    pub(crate) content: FileContent,
    /// What the page for the status says in place of its usual sentence.
    pub(crate) hint: Option<&'static str>,
}

/// The content of such a response.
#[derive(Debug)]
pub(crate) enum FileContent {
    /// None: with a status of 400 and above, the page for it takes its place.
    Nothing,
    /// All of a file.
    Whole(Arc<CachedFile>),
    /// Bytes made for this response.
    Bytes(Vec<u8>),
    /// Parts of a file and what stands between them, in order.
    Segments { segments: VecDeque<Segment>, length: u64 },
}

/// One piece of a response's content.
#[derive(Debug)]
pub(crate) enum Segment {
    /// Bytes made for this response.
    Bytes(Vec<u8>),
    /// A part of a regular file, to be sent without reading it into memory. A file that is shorter
    /// by now must cut the connection: the promised length cannot be kept.
    File {
        /// Open for reading, perhaps shared with other responses: its position is not to be used.
        file: Arc<OpenFile>,
        /// First byte to send.
        offset: u64,
        /// Bytes to send, at least 1.
        len: u64,
        /// Reads it into memory before it is sent, where it may lie on a disk that is slow.
        cold: Option<BlockingPool>,
    },
}

impl FileResponse {
    /// A response without content.
    pub(super) fn new(status: Status) -> Self {
        Self { status, fields: FieldsRef::new(), content: FileContent::Nothing, hint: None }
    }

    /// 200 with all of a file.
    pub(super) fn whole(file: Arc<CachedFile>) -> Self {
        let fields = FieldsRef::Shared(Arc::clone(file.fields()));
        Self { fields, content: FileContent::Whole(file), ..Self::new(Status::OK) }
    }

    /// Adds a field made of constants, digits, dates and type names.
    pub(super) fn put(&mut self, id: HeaderId, value: &[u8]) {
        self.fields.to_mut().add_trusted(id, value);
    }

    /// The same with one more field.
    pub(super) fn with(mut self, id: HeaderId, value: &[u8]) -> Self {
        self.put(id, value);
        self
    }
}
