//! Fields of responses, by `add_header`.

use crate::access::HeaderRule;

/// The name of what says who may keep a response.
pub(super) const CACHE_CONTROL: &str = "Cache-Control";
/// The statuses whose responses have a field that is not for all (`always`).
pub(super) const STATUSES: [u16; 10] = [200, 201, 204, 206, 301, 302, 303, 304, 307, 308];

/// Fields that the server sets.
const OF_SERVER: [&str; 8] = [
    "Server",
    "Date",
    "Content-Type",
    "Content-Range",
    "ETag",
    "Last-Modified",
    "Accept-Ranges",
    "Location",
];

/// A field of responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NginxField {
    pub(super) name: String,
    pub(super) value: String,
    /// It is for errors as well.
    pub(super) is_always: bool,
}

impl NginxField {
    /// Returns a field that can be taken over.
    pub(super) fn of(name: &str, value: &str, is_always: bool) -> Option<Self> {
        let is_of_server = OF_SERVER.iter().any(|own| own.eq_ignore_ascii_case(name));
        let is_well = HeaderRule::new().add(name, value).check().is_ok();
        let (name, text) = (name.to_owned(), value.to_owned());
        let is_known = !is_of_server && is_well && !value.contains('$');
        is_known.then_some(Self { name, value: text, is_always })
    }

    /// Returns whether it has a name.
    pub(super) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// The fields of a route's responses: names and values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RouteFields {
    /// Those of all responses.
    pub(super) of_all: Vec<(String, String)>,
    /// Those of the statuses that nginx adds fields to.
    pub(super) of_some: Vec<(String, String)>,
}
