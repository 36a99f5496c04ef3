//! The header fields of all responses of one folder.

use gustnado_config::{HeaderRule, Headers};
use gustnado_http::content_coding::forbids_change;
use gustnado_http::fields::{Fields, HeaderId};
use gustnado_http::path::pattern::pattern;
use gustnado_http::response_writer::{field_values, has_field};

use super::mime_table::MimeTable;
use super::spa;

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
    /// The `Cache-Control` of every response of the server.
    pub(super) of_server: Fields,
    /// That of responses which have none of their own, as middleware adds it.
    pub(super) added_later: Fields,
    /// What keys begin with whose responses must not be changed by what follows (`no-transform`).
    pub(super) unchanged: Vec<String>,
    /// Rules ask for the types of files, so a 304 has its own until they were applied.
    pub(super) are_types_ruled: bool,
}

impl FolderHeaders {
    /// - `common`: field lines of every response of the server.
    pub fn new(headers: &Headers, common: &[u8]) -> Self {
        let fields = headers.fields();
        let name = HeaderId::XContentTypeOptions;
        let has_nosniff = fields.contains(name) || has_field(common, name.name());
        let mut of_server = Fields::new();
        for value in field_values(common, HeaderId::CacheControl.name()) {
            of_server.add_trusted(HeaderId::CacheControl, value);
        }
        Self { fields, has_nosniff, of_server, ..Self::default() }
    }

    /// Notes the fields that middleware adds to responses that do not have them.
    #[must_use]
    pub fn with_fields_elsewhere(mut self, headers: &Headers) -> Self {
        for value in headers.fields().get_all(HeaderId::CacheControl) {
            self.added_later.add_trusted(HeaderId::CacheControl, value);
        }
        self
    }

    /// Notes the rules that middleware applies to responses.
    ///
    /// - `base`: the part of a request's path that is the route's, without a slash at its end.
    #[must_use]
    pub fn with_rules_elsewhere(mut self, rules: &[HeaderRule], base: &str) -> Self {
        let forbidding = rules.iter().filter(|rule| {
            let set =
                rule.set.iter().chain(rule.add.iter().map(|(name, value)| (&**name, &**value)));
            let mut values =
                set.filter(|(name, _)| name.eq_ignore_ascii_case(HeaderId::CacheControl.name()));
            let is_of_files = rule.statuses.is_empty() || rule.statuses.iter().any(|s| s.has(200));
            is_of_files && values.any(|(_, value)| forbids_change([value.as_bytes()]))
        });
        self.are_types_ruled = rules.iter().any(|rule| !rule.types.is_empty());
        for rule in forbidding {
            // What a path begins with is enough: in doubt a file is sent as it is.
            let path = rule.path.as_deref().map(pattern).and_then(Result::ok).unwrap_or_default();
            let start = path.split('{').next().unwrap_or_default();
            match start.strip_prefix(base) {
                Some(start) => self.unchanged.push(start.to_owned()),
                None if base.starts_with(start) => self.unchanged.push(String::new()),
                None => {}
            }
        }
        self
    }

    /// Returns the values of `Cache-Control` that a file is sent with.
    ///
    /// - `own`: the fields that it has beyond the folder's.
    pub(super) fn cache_control<'f>(
        &'f self,
        own: &'f Fields,
    ) -> impl Iterator<Item = &'f [u8]> + use<'f> {
        let name = HeaderId::CacheControl;
        let places = [own, &self.fields, &self.added_later];
        let first = places.into_iter().find(|fields| fields.contains(name));
        [Some(&self.of_server), first].into_iter().flatten().flat_map(move |all| all.get_all(name))
    }

    /// Returns whether a file must be sent as it is.
    ///
    /// - `key`: what was looked for.
    /// - `own`: the fields that it has beyond the folder's.
    pub(super) fn forbid_change(&self, key: &[u8], own: &Fields) -> bool {
        // The page of an application is sent for any path.
        let is_at = |start: &String| key == spa::KEY || key.starts_with(start.as_bytes());
        self.unchanged.iter().any(is_at) || forbids_change(self.cache_control(own))
    }

    /// Returns whether a rule takes effect.
    ///
    /// - `is_own`: it is one of the configuration file.
    pub(super) fn leave_cache_control(&self, is_own: bool) -> bool {
        let name = HeaderId::CacheControl;
        let has_one = self.fields.contains(name) || self.added_later.contains(name);
        !self.of_server.contains(name) && (is_own || !has_one)
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
