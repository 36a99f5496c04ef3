//! The response of a folder, before a protocol writes it.

use std::collections::VecDeque;
use std::sync::Arc;

use gustnado_http::fields::{Fields, FieldsRef, HeaderId};
use gustnado_http::status::Status;

use super::cached_file::CachedFile;
use super::headers::FolderHeaders;
use super::pieces::Pieces;
use super::segment::Segment;

/// A response about a file or a folder.
#[derive(Debug)]
pub struct FileResponse {
    /// Its status.
    pub status: Status,
    /// Its fields, but for `Content-Length`.
    pub fields: FieldsRef,
    /// Its content.
    pub content: FileContent,
    /// The text of the status page in place of its standard sentence.
    pub hint: Option<&'static str>,
}

/// The content of such a response.
#[derive(Debug)]
pub enum FileContent {
    /// None: with a status of 400 and above, the status page takes its place.
    Nothing,
    /// All of a file.
    Whole(Arc<CachedFile>),
    /// Bytes made for this response.
    Bytes(Vec<u8>),
    /// Bytes that are made while they are sent.
    Pieces(Box<Pieces>),
    /// Parts of a file and the bytes between them, in order.
    Segments {
        /// The pieces.
        segments: VecDeque<Segment>,
        /// Bytes in all.
        length: u64,
    },
}

impl FileResponse {
    /// Creates a response without content.
    pub(super) fn new(status: Status) -> Self {
        Self { status, fields: FieldsRef::new(), content: FileContent::Nothing, hint: None }
    }

    /// Creates a 200 with a whole file.
    pub(super) fn whole(file: Arc<CachedFile>) -> Self {
        let fields = FieldsRef::Shared(Arc::clone(file.fields()));
        Self { fields, content: FileContent::Whole(file), ..Self::new(Status::OK) }
    }

    /// Adds a field made of constants, digits, dates and type names.
    pub(super) fn put(&mut self, id: HeaderId, value: &[u8]) {
        self.fields.to_mut().add_trusted(id, value);
    }

    /// Returns it with one more field.
    pub(super) fn with(mut self, id: HeaderId, value: &[u8]) -> Self {
        self.put(id, value);
        self
    }

    /// Returns it with the folder's fields.
    pub(super) fn with_headers(mut self, headers: &FolderHeaders) -> Self {
        if !headers.fields.is_empty() {
            self.fields.to_mut().extend(&headers.fields);
        }
        self
    }

    /// Returns it with the folder's fields and those of a file.
    pub(super) fn with_headers_of_file(mut self, headers: &FolderHeaders, own: &Fields) -> Self {
        if !headers.fields.is_empty() || !own.is_empty() {
            headers.add_to(self.fields.to_mut(), own);
        }
        self
    }

    /// Returns it with the folder's fields, for the content of a file.
    ///
    /// - `own`: fields of this file.
    pub(super) fn with_headers_of_content(mut self, headers: &FolderHeaders, own: &Fields) -> Self {
        if !headers.has_nosniff {
            self.put(HeaderId::XContentTypeOptions, b"nosniff");
        }
        self.with_headers_of_file(headers, own)
    }
}
