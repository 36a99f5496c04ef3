//! No spelling of a path reaches what a route guards: routes, predicates and folders compare one
//! canonical path.

use std::cell::RefCell;
use std::fs;

use gustnado::{
    Flow, Middleware, Request, Response, RouteError, Routes, StartError, Status, route,
};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config as Cases, TestRunner};

use crate::harness::client::{get, request};
use crate::harness::{Answer, Folder, Server, Setup};

on_every_server!(
    no_spelling_reaches_a_file_past_a_route,
    no_spelling_reaches_a_file_past_a_route_of_a_configuration_file,
    no_spelling_reaches_a_file_past_a_predicate,
    random_spellings_of_a_guarded_file_are_refused,
    a_segment_that_leads_upwards_is_refused_by_every_kind_of_site,
    a_segment_of_one_dot_and_an_empty_one_are_dropped,
    escaped_separators_are_no_separators,
    a_rest_may_be_empty,
    a_route_may_ask_for_empty_segments_and_is_guarded_all_the_same,
    a_redirect_built_from_a_path_begins_with_one_slash,
    what_was_sent_stays_at_hand_as_it_was_sent,
    a_host_is_the_same_with_a_dot_at_its_end_and_has_no_escapes,
    a_route_without_its_leading_slash_is_an_error_at_the_start,
);

const SECRET: &str = "the secret";

/// Spellings of what `/private/{*rest}` and `/a+b/{*rest}` guard.
const GUARDED: [&str; 28] = [
    "/private/secret.txt",
    "//private/secret.txt",
    "///private///secret.txt",
    "//private//",
    "/private/",
    "/private//",
    "/private/.",
    "/private/%2e",
    "/./private/secret.txt",
    "/.//./private/./secret.txt",
    "/%2e/private/secret.txt",
    "/private/%2E/secret.txt",
    "http://gust.example//private/secret.txt",
    "http://gust.example/./private/secret.txt",
    "//%70%72ivate/secret.txt",
    "/%70rivate/%73ecret.txt",
    "/privat%65//secret.txt",
    "/private/secret%2Etxt",
    "/private/secret.txt?x",
    "/private?/secret.txt",
    "/a+b/secret.txt",
    "/a%2Bb/secret.txt",
    "/a%2bb/secret.txt",
    "//a%2bb//secret.txt",
    "/%61%2b%62/secret.txt",
    "/c!$&'()*,;=:@d/secret.txt",
    "/c%21%24%26%27%28%29%2A%2c%3b%3D%3a%40d/secret.txt",
    "/c%21$%26'(%29*%2C;=:%40%64//./secret.txt",
];

fn tempting_folder() -> Folder {
    let folder = Folder::new();
    for guarded in ["private", "a+b", "c!$&'()*,;=:@d"] {
        folder.file(&format!("{guarded}/secret.txt"), SECRET);
        folder.file(&format!("{guarded}/index.html"), SECRET);
    }
    folder.file("open.txt", "open");
    folder.file("apt/Packages", "packages");
    folder
}

fn guarding(folder: &Folder) -> Routes {
    let no = |_: &Request| (Status::FORBIDDEN, "guarded");
    let routes = Routes::new().root(folder.root());
    ["/private/{*rest}", "/a+b/{*rest}", "/c!$&'()*,;=:@d/{*rest}"]
        .into_iter()
        .fold(routes, |routes, path| routes.any(path, no))
}

/// A server of a file beside the folder.
fn described(setup: Setup, folder: &Folder, text: &str) -> Server {
    Server::built(setup.described(folder, text))
}

fn is_refused(target: &str, answer: &Answer) {
    assert!(!answer.text().contains(SECRET), "{target} reaches the file: {answer:?}");
    let is_bare = target == "/private?/secret.txt";
    assert_eq!(answer.status, if is_bare { 301 } else { 403 }, "{target}: {answer:?}");
}

fn no_spelling_reaches_a_file_past_a_route(setup: Setup) {
    let folder = tempting_folder();
    let server = Server::routes(setup.config(), guarding(&folder));
    let mut client = server.connect();
    for target in GUARDED {
        is_refused(target, &client.get(target));
    }
    assert_eq!(client.get("/open.txt").text(), "open");
}

fn no_spelling_reaches_a_file_past_a_route_of_a_configuration_file(setup: Setup) {
    let folder = tempting_folder();
    let route =
        |path: &str| format!("[[route]]\npath = {path:?}\nanswer = \"guarded\"\nstatus = 403\n");
    let guards = ["/private/{*rest}", "/a+b/{*rest}", "/c!$&'()*,;=:@d/{*rest}"].map(route);
    let text = format!("root = \"root\"\n{}", guards.concat());
    let server = described(setup, &folder, &text);
    let mut client = server.connect();
    for target in GUARDED {
        is_refused(target, &client.get(target));
    }
    assert_eq!(client.get("/open.txt").text(), "open");
}

fn no_spelling_reaches_a_file_past_a_predicate(setup: Setup) {
    let folder = tempting_folder();
    let is_guarded = |request: &Request| {
        let path = request.path();
        ["/private/", "/a+b/", "/c!$&'()*,;=:@d/"].iter().any(|base| path.starts_with(base))
    };
    let refuse =
        |_: &mut Request| Flow::Respond(Response::text("guarded").status(Status::FORBIDDEN));
    let by_link = Routes::new()
        .root(folder.root())
        .middleware(Middleware::before(refuse).only_if(is_guarded));
    let by_matcher = Routes::new()
        .root(folder.root())
        .matching(is_guarded, |_: &Request| (Status::FORBIDDEN, "guarded"));
    for routes in [by_link, by_matcher] {
        let server = Server::routes(setup.config(), routes);
        let mut client = server.connect();
        for target in GUARDED {
            is_refused(target, &client.get(target));
        }
        assert_eq!(client.get("/open.txt").text(), "open");
    }
}

/// One of many spellings of a path of plain segments, all of which mean the same.
fn spelling(path: &'static str) -> impl Strategy<Value = String> {
    let segment = |name: &'static str| {
        let letter = |letter: char| {
            let code = u32::from(letter);
            select(vec![letter.to_string(), format!("%{code:02x}"), format!("%{code:02X}")])
        };
        let nothing = select(vec!["", "", "", "/", "//", "/.", "/%2e", "/./"]);
        let letters: Vec<_> = name.chars().map(letter).collect();
        (nothing, letters).prop_map(|(nothing, letters)| format!("{nothing}/{}", letters.concat()))
    };
    let segments: Vec<_> = path.split('/').skip(1).map(segment).collect();
    segments.prop_map(|segments| segments.concat())
}

fn random_spellings_of_a_guarded_file_are_refused(setup: Setup) {
    let folder = tempting_folder();
    let server = Server::routes(setup.config(), guarding(&folder));
    let client = RefCell::new(server.connect());
    let paths = ["/private/secret.txt", "/a+b/secret.txt", "/c!$&'()*,;=:@d/secret.txt"];
    let mut runner =
        TestRunner::new(Cases { cases: 100, failure_persistence: None, ..Cases::default() });
    let spellings = paths.map(spelling);
    runner
        .run(&spellings, |spellings| {
            for target in &spellings {
                is_refused(target, &client.borrow_mut().get(target));
            }
            Ok(())
        })
        .expect("each of them is refused");
}

fn a_segment_that_leads_upwards_is_refused_by_every_kind_of_site(setup: Setup) {
    let folder = tempting_folder();
    let fallback = Routes::new().fallback(|_: &Request| "fallback");
    let matching = Routes::new().matching(|_: &Request| true, |_: &Request| "matched");
    let below = Routes::new().files("/below", folder.root());
    let sites = vec![
        setup.default_site(),
        setup.files(&folder),
        Server::routes(setup.config(), guarding(&folder)),
        Server::routes(setup.config(), fallback),
        Server::routes(setup.config(), matching),
        Server::routes(setup.config(), below),
    ];
    for server in &sites {
        let mut client = server.connect();
        for target in [
            "/..",
            "/../",
            "/a/..",
            "/a/../open.txt",
            "/%2e%2e/open.txt",
            "/a/.%2E/open.txt",
            "/a/%2e./open.txt",
            "//..//open.txt",
            "/private/../open.txt",
            "/below/../below/open.txt",
            "http://gust.example/../open.txt",
        ] {
            for method in ["GET", "POST", "OPTIONS"] {
                let answer = client.ask(request(method, target, ""));
                assert_eq!(answer.status, 400, "{method} {target}: {answer:?}");
            }
        }
        let with_body = request("POST", "/../x", "Content-Length: 5\r\n") + "hello";
        assert_eq!(client.ask(with_body).status, 400);
        assert_ne!(client.get("/").status, 400, "the connection goes on");
    }
}

fn a_segment_of_one_dot_and_an_empty_one_are_dropped(setup: Setup) {
    let folder = tempting_folder();
    folder.file("apt/index.html", "index");
    let text = "root = \"root\"\n[[route]]\npath = \"/health\"\nanswer = \"well\"\n";
    for server in [setup.files(&folder), described(setup, &folder, text)] {
        for (target, expected) in [
            ("/apt/./Packages", "packages"),
            ("/./apt//Packages", "packages"),
            ("/apt/%2e/%50ackages", "packages"),
            ("/apt/.", "index"),
            ("/apt//", "index"),
            ("/apt/%2E/", "index"),
        ] {
            for _ in 0..2 {
                let answer = server.get(target);
                assert_eq!((answer.status, &*answer.text()), (200, expected), "{target}");
            }
        }
        assert_eq!(server.get("/apt/Packages/.").status, 404, "it names a directory");
        assert_eq!(server.get("/apt/%zz").status, 400);
    }
    let server = described(setup, &folder, text);
    for target in ["/health", "//health", "/./health", "/%68ealth", "/.//%2e/health"] {
        assert_eq!(server.get(target).text(), "well", "{target}");
    }
    assert_eq!(setup.default_site().get("/.//index.html").status, 200);
}

fn escaped_separators_are_no_separators(setup: Setup) {
    let folder = tempting_folder();
    let echo = |request: &Request| {
        let under = request.is_under("/echo");
        format!("{} {} {under}", request.param("name").escape_debug(), request.path())
    };
    let routes = guarding(&folder).get("/echo/{name}", echo);
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    for (target, text) in [
        ("/echo/a%2fb", "a/b /echo/a%2Fb true"),
        ("/echo/a%5Cb", "a\\\\b /echo/a%5Cb true"),
        ("//echo/%00", "\\0 /echo/%00 true"),
        ("/echo/%252f", "%2f /echo/%2f true"),
        ("/echo/%7Bx%7D", "{x} /echo/{x} true"),
        ("/echo/100%", "100% /echo/100% true"),
        ("/echo/%%37%30", "%70 /echo/%70 true"),
    ] {
        assert_eq!(client.get(target).text(), text, "{target}");
    }
    for target in [
        "/private%2fsecret.txt",
        "/private%5Csecret.txt",
        "/private/secret.txt%00",
        "/open.txt%00",
        "/%2fopen.txt",
        "/%2e%2e%2fopen.txt",
        "/apt%2FPackages",
        "/apt/.%2fPackages",
    ] {
        let answer = client.get(target);
        assert!([403, 404].contains(&answer.status), "{target}: {answer:?}");
        assert!(!answer.text().contains(SECRET), "{target}");
    }
    // Decoded once: what would be a guarded name after a second time is none.
    for target in ["/%2570rivate/secret.txt", "/%%37%30rivate/secret.txt"] {
        assert!([400, 404].contains(&client.get(target).status), "{target}");
    }
}

fn a_rest_may_be_empty(setup: Setup) {
    let echo = |request: &Request| {
        let all: Vec<_> = request.params().map(|(name, value)| format!("{name}={value}")).collect();
        all.join(" ")
    };
    let routes = Routes::new()
        .get("/files/{*rest}", echo)
        .get("/user/{id}/{*rest}", echo)
        .get("/own/{*rest}", echo)
        .get("/own/", |_: &Request| "own")
        .fallback(|_: &Request| "fallback");
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    for (target, text) in [
        ("/files/", "rest="),
        ("/files//", "rest="),
        ("/files/.", "rest="),
        ("/files/a/", "rest=a/"),
        ("/user/7/", "id=7 rest="),
        ("/user/7/x", "id=7 rest=x"),
        ("/own/", "own"),
        ("/own/x", "rest=x"),
        ("/files", "fallback"),
        ("/user/7", "fallback"),
        ("/user//", "fallback"),
    ] {
        assert_eq!(client.get(target).text(), text, "{target}");
    }
    let server = Server::routes(setup.config(), Routes::new().get("/{*rest}", echo));
    assert_eq!(server.get("/").text(), "rest=");
}

fn a_route_may_ask_for_empty_segments_and_is_guarded_all_the_same(setup: Setup) {
    let echo = |request: &Request| format!("{} {}", request.param("rest"), request.path());
    let routes = Routes::new()
        .route("/proxy/{*rest}", route().get(echo).merge_slashes(false))
        .get("/merged/{*rest}", echo)
        .get("/proxy/private/{*rest}", |_: &Request| (Status::FORBIDDEN, "guarded"));
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    for (target, text) in [
        ("/proxy/https://example.org/x", "https://example.org/x /proxy/https:/example.org/x"),
        (
            "//proxy//https://example.org//./x",
            "/https://example.org//x /proxy/https:/example.org/x",
        ),
        ("/proxy/a%20b//", "a b// /proxy/a b/"),
        ("/proxy/", " /proxy/"),
        ("/merged/https://example.org/x", "https:/example.org/x /merged/https:/example.org/x"),
    ] {
        assert_eq!(client.get(target).text(), text, "{target}");
    }
    for target in ["/proxy/private/x", "/proxy//private/x", "//proxy///%70rivate//x"] {
        assert_eq!(client.get(target).status, 403, "{target}");
    }
    assert_eq!(client.get("/proxy/https://example.org/../x").status, 400);
    let text = "[[route]]\npath = \"/to/{*rest}\"\nredirect = \"/proxy/{rest}\"\n\
                merge_slashes = false\n\
                [[route]]\npath = \"/from/{*rest}\"\nredirect = \"/proxy/{rest}\"\n";
    let server = described(setup, &Folder::new(), text);
    for (target, location) in [
        ("/to/https://example.org/a%2Bb", "/proxy/https://example.org/a%2Bb"),
        ("/from/https://example.org/a%2Bb", "/proxy/https:/example.org/a%2Bb"),
    ] {
        assert_eq!(server.get(target).expect_field("location"), location, "{target}");
    }
}

fn a_redirect_built_from_a_path_begins_with_one_slash(setup: Setup) {
    let folder = tempting_folder();
    folder.file("evil.example/index.html", "a folder with the name of a host");
    let text = "root = \"root\"\n\
                [[route]]\npath = \"/old/{*rest}\"\nredirect = \"/{rest}\"\n\
                merge_slashes = false\n\
                [[route]]\npath = \"/was/{*rest}\"\nredirect = \"/{rest}\"\n";
    let mut asked = 0;
    for server in [setup.files(&folder), described(setup, &folder, text)] {
        for target in [
            "//evil.example",
            "/.//evil.example",
            "/.//%2e//evil.example",
            "/%2e/evil.example",
            "/old//evil.example",
            "/old///evil.example",
            "/old/.//evil.example",
            "/was//evil.example",
            "/was/./%5Cevil.example",
            "/was/%2fevil.example",
        ] {
            let answer = server.get(target);
            let Some(location) = answer.field("location") else {
                assert!([400, 404].contains(&answer.status), "{target}: {answer:?}");
                continue;
            };
            asked += 1;
            let rest = location.strip_prefix('/').expect("a path");
            assert!(!rest.starts_with(['/', '\\', '.']), "{target} leads to {location}");
        }
    }
    assert!(asked >= 12, "{asked} redirects");
}

fn what_was_sent_stays_at_hand_as_it_was_sent(setup: Setup) {
    let echo = |request: &Request| {
        format!("{} {} {}", request.target(), request.raw_path(), request.path())
    };
    let routes = Routes::new().get("/a/{*rest}", echo).fallback(echo);
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    for (target, path) in [
        ("//a/./%62%2fc%20d?x//y", "/a/b%2Fc d"),
        ("/other//%2B/.", "/other/+/"),
        ("/plain", "/plain"),
    ] {
        let raw = target.split('?').next().expect("a path");
        assert_eq!(client.get(target).text(), format!("{target} {raw} {path}"));
    }
}

fn a_host_is_the_same_with_a_dot_at_its_end_and_has_no_escapes(setup: Setup) {
    let site = |name: &'static str| Routes::new().get("/", move |_: &Request| name);
    let routes = site("rest")
        .host("private.example", site("private"))
        .host("dotted.example.", site("dotted"))
        .host("*.wide.example", site("wide"));
    let server = Server::routes(setup.config(), routes);
    for (host, name) in [
        ("private.example.", "private"),
        ("PRIVATE.example.:8080", "private"),
        ("dotted.example", "dotted"),
        ("dotted.example.", "dotted"),
        ("a.wide.example.", "wide"),
        ("elsewhere.", "rest"),
    ] {
        let answer = server.ask(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(answer.text(), name, "{host}");
        let answer = server.ask(format!("GET http://{host}/ HTTP/1.1\r\nHost: x\r\n\r\n"));
        assert_eq!(answer.text(), name, "{host}");
    }
    for head in [
        "GET / HTTP/1.1\r\nHost: %70rivate.example\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: private%2Eexample\r\n\r\n",
        "GET http://%70rivate.example/ HTTP/1.1\r\nHost: x\r\n\r\n",
    ] {
        assert_eq!(server.ask(head).status, 400, "{head}");
    }
}

fn a_route_without_its_leading_slash_is_an_error_at_the_start(setup: Setup) {
    let place = fs::canonicalize("/").expect("a folder");
    let word = |_: &Request| "word";
    for routes in [
        Routes::new().get("hello", word),
        Routes::new().get("", word),
        Routes::new().get("{name}", word),
        Routes::new().files("static", &place),
        Routes::new().nest("/api", Routes::new().get("v1", word)),
        Routes::new().nest("api", Routes::new().get("/v1", word)),
        Routes::new().get("/a/../b", word),
        Routes::new().host("a.example", Routes::new().get("hello", word)),
    ] {
        let started = gustnado::Server::new().config(setup.config()).routes(routes).start();
        let error = started.map(|_| ()).expect_err("it does not start");
        assert!(matches!(error, StartError::Routes(RouteError::Malformed { .. })), "{error}");
    }
    let error = gustnado::Server::new().config(setup.config()).get("hello", word).start();
    let error = error.map(|_| ()).expect_err("it does not start").to_string();
    assert!(error.contains("hello") && error.contains("begin it with /"), "{error}");
    assert_eq!(setup.default_site().ask(get("/")).status, 200);
}
