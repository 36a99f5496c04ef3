//! Header fields that many responses have in common.

use gustnado_config::Headers;

use crate::middleware::Middleware;

/// What adds fields to every answer that does not have them already.
pub(crate) fn middleware(fields: &Headers) -> Option<Middleware> {
    let fields = fields.clone();
    (!fields.is_empty()).then(|| {
        Middleware::after(move |_, response| {
            for (name, value) in fields.iter() {
                if response.header_value(name).is_none() {
                    let outcome = response.try_header(name, value);
                    debug_assert!(outcome.is_ok(), "{name}: {outcome:?}");
                }
            }
        })
    })
}
