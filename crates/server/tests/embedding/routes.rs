//! Which handler answers: paths, methods, hosts, matchers, chains, pages for errors.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gustnado::{
    Flow, IntoResponse, Middleware, Next, Request, Response, RouteError, Routes, Server as Builder,
    StartError, Status, route,
};

use crate::harness::client::request;
use crate::harness::{Folder, Server, Setup};

on_every_server!(
    a_path_is_found_exactly_by_its_parts_or_by_its_rest,
    escapes_do_not_matter_for_a_route_but_for_its_parts,
    head_options_and_405_come_by_themselves,
    a_host_has_a_site_of_its_own,
    matchers_go_before_paths_and_in_order,
    a_folder_is_served_beneath_a_path,
    all_links_of_a_chain_run_in_order,
    a_link_may_answer_instead,
    a_link_may_change_the_answer,
    links_run_around_folders_too,
    a_link_may_run_around_a_handler_of_any_kind,
    a_link_may_be_meant_for_some_requests_only,
    errors_have_pages,
    a_page_for_errors_may_be_a_file,
    routes_can_be_swapped_while_they_serve,
    routes_that_conflict_are_refused_by_name,
    asterisk_form_asks_for_the_server_itself,
);

fn echo_params(request: &Request) -> String {
    let params: Vec<_> = request.params().map(|(name, value)| format!("{name}={value}")).collect();
    params.join(" ")
}

fn a_path_is_found_exactly_by_its_parts_or_by_its_rest(setup: Setup) {
    let routes = Routes::new()
        .get("/", |_: &Request| "root")
        .get("/user/me", |_: &Request| "exact")
        .get("/user/{id}", echo_params)
        .get("/user/{id}/posts/{post}", echo_params)
        .get("/files/{*path}", echo_params)
        .nest("/api", Routes::new().get("/v1/{what}", echo_params));
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    for (path, text) in [
        ("/", "root"),
        ("/user/me", "exact"),
        ("/user/7", "id=7"),
        ("/user/7/posts/x?y=z", "id=7 post=x"),
        ("/files/a/b/c.txt", "path=a/b/c.txt"),
        ("/api/v1/thing", "what=thing"),
    ] {
        let answer = client.get(path);
        assert_eq!((answer.status, &*answer.text()), (200, text), "{path}");
    }
    for path in ["/user", "/user/", "/user/7/posts", "/files", "/api", "/USER/me"] {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
}

fn escapes_do_not_matter_for_a_route_but_for_its_parts(setup: Setup) {
    let routes = Routes::new()
        .get("/caf\u{e9}", |_: &Request| "coffee")
        .get("/~me/{part}", |request: &Request| request.param("part").into_owned());
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    for path in ["/caf%C3%A9", "/caf%c3%a9", "/%63af%C3%A9"] {
        assert_eq!(client.get(path).text(), "coffee", "{path}");
    }
    for (path, part) in [("/~me/a", "a"), ("/%7Eme/a%2Fb", "a/b"), ("/%7eme/%c3%a9+", "\u{e9}+")] {
        assert_eq!(client.get(path).text(), part, "{path}");
    }
}

fn head_options_and_405_come_by_themselves(setup: Setup) {
    let routes = Routes::new()
        .get("/", |_: &Request| "got")
        .post("/", |_: &Request| "posted")
        .any("/any", |request: &Request| request.method_str().to_owned());
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    client.send(request("HEAD", "/", ""));
    let head = client.read_head();
    assert_eq!((head.status, head.field("content-length")), (200, Some("3")));
    let options = client.ask(request("OPTIONS", "/", ""));
    assert_eq!((options.status, options.expect_field("allow")), (204, "GET, HEAD, POST, OPTIONS"));
    let refused = client.ask(request("DELETE", "/", ""));
    assert_eq!((refused.status, refused.expect_field("allow")), (405, "GET, HEAD, POST, OPTIONS"));
    for method in ["PATCH", "PROPFIND", "get", "M-SEARCH"] {
        assert_eq!(client.ask(request(method, "/any", "")).text(), method);
    }
    let refused = client.ask(request("PROPFIND", "/", ""));
    assert_eq!((refused.status, refused.expect_field("allow")), (405, "GET, HEAD, POST, OPTIONS"));
    assert_eq!(client.ask(request("POST", "/", "Content-Length: 0\r\n")).text(), "posted");
}

fn a_host_has_a_site_of_its_own(setup: Setup) {
    let site = |name: &'static str| Routes::new().get("/", move |_: &Request| name);
    let routes = site("rest")
        .host("one.example", site("one"))
        .host("*.wide.example", site("wide"))
        .host("exact.wide.example", site("exact"));
    let server = Server::routes(setup.config(), routes);
    for (host, name) in [
        ("one.example", "one"),
        ("ONE.example:8080", "one"),
        ("a.wide.example", "wide"),
        ("a.b.wide.example:1", "wide"),
        ("exact.wide.example", "exact"),
        ("wide.example", "rest"),
        ("[::1]:80", "rest"),
    ] {
        let mut client = server.connect();
        let answer = client.ask(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(answer.text(), name, "{host}");
    }
    let absolute = "GET http://one.example/ HTTP/1.1\r\nHost: other\r\n\r\n";
    assert_eq!(server.ask(absolute).text(), "one");
}

fn matchers_go_before_paths_and_in_order(setup: Setup) {
    let is_bot = |request: &Request| request.header("user-agent") == Some("bot");
    let has_query = |request: &Request| request.raw_query().is_some();
    let routes = Routes::new()
        .get("/", |_: &Request| "path")
        .matching(is_bot, |_: &Request| "bot")
        .matching(has_query, |_: &Request| "query");
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    assert_eq!(client.get("/").text(), "path");
    assert_eq!(client.get("/none?x").text(), "query");
    assert_eq!(client.ask(request("GET", "/?x", "User-Agent: bot\r\n")).text(), "bot");
}

fn a_folder_is_served_beneath_a_path(setup: Setup) {
    let folder = Folder::new();
    folder.file("page.txt", "a page");
    folder.file("index.html", "the index");
    folder.file("below/index.html", "below");
    let routes = Routes::new().get("/", |_: &Request| "root").files("/static", folder.root());
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    assert_eq!(client.get("/").text(), "root");
    assert_eq!(client.get("/static/page.txt").text(), "a page");
    assert_eq!(client.get("/static/").text(), "the index");
    assert_eq!(client.get("/static/below/").text(), "below");
    for (path, location) in [("/static", "/static/"), ("/static/below?x", "/static/below/?x")] {
        let answer = client.get(path);
        assert_eq!((answer.status, answer.expect_field("location")), (301, location));
    }
    for path in ["/static/none", "/static%2Fpage.txt", "/staticpage.txt"] {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
    for path in ["/static/../Cargo.toml", "/static/%2e%2e/x"] {
        assert_eq!(client.get(path).status, 400, "{path}");
    }
    for path in ["//static/page.txt", "/%73tatic/./page%2etxt", "/static//page.txt"] {
        assert_eq!(client.get(path).text(), "a page", "{path}");
    }
    let part = client.ask(request("GET", "/static/page.txt", "Range: bytes=2-\r\n"));
    assert_eq!((part.status, &*part.text()), (206, "page"));
    let posted = client.ask(request("POST", "/static/page.txt", "Content-Length: 3\r\n") + "abc");
    assert_eq!(posted.status, 405);
    assert_eq!(client.get("/static/page.txt").text(), "a page", "the body was passed over");
}

fn all_links_of_a_chain_run_in_order(setup: Setup) {
    let note = |name: &'static str| {
        Middleware::before(move |request: &mut Request| {
            let so_far = request.get::<String>().cloned().unwrap_or_default();
            request.insert(so_far + name);
            Flow::Next
        })
    };
    let told = |request: &Request| request.get::<String>().cloned();
    let routes = Routes::new()
        .middleware(note("a"))
        .middleware(note("b"))
        .middleware(note("c"))
        .route("/", route().middleware(note("d")).middleware(note("e")).get(told))
        .get("/short", told)
        .get("/task", async |request: Request| request.get::<String>().cloned())
        .fallback(told);
    let server = Server::routes(setup.config(), routes);
    for (path, text) in [("/", "abcde"), ("/short", "abc"), ("/task", "abc"), ("/none", "abc")] {
        assert_eq!(server.get(path).text(), text, "{path}");
    }
}

fn a_link_may_answer_instead(setup: Setup) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let handler = move |_: &Request| counted.fetch_add(1, Ordering::Relaxed).to_string();
    let guard = |request: &mut Request| match request.header("authorization") {
        Some("let me in") => Flow::Next,
        _ => Flow::Respond(Status::UNAUTHORIZED.into_response().header("WWW-Authenticate", "Word")),
    };
    let server = Server::routes(setup.config(), Routes::new().chain(guard).get("/", handler));
    let refused = server.get("/");
    assert_eq!((refused.status, refused.expect_field("www-authenticate")), (401, "Word"));
    assert_eq!(server.get("/none").status, 401);
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    assert_eq!(server.ask(request("GET", "/", "Authorization: let me in\r\n")).text(), "0");
}

fn a_link_may_change_the_answer(setup: Setup) {
    let stamp = Middleware::after(|request: &Request, response: &mut Response| {
        let path = request.raw_path().to_owned();
        response.try_header("X-Path", path).expect("a path is a good value");
    });
    let routes = Routes::new()
        .middleware(stamp)
        .get("/inline", |_: &Request| "x")
        .get("/task", async |_: Request| "y")
        .get("/pool", gustnado::blocking(|_| "z"));
    let server = Server::routes(setup.config(), routes);
    for (path, text) in [("/inline", "x"), ("/task", "y"), ("/pool", "z")] {
        let answer = server.get(path);
        assert_eq!((&*answer.text(), answer.expect_field("x-path")), (text, path));
    }
    assert_eq!(server.get("/none").expect_field("x-path"), "/none");
}

fn links_run_around_folders_too(setup: Setup) {
    let folder = Folder::new();
    folder.file("secret.txt", "for friends");
    folder.file("big.bin", vec![7; 100_000]);
    let guard = |request: &mut Request| match request.header("x-friend") {
        Some(_) => Flow::Next,
        None => Flow::Respond(Response::new(Status::FORBIDDEN)),
    };
    let stamp = Middleware::after(|_: &Request, response: &mut Response| {
        response.try_header("X-Stamp", "1").expect("a good field");
    });
    let routes = Routes::new().chain(guard).middleware(stamp).files("/", folder.root());
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    for path in ["/secret.txt", "/", "/none"] {
        assert_eq!(client.get(path).status, 403, "{path}");
    }
    let friend = |fields: &str| format!("X-Friend: yes\r\n{fields}");
    let whole = client.ask(request("GET", "/secret.txt", &friend("")));
    assert_eq!((&*whole.text(), whole.expect_field("x-stamp")), ("for friends", "1"));
    let part = client.ask(request("GET", "/secret.txt", &friend("Range: bytes=4-\r\n")));
    assert_eq!((part.status, &*part.text()), (206, "friends"));
    assert_eq!(client.ask(request("GET", "/big.bin", &friend(""))).body.len(), 100_000);
}

fn a_link_may_run_around_a_handler_of_any_kind(setup: Setup) {
    let around = Middleware::around(async |request: Request, next: Next| {
        gustnado_tasks::yield_now().await;
        let response = next.run(request).await;
        response.header("X-Around", "1")
    });
    let echo = |request: &Request| request.bytes().to_vec();
    let routes = Routes::new()
        .middleware(around)
        .route("/inline", route().post(echo))
        .route(
            "/task",
            route().post(async |request: Request| {
                let mut body = request.into_body();
                body.bytes(100).await
            }),
        )
        .route(
            "/pool",
            route().post(gustnado::blocking(|request: Request| request.bytes().to_vec())),
        );
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    for path in ["/inline", "/task", "/pool"] {
        let answer = client.ask(request("POST", path, "Content-Length: 5\r\n") + "hello");
        assert_eq!((&*answer.text(), answer.expect_field("x-around")), ("hello", "1"), "{path}");
    }
}

fn a_link_may_be_meant_for_some_requests_only(setup: Setup) {
    let teapot = Middleware::before(|_: &mut Request| Flow::Respond(Response::new(Status::GONE)))
        .only_if(|request: &Request| request.raw_path().starts_with("/old"));
    let routes = Routes::new().middleware(teapot).any("/{*rest}", |_: &Request| "here");
    let server = Server::routes(setup.config(), routes);
    assert_eq!((server.get("/old/x").status, server.get("/new").status), (410, 200));
}

fn errors_have_pages(setup: Setup) {
    let routes = Routes::new()
        .get("/teapot", |_: &Request| Status::GONE)
        .get("/own", |_: &Request| (Status::NOT_FOUND, "my own"))
        .error_page(Status::NOT_FOUND, |request: &Request, _| {
            Response::text(format!("no {}", request.path()))
        })
        .error_pages(|_: &Request, status: Status| Response::text(format!("oh {}", status.code())));
    let server = Server::routes(setup.config(), routes);
    for (path, status, text) in
        [("/none", 404, "no /none"), ("/teapot", 410, "oh 410"), ("/own", 404, "my own")]
    {
        let answer = server.get(path);
        assert_eq!((answer.status, &*answer.text()), (status, text), "{path}");
    }
    let refused = server.ask(request("PUT", "/own", ""));
    assert_eq!((refused.status, &*refused.text()), (405, "oh 405"));
    assert_eq!(refused.expect_field("allow"), "GET, HEAD, OPTIONS");
    let plain = Server::routes(setup.config(), Routes::new());
    assert!(plain.get("/").text().contains("404"), "the usual page");
}

/// Its file is sent whole, whatever the request asks for, and the connection goes on.
fn a_page_for_errors_may_be_a_file(setup: Setup) {
    let folder = Folder::new();
    folder.file("404.html", "<p>gone");
    folder.file("large.html", "x".repeat(200_000));
    let file = |name: &str| folder.root().join(name);
    let (small, large, none) = (file("404.html"), file("large.html"), file("none.html"));
    let routes = Routes::new()
        .get("/busy", |_: &Request| Status::SERVICE_UNAVAILABLE)
        .get("/failed", |_: &Request| Status::INTERNAL_SERVER_ERROR)
        .error_page(Status::NOT_FOUND, move |_: &Request, _| Response::file(&small))
        .error_page(Status::SERVICE_UNAVAILABLE, move |_: &Request, _| Response::file(&large))
        .error_pages(move |_: &Request, _| Response::file(&none));
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    for fields in ["", "Range: bytes=0-1\r\n", "If-None-Match: *\r\n"] {
        for (path, status, length) in [("/none", 404, 7), ("/busy", 503, 200_000)] {
            let answer = client.ask(request("GET", path, fields));
            assert_eq!((answer.status, answer.body.len()), (status, length), "{path} {fields}");
            assert_eq!(answer.count("content-type"), 1);
            assert_eq!(answer.field("content-type"), Some("text/html; charset=utf-8"));
            assert_eq!((answer.field("etag"), answer.field("content-range")), (None, None));
        }
    }
    let answer = client.get("/failed");
    assert_eq!(answer.status, 500);
    assert!(answer.text().contains("Internal Server Error"), "the usual page");
    client.send(request("HEAD", "/none", ""));
    assert_eq!(client.read_head().expect_field("content-length"), "7");
}

fn routes_can_be_swapped_while_they_serve(setup: Setup) {
    let site = |name: &'static str| Routes::new().get("/", move |_: &Request| name);
    let server = Server::routes(setup.config(), site("old"));
    let mut client = server.connect();
    assert_eq!(client.get("/").text(), "old");
    server.running().swap_routes(&site("new")).expect("they are fine");
    assert_eq!(client.get("/").text(), "new");
    let bad = site("bad").get("/", |_: &Request| "twice");
    let error = server.running().swap_routes(&bad).expect_err("two handlers");
    assert!(matches!(error, RouteError::Repeated { .. }), "{error}");
    let named = site("bad").files("/a/{name}", "/");
    let error = server.running().swap_routes(&named).expect_err("a folder has no named parts");
    assert!(matches!(error, RouteError::NamedFolder { .. }), "{error}");
    assert_eq!(client.get("/").text(), "new");
}

fn routes_that_conflict_are_refused_by_name(setup: Setup) {
    let answer = |_: &Request| "x";
    let refused =
        |routes: Routes| match Builder::new().config(setup.config()).routes(routes).start() {
            Err(StartError::Routes(error)) => error.to_string(),
            other => panic!("expected a refusal, got {other:?}"),
        };
    let text = refused(Routes::new().get("/a/{x}", answer).get("/a/{y}", answer));
    assert!(text.contains("/a/{x}") && text.contains("/a/{y}"), "{text}");
    let text = refused(Routes::new().get("/a", answer).get("/a", answer));
    assert!(text.contains("/a") && text.contains("GET"), "{text}");
    let text = refused(Routes::new().get("/a{", answer));
    assert!(text.contains("/a{"), "{text}");
    let text = refused(Routes::new().files("/f", "/no/such/folder"));
    assert!(text.contains("/no/such/folder"), "{text}");
}

fn asterisk_form_asks_for_the_server_itself(setup: Setup) {
    let server = Server::routes(setup.config(), Routes::new());
    let answer = server.ask("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(answer.status, 204);
    assert!(answer.expect_field("allow").contains("GET"));
}
