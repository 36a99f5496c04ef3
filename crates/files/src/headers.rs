//! The header fields of all responses of one folder.

use gustnado_config::Headers;
use gustnado_http::fields::{Fields, HeaderId};
use gustnado_http::response_writer::has_field;

use super::mime_table::MimeTable;

/// The header fields of one folder's responses.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct FolderHeaders {
    pub(super) fields: Fields,
    /// Whether `X-Content-Type-Options` is among these fields or the server's: with it, browsers
    /// trust the content type. Every file has it.
    pub(super) has_nosniff: bool,
    /// What its pages need: fields of HTML files.
    pub(super) links: Fields,
    /// The types of its files.
    pub(super) types: MimeTable,
}

impl FolderHeaders {
    /// - `common`: field lines of every response of the server.
    pub fn new(headers: &Headers, common: &[u8]) -> Self {
        let fields = headers.fields();
        let name = HeaderId::XContentTypeOptions;
        let has_nosniff = fields.contains(name) || has_field(common, name.name());
        Self { fields, has_nosniff, links: Fields::new(), types: MimeTable::default() }
    }

    /// Sets what the folder's HTML pages need.
    ///
    /// - `links`: `Link` fields.
    #[must_use]
    pub fn with_links(self, links: Fields) -> Self {
        Self { links, ..self }
    }
}
