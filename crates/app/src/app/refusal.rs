//! What a client is told whose request no handler sees.

use gustnado_http::fields::Fields;
use gustnado_http::request::RequestView;
use gustnado_http::status::Status;
use gustnado_observe::stats::Fault;
use gustnado_tasks::contained;
use gustnado_web::error_page::error_page;
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
            let page = error_page(status, None, (lines, &Fields::new()));
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
        (dressed.unwrap_or_else(standard), fault)
    }
}
