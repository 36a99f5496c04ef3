//! The header fields that all responses of one folder have.

use gustnado_config::Headers;
use gustnado_http::response_writer::has_field;

use super::response::FileResponse;

/// The field by which browsers are told to believe the content type. Every file has it.
const NOSNIFF: &str = "X-Content-Type-Options";

/// The header fields of one folder's responses.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct FolderHeaders {
    /// Ready field lines for every response.
    pub(super) lines: Box<[u8]>,
    /// Whether `X-Content-Type-Options` is among these fields, or those of the whole server.
    pub(super) has_nosniff: bool,
}

impl FolderHeaders {
    /// - `common`: ready field lines that every response of the server has anyway.
    pub(crate) fn new(fields: &Headers, common: &[u8]) -> Self {
        let lines = fields.lines();
        let has_nosniff = has_field(&lines, NOSNIFF) || has_field(common, NOSNIFF);
        Self { lines: lines.into(), has_nosniff }
    }

    /// Adds the fields to a response.
    pub(super) fn add_to(&self, mut response: FileResponse) -> FileResponse {
        response.lines.extend_from_slice(&self.lines);
        response
    }

    /// Adds them to a response with content of a file, whose type is to be believed.
    pub(super) fn add_to_content(&self, mut response: FileResponse) -> FileResponse {
        if !self.has_nosniff {
            response.put(NOSNIFF, b"nosniff");
        }
        self.add_to(response)
    }
}
