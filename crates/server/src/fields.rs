//! Header fields that many responses have in common.

use gustnado_config::Headers;
use gustnado_http::fields::{Fields, HeaderId};

use crate::middleware::Middleware;

/// What adds fields to every answer that does not have them already.
pub(crate) fn middleware(headers: &Headers) -> Option<Middleware> {
    let mut fields = Fields::new();
    for (name, value) in headers.iter() {
        let outcome = fields.add(name, value);
        debug_assert!(outcome.is_ok(), "{name}: {outcome:?}");
    }
    (!fields.is_empty()).then(|| {
        Middleware::after(move |_, response| {
            for (name, value) in fields.iter() {
                let is_type = name.id() == Some(HeaderId::ContentType);
                let has_type = is_type && response.content_type.is_some();
                if !has_type && !response.fields.contains(name) {
                    response.fields.add_trusted(name, value);
                }
            }
        })
    })
}
