//! Counters for Prometheus.

use crate::handler::{Handler, HandlerKind};
use crate::response::Response;
use gustnado_observe::process::Process;
use gustnado_observe::server_stats::ServerStats;
use gustnado_observe::stats::exposition;

const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Returns a handler that responds with the server's counters in the text format of Prometheus.
/// Counters that differ by a label, such as the class of a status, are one metric with that label.
///
/// ```no_run
/// gustnado::Server::new().get("/metrics", gustnado::metrics_page()).listen("127.0.0.1:0")?.run()
/// # ; gustnado::Result::Ok(())
/// ```
pub fn metrics_page() -> Handler {
    Handler(HandlerKind::OfServer(|app: &dyn ServerStats| {
        let page = exposition(&app.stats(), &Process::read(), &app.certificate_ends());
        Response::text(page).content_type(CONTENT_TYPE).header("Cache-Control", "no-store")
    }))
}
