//! Middleware for rules of header fields.

use std::sync::Arc;

use gustnado_access::HeaderRules;
use gustnado_config::{HeaderRule, Headers};
use gustnado_http::path::CanonicalPath;
use gustnado_http::status::Status;

use crate::middleware::Middleware;
use crate::request::Request;
use crate::response::Response;

/// Fields that say what content is, of which a 304 has none (RFC 9110 §15.4.5).
const OF_CONTENT: [&str; 2] = ["Content-Type", "Content-Language"];

/// Returns middleware that applies rules, if there are some.
pub(super) fn middleware(rules: HeaderRules) -> Option<Middleware> {
    let rules = Arc::new(rules);
    (!rules.is_empty())
        .then(|| Middleware::after(move |request, response| apply(&rules, request, response)))
}

fn apply(rules: &HeaderRules, request: &Request, response: &mut Response) {
    let path = request.parts().path().ok();
    let path = path.as_ref().map(CanonicalPath::as_str);
    let kind = if response.wants_page() {
        // The page is put in later, and is HTML unless the application has another one.
        Some(b"text/html".to_vec())
    } else {
        response.header_value("Content-Type").map(<[u8]>::to_vec)
    };
    let status = response.status_number();
    for rule in rules.of(path, request.method(), status, kind.as_deref()) {
        rule.remove.iter().for_each(|name| response.remove_header(name));
        for (name, value) in rule.set.iter() {
            response.remove_header(name);
            _ = response.try_header(name, value);
        }
        for (name, value) in &rule.add {
            _ = response.try_header(name, value);
        }
    }
    if status == Status::NOT_MODIFIED.code() {
        // Rules have met it as the 200 that it stands for; the client has that one's already.
        for name in OF_CONTENT {
            response.remove_header(name);
        }
    }
}

/// Returns the fields of rules that set the same for every response, if all of them do: those a
/// folder has in its prepared heads, at no cost.
pub(super) fn fields_for_all(rules: &[HeaderRule]) -> Option<Headers> {
    // What a file has of its own is replaced, which a prepared head cannot.
    const OF_FILES: [&str; 5] = ["Accept-Ranges", "Cache-Control", "Content-Type", "ETag", "Vary"];
    let mut fields = Headers::default();
    for rule in rules {
        let is_of_files = |name: &str| {
            OF_FILES.iter().any(|own| own.eq_ignore_ascii_case(name))
                || name.eq_ignore_ascii_case("Last-Modified")
        };
        let is_set = |(name, _): (&str, &str)| !is_of_files(name);
        let sets_alone = rule.add.is_empty() && rule.remove.is_empty();
        if !(rule.is_for_all() && sets_alone && rule.set.iter().all(is_set)) {
            return None;
        }
        fields = fields.with(&rule.set);
    }
    Some(fields)
}
