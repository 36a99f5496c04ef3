//! Large bodies: received into large buffers for who wants them, and discarded for who does not.

use std::thread;
use std::time::Duration;

use gustnado::config::Config;
use gustnado::task::sleep;
use gustnado::{Body, BodyError, Request, Routes, route};

use crate::harness::client::{get, request};
use crate::harness::folder::noise;
use crate::harness::{Client, Folder, Server, Setup};
use crate::posts::{chunked, head, sized};

on_every_server!(
    large_bodies_arrive_whole_in_both_framings,
    pieces_that_are_kept_stay_as_they_are,
    the_request_behind_a_large_body_is_the_next,
    large_and_small_requests_take_turns,
    a_large_unwanted_body_gets_its_response_first_and_keeps_the_connection,
    a_body_too_long_to_be_discarded_ends_the_connection,
    a_large_body_over_the_limit_is_refused,
    a_large_body_that_is_cut_short_leaves_nothing_behind,
    a_large_body_that_stops_is_given_up,
    a_large_body_may_come_slowly,
    a_drain_waits_for_a_large_body,
    a_drain_waits_for_no_large_body_that_is_unread,
    a_large_body_at_a_pace_arrives_whole,
    large_bodies_come_over_unix_sockets,
    many_large_bodies_arrive_at_once,
);

/// Where a body is read in pieces by a task, and whole for a handler.
const READERS: [&str; 2] = ["/pieces", "/whole"];
/// Where a body is left unread: by a task, and by two statuses.
const SKIPPERS: [(&str, u16); 3] = [("/unread", 200), ("/nowhere", 404), ("/small", 405)];

fn routes() -> Routes {
    let limit = 100 << 20;
    let unread = route().post(async |_: Request| "unread").limit_body_bytes(limit);
    Routes::new()
        .get("/small", |_: &Request| "small")
        .route("/pieces", route().post(pieces).limit_body_bytes(limit))
        .route("/kept", route().post(kept).limit_body_bytes(limit))
        .route("/whole", route().post(whole).limit_body_bytes(limit))
        .route("/unread", unread)
}

/// The length of a body and a number that depends on each of its bytes.
fn digest<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let (mut length, mut sum) = (0, 0_u64);
    for piece in pieces {
        length += piece.len();
        sum = piece.iter().fold(sum, |sum, byte| sum.wrapping_mul(31).wrapping_add((*byte).into()));
    }
    format!("{length} {sum}")
}

fn whole(request: &Request) -> String {
    digest([request.bytes()])
}

async fn pieces(mut request: Request) -> Result<String, BodyError> {
    let mut body = std::mem::replace(request.body_mut(), Body::from_whole("".into()));
    let mut all = Vec::new();
    while let Some(piece) = body.next().await {
        all.extend_from_slice(&piece?);
    }
    Ok(digest([&*all]))
}

async fn kept(mut request: Request) -> Result<String, BodyError> {
    let mut kept = Vec::new();
    while let Some(piece) = request.body_mut().next().await {
        kept.push(piece?);
        if kept.len() % 16 == 0 {
            sleep(Duration::from_millis(1)).await;
        }
    }
    Ok(digest(kept.iter().map(|piece| &**piece)))
}

fn server(setup: Setup) -> Server {
    Server::routes(Config { limit_body_bytes: 100 << 20, ..setup.patient_config() }, routes())
}

fn large_bodies_arrive_whole_in_both_framings(setup: Setup) {
    let server = server(setup);
    let mut client = server.connect();
    let body = noise(1, 3_000_000);
    for target in READERS {
        for length in [16_384, 70_001, 3_000_000] {
            let body = &body[..length];
            let wanted = digest([body]);
            for sent in [
                sized(target, body),
                chunked(target, body, 1_000_000),
                chunked(target, body, 100_003),
                chunked(target, body, 777),
            ] {
                let answer = client.ask(sent);
                assert_eq!((answer.status, answer.text()), (200, wanted.clone()), "{target}");
            }
        }
    }
}

/// More of them than there are large buffers.
fn pieces_that_are_kept_stay_as_they_are(setup: Setup) {
    let server = server(setup);
    let body = noise(2, 16 << 20);
    let wanted = digest([&*body]);
    thread::scope(|scope| {
        for _ in 0..2 {
            let (body, wanted, server) = (&body, &wanted, &server);
            scope.spawn(move || {
                let answer = server.connect().ask(sized("/kept", body));
                assert_eq!((answer.status, &answer.text()), (200, wanted));
            });
        }
    });
    assert_eq!(server.ask(sized("/pieces", &body[..100_000])).status, 200);
}

fn the_request_behind_a_large_body_is_the_next(setup: Setup) {
    let server = server(setup);
    let body = get("/hidden").repeat(20_000).into_bytes();
    let readers = READERS.map(|target| (target, 200));
    for (target, status) in readers.into_iter().chain(SKIPPERS) {
        let mut client = server.connect();
        for length in [20_000, 100_000, body.len()] {
            let sent = [&*sized(target, &body[..length]), get("/small").as_bytes()].concat();
            // All at once, and cut near the end of the body.
            for cut in [sent.len(), sent.len() - 60, sent.len() - 30] {
                client.send_cut(&sent, cut);
                let first = client.read_answer();
                assert_eq!((first.status, first.closes()), (status, false), "{target} {length}");
                assert_eq!(client.read_answer().text(), "small", "{target} {length} {cut}");
            }
        }
    }
}

fn large_and_small_requests_take_turns(setup: Setup) {
    let server = server(setup);
    let mut client = server.connect();
    let body = noise(3, 400_000);
    for _ in 0..5 {
        assert_eq!(client.get("/small").text(), "small");
        assert_eq!(client.get("/small").text(), "small");
        assert_eq!(client.ask(sized("/pieces", &body)).text(), digest([&*body]));
        assert_eq!(client.ask(sized("/whole", b"few")).text(), digest([&b"few"[..]]));
        assert_eq!(client.ask(sized("/unread", &body)).text(), "unread");
    }
}

fn a_large_unwanted_body_gets_its_response_first_and_keeps_the_connection(setup: Setup) {
    let server = server(setup);
    let body = noise(4, 2_000_000);
    for (target, status) in SKIPPERS {
        let mut client = server.connect();
        for _ in 0..3 {
            client.send(head(target, body.len()));
            let answer = client.read_answer();
            assert_eq!((answer.status, answer.closes()), (status, false), "{target}");
            client.send(&body);
            assert_eq!(client.get("/small").text(), "small");
        }
    }
}

fn a_body_too_long_to_be_discarded_ends_the_connection(setup: Setup) {
    if Setup::http1_only("a body that is not read to its end ends its stream alone") {
        return;
    }
    let server = server(setup);
    for (target, status) in SKIPPERS {
        let mut client = server.connect();
        client.send(head(target, 65 << 20));
        let answer = client.read_answer();
        assert_eq!((answer.status, answer.closes()), (status, true), "{target}");
        client.expect_end(target);
    }
}

fn a_large_body_over_the_limit_is_refused(setup: Setup) {
    let config = Config { limit_body_bytes: 300_000, ..setup.patient_config() };
    let routes = Routes::new().post("/pieces", pieces).post("/whole", whole);
    let server = Server::routes(config, routes);
    let body = noise(5, 300_001);
    for target in ["/pieces", "/whole", "/nowhere"] {
        let wanted = if target == "/nowhere" { 404 } else { 200 };
        let mut client = server.connect();
        assert_eq!(client.ask(sized(target, &body[..300_000])).status, wanted, "{target}");
        assert_eq!(client.ask(head(target, 300_001)).status, 413, "{target}");
        let mut client = server.connect();
        client.send_unless_closed(chunked(target, &body, 100_000));
        let status = client.read_answer().status;
        assert!(status == 413 || status == 404, "{target}: {status}");
    }
}

fn a_large_body_that_is_cut_short_leaves_nothing_behind(setup: Setup) {
    let server = server(setup);
    let body = noise(6, 500_000);
    let skippers = SKIPPERS.map(|(target, _)| target);
    for target in READERS.into_iter().chain(skippers).chain(["/kept"]) {
        for leave in [drop::<Client>, Client::reset] {
            let mut client = server.connect();
            client.send(&sized(target, &body)[..400_000]);
            leave(client);
            let client = server.connect();
            let mut sender = client.second_handle();
            sender.send(&sized(target, &body)[..300_000]);
            leave(client);
        }
    }
    server.wait_until_empty();
    assert_eq!(server.ask(sized("/pieces", &body)).text(), digest([&*body]));
}

fn a_large_body_that_stops_is_given_up(setup: Setup) {
    let config = Config { body_timeout: Duration::from_millis(150), ..setup.patient_config() };
    let server = Server::routes(config, routes());
    let body = noise(7, 500_000);
    for target in READERS {
        let mut client = server.connect();
        client.send(&sized(target, &body)[..400_000]);
        assert_eq!(client.read_answer().status, 408, "{target}");
        client.expect_end(target);
    }
    for (target, status) in SKIPPERS {
        let mut client = server.connect();
        client.send(&sized(target, &body)[..400_000]);
        assert_eq!(client.read_answer().status, status, "{target}");
        client.expect_end(target);
    }
    server.wait_until_empty();
}

fn a_large_body_may_come_slowly(setup: Setup) {
    let server = server(setup);
    let body = noise(8, 60_000);
    thread::scope(|scope| {
        for target in ["/pieces", "/whole", "/unread", "/kept"] {
            let (server, body) = (&server, &body);
            scope.spawn(move || {
                let mut client = server.connect();
                client.send(head(target, body.len()));
                for piece in body.chunks(3_000) {
                    thread::sleep(Duration::from_millis(3));
                    client.send(piece);
                }
                let answer = client.read_answer();
                let wanted =
                    if target == "/unread" { target[1..].into() } else { digest([&**body]) };
                assert_eq!(answer.text(), wanted, "{target}");
                assert_eq!(client.get("/small").text(), "small");
            });
        }
    });
}

fn a_drain_waits_for_a_large_body(setup: Setup) {
    let server = server(setup);
    let body = noise(9, 1_000_000);
    let clients = ["/pieces", "/whole"].map(|target| {
        let mut client = server.connect();
        client.send(&sized(target, &body)[..500_000]);
        (client, target)
    });
    thread::sleep(Duration::from_millis(20));
    thread::scope(|scope| {
        for (mut client, target) in clients {
            let body = &body;
            scope.spawn(move || {
                thread::sleep(Duration::from_millis(50));
                client.send(&sized(target, body)[500_000..]);
                let answer = client.read_answer();
                assert_eq!((answer.text(), answer.closes()), (digest([&**body]), true), "{target}");
            });
        }
        server.running().drain(Duration::from_secs(5));
    });
}

fn a_drain_waits_for_no_large_body_that_is_unread(setup: Setup) {
    let server = server(setup);
    let body = noise(9, 1_000_000);
    for (target, status) in SKIPPERS {
        let mut client = server.connect();
        client.send(&sized(target, &body)[..500_000]);
        assert_eq!(client.read_answer().status, status, "{target}");
        let mut last = server.connect();
        let close = format!("Content-Length: {}\r\nConnection: close\r\n", body.len());
        last.send(request("POST", target, &close));
        let answer = last.read_answer();
        assert_eq!((answer.status, answer.closes()), (status, true), "{target}");
    }
    let report = server.running().drain(Duration::from_secs(8));
    assert_eq!(report.cut, 0, "{report:?}");
    assert!(report.took < Duration::from_secs(6), "{report:?}");
}

fn a_large_body_at_a_pace_arrives_whole(setup: Setup) {
    let paced = || route().read_bytes_per_second(4 << 20).limit_body_bytes(1 << 20);
    let routes = Routes::new()
        .get("/small", |_: &Request| "small")
        .route("/pieces", paced().post(pieces))
        .route("/unread", paced().post(async |_: Request| "unread"));
    let server = Server::routes(setup.patient_config(), routes);
    let body = noise(10, 250_000);
    let mut client = server.connect();
    assert_eq!(client.ask(sized("/pieces", &body)).text(), digest([&*body]));
    assert_eq!(client.ask(sized("/unread", &body)).text(), "unread");
    assert_eq!(client.get("/small").text(), "small");
}

fn large_bodies_come_over_unix_sockets(setup: Setup) {
    let folder = Folder::new();
    let path = folder.outside().join("socket");
    let config = Config { uds: Some(path.clone()), limit_body_bytes: 1 << 20, ..setup.config() };
    let server = Server::routes(config, routes());
    let body = noise(11, 600_000);
    let mut client = Client::connect_unix(&path);
    for _ in 0..3 {
        assert_eq!(client.ask(sized("/pieces", &body)).text(), digest([&*body]));
        for (target, status) in SKIPPERS {
            assert_eq!(client.ask(sized(target, &body)).status, status, "{target}");
        }
        assert_eq!(client.get("/small").text(), "small");
    }
    drop(server);
}

fn many_large_bodies_arrive_at_once(setup: Setup) {
    let server = server(setup);
    let body = noise(12, 300_000);
    let wanted = digest([&*body]);
    let mut clients: Vec<_> = (0..40).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send(&sized("/pieces", &body)[..20_000]);
    }
    // All of them wait now. One that is quick is not kept from its bytes.
    assert_eq!(server.ask(sized("/whole", &body)).text(), wanted);
    for client in &mut clients {
        client.send(&sized("/pieces", &body)[20_000..]);
    }
    for client in &mut clients {
        assert_eq!(client.read_answer().text(), wanted);
    }
}
