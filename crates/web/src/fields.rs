//! Header fields that many responses have in common.

use gustnado_config::Headers;
use gustnado_http::fields::{Fields, HeaderId};

use crate::middleware::Middleware;
use crate::response::Response;

/// Returns middleware that adds fields to every response that does not have them already.
pub fn middleware(headers: &Headers) -> Option<Middleware> {
    let fields = headers.fields();
    (!fields.is_empty())
        .then(|| Middleware::after(move |_, response| add_missing(&fields, response)))
}

/// Adds the fields that a response does not have already.
pub fn add_missing(fields: &Fields, response: &mut Response) {
    for (name, value) in fields.iter() {
        let is_type = name.id() == Some(HeaderId::ContentType);
        let has_type = is_type && response.content_type.is_some();
        if !has_type && !response.fields.contains(name) {
            response.fields.to_mut().add_trusted(name, value);
        }
    }
}
