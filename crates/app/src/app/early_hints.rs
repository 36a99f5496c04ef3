//! Which clients get early hints.

use gustnado_config::EarlyHints;
use gustnado_http::head::Version;
use gustnado_http::request::RequestView;

use super::App;

impl App {
    /// Returns whether the client of a request gets early hints, if there are some (RFC 8297 §3).
    #[cold]
    pub fn sends_early_hints(&self, request: RequestView<'_>) -> bool {
        match (self.early_hints, request.version()) {
            (EarlyHints::Never, _) | (_, Version::Http10) => false,
            (EarlyHints::Always, _) | (_, Version::Http2) => true,
            (EarlyHints::Navigations, Version::Http11) => {
                request.field("sec-fetch-mode") == Some(b"navigate")
            }
        }
    }
}
