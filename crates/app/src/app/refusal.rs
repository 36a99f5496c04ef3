//! What a client is told whose request no handler sees.

use gustnado_http::request::RequestView;
use gustnado_http::status::Status;
use gustnado_observe::stats::Fault;
use gustnado_tasks::contained;
use gustnado_web::error_page::error_page;
use gustnado_web::fields::add_missing;
use gustnado_web::response::Response;

use super::App;
use crate::hooks::Refused;

/// When a client may try again that found the server without memory.
const RETRY_AFTER_SECONDS: &str = "1";

impl App {
    /// Returns the refusal of a request, as the program's hook dresses it, and what it counts as.
    ///
    /// - `request`: its head, if that was complete.
    /// - `lines`: those of every response, for the page.
    #[cold]
    pub fn refusal(
        &self,
        status: Status,
        request: Option<RequestView<'_>>,
        lines: &[u8],
    ) -> (Response, Option<Fault>) {
        let is_full = status == Status::SERVICE_UNAVAILABLE;
        let standard = || {
            let page = self.routeless_page(status, lines);
            if is_full { page.header("Retry-After", RETRY_AFTER_SECONDS) } else { page }
        };
        let dressed = self.hooks.refusal.as_ref().and_then(|hook| {
            let (refused, mut response) = (Refused::new(status, request), standard());
            // A hook that panics leaves the standard page.
            contained(|| hook(&refused, &mut response)).map(|()| response)
        });
        let fault = match status {
            Status::REQUEST_TIMEOUT => Some(Fault::TooSlow),
            // Not the client's fault.
            Status::SERVICE_UNAVAILABLE => None,
            _ => Some(Fault::BadRequest),
        };
        let mut response = dressed.unwrap_or_else(standard);
        self.add_overridden(&mut response);
        (response, fault)
    }

    /// Returns the page of a response that no route makes, with the fields of the server.
    ///
    /// - `lines`: those of every response.
    #[cold]
    pub fn routeless_page(&self, status: Status, lines: &[u8]) -> Response {
        let mut page = error_page(status, None, (lines, &self.tables.build.overridden));
        self.add_overridden(&mut page);
        page
    }

    /// Adds the fields of the server that are not in the lines of every response, since a site or a
    /// route has others in their place.
    #[cold]
    pub(super) fn add_overridden(&self, response: &mut Response) {
        add_missing(&self.tables.build.overridden, response);
    }
}
