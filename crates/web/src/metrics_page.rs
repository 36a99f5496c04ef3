//! Counters for Prometheus.

use std::sync::Arc;

use crate::handler::{Handler, HandlerKind};
use crate::request::Request;
use crate::response::Response;
use gustnado_observe::server_stats::ServerStats;
use gustnado_observe::stats::{Exposition, exposition};

/// Returns a handler that responds with the server's counters for Prometheus: in the format of
/// `OpenMetrics` 1.0 where `Accept` asks for that, otherwise in the text format of version 0.0.4.
/// Counters that differ by a label, such as the class of a status, are one metric with that label.
///
/// Every client gets them. The setting `metrics-path` makes such a page for clients of this machine
/// alone.
///
/// ```no_run
/// gustnado::Server::new().get("/metrics", gustnado::metrics_page()).listen("127.0.0.1:0")?.run()
/// # ; gustnado::Result::Ok(())
/// ```
pub fn metrics_page() -> Handler {
    Handler(HandlerKind::OfServer(Arc::new(|request: &Request, app: &dyn ServerStats| {
        let accept: Vec<&[u8]> = request.header_values("accept").collect();
        let format = format_of(&accept.join(&b','));
        let (stats, process) = app.stats_of_all();
        let page =
            exposition(&stats, &process, (&app.certificate_ends(), app.last_reload()), format);
        let response = Response::text(page).content_type(format.content_type());
        response.header("Cache-Control", "no-store").header("Vary", "Accept")
    })))
}

/// Returns the format that a client prefers (RFC 9110 §12.5.1). Only one that names
/// `OpenMetrics` gets it: its text looks like the older one, and readers of that miss its types.
fn format_of(accept: &[u8]) -> Exposition {
    let accept = String::from_utf8_lossy(accept).to_ascii_lowercase();
    let (mut open_metrics, mut text) = (0, 0);
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let (mut weight, mut is_known) = (1_000, true);
        for part in parts {
            match part.split_once('=') {
                Some(("q", value)) => weight = thousandths(value),
                // The page has no other version.
                Some(("version", version)) => is_known = has_version(name, version),
                _ => {}
            }
        }
        match name {
            _ if !is_known => {}
            OPEN_METRICS => open_metrics = open_metrics.max(weight),
            TEXT => text = text.max(weight),
            _ => {}
        }
    }
    if open_metrics > 0 && open_metrics >= text {
        Exposition::OpenMetrics
    } else {
        Exposition::Text
    }
}

const OPEN_METRICS: &str = "application/openmetrics-text";
const TEXT: &str = "text/plain";

/// Returns whether the page has this version of a format. A scraper that knows version
/// 0.0.1 of `OpenMetrics` reads 1.0, which changed no text.
fn has_version(name: &str, version: &str) -> bool {
    name != OPEN_METRICS || matches!(version.trim_matches('"'), "1.0.0" | "0.0.1")
}

/// Returns a weight in thousandths (RFC 9110 §12.4.2); a malformed one is 0.
fn thousandths(text: &str) -> u32 {
    let (whole, digits) = text.split_once('.').unwrap_or((text, ""));
    if digits.len() > 3 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return 0;
    }
    match whole {
        "0" => format!("{digits:0<3}").parse().unwrap_or_default(),
        "1" => 1_000,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_metrics_is_for_those_that_name_it() {
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                          application/openmetrics-text;version=0.0.1;q=0.4,\
                          text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (accept, is_open) in [
            (prometheus, true),
            ("application/openmetrics-text", true),
            ("APPLICATION/OpenMetrics-Text; Version=1.0.0", true),
            ("application/openmetrics-text;q=0.3, text/plain;q=0.9", false),
            ("application/openmetrics-text;q=0", false),
            ("application/openmetrics-text;version=2.0.0;q=0.9", false),
            ("application/openmetrics-text;q=nonsense", false),
            ("text/plain;version=0.0.4", false),
            ("*/*", false),
            ("", false),
        ] {
            let expected = if is_open { Exposition::OpenMetrics } else { Exposition::Text };
            assert_eq!(format_of(accept.as_bytes()), expected, "{accept}");
        }
    }
}
