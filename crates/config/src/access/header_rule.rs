//! A rule of header fields: on which responses it changes which fields.

use gustnado_http::fields::check_field;
use gustnado_http::method::Method;
use gustnado_http::path::pattern::pattern;

use crate::headers::Headers;

/// Fields that the server writes itself, or that say how a message is read.
const OF_SERVER: [&str; 14] = [
    "Connection",
    "Content-Encoding",
    "Content-Length",
    "Content-Range",
    "Date",
    "Keep-Alive",
    "Proxy-Connection",
    "Server",
    "Set-Cookie2",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
    "Via",
];

/// A rule that sets, adds or removes header fields of some responses. Without a condition it is for
/// all of them. Rules are applied in their order, the server's first, then the site's and the
/// route's.
///
/// ```
/// use gustnado_config::HeaderRule;
///
/// let rule = HeaderRule::new()
///     .path("/assets/{*rest}")
///     .class(2)
///     .set("Cache-Control", "public, max-age=31536000, immutable");
/// assert_eq!(rule.check(), Ok(()));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderRule {
    /// The paths of requests: `/exact`, `/{name}` or `/{*rest}`; `None` is all.
    pub path: Option<String>,
    /// The statuses; none is all. A 304 also counts as 200.
    pub statuses: Vec<StatusRange>,
    /// The content types: `text/html`, `image/*`; none is all.
    pub types: Vec<String>,
    /// The methods of requests; none is all.
    pub methods: Vec<Method>,
    /// Fields in place of those that a response has.
    pub set: Headers,
    /// Fields besides those that a response has.
    pub add: Vec<(String, String)>,
    /// Fields that are taken out.
    pub remove: Vec<String>,
}

/// Statuses from one to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusRange {
    /// The first.
    pub first: u16,
    /// The last.
    pub last: u16,
}

impl StatusRange {
    /// All statuses of errors.
    #[doc(hidden)]
    pub const ERRORS: Self = Self { first: 400, last: 599 };

    /// Reads `404` or `4xx`; `None` if it is neither.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(class) = text.strip_suffix("xx") {
            let class: u16 = class.parse().ok().filter(|class| (2..=5).contains(class))?;
            return Some(Self { first: class * 100, last: class * 100 + 99 });
        }
        let code = text.parse().ok().filter(|code| (200..=599).contains(code))?;
        Some(Self { first: code, last: code })
    }

    /// Returns whether a status is one of them.
    pub fn has(self, status: u16) -> bool {
        (self.first..=self.last).contains(&status)
    }
}

impl std::fmt::Display for StatusRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.first == self.last {
            return write!(f, "{}", self.first);
        }
        write!(f, "{}xx", self.first / 100)
    }
}

impl HeaderRule {
    /// Creates a rule that changes nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Restricts it to the paths of requests: `/exact`, `/{name}` or `/{*rest}`.
    pub fn path(mut self, path: &str) -> Self {
        self.path = Some(path.to_owned());
        self
    }

    /// Restricts it to a status; it may be called several times.
    pub fn status(mut self, code: u16) -> Self {
        self.statuses.push(StatusRange { first: code, last: code });
        self
    }

    /// Restricts it to a class of statuses: 2 is 200 to 299; it may be called several times.
    pub fn class(mut self, class: u16) -> Self {
        self.statuses.push(StatusRange { first: class * 100, last: class * 100 + 99 });
        self
    }

    /// Restricts it to a content type: `text/html`, or `image/*`; it may be called several times.
    pub fn content_type(mut self, kind: &str) -> Self {
        self.types.push(kind.to_ascii_lowercase());
        self
    }

    /// Restricts it to a method; it may be called several times.
    pub fn method(mut self, method: Method) -> Self {
        self.methods.push(method);
        self
    }

    /// Sets a field, in place of all of its name.
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.set.set(name, value);
        self
    }

    /// Adds a field to those of its name.
    pub fn add(mut self, name: &str, value: &str) -> Self {
        self.add.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Removes all fields of a name.
    pub fn remove(mut self, name: &str) -> Self {
        self.remove.push(name.to_owned());
        self
    }

    /// Returns whether it is for every response.
    pub fn is_for_all(&self) -> bool {
        let has_condition = self.path.is_some() || !self.statuses.is_empty();
        !has_condition && self.types.is_empty() && self.methods.is_empty()
    }

    /// Checks whether it can be applied.
    ///
    /// # Errors
    /// What is wrong with it, and the remedy.
    pub fn check(&self) -> Result<(), String> {
        if let Some(path) = &self.path {
            pattern(path)
                .map_err(|reason| format!("the path {path} is not well formed: {reason}"))?;
        }
        for kind in &self.types {
            check_type(kind)?;
        }
        let set = self.set.iter().chain(self.add.iter().map(|(name, value)| (&**name, &**value)));
        for (name, value) in set {
            check_name(name)?;
            check_field(name, value.as_bytes())
                .map_err(|error| format!("{name:?} cannot be sent: {error}; leave it out"))?;
        }
        self.remove.iter().try_for_each(|name| check_name(name))?;
        if self.set.is_empty() && self.add.is_empty() && self.remove.is_empty() {
            return Err("expected one of set, add and remove, found none; add one".to_owned());
        }
        Ok(())
    }
}

fn check_name(name: &str) -> Result<(), String> {
    if OF_SERVER.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        return Err(format!("{name} is set by the server; leave it out"));
    }
    check_field(name, b"").map_err(|error| format!("{name:?} is no field name: {error}; change it"))
}

fn check_type(kind: &str) -> Result<(), String> {
    let is_part = |part: &str| !part.is_empty() && check_field(part, b"").is_ok();
    match kind.split_once('/') {
        Some((first, second)) if is_part(first) && is_part(second) => Ok(()),
        _ => Err(format!(
            "expected a content type such as text/html or image/*, found {kind:?}; write it so"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_a_number_or_a_class() {
        let range = |text: &str| StatusRange::parse(text).map(|range| (range.first, range.last));
        assert_eq!((range("404"), range("2xx")), (Some((404, 404)), Some((200, 299))));
        for text in ["", "1xx", "6xx", "xx", "99", "600", "4x", "404x", "-2xx"] {
            assert_eq!(range(text), None, "{text}");
        }
        assert_eq!(StatusRange::parse("5xx").map(|range| range.to_string()), Some("5xx".into()));
    }

    #[test]
    fn what_the_server_owns_is_refused() {
        for name in ["content-length", "Transfer-Encoding", "DATE", "Connection", "Upgrade"] {
            for rule in [
                HeaderRule::new().set(name, "x"),
                HeaderRule::new().add(name, "x"),
                HeaderRule::new().remove(name),
            ] {
                assert!(rule.check().is_err_and(|error| error.contains("by the server")), "{name}");
            }
        }
        for (rule, part) in [
            (HeaderRule::new(), "found none"),
            (HeaderRule::new().set("a b", "x"), "no field name"),
            (HeaderRule::new().set("A", "x\r\nB: y"), "cannot be sent"),
            (HeaderRule::new().set("A", "x").content_type("html"), "such as text/html"),
            (HeaderRule::new().set("A", "x").path("a"), "begin it with /"),
        ] {
            assert!(rule.check().is_err_and(|error| error.contains(part)), "{part}");
        }
        assert_eq!(HeaderRule::new().remove("ETag").path("/{*rest}").class(2).check(), Ok(()));
    }
}
