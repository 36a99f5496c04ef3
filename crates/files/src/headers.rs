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
    /// The field that responses have in any case.
    pub(super) cache_control: OuterCacheControl,
}

/// A `Cache-Control` field that responses have in any case.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum OuterCacheControl {
    #[default]
    None,
    /// Only a rule of the configuration file takes its place.
    OfFolder,
    /// It is a field of every response of the server.
    OfServer,
}

impl FolderHeaders {
    /// - `common`: field lines of every response of the server.
    pub fn new(headers: &Headers, common: &[u8]) -> Self {
        let fields = headers.fields();
        let name = HeaderId::XContentTypeOptions;
        let has_nosniff = fields.contains(name) || has_field(common, name.name());
        let cache_control = HeaderId::CacheControl;
        let cache_control = match fields.contains(cache_control) {
            _ if has_field(common, cache_control.name()) => OuterCacheControl::OfServer,
            true => OuterCacheControl::OfFolder,
            false => OuterCacheControl::None,
        };
        Self {
            fields,
            has_nosniff,
            links: Fields::new(),
            types: MimeTable::default(),
            cache_control,
        }
    }

    /// Notes the fields that middleware adds to responses that do not have them.
    #[must_use]
    pub fn with_fields_elsewhere(mut self, headers: &Headers) -> Self {
        let has_field = headers.fields().contains(HeaderId::CacheControl);
        if has_field && self.cache_control == OuterCacheControl::None {
            self.cache_control = OuterCacheControl::OfFolder;
        }
        self
    }

    /// Returns whether a rule takes effect.
    ///
    /// - `is_own`: it is one of the configuration file.
    pub(super) fn leave_cache_control(&self, is_own: bool) -> bool {
        match self.cache_control {
            OuterCacheControl::None => true,
            OuterCacheControl::OfFolder => is_own,
            OuterCacheControl::OfServer => false,
        }
    }

    /// Adds the folder's fields, and those of a file in it.
    pub(super) fn add_to(&self, fields: &mut Fields, own: &Fields) {
        let replaced = HeaderId::CacheControl;
        if own.contains(replaced) {
            let kept = self.fields.iter().filter(|(name, _)| name.id() != Some(replaced));
            kept.for_each(|(name, value)| fields.add_trusted(name, value));
        } else {
            fields.extend(&self.fields);
        }
        fields.extend(own);
    }

    /// Sets what the folder's HTML pages need.
    ///
    /// - `links`: `Link` fields.
    #[must_use]
    pub fn with_links(self, links: Fields) -> Self {
        Self { links, ..self }
    }
}
