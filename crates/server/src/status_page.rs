//! The built-in site, served if no folder is given: a page with the state of this server, the
//! counters that the page reads once a second, and its icon.
//!
//! Everything is embedded; nothing here touches the disk or the network.

use std::sync::Arc;

use bytes::Bytes;
use gustnado_http::status::Status;
use gustnado_observe::process::Process;
use gustnado_observe::server_stats::ServerStats;
use gustnado_web::handler::{Handler, HandlerKind};
use gustnado_web::request::Request;
use gustnado_web::response::Response;
use gustnado_web::routes::Routes;
use gustnado_web::stats_page::begin_json;

const PAGE: &[u8] = include_bytes!("../site/index.html");
const ICON: &[u8] = include_bytes!("../site/favicon.svg");

/// The page is complete in itself: nothing else may be loaded, sent or framed.
const POLICY: &str = "default-src 'none'; connect-src 'self'; img-src 'self'; \
    style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

/// Adds the built-in site to routes that have no paths.
pub(crate) fn add_to(routes: Routes) -> Routes {
    let live = Handler(HandlerKind::OfServer(Arc::new(|_, server| {
        with_policy(Response::json_text(json(server, Process::read())), "no-store")
    })));
    routes
        .get("/", page())
        .get("/index.html", page())
        .get("/stats.json", live)
        .get("/favicon.svg", fixed(|| with_policy(icon(), "no-cache")))
        .get(
            "/favicon.ico",
            fixed(|| Response::redirect(Status::MOVED_PERMANENTLY, "/favicon.svg")),
        )
        .post("/echo", |request: &Request| Response::text(request.bytes().to_vec()))
}

/// Returns the text of `/stats.json`: one flat object. The names are part of the interface.
fn json(server: &dyn ServerStats, process: Process) -> String {
    let (stats, Process { cpu_ms, memory_bytes, socket_memory_bytes }) = (server.stats(), process);
    let numbers = [
        ("uptime_ms", stats.uptime_ms),
        ("connections_open", stats.connections_open),
        ("connections_accepted", stats.connections_accepted),
        ("requests", stats.requests),
        ("bytes_sent", stats.bytes_sent),
        ("cpu_ms", cpu_ms),
        ("memory_bytes", memory_bytes),
        ("socket_memory_bytes", socket_memory_bytes),
        ("workers", stats.workers),
        ("memory_heads", stats.memory_heads),
        ("memory_bodies", stats.memory_bodies),
        ("memory_sends", stats.memory_sends),
        ("memory_cache", stats.memory_cache),
        ("memory_receives", stats.memory_receives),
        ("memory_queue", stats.memory_queue),
        ("memory_websockets", stats.memory_websockets),
        ("bodies_cut", stats.bodies_cut),
    ];
    begin_json(server, numbers) + "}\n"
}

fn page() -> Handler {
    fixed(|| with_policy(Response::html(Bytes::from_static(PAGE)), "no-cache"))
}

fn icon() -> Response {
    Response::bytes(Bytes::from_static(ICON)).content_type("image/svg+xml")
}

/// Returns a handler that ignores the request.
fn fixed(make: fn() -> Response) -> Handler {
    Handler(HandlerKind::HeadOnly(Arc::new(move |_| make())))
}

fn with_policy(response: Response, caching: &str) -> Response {
    response
        .header("Cache-Control", caching)
        .header("Content-Security-Policy", POLICY)
        .header("X-Content-Type-Options", "nosniff")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::TestClient;
    use gustnado_observe::certificate_end::CertificateEnd;
    use gustnado_observe::stats::{Stats, WebSocketCount, WorkerStats};

    fn client() -> TestClient {
        TestClient::new(&add_to(Routes::new()))
    }

    #[test]
    fn the_page_is_served_whole() {
        for path in ["/", "/index.html?x=1"] {
            let response = client().get(path).send();
            assert_eq!(response.status(), 200);
            assert_eq!(response.header("content-type"), Some("text/html; charset=utf-8"));
            assert_eq!(response.header("cache-control"), Some("no-cache"));
            assert_eq!(response.bytes(), PAGE);
        }
    }

    #[test]
    fn counters_are_never_kept_by_a_cache() {
        let response = client().get("/stats.json").send();
        assert_eq!(response.header("cache-control"), Some("no-store"));
        assert_eq!(response.header("content-type"), Some("application/json"));
        assert!(response.text().starts_with("{\"version\":"));
    }

    /// A server with these counters.
    struct Counted(Stats);

    impl ServerStats for Counted {
        fn last_reload(&self) -> Option<gustnado_observe::last_reload::LastReload> {
            None
        }

        fn backend(&self) -> &'static str {
            "io_uring"
        }

        fn scheduler(&self) -> &'static str {
            "pool"
        }

        fn stats(&self) -> Stats {
            self.0
        }

        fn stats_of_all(&self) -> (Stats, Process) {
            (self.0, Process::default())
        }

        fn stats_by_worker(&self) -> Vec<WorkerStats> {
            Vec::new()
        }

        fn certificate_ends(&self) -> Vec<CertificateEnd> {
            Vec::new()
        }

        fn count_websocket(&self, _: WebSocketCount) {}

        fn is_restarting(&self) -> bool {
            false
        }
    }

    #[test]
    fn the_json_is_one_flat_object() {
        let stats = Stats {
            uptime_ms: 1,
            connections_open: 2,
            connections_accepted: 3,
            requests: 4,
            bytes_sent: u64::MAX,
            workers: 8,
            memory_heads: 9,
            memory_bodies: 10,
            memory_cache: 11,
            memory_sends: 13,
            memory_receives: 14,
            memory_queue: 15,
            memory_websockets: 16,
            bodies_cut: 12,
            ..Stats::default()
        };
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            json(&Counted(stats), Process { cpu_ms: 6, memory_bytes: 7, socket_memory_bytes: 8 }),
            format!(
                "{{\"version\":\"{version}\",\"backend\":\"io_uring\",\"scheduler\":\"pool\",\
                 \"uptime_ms\":1,\"connections_open\":2,\"connections_accepted\":3,\"requests\":4,\
                 \"bytes_sent\":18446744073709551615,\"cpu_ms\":6,\"memory_bytes\":7,\
                 \"socket_memory_bytes\":8,\
                 \"workers\":8,\"memory_heads\":9,\"memory_bodies\":10,\"memory_sends\":13,\
                 \"memory_cache\":11,\"memory_receives\":14,\"memory_queue\":15,\
                 \"memory_websockets\":16,\
                 \"bodies_cut\":12}}\n"
            )
        );
    }

    #[test]
    fn counters_have_their_names() {
        let process = Process { cpu_ms: 1, memory_bytes: 1, socket_memory_bytes: 1 };
        let json = json(&Counted(Stats::default()), process);
        let names = json.split('"').filter(|word| word.contains('_') || *word == "requests");
        for name in names.filter(|name| *name != "io_uring") {
            let is_of_process = matches!(name, "cpu_ms" | "memory_bytes" | "socket_memory_bytes");
            let is_known = Stats::default().named().into_iter().any(|(known, _)| known == name);
            assert!(is_known || is_of_process, "{name}");
        }
    }

    #[test]
    fn the_icon_has_two_addresses() {
        assert_eq!(client().get("/favicon.svg").send().bytes(), ICON);
        let moved = client().get("/favicon.ico").send();
        assert_eq!((moved.status(), moved.header("location")), (301, Some("/favicon.svg")));
    }

    #[test]
    fn other_paths_and_methods_are_refused() {
        assert_eq!(client().get("/index").send().status(), 404);
        let refused = client().delete("/").send();
        assert_eq!((refused.status(), refused.header("allow")), (405, Some("GET, HEAD, OPTIONS")));
    }

    #[test]
    fn an_echo_is_what_was_sent() {
        assert_eq!(client().post("/echo").body("hello").send().text(), "hello");
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        let page = std::str::from_utf8(PAGE).expect("the page is UTF-8");
        for forbidden in ["https://", "//cdn", "@import", "src=\"http"] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
        assert!(PAGE.len() < 32_768, "{} bytes", PAGE.len());
    }
}
