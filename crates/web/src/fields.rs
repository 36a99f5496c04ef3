//! Header fields that many responses have in common.

use gustnado_config::Headers;
use gustnado_http::fields::HeaderId;

use crate::middleware::Middleware;

/// Returns middleware that adds fields to every response that does not have them already.
pub fn middleware(headers: &Headers) -> Option<Middleware> {
    let fields = headers.fields();
    (!fields.is_empty()).then(|| {
        Middleware::after(move |_, response| {
            for (name, value) in fields.iter() {
                let is_type = name.id() == Some(HeaderId::ContentType);
                let has_type = is_type && response.content_type.is_some();
                if !has_type && !response.fields.contains(name) {
                    response.fields.to_mut().add_trusted(name, value);
                }
            }
        })
    })
}
