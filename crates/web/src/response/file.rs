//! Responses made of files.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use gustnado_files::{
    FileContent, FileResponse, Pieces, PiecesFailed, respond_with_file, respond_with_whole_file,
};
use gustnado_http::request::RequestView;
use gustnado_http::status::Status;
use gustnado_tasks::Now;

use super::{Content, Response, Streamed};

impl Response {
    /// Opens the file, if the content is one by its path: the response becomes the one to be sent,
    /// which may be 206, 304 or 404. Waits for the disk.
    #[doc(hidden)]
    pub fn open_file(&mut self, request: RequestView<'_>, now: Now) {
        let Content::Path(path) = &self.content else { return };
        let found = Self::from(respond_with_file(path, request, now));
        if self.fields.is_empty() && self.content_type.is_none() {
            self.fields = found.fields;
        } else {
            for (name, value) in found.fields.iter() {
                if self.header_value(name.as_str()).is_none() {
                    self.fields.to_mut().add_trusted(name, value);
                }
            }
        }
        (self.status, self.content) = (found.status, found.content);
    }

    /// Opens the file of a page, if the content is one by its path; returns whether there is one to
    /// be sent. A page has its type, but neither validators nor parts. Waits for the disk.
    pub fn open_page(&mut self, now: Now) -> bool {
        let Content::Path(path) = &self.content else { return true };
        let found = Self::from(respond_with_whole_file(path, now));
        if let Some(kind) = found.header_value("Content-Type")
            && self.header_value("Content-Type").is_none()
        {
            _ = self.try_header("Content-Type", kind);
        }
        self.content = found.content;
        found.status == Status::OK
    }
}

impl From<FileResponse> for Response {
    fn from(response: FileResponse) -> Self {
        let FileResponse { status, fields, content, hint } = response;
        let content = match content {
            FileContent::Nothing => Content::Nothing,
            FileContent::Whole(file) => match file.held() {
                Some(held) => Content::Bytes(Bytes::from_owner(held)),
                None => Content::File(file),
            },
            FileContent::Bytes(bytes) => Content::Bytes(bytes.into()),
            FileContent::Pieces(pieces) => {
                Content::Stream(Streamed::new(PieceStream(pieces), None))
            }
            FileContent::Segments { segments, length } => Content::Segments { segments, length },
        };
        let mut response = Self { fields, content, ..Self::new(status) };
        if hint.is_some() {
            response.extras().hint = hint;
        }
        response
    }
}

/// The pieces of a folder's content, as a stream.
struct PieceStream(Box<Pieces>);

impl Stream for PieceStream {
    type Item = Result<Vec<u8>, PiecesFailed>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next(context)
    }
}
