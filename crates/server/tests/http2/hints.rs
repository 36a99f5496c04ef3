//! Early hints (RFC 8297): from handlers, and of a route's links.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gustnado::config::{Config, EarlyHints};
use gustnado::task::sleep;
use gustnado::{Request, Routes, route};

use crate::harness::http2::heads::tunnel_frame;
use crate::harness::http2::{Http2Client, StreamAnswer};
use crate::harness::{Folder, Server, Setup};
use crate::in_clear;

on_every_server!(
    they_come_before_the_answer,
    those_of_a_body_that_is_read_do_too,
    a_route_names_what_its_pages_need,
    a_response_that_is_ready_needs_none,
    a_setting_leaves_them_out,
);

/// Waits until a test says so.
async fn told(go_on: &AtomicBool) {
    while !go_on.load(Ordering::SeqCst) {
        sleep(Duration::from_millis(5)).await;
    }
}

fn link(value: &str) -> (u16, Vec<(String, String)>) {
    (103, vec![("link".to_owned(), value.to_owned())])
}

fn all(name: &str, answer: &StreamAnswer) -> Vec<String> {
    let same = answer.fields.iter().filter(|(known, _)| known == name);
    same.map(|(_, value)| value.clone()).collect()
}

fn they_come_before_the_answer(setup: Setup) {
    let go_on = Arc::new(AtomicBool::new(false));
    let of_handler = Arc::clone(&go_on);
    let routes = Routes::new().get("/", move |request: Request| {
        let go_on = Arc::clone(&of_handler);
        async move {
            for links in ["</a.css>; rel=preload", "</b.css>; rel=preload"] {
                sleep(Duration::from_millis(5)).await;
                request.early_hints(&[("Link", links)]).expect("a good field");
            }
            told(&go_on).await;
            "late"
        }
    });
    let server = Server::routes(in_clear(setup), routes);
    let mut client = Http2Client::connect(server.address());
    let id = client.get("/");
    // The handler does not go on before they are here.
    let hints = client.wait_for(id, |answer| answer.interim.len() == 2);
    assert_eq!(hints.interim, ["</a.css>; rel=preload", "</b.css>; rel=preload"].map(link));
    go_on.store(true, Ordering::SeqCst);
    let answer = client.answer(id);
    assert_eq!((answer.status, &*answer.text(), answer.interim.len()), (200, "late", 2));
}

fn those_of_a_body_that_is_read_do_too(setup: Setup) {
    let routes = Routes::new().post("/", async |mut request: Request| {
        request.early_hints(&[("Link", "</a.css>; rel=preload")]).expect("a good field");
        request.body_mut().bytes(100).await.expect("a short body").to_vec()
    });
    let server = Server::routes(in_clear(setup), routes);
    let mut client = Http2Client::connect(server.address());
    let id = client.request("POST", "/", &[], false);
    let hints = client.wait_for(id, |answer| !answer.interim.is_empty());
    assert_eq!(hints.interim, [link("</a.css>; rel=preload")]);
    client.send_data(id, b"body", true);
    assert_eq!(client.answer(id).text(), "body");
}

fn a_route_names_what_its_pages_need(setup: Setup) {
    let go_on = Arc::new(AtomicBool::new(false));
    let of_handler = Arc::clone(&go_on);
    let page = move |_: Request| {
        let go_on = Arc::clone(&of_handler);
        async move {
            told(&go_on).await;
            "a page"
        }
    };
    let page = route().get(page.clone()).post(page).preload("/a.css; as=style");
    let page = page.preload("<https://cdn.example>; rel=preconnect");
    let server = Server::routes(in_clear(setup), Routes::new().route("/", page));
    let mut client = Http2Client::connect(server.address());
    let id = client.get("/");
    let hints = client.wait_for(id, |answer| !answer.interim.is_empty());
    let links = ["</a.css>; rel=preload; as=style", "<https://cdn.example>; rel=preconnect"];
    let both = links.map(|value| ("link".to_owned(), value.to_owned())).to_vec();
    assert_eq!((hints.status, hints.interim), (0, vec![(103, both)]));
    // Another method has no page to prepare for, nor has a tunnel.
    let post = client.request("POST", "/", &[], true);
    let tunnel = client.new_stream();
    client.send(&tunnel_frame(tunnel, "/", "echo"));
    client.ping();
    assert_eq!([post, tunnel].map(|id| client.so_far(id).interim.len()), [0, 0]);
    go_on.store(true, Ordering::SeqCst);
    for id in [id, post] {
        let answer = client.answer(id);
        assert_eq!(
            (&*answer.text(), all("link", &answer)),
            ("a page", links.map(str::to_owned).to_vec())
        );
    }
    assert_eq!(client.answer(tunnel).status, 501);
}

fn a_response_that_is_ready_needs_none(setup: Setup) {
    let folder = Folder::new();
    folder.file("index.html", "<p>a page");
    folder.file("a.css", "p {}");
    let links = |route: gustnado::Route| route.preload("/a.css; as=style");
    let routes = Routes::new()
        .route("/inline", links(route().get(|_: &Request| "a page")))
        .route("/task", links(route().get(async |_: Request| "a page")))
        .route("/missing", links(route().get(|_: &Request| gustnado::Status::NOT_FOUND)))
        .route("/files", links(route().files(folder.root())));
    let server = Server::routes(in_clear(setup), routes);
    let mut client = Http2Client::connect(server.address());
    for (target, links) in [
        ("/inline", 1),
        ("/task", 1),
        ("/missing", 0),
        ("/files/", 1),
        ("/files/", 1),
        ("/files/index.html", 1),
        ("/files/a.css", 0),
        ("/files/none.html", 0),
    ] {
        let answer = client.ask(target);
        // A file may be waited for the first time, and another worker may run the task meanwhile.
        let may_wait = target.starts_with("/files") || target == "/task" && setup.is_shared();
        assert!(answer.interim.is_empty() || may_wait, "{target}: {answer:?}");
        assert_eq!(all("link", &answer).len(), links, "{target}: {answer:?}");
    }
}

fn a_setting_leaves_them_out(setup: Setup) {
    let routes = Routes::new().get("/", async |request: Request| {
        request.early_hints(&[("Link", "</a.css>; rel=preload")]).expect("a good field");
        sleep(Duration::from_millis(30)).await;
        "late"
    });
    let config = Config { early_hints: EarlyHints::Never, ..in_clear(setup) };
    let server = Server::routes(config, routes);
    let mut client = Http2Client::connect(server.address());
    let answer = client.ask("/");
    assert_eq!((answer.interim.len(), &*answer.text()), (0, "late"));
}
