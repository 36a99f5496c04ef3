//! Who may see pages about the server.

use std::sync::Arc;

use gustnado_config::Networks;
use gustnado_http::status::Status;

use crate::handler::{Handler, HandlerKind};
use crate::request::Request;
use crate::response::Response;

/// The clients that get a page.
#[derive(Clone, Debug)]
pub struct PageGuard(Arc<Networks>);

impl PageGuard {
    /// - `clients`: those that get it.
    pub fn new(clients: Networks) -> Self {
        Self(Arc::new(clients))
    }

    /// Returns a page about the server that others get 403 for. Other handlers stay as they are.
    pub fn guard(&self, page: Handler) -> Handler {
        let HandlerKind::OfServer(page) = page.0 else { return page };
        let guard = self.clone();
        Handler(HandlerKind::OfServer(Arc::new(move |request, server| {
            if guard.admits(request) { page(request, server) } else { refusal() }
        })))
    }

    /// Returns whether the client of a request gets the page. One whose address is unknown does
    /// not.
    fn admits(&self, request: &Request) -> bool {
        // A proxy that nobody has called trusted may be on this machine, and its clients anywhere.
        self.0.is_all()
            || request.client().is_some_and(|client| self.0.has(&client))
                && !request.comes_through_stranger()
    }
}

fn refusal() -> Response {
    let text = "This page is for the clients that metrics-allow-from names.\n";
    Response::text(text).status(Status::FORBIDDEN).header("Cache-Control", "no-store")
}
