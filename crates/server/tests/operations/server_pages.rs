//! Pages about the server, by its settings: for Prometheus and in JSON, for some clients alone.

use gustnado::config::Config;
use gustnado::{Request, Routes, StartError, stats_page};

use crate::harness::client::request;
use crate::harness::{Client, Folder, Server, Setup};

on_every_server!(
    there_is_no_page_by_default,
    a_page_has_the_counters_for_prometheus,
    a_page_has_them_in_json,
    a_client_chooses_the_format,
    a_page_is_a_route_like_others,
    others_than_those_of_this_machine_are_refused,
    the_clients_of_a_proxy_are_those_that_count,
    a_reload_adds_and_removes_a_page,
    a_page_stays_when_routes_are_swapped,
    a_path_that_is_taken_is_refused_at_the_start,
);

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

fn with_pages(config: Config) -> Config {
    Config { metrics_path: "/metrics".to_owned(), stats_path: "/stats".to_owned(), ..config }
}

fn hello() -> Routes {
    Routes::new().get("/", |_: &Request| "hello")
}

fn there_is_no_page_by_default(setup: Setup) {
    let server = Server::routes(setup.config(), hello());
    assert_eq!((server.get("/metrics").status, server.get("/stats").status), (404, 404));
}

fn a_page_has_the_counters_for_prometheus(setup: Setup) {
    let server = Server::routes(with_pages(setup.config()), hello());
    let mut client = server.connect();
    for _ in 0..5 {
        assert_eq!(client.get("/").status, 200);
    }
    let answer = client.get("/metrics");
    assert_eq!(answer.expect_field("content-type"), TEXT);
    assert_eq!(answer.expect_field("cache-control"), "no-store");
    assert_eq!(answer.expect_field("vary"), "Accept");
    let page = answer.text();
    for line in [
        "# TYPE gustnado_requests_total counter\ngustnado_requests_total 5\n",
        "# TYPE gustnado_connections_open gauge\ngustnado_connections_open 1\n",
        "gustnado_answers_total{class=\"2xx\"} 5\n",
        "# TYPE process_cpu_seconds_total counter\n",
    ] {
        assert!(page.contains(line), "{line}: {page}");
    }
    client.send(request("HEAD", "/metrics", ""));
    let head = client.read_head();
    assert_eq!((head.status, head.expect_field("content-type")), (200, TEXT));
    let refused = server.ask(request("POST", "/metrics", "Content-Length: 0\r\n"));
    assert_eq!((refused.status, refused.expect_field("allow")), (405, "GET, HEAD, OPTIONS"));
}

fn a_page_has_them_in_json(setup: Setup) {
    let server = Server::routes(with_pages(setup.config()), hello().get("/own", stats_page()));
    assert_eq!(server.get("/").status, 200);
    let (page, own) = (server.get("/stats"), server.get("/own"));
    assert_eq!(page.expect_field("content-type"), "application/json");
    assert_eq!(page.expect_field("cache-control"), "no-store");
    let names = |text: &str| text.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    let (page, own): (Vec<String>, Vec<String>) = (names(&page.text()), names(&own.text()));
    assert_eq!(page, own, "it is the page that a program may have");
}

fn a_client_chooses_the_format(setup: Setup) {
    let server = Server::routes(with_pages(setup.config()), hello());
    let prometheus = "Accept: application/openmetrics-text;version=1.0.0;q=0.5,\
                      text/plain;version=0.0.4;q=0.3,*/*;q=0.1\r\n";
    for (fields, kind) in [
        (prometheus, OPEN_METRICS),
        ("Accept: text/plain\r\nAccept: application/openmetrics-text\r\n", OPEN_METRICS),
        ("Accept: text/html, */*\r\n", TEXT),
        ("Accept: application/openmetrics-text;q=0\r\n", TEXT),
    ] {
        let answer = server.ask(request("GET", "/metrics", fields));
        assert_eq!(answer.expect_field("content-type"), kind, "{fields}");
        assert_eq!(answer.text().ends_with("# EOF\n"), kind == OPEN_METRICS, "{fields}");
    }
}

fn a_page_is_a_route_like_others(setup: Setup) {
    let folder = Folder::new();
    folder.file("metrics", "a file");
    folder.file("other", "another");
    let server = Server::start(with_pages(setup.folder_config(&folder)));
    assert!(server.get("/metrics").text().starts_with("# HELP "), "it is before the folder");
    assert!(server.get("/./%6Detrics").text().starts_with("# HELP "), "by its canonical path");
    assert_eq!(server.get("/other").text(), "another");
    assert_eq!(server.get("/metrics/").status, 404);
    // Without a folder and routes there is the built-in page, and these.
    let server = Server::start(with_pages(setup.config()));
    assert_eq!((server.get("/").status, server.get("/metrics").status), (200, 200));
}

fn others_than_those_of_this_machine_are_refused(setup: Setup) {
    // All of 127.0.0.0/8 is this machine: one of it stands for a stranger.
    let metrics_allow_from = vec!["127.0.0.2".to_owned()];
    let server =
        Server::routes(Config { metrics_allow_from, ..with_pages(setup.config()) }, hello());
    for path in ["/metrics", "/stats"] {
        let refused = server.get(path);
        assert_eq!(refused.status, 403, "{path}");
        assert!(refused.text().contains("metrics-allow-from"), "{path}");
        assert_eq!(refused.expect_field("cache-control"), "no-store");
        let mut friend = Client::connect_from(2, server.address());
        assert_eq!(friend.get(path).status, 200, "{path}");
    }
    let anyone = vec!["*".to_owned()];
    let server = Server::routes(
        Config { metrics_allow_from: anyone, ..with_pages(setup.config()) },
        hello(),
    );
    let forwarded = request("GET", "/metrics", "X-Forwarded-For: 192.0.2.1\r\n");
    assert_eq!(server.ask(forwarded).status, 200);
}

fn the_clients_of_a_proxy_are_those_that_count(setup: Setup) {
    let ask = |server: &Server, fields: &str| server.ask(request("GET", "/metrics", fields)).status;
    let server = Server::routes(with_pages(setup.config()), hello());
    assert_eq!(ask(&server, ""), 200);
    for field in [
        "X-Forwarded-For: 127.0.0.1",
        "Forwarded: for=127.0.0.1",
        "X-Real-IP: 127.0.0.1",
        "Via: 1.1 proxy",
    ] {
        let fields = format!("{field}\r\n");
        assert_eq!(ask(&server, &fields), 403, "anyone may be behind such a proxy: {field}");
    }
    let forwarded_allow_ips = vec!["127.0.0.1".to_owned()];
    let config = Config { forwarded_allow_ips, ..with_pages(setup.config()) };
    let server = Server::routes(config, hello());
    assert_eq!(ask(&server, ""), 200);
    assert_eq!(ask(&server, "X-Forwarded-For: 192.0.2.1\r\n"), 403);
    assert_eq!(ask(&server, "X-Forwarded-For: 127.0.0.1, 192.0.2.1\r\n"), 403);
    assert_eq!(ask(&server, "X-Forwarded-For: 127.0.0.9\r\nVia: 1.1 proxy\r\n"), 200);
}

fn a_reload_adds_and_removes_a_page(setup: Setup) {
    let of = |config: Config| gustnado::Server::new().config(config).routes(hello());
    let server = Server::built(of(setup.config()));
    let mut client = server.connect();
    assert_eq!(client.get("/metrics").status, 404);
    server.running().reload(of(with_pages(setup.config()))).expect("it is valid");
    assert_eq!(client.get("/metrics").status, 200);
    server.running().reload(of(setup.config())).expect("it is valid");
    assert_eq!(client.get("/metrics").status, 404);
}

fn a_page_stays_when_routes_are_swapped(setup: Setup) {
    let server = Server::routes(with_pages(setup.config()), hello());
    let other = Routes::new().get("/other", |_: &Request| "other");
    server.running().swap_routes(&other).expect("good routes");
    assert_eq!((server.get("/other").status, server.get("/metrics").status), (200, 200));
}

fn a_path_that_is_taken_is_refused_at_the_start(setup: Setup) {
    let start = |config: Config, routes: Routes| {
        gustnado::Server::new().config(config).routes(routes).start().err()
    };
    let taken = hello().get("/metrics", |_: &Request| "mine");
    let error = start(with_pages(setup.config()), taken).expect("two for one path");
    assert!(matches!(error, StartError::Routes(_)), "{error}");
    let wrong =
        Config { metrics_allow_from: vec!["10.0.0.1/8".to_owned()], ..with_pages(setup.config()) };
    let error = start(wrong, hello()).expect("no network").to_string();
    assert!(error.contains("metrics-allow-from"), "{error}");
    for path in ["metrics", "/", "/a b", "/{name}", "/a?b"] {
        let error = gustnado::Server::new().set("metrics-path", path).err();
        let error = error.expect(path).to_string();
        assert!(error.contains("metrics-path") && error.contains("begins with a slash"), "{error}");
    }
}
