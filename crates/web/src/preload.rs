//! What pages of a route need: sent as early hints, and with the pages.

use gustnado_config::preload_link;
use gustnado_http::fields::{Fields, HeaderId};
use gustnado_http::method::Method;
use gustnado_http::status::Status;

use crate::middleware::{Flow, Middleware};

/// Returns the `Link` fields of a route's links.
///
/// # Errors
/// The first that is none, and why.
pub fn link_fields(links: &[String]) -> Result<Fields, (String, &'static str)> {
    let mut fields = Fields::new();
    for link in links {
        let value = preload_link(link).map_err(|reason| (link.clone(), reason))?;
        fields.add_trusted(HeaderId::Link, value.as_bytes());
    }
    Ok(fields)
}

/// Returns middleware that sends links before the response to a GET, and with it. The connection
/// leaves out hints that would only come with the response itself.
pub fn middleware(fields: &Fields) -> Vec<Middleware> {
    if fields.is_empty() {
        return Vec::new();
    }
    let hints = fields.clone();
    let before = Middleware::before(move |request| {
        if request.method() == Method::Get && !request.wants_upgrade() {
            request.parts().channel().send_interim(Status::EARLY_HINTS, hints.clone());
        }
        Flow::Next
    });
    let fields = fields.clone();
    let after = Middleware::after(move |_, response| {
        let status = response.status_code();
        if status == Status::OK || status == Status::NOT_MODIFIED {
            for (name, value) in fields.iter() {
                response.fields.to_mut().add_trusted(name, value);
            }
        }
    });
    vec![before, after]
}
