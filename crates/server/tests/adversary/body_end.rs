//! A body can never become a request: whatever is answered before a request's body was read, the
//! request behind it is answered as itself, or the connection is closed.
//!
//! Every body here holds a request in its bytes. If it is ever routed, the test sees it.

#[path = "body_end/handlers.rs"]
mod handlers;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use gustnado::config::Config;
use gustnado::{Request, Routes, route};
use gustnado_tasks::sleep;

use crate::harness::client::{get, request};
use crate::harness::folder::noise;
use crate::harness::{Answer, Client, Folder, Server, Setup, wait_until};

on_every_server!(
    no_early_response_of_a_route_lets_its_body_be_a_request,
    no_early_response_of_a_folder_lets_its_body_be_a_request,
    no_response_of_the_built_in_page_lets_its_body_be_a_request,
    no_response_at_a_pace_lets_its_body_be_a_request,
    no_last_response_lets_its_body_be_a_request,
    no_draining_server_takes_a_body_for_a_request,
    a_small_unread_body_keeps_the_connection,
    an_early_response_to_an_expectation_closes,
    the_client_of_an_unread_body_reads_the_response,
    what_follows_a_connect_is_no_request,
    a_body_that_was_read_is_not_read_again_after_a_swap_of_routes,
);

/// What a body holds: a request, were it one.
const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nHost: h\r\n\r\n";

/// How many bytes of a body that nobody wants are read at most.
const UNWANTED_BYTES_MAX: usize = 256 << 10;

/// How a body is framed and sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Length,
    Chunked,
    /// Longer than what is read of a body in vain.
    Long,
    LongChunked,
    Expect,
    ExpectChunked,
}

const KINDS: [Kind; 6] =
    [Kind::Length, Kind::Chunked, Kind::Long, Kind::LongChunked, Kind::Expect, Kind::ExpectChunked];

/// When the body comes.
#[derive(Clone, Copy, Debug)]
enum Comes {
    /// In one piece with the head and the next request.
    Together,
    /// When the server has seen the head.
    Later,
}

/// The fields that frame a body of this kind, and the body as it is sent.
fn framed(kind: Kind) -> (String, Vec<u8>) {
    let mut body = HIDDEN.repeat(2).into_bytes();
    if matches!(kind, Kind::Long | Kind::LongChunked) {
        body = HIDDEN.repeat(2 * UNWANTED_BYTES_MAX / HIDDEN.len()).into_bytes();
    }
    let expect = match kind {
        Kind::Expect | Kind::ExpectChunked => "Expect: 100-continue\r\n",
        _ => "",
    };
    if matches!(kind, Kind::Chunked | Kind::LongChunked | Kind::ExpectChunked) {
        let size = format!("{:x}\r\n", body.len()).into_bytes();
        let framed = [&size, &*body, b"\r\n0\r\n\r\n"].concat();
        return (format!("{expect}Transfer-Encoding: chunked\r\n"), framed);
    }
    (format!("{expect}Content-Length: {}\r\n", body.len()), body)
}

/// Counts the requests that came out of bodies.
#[derive(Clone, Default)]
struct Smuggled(Arc<AtomicUsize>);

impl Smuggled {
    /// Routes that notice what is smuggled, and answer what follows.
    fn routes(&self) -> Routes {
        let Self(count) = self.clone();
        Routes::new()
            .get("/hidden", move |_: &Request| {
                count.fetch_add(1, Ordering::SeqCst);
                "hidden"
            })
            .get("/follower", |_: &Request| "follower")
    }

    fn expect_none(&self, context: &str) {
        assert_eq!(self.0.load(Ordering::SeqCst), 0, "a body was routed: {context}");
    }
}

/// Sends a request with a body, and another one behind it. Returns the first response, and whether
/// the second request was answered.
fn smuggle(server: &Server, head: (&str, &str, &str), kind: Kind, comes: Comes) -> (Answer, bool) {
    let (method, target, fields) = head;
    let context = format!("{method} {target} {fields:?} {kind:?} {comes:?}");
    let (framing, body) = framed(kind);
    let head = request(method, target, &format!("{fields}{framing}"));
    let behind = [&body, get("/follower").as_bytes()].concat();
    let mut client = server.connect();
    match comes {
        Comes::Together => client.send_unless_closed([head.as_bytes(), &behind].concat()),
        Comes::Later => {
            client.send(head);
            thread::sleep(Duration::from_millis(3));
            client.send_unless_closed(behind);
        }
    }
    let first = final_answer(&mut client, &context);
    if first.closes() {
        client.expect_end(&context);
        return (first, false);
    }
    match client.try_answer() {
        Ok(second) => {
            assert!(is_of_follower(&second), "{context}: {second:?}");
            (first, true)
        }
        Err(_) => (first, false),
    }
}

fn final_answer(client: &mut Client, context: &str) -> Answer {
    loop {
        match client.try_answer() {
            Ok(interim) if interim.status == 100 => {}
            Ok(answer) => return answer,
            Err(end) => panic!("no response: {end:?} for {context}"),
        }
    }
}

fn is_of_follower(answer: &Answer) -> bool {
    (answer.status == 200 && answer.text() == "follower") || answer.status == 404
}

/// Every request, with every kind of body that comes in every way.
fn smuggle_all(server: &Server, smuggled: &Smuggled, requests: &[(u16, &str, &str, &str)]) {
    for (status, method, target, fields) in requests {
        for kind in KINDS {
            for comes in [Comes::Together, Comes::Later] {
                let (first, _) = smuggle(server, (method, target, fields), kind, comes);
                let context = format!("{method} {target} {fields:?} {kind:?} {comes:?}");
                let is_limit = first.status == 413;
                assert!(first.status == *status || is_limit, "{context}: {first:?}");
                smuggled.expect_none(&context);
            }
        }
    }
}

fn no_early_response_of_a_route_lets_its_body_be_a_request(setup: Setup) {
    let smuggled = Smuggled::default();
    let folder = Folder::new();
    folder.file("file.txt", "a file");
    let routes = handlers::all(smuggled.routes(), &folder);
    let config = Config { limit_body_bytes: 2 << 20, ..setup.patient_config() };
    let server = Server::routes(config, routes);
    smuggle_all(&server, &smuggled, EARLY);
}

/// What each request is answered without a look at its body, or before its end.
const EARLY: &[(u16, &str, &str, &str)] = &[
    (204, "OPTIONS", "*", ""),
    (204, "OPTIONS", "/get-only", ""),
    (405, "POST", "/get-only", ""),
    (404, "POST", "/nowhere", ""),
    (404, "GET", "/nowhere", ""),
    (200, "GET", "/get-only", ""),
    (200, "POST", "/inline", ""),
    (500, "POST", "/inline-panic", ""),
    (409, "POST", "/inline-error", ""),
    (303, "POST", "/redirect", ""),
    (200, "POST", "/task", ""),
    (404, "POST", "/task-404", ""),
    (204, "POST", "/task-204", ""),
    (200, "POST", "/task-close", ""),
    (500, "POST", "/task-panic", ""),
    (200, "POST", "/task-late", ""),
    (500, "POST", "/task-late-panic", ""),
    (200, "POST", "/task-begun", ""),
    (200, "POST", "/task-big", ""),
    (200, "POST", "/task-stream", ""),
    (200, "POST", "/task-file", ""),
    (200, "POST", "/pool", ""),
    (500, "POST", "/pool-panic", ""),
    (403, "POST", "/guarded", ""),
    (403, "POST", "/guarded-task", ""),
    (413, "POST", "/small", ""),
    (200, "POST", "/small-task", ""),
    (405, "POST", "/files/file.txt", ""),
    (200, "GET", "/files/file.txt", ""),
    (301, "GET", "/files", ""),
];

fn no_early_response_of_a_folder_lets_its_body_be_a_request(setup: Setup) {
    let smuggled = Smuggled::default();
    let folder = Folder::new();
    folder.file("follower", "follower");
    folder.file("hidden", "hidden");
    folder.file("file.txt", "a file");
    folder.file("below/index.html", "below");
    folder.file("big", noise(2, 300_000));
    let requests: [(u16, &str, &str, &str); 11] = [
        (204, "OPTIONS", "*", ""),
        (204, "OPTIONS", "/file.txt", ""),
        (405, "POST", "/file.txt", ""),
        (404, "GET", "/nowhere", ""),
        (200, "GET", "/file.txt", ""),
        (200, "GET", "/big", ""),
        (301, "GET", "/below", ""),
        (304, "GET", "/file.txt", "If-None-Match: *\r\n"),
        (412, "GET", "/file.txt", "If-Match: \"other\"\r\n"),
        (416, "GET", "/file.txt", "Range: bytes=100-\r\n"),
        (206, "GET", "/big", "Range: bytes=0-0, 2-100000\r\n"),
    ];
    let server = Server::start(Config { root: Some(folder.root()), ..setup.patient_config() });
    smuggle_all(&server, &smuggled, &requests);
    let routes = Routes::new().root(folder.root());
    let server = Server::routes(setup.patient_config(), routes);
    smuggle_all(&server, &smuggled, &requests);
}

fn no_response_of_the_built_in_page_lets_its_body_be_a_request(setup: Setup) {
    let requests =
        [(204, "OPTIONS", "*", ""), (200, "POST", "/echo", ""), (404, "GET", "/nowhere", "")];
    smuggle_all(&Server::start(setup.patient_config()), &Smuggled::default(), &requests);
}

fn no_response_at_a_pace_lets_its_body_be_a_request(setup: Setup) {
    let smuggled = Smuggled::default();
    let routes = smuggled.routes().get("/get-only", |_: &Request| "got").route(
        "/paced",
        route().post(async |_: Request| noise(3, 5_000)).bytes_per_second(10 << 20),
    );
    let requests =
        [(204, "OPTIONS", "*", ""), (405, "POST", "/get-only", ""), (200, "POST", "/paced", "")];
    let mut config = setup.patient_config();
    config.pace.write_rate = 100 << 20;
    smuggle_all(&Server::routes(config, routes), &smuggled, &requests);
    // One request a second, and the others are answered with 429.
    let mut config = setup.patient_config();
    config.pace.requests_per_second = 1;
    config.pace.requests_burst = 1;
    let server = Server::routes(config, smuggled.routes());
    for kind in KINDS {
        for comes in [Comes::Together, Comes::Later] {
            let (framing, body) = framed(kind);
            let head = request("POST", "/follower", &framing);
            let mut client = server.connect();
            // The first is let through, and so the second is one too many.
            client.send(get("/follower") + &head);
            if let Comes::Later = comes {
                thread::sleep(Duration::from_millis(3));
            }
            client.send_unless_closed([&body, get("/follower").as_bytes()].concat());
            for _ in 0..3 {
                let answer = final_answer(&mut client, "one of too many requests");
                assert!(matches!(answer.status, 200 | 405 | 429), "{kind:?} {answer:?}");
                smuggled.expect_none(&format!("{kind:?} {comes:?}"));
                if answer.closes() {
                    client.expect_end("one of too many requests");
                    break;
                }
            }
        }
    }
    smuggled.expect_none("too many requests");
}

fn no_last_response_lets_its_body_be_a_request(setup: Setup) {
    let smuggled = Smuggled::default();
    let routes = smuggled.routes().post("/task", async |_: Request| "task");
    let config = Config { max_requests_per_connection: 1, ..setup.patient_config() };
    let server = Server::routes(config, routes);
    let requests = [
        (204, "OPTIONS", "*", ""),
        (404, "POST", "/nowhere", ""),
        (405, "POST", "/follower", ""),
        (200, "POST", "/task", ""),
    ];
    smuggle_all(&server, &smuggled, &requests);
}

fn no_draining_server_takes_a_body_for_a_request(setup: Setup) {
    if Setup::http1_only("what came before the end is answered") {
        return;
    }
    let (smuggled, begun) = (Smuggled::default(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&begun);
    let routes = smuggled.routes().post("/task", move |_: Request| {
        count.fetch_add(1, Ordering::SeqCst);
        async {
            sleep(Duration::from_millis(100)).await;
            "task"
        }
    });
    let server = Server::routes(setup.patient_config(), routes);
    let clients = KINDS.map(|kind| {
        let (framing, body) = framed(kind);
        let mut client = server.connect();
        client.send(request("POST", "/task", &framing));
        (client, body)
    });
    wait_until("all are in the handler", || begun.load(Ordering::SeqCst) == KINDS.len());
    thread::scope(|scope| {
        for (mut client, body) in clients {
            scope.spawn(move || {
                client.send_unless_closed([&body, get("/hidden").as_bytes()].concat());
                let first = final_answer(&mut client, "while the server ends");
                assert_eq!(first.status, 200);
                assert!(client.try_answer().is_err(), "nothing is answered behind the last one");
            });
        }
        server.running().drain(Duration::from_secs(5));
    });
    smuggled.expect_none("while the server ends");
}

fn a_small_unread_body_keeps_the_connection(setup: Setup) {
    let smuggled = Smuggled::default();
    let folder = Folder::new();
    folder.file("follower", "follower");
    let by_route = Server::routes(setup.patient_config(), smuggled.routes());
    let by_folder = Server::start(Config { root: Some(folder.root()), ..setup.patient_config() });
    for (server, target, status) in [
        (&by_route, "/nowhere", 404),
        (&by_route, "/follower", 405),
        (&by_folder, "/nowhere", 405),
        (&by_folder, "/follower", 405),
        (&by_route, "*", 204),
        (&by_folder, "*", 204),
    ] {
        let method = if target == "*" { "OPTIONS" } else { "POST" };
        for kind in [Kind::Length, Kind::Chunked] {
            for comes in [Comes::Together, Comes::Later] {
                let (first, goes_on) = smuggle(server, (method, target, ""), kind, comes);
                assert_eq!(first.status, status);
                assert!(goes_on, "{method} {target} {kind:?} {comes:?}: {first:?}");
            }
        }
    }
    smuggled.expect_none("small bodies");
}

/// RFC 9110 §10.1.1: the client may or may not send the body.
fn an_early_response_to_an_expectation_closes(setup: Setup) {
    if Setup::http1_only("a response ends its stream alone") {
        return;
    }
    let smuggled = Smuggled::default();
    let routes = smuggled.routes().post("/task", async |_: Request| "task");
    let server = Server::routes(setup.patient_config(), routes);
    for (method, target) in
        [("OPTIONS", "*"), ("POST", "/nowhere"), ("POST", "/follower"), ("POST", "/task")]
    {
        for kind in [Kind::Expect, Kind::ExpectChunked] {
            let (framing, _) = framed(kind);
            let mut client = server.connect();
            client.send(request(method, target, &framing));
            let answer = client.read_answer();
            assert!(answer.closes(), "{method} {target} {kind:?}: {answer:?}");
            client.expect_end(target);
        }
    }
}

/// A connection that is closed on bytes that were not read is reset, and the response with it.
fn the_client_of_an_unread_body_reads_the_response(setup: Setup) {
    let smuggled = Smuggled::default();
    let folder = Folder::new();
    folder.file("big", noise(4, 2_000_000));
    let routes = smuggled.routes().post("/task", async |_: Request| noise(5, 500_000));
    let by_route = Server::routes(setup.patient_config(), routes);
    let by_folder = Server::start(Config { root: Some(folder.root()), ..setup.patient_config() });
    for (server, head) in [
        (&by_route, ("POST", "/nowhere", "")),
        (&by_route, ("OPTIONS", "*", "")),
        (&by_route, ("POST", "/task", "")),
        (&by_folder, ("GET", "/big", "")),
        (&by_folder, ("POST", "/big", "")),
    ] {
        for kind in [Kind::Long, Kind::LongChunked] {
            let (framing, body) = framed(kind);
            let mut client = server.connect();
            client.send(request(head.0, head.1, &framing));
            let mut sender = client.second_handle();
            thread::scope(|scope| {
                scope.spawn(move || {
                    thread::sleep(Duration::from_millis(20));
                    sender.send_unless_closed(body);
                });
                final_answer(&mut client, &format!("{head:?} {kind:?}"));
            });
        }
    }
}

/// RFC 9110 §9.3.6: behind a CONNECT come a tunnel's bytes. There are no tunnels here, so that it
/// is refused, whatever a handler would say.
fn what_follows_a_connect_is_no_request(setup: Setup) {
    if Setup::http1_only("a response ends its stream alone") {
        return;
    }
    let smuggled = Smuggled::default();
    let folder = Folder::new();
    let routes = || smuggled.routes().fallback(|_: &Request| "anything goes");
    let servers = vec![
        Server::routes(setup.patient_config(), routes()),
        Server::routes(setup.patient_config(), smuggled.routes()),
        Server::start(Config { root: Some(folder.root()), ..setup.patient_config() }),
        Server::start(setup.patient_config()),
    ];
    for server in &servers {
        for fields in ["", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"] {
            let mut client = server.connect();
            let head = format!("CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n{fields}\r\n");
            client.send(head + HIDDEN);
            let answer = final_answer(&mut client, fields);
            assert_eq!(answer.status, 405, "{answer:?}");
            assert!(answer.closes(), "{answer:?}");
            assert!(answer.field("allow").is_some(), "{answer:?}");
            client.expect_end(fields);
        }
    }
    smuggled.expect_none("a tunnel");
}

/// The body of a request is read for an inline handler; by then a task handler is in its place.
fn a_body_that_was_read_is_not_read_again_after_a_swap_of_routes(setup: Setup) {
    let smuggled = Smuggled::default();
    let inline = smuggled.routes().post("/swapped", |request: &Request| request.bytes().to_vec());
    let server = Server::routes(setup.patient_config(), inline);
    let mut client = server.connect();
    client.send(request("POST", "/swapped", &format!("Content-Length: {}\r\n", HIDDEN.len())));
    client.send(&HIDDEN[..5]);
    client.wait_until_read();
    let task = smuggled.routes().post("/swapped", async |request: Request| {
        request.into_body().bytes(1_000).await.expect("a body that has come")
    });
    server.running().swap_routes(&task).expect("good routes");
    client.send(HIDDEN[5..].to_owned() + &get("/follower"));
    assert_eq!(client.read_answer().text(), HIDDEN);
    assert_eq!(client.read_answer().text(), "follower");
    smuggled.expect_none("swapped routes");
}
