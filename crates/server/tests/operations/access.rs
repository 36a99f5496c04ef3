//! What routes ask of requests besides files: addresses, rates, origins, passwords, signatures.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use gustnado::config::{Config, ForwardedFields, RouteSettings};
use gustnado::{Request, Response, Routes, Status, blocking, route};

use crate::harness::client::{get, post, request};
use crate::harness::{Answer, Client, Folder, Server, Setup};

on_every_server!(
    addresses_decide_who_comes,
    a_proxy_tells_whose_address_it_is,
    a_client_that_is_not_named_is_not_the_proxy,
    a_proxy_that_is_not_trusted_opens_nothing,
    a_client_that_sends_too_much_is_told_when_to_come_again,
    a_route_has_a_rate_of_its_own,
    a_rate_is_of_all_paths_of_its_route,
    pages_of_named_origins_read_answers,
    pages_of_any_origin_read_answers,
    browsers_are_made_careful,
    a_password_opens_everything_behind_it,
    a_page_of_a_hundred_files_is_checked_once,
    a_tunnel_needs_the_password_too,
    a_refused_body_is_not_waited_for,
    a_site_and_a_route_ask_what_they_say,
    a_route_has_limits_of_its_own,
);

/// Of `password`, by htpasswd -B.
pub(super) const USERS: &str = "ann:$2y$05$bvIG6Nmid91Mu9RcmmWZfO5HJIMCT8riNW0hEp8f6/FuA2/mHZFpe\n";
/// `ann:password`, `ann:wrong` and `eve:password`.
pub(super) const RIGHT: &str = "Authorization: Basic YW5uOnBhc3N3b3Jk\r\n";
const WRONG: &str = "Authorization: Basic YW5uOndyb25n\r\n";
const UNKNOWN: &str = "Authorization: Basic ZXZlOnBhc3N3b3Jk\r\n";

fn who(request: &Request) -> String {
    format!("{} {}", request.user().unwrap_or_else(|| "-".to_owned()), request.bytes().len())
}

async fn late(mut request: Request) -> String {
    let user = request.user().unwrap_or_else(|| "-".to_owned());
    let body = request.body_mut().bytes(1 << 20).await;
    format!("{user} {}", body.map_or(0, |body| body.len()))
}

/// One of each kind of endpoint, and a folder where no route matches.
fn routes() -> Routes {
    Routes::new()
        .any("/inline", who)
        .any("/late", late)
        .any("/pool", blocking(|request: Request| who(&request)))
        .get("/moved", |_: &Request| Response::redirect(Status::FOUND, "/inline"))
}

/// The paths that they have, and what they are without a gate.
pub(super) const PATHS: [(&str, u16); 6] = [
    ("/inline", 200),
    ("/late", 200),
    ("/pool", 200),
    ("/moved", 302),
    ("/a.txt", 200),
    ("/none", 404),
];

/// A server of them.
pub(super) fn served(setup: Setup, folder: &Folder, change: impl FnOnce(&mut Config)) -> Server {
    folder.file("a.txt", "a file");
    let mut config = setup.folder_config(folder);
    change(&mut config);
    Server::routes(config, routes())
}

pub(super) fn file(folder: &Folder, text: &str) -> PathBuf {
    let path = folder.outside().join("entries");
    std::fs::write(&path, text).expect("a file");
    path
}

fn with(target: &str, fields: &str) -> String {
    request("GET", target, fields)
}

fn addresses_decide_who_comes(setup: Setup) {
    let folder = Folder::new();
    let server = served(setup, &folder, |config| {
        config.routes.access.allow = vec!["127.0.0.0/29".to_owned()];
        config.routes.access.deny = vec!["127.0.0.3".to_owned()];
    });
    for (path, status) in PATHS {
        for (host, wanted) in [(1, status), (2, status), (3, 403), (9, 403)] {
            let mut client = Client::connect_from(host, server.address());
            // The connection goes on.
            for _ in 0..2 {
                assert_eq!(client.get(path).status, wanted, "{path} from {host}");
            }
        }
    }
    let refused = server.ask(get("/a.txt"));
    assert_eq!(refused.status, 200);
    assert_eq!(server.stats().access_refused_address, 4 * PATHS.len() as u64);
}

fn a_proxy_tells_whose_address_it_is(setup: Setup) {
    let folder = Folder::new();
    let server = served(setup, &folder, |config| {
        config.forwarded_allow_ips = vec!["127.0.0.1".to_owned()];
        config.routes.access.allow = vec!["192.0.2.0/24".to_owned()];
    });
    for (from, wanted) in
        [("192.0.2.7", 200), ("198.51.100.1", 403), ("192.0.2.7, 198.51.100.1", 403)]
    {
        let answer = server.ask(with("/a.txt", &format!("X-Forwarded-For: {from}\r\n")));
        assert_eq!(answer.status, wanted, "{from}");
    }
    assert_eq!(server.get("/a.txt").status, 403, "the proxy itself");
}

/// A client that the proxy does not name is not the proxy, which may come itself.
fn a_client_that_is_not_named_is_not_the_proxy(setup: Setup) {
    for (fields, unnamed) in [
        (ForwardedFields::XForwarded, &["X-Forwarded-For: unknown", "X-Forwarded-For: a, _b"][..]),
        (
            ForwardedFields::Forwarded,
            &["Forwarded: for=1.1.1.1;host=\", for=198.51.100.1", "Forwarded: for=_hidden"],
        ),
    ] {
        let folder = Folder::new();
        let server = served(setup, &folder, |config| {
            config.forwarded_allow_ips = vec!["127.0.0.1".to_owned()];
            config.forwarded_fields = fields;
            config.routes.access.allow = vec!["127.0.0.1".to_owned()];
        });
        assert_eq!(server.get("/a.txt").status, 200, "the proxy itself");
        for line in unnamed {
            let answer = server.ask(with("/a.txt", &format!("{line}\r\n")));
            assert_eq!(answer.status, 403, "{line}");
        }
    }
}

fn a_proxy_that_is_not_trusted_opens_nothing(setup: Setup) {
    let folder = Folder::new();
    let server = served(setup, &folder, |config| {
        config.routes.access.allow = vec!["127.0.0.1".to_owned()];
    });
    assert_eq!(server.get("/a.txt").status, 200);
    assert_eq!(server.ask(with("/a.txt", "X-Forwarded-For: 198.51.100.1\r\n")).status, 403);
}

fn a_client_that_sends_too_much_is_told_when_to_come_again(setup: Setup) {
    let folder = Folder::new();
    let server = served(setup, &folder, |config| {
        "1/m".clone_into(&mut config.routes.access.rate_limit);
        config.routes.access.rate_limit_burst = 6;
    });
    let mut client = server.connect();
    for (path, status) in PATHS {
        assert_eq!(client.get(path).status, status, "{path}");
    }
    for (path, _) in PATHS {
        let answer = client.get(path);
        assert_eq!(answer.status, 429, "{path}");
        let seconds: u64 = answer.expect_field("retry-after").parse().expect("seconds");
        assert!((1..=60).contains(&seconds), "{seconds}");
        assert_eq!(answer.field("cache-control"), Some("no-store"));
    }
    // Of another client nothing is known yet.
    assert_eq!(Client::connect_from(2, server.address()).get("/a.txt").status, 200);
    let stats = server.stats();
    assert_eq!((stats.access_refused_rate, stats.answers_4xx), (6, 7));
}

fn a_route_has_a_rate_of_its_own(setup: Setup) {
    let folder = Folder::new();
    folder.file("a.txt", "a file");
    let login = route().any(|_: &Request| "in").tune(|settings| {
        "1/m".clone_into(&mut settings.access.rate_limit);
    });
    let server = Server::routes(setup.folder_config(&folder), Routes::new().route("/login", login));
    let mut client = server.connect();
    assert_eq!(client.get("/login").status, 200);
    // Every method of the route counts.
    client.send(post("/login", "user=a"));
    assert_eq!(client.read_answer().status, 429);
    for _ in 0..5 {
        assert_eq!(client.get("/a.txt").status, 200);
    }
}

/// However many paths a route has, and however many routes are nested, the rate is one.
fn a_rate_is_of_all_paths_of_its_route(setup: Setup) {
    let rated = |settings: &mut RouteSettings| {
        "2/m".clone_into(&mut settings.access.rate_limit);
        settings.access.rate_limit_burst = 2;
    };
    let login = || route().any(|_: &Request| "in").tune(rated);
    let api = Routes::new().get("/a", who).get("/b", who).get("/c", who).tune(rated);
    let routes = Routes::new().mount("/login", login()).mount("/other", login()).nest("/api", api);
    let server = Server::routes(setup.config(), routes);
    for paths in [
        ["/login", "/login/", "/login/x"],
        ["/other/y", "/other", "/other/"],
        ["/api/c", "/api/a", "/api/b"],
    ] {
        let found = paths.map(|path| server.get(path).status);
        assert_eq!(found, [200, 200, 429], "{paths:?}");
    }
}

fn preflight(target: &str, origin: &str) -> String {
    let fields = format!(
        "Origin: {origin}\r\nAccess-Control-Request-Method: PUT\r\n\
         Access-Control-Request-Headers: x-token,content-type\r\n"
    );
    request("OPTIONS", target, &fields)
}

fn pages_of_named_origins_read_answers(setup: Setup) {
    let folder = Folder::new();
    let users = Some(file(&folder, USERS));
    let server = served(setup, &folder, |config| {
        let access = &mut config.routes.access;
        access.cors = vec!["https://a.org".to_owned(), "https://*.b.org".to_owned()];
        access.cors_credentials = true;
        // A preflight request has no password.
        access.basic_auth = users;
    });
    for path in ["/inline", "/late", "/a.txt"] {
        for (origin, is_named) in [
            ("https://a.org", true),
            ("https://x.b.org", true),
            ("https://evil.org", false),
            ("null", false),
        ] {
            let answer = server.ask(preflight(path, origin));
            assert_eq!(answer.status, if is_named { 204 } else { 403 }, "{path} {origin}");
            let named = is_named.then_some(origin);
            assert_eq!(answer.field("access-control-allow-origin"), named);
            assert!(answer.expect_field("vary").starts_with("Origin"), "{answer:?}");
            if is_named {
                assert_eq!(
                    answer.field("access-control-allow-methods"),
                    Some("GET, HEAD, POST, PUT, PATCH, DELETE")
                );
                assert_eq!(
                    answer.field("access-control-allow-headers"),
                    Some("x-token,content-type")
                );
                assert_eq!(answer.field("access-control-max-age"), Some("600"));
                assert_eq!(answer.field("access-control-allow-credentials"), Some("true"));
            }
            for (fields, status) in [(RIGHT, 200), ("", 401)] {
                let answer = server.ask(with(path, &format!("Origin: {origin}\r\n{fields}")));
                assert_eq!(answer.status, status);
                assert_eq!(answer.field("access-control-allow-origin"), named, "{path} {origin}");
                assert_eq!(answer.field("vary"), Some("Origin"));
            }
        }
        let answer = server.ask(with(path, RIGHT));
        assert_eq!(answer.field("access-control-allow-origin"), None);
        assert_eq!(answer.field("vary"), Some("Origin"), "caches keep them apart");
    }
    assert_eq!(server.stats().access_refused_origin, 6);
}

fn pages_of_any_origin_read_answers(setup: Setup) {
    let folder = Folder::new();
    let server = served(setup, &folder, |config| {
        config.routes.access.cors = vec!["any".to_owned()];
        config.routes.access.cors_headers = vec!["X-Token".to_owned()];
    });
    for (path, status) in PATHS {
        let answer = server.ask(with(path, "Origin: https://a.org\r\n"));
        assert_eq!(answer.status, status);
        assert_eq!(answer.field("access-control-allow-origin"), Some("*"), "{path}");
        assert_eq!(answer.field("vary"), None, "it is the same for all");
        let answer = server.ask(preflight(path, "https://a.org"));
        assert_eq!(answer.status, 204, "{path}");
        assert_eq!(answer.field("access-control-allow-origin"), Some("*"));
        assert_eq!(answer.count("access-control-allow-origin"), 1);
        assert_eq!(answer.field("access-control-allow-headers"), Some("X-Token"));
    }
}

fn browsers_are_made_careful(setup: Setup) {
    let folder = Folder::new();
    let users = Some(file(&folder, USERS));
    let server = served(setup, &folder, |config| {
        let access = &mut config.routes.access;
        access.security_headers = true;
        "default-src 'self'".clone_into(&mut access.csp);
        "script-src 'none'".clone_into(&mut access.csp_report_only);
        access.basic_auth = users;
    });
    for (path, status) in PATHS {
        for (fields, status) in [(RIGHT, status), ("", 401)] {
            let answer = server.ask(with(path, fields));
            assert_eq!(answer.status, status);
            for (name, value) in [
                ("x-content-type-options", "nosniff"),
                ("referrer-policy", "strict-origin-when-cross-origin"),
                ("x-frame-options", "SAMEORIGIN"),
                ("cross-origin-opener-policy", "same-origin"),
                ("content-security-policy", "default-src 'self'"),
                ("content-security-policy-report-only", "script-src 'none'"),
            ] {
                assert_eq!(answer.field(name), Some(value), "{path} {status}");
                assert_eq!(answer.count(name), 1);
            }
            assert_eq!(answer.field("strict-transport-security"), None, "that is hsts");
        }
    }
}

fn a_password_opens_everything_behind_it(setup: Setup) {
    let folder = Folder::new();
    let users = Some(file(&folder, USERS));
    let server = served(setup, &folder, |config| {
        config.routes.access.basic_auth = users;
        "the back office".clone_into(&mut config.routes.access.basic_auth_realm);
    });
    for (path, status) in PATHS {
        for fields in
            ["", WRONG, UNKNOWN, "Authorization: Bearer x\r\n", "Authorization: Basic !\r\n"]
        {
            let answer = server.ask(with(path, fields));
            assert_eq!(answer.status, 401, "{path} {fields}");
            let challenge = answer.expect_field("www-authenticate");
            assert_eq!(challenge, "Basic realm=\"the back office\", charset=\"UTF-8\"");
            assert_eq!(answer.field("cache-control"), Some("no-store"));
        }
        // The first is checked, the second is known.
        for _ in 0..2 {
            assert_eq!(server.ask(with(path, RIGHT)).status, status, "{path}");
        }
    }
    for path in ["/inline", "/late", "/pool"] {
        assert_eq!(server.ask(with(path, RIGHT)).text(), "ann 0", "{path}");
        let mut client = server.connect();
        for body in ["short", &"x".repeat(100_000)] {
            let length = body.len();
            client.send(
                request("POST", path, &format!("{RIGHT}Content-Length: {length}\r\n")) + body,
            );
            assert_eq!(client.read_answer().text(), format!("ann {length}"), "{path}");
        }
    }
    let stats = server.stats();
    assert_eq!((stats.password_checks, stats.access_refused_password), (1 + 12, 30));
}

fn a_page_of_a_hundred_files_is_checked_once(setup: Setup) {
    let folder = Folder::new();
    let users = Some(file(&folder, USERS));
    let server = served(setup, &folder, |config| config.routes.access.basic_auth = users);
    let requests = with("/a.txt", RIGHT).repeat(100);
    let mut clients: Vec<Client> = (0..4).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send(&requests);
    }
    for client in &mut clients {
        for _ in 0..100 {
            assert_eq!(client.read_answer().text(), "a file");
        }
    }
    // Two may be checked at a time, by default.
    let checks = server.stats().password_checks;
    assert!((1..=2).contains(&checks), "{checks}");
}

/// What follows a CONNECT is no body, whatever its fields claim.
fn a_tunnel_needs_the_password_too(setup: Setup) {
    if Setup::http1_only("its fields claim no body there") {
        return;
    }
    let folder = Folder::new();
    let mut config = setup.config();
    config.routes.access.basic_auth = Some(file(&folder, USERS));
    let fallback = route().any(|_: &Request| "through").takes_connect(true).server_wide(true);
    let server = Server::routes(config, Routes::new().fallback_route(fallback));
    for (fields, behind) in [("", ""), ("Content-Length: 5\r\n", "hello")] {
        let connect = |more: &str| {
            format!("CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n{fields}{more}\r\n{behind}")
        };
        assert_eq!(server.ask(connect("")).status, 401);
        let options = |more: &str| request("OPTIONS", "*", &format!("{fields}{more}")) + behind;
        assert_eq!(server.ask(options("")).status, 401);
        assert_eq!(server.ask(options(RIGHT)).text(), "through");
    }
}

/// A client that announces a body gets its refusal at once: no 100, and nothing is read first.
fn a_refused_body_is_not_waited_for(setup: Setup) {
    let folder = Folder::new();
    let users = Some(file(&folder, USERS));
    let server = served(setup, &folder, |config| config.routes.access.basic_auth = users);
    for path in ["/inline", "/late", "/pool", "/a.txt"] {
        for fields in ["", WRONG] {
            let fields = format!("{fields}Content-Length: 1000000\r\nExpect: 100-continue\r\n");
            let mut client = server.connect();
            client.send(request("PUT", path, &fields));
            assert_eq!(client.read_answer().status, 401, "{path}");
        }
        // A short body that comes all the same ends the connection for no other request.
        let mut client = server.connect();
        client.send(post(path, "short"));
        assert_eq!(client.read_answer().status, 401, "{path}");
        client.send(with("/inline", RIGHT));
        assert_eq!(client.read_answer().text(), "ann 0", "{path}");
    }
}

fn a_site_and_a_route_ask_what_they_say(setup: Setup) {
    let folder = Folder::new();
    folder.file("a.txt", "a file");
    folder.file("large.bin", vec![b'x'; 300_000]);
    file(&folder, USERS);
    let text = "
        root = \"root\"
        [[route]]
        path = \"/slow\"
        folder = \"root\"
        write-rate = \"200000\"
        [[site]]
        hosts = \"private.org\"
        root = \"root\"
        basic-auth = \"entries\"
        csp = \"default-src 'none'\"
        [[site.route]]
        path = \"/public\"
        folder = \"root\"
        basic-auth = \"off\"
        [[site.route]]
        path = \"/never\"
        answer = \"no\"
        deny = \"*\"
        rate-limit = \"5/s\"
    ";
    let server = Server::built(setup.described(&folder, text));
    let of = |host: &str, path: &str, fields: &str| -> Answer {
        server.ask(format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\n{fields}Connection: close\r\n\r\n"
        ))
    };
    assert_eq!(of("other.org", "/a.txt", "").status, 200);
    assert_eq!(of("private.org", "/a.txt", "").status, 401);
    let answer = of("private.org", "/a.txt", RIGHT);
    assert_eq!(
        (answer.status, answer.field("content-security-policy")),
        (200, Some("default-src 'none'"))
    );
    assert_eq!(of("private.org", "/public/a.txt", "").status, 200);
    assert_eq!(of("private.org", "/never", RIGHT).status, 403);
    let began = Instant::now();
    assert_eq!(server.get("/slow/large.bin").body.len(), 300_000);
    assert!(began.elapsed() > Duration::from_millis(800), "{:?}", began.elapsed());
}

fn a_route_has_limits_of_its_own(setup: Setup) {
    let small = || {
        route().tune(|settings| {
            settings.limits.body_bytes_max = Some(10);
            settings.access.idle_timeout = Duration::from_millis(100);
        })
    };
    let routes = Routes::new()
        .route("/inline", small().any(who))
        .route("/late", small().any(late))
        .route("/never", small().get(async |_: Request| std::future::pending::<String>().await));
    let server = Server::routes(setup.config(), routes);
    for path in ["/inline", "/late"] {
        assert_eq!(server.ask(post(path, "0123456789")).text(), "- 10");
        assert_eq!(server.ask(post(path, "0123456789a")).status, 413);
    }
    assert_eq!(server.get("/never").status, 503);
}
