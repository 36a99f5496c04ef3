//! Streams that carry another protocol: CONNECT with a protocol (RFC 8441), and plain CONNECT.

use std::fs;
use std::future::pending;
use std::sync::mpsc;
use std::time::Duration;

use gustnado::config::Config;
use gustnado::task::sleep;
use gustnado::{Request, Response, Routes, Status, Tunnel, TunnelError, route};
use gustnado_http::h2::ErrorCode;
use gustnado_http::h2::frame::{flag, kind, setting};
use tempfile::TempDir;

use crate::harness::client::request;
use crate::harness::echo::{Echo, echo};
use crate::harness::folder::noise;
use crate::harness::http2::Http2Client;
use crate::harness::http2::heads::{literal, tunnel_frame};
use crate::harness::{Folder, Server, Setup, wait_until};
use crate::in_clear;

on_every_server!(
    one_handler_serves_both_protocols,
    a_handler_learns_what_is_asked_for,
    bytes_that_come_while_the_handler_works_reach_the_tunnel,
    routes_without_a_tunnel_say_so,
    malformed_requests_for_a_tunnel_end_their_stream,
    much_goes_both_ways,
    a_full_window_stops_one_tunnel_alone,
    each_side_may_end_before_the_other,
    a_reset_is_a_loss,
    the_end_of_the_connection_is_a_loss,
    a_function_that_ignores_a_reset_ends_with_the_server,
    plain_connect_is_refused_unless_a_route_takes_it,
    the_access_log_has_the_bytes_of_a_tunnel,
);

fn routes() -> Routes {
    let protocol =
        |_: &Request| Response::upgrade("echo", async |tunnel: Tunnel| _ = tunnel.run(Echo).await);
    Routes::new()
        .get("/protocol", protocol)
        .get("/function", |_: &Request| Response::upgrade("echo", echo))
        .get("/task", async |_: Request| Response::upgrade("echo", echo))
        .get("/text", |_: &Request| "text")
}

fn server(setup: Setup) -> Server {
    Server::routes(in_clear(setup), routes())
}

/// Asks for a tunnel in the protocol `echo`.
pub(crate) fn open(client: &mut Http2Client, target: &str) -> u32 {
    let id = client.new_stream();
    client.send(&tunnel_frame(id, target, "echo"));
    id
}

/// Asks for one, and waits until it is open.
pub(crate) fn opened(client: &mut Http2Client, target: &str) -> u32 {
    let id = open(client, target);
    let answer = client.wait_for(id, |answer| answer.status > 0);
    assert_eq!((answer.status, answer.is_whole), (200, false), "{answer:?}");
    id
}

/// Waits until exactly these bytes have come on a stream.
pub(crate) fn expect(client: &mut Http2Client, id: u32, bytes: &[u8]) {
    let answer = client.wait_for(id, |answer| answer.body.len() >= bytes.len() || answer.is_whole);
    assert!(answer.body == bytes, "{id}: {} bytes, {:?}", answer.body.len(), answer.reset);
}

fn one_handler_serves_both_protocols(setup: Setup) {
    let server = server(setup);
    for target in ["/protocol", "/function", "/task"] {
        let mut client = Http2Client::connect(server.address());
        let id = opened(&mut client, target);
        assert_eq!(client.setting(setting::ENABLE_CONNECT_PROTOCOL), Some(1));
        let head = client.so_far(id);
        for field in ["content-length", "content-type", "connection", "upgrade"] {
            assert_eq!(head.field(field), None, "{head:?}");
        }
        client.send_data(id, b"hello", false);
        expect(&mut client, id, b"hello");
        assert_eq!(client.ask("/text").text(), "text", "other streams go on");
        client.send_data(id, b", world", true);
        let answer = client.answer(id);
        assert_eq!((&*answer.text(), answer.reset), ("hello, world", None), "{target}");
        // The same route by HTTP/1.1, on the same listener.
        let mut client = server.connect();
        client.send(request("GET", target, "Connection: Upgrade\r\nUpgrade: echo\r\n"));
        assert_eq!(client.read_head().status, 101);
        client.send("hello");
        assert_eq!(client.take(5).expect("the echo"), b"hello");
    }
    server.wait_until_empty();
}

fn a_handler_learns_what_is_asked_for(setup: Setup) {
    let told = |request: &Request| {
        let names: Vec<&str> = request.upgrade_protocols().collect();
        let text = format!("{} {}", request.wants_upgrade(), names.join("+"));
        let is_chat = request.wants_protocol("CHAT");
        let status = if is_chat { Status::CONFLICT } else { Status::BAD_REQUEST };
        Response::text(text).status(status)
    };
    let server = Server::routes(in_clear(setup), Routes::new().get("/{name}", told));
    let mut client = Http2Client::connect(server.address());
    for (protocol, status) in [("chat", 409), ("websocket", 400)] {
        let id = client.new_stream();
        client.send(&tunnel_frame(id, "/x", protocol));
        let answer = client.answer(id);
        assert_eq!((answer.status, answer.text()), (status, format!("true {protocol}")));
    }
    assert_eq!(client.ask("/x").text(), "false ");
    let fields = "Connection: Upgrade\r\nUpgrade: chat/2, websocket\r\nUpgrade: chat\r\n";
    let mut old = server.connect();
    let answer = old.ask(request("GET", "/x", fields));
    assert_eq!(answer.body, b"true chat/2+websocket+chat");
    let answer = old.ask(request("GET", "/x", "Upgrade: chat\r\n"));
    assert_eq!((answer.status, &*answer.body), (400, &b"false "[..]));
}

fn bytes_that_come_while_the_handler_works_reach_the_tunnel(setup: Setup) {
    let slow = async |_: Request| {
        sleep(Duration::from_millis(60)).await;
        Response::upgrade("echo", echo)
    };
    let server = Server::routes(in_clear(setup), routes().get("/slow", slow));
    for target in ["/slow", "/task", "/function"] {
        let mut client = Http2Client::connect(server.address());
        let id = client.new_stream();
        let mut all = tunnel_frame(id, target, "echo");
        all.extend_from_slice(&[0, 0, 5, kind::DATA, 0, 0, 0, 0, 1]);
        all.extend_from_slice(b"early");
        client.send(&all);
        expect(&mut client, id, b"early");
        client.send_data(id, b"", true);
        assert_eq!(client.answer(id).text(), "early", "{target}");
    }
}

fn routes_without_a_tunnel_say_so(setup: Setup) {
    let folder = Folder::new();
    folder.file("index.html", "a page");
    let page = |_: &Request| Response::html("for others").on_upgrade("other", echo);
    let routes = routes()
        .post("/post", |_: &Request| "posted")
        .get("/other", |_: &Request| Response::upgrade("other", echo))
        .get("/page", page)
        .get("/stream", async |_: Request| {
            let (appender, response) = Response::append(4);
            _ = appender.append("piece").await;
            response
        })
        .get("/connect", |_: &Request| Response::tunnel(echo))
        .get("/moved", |_: &Request| Response::redirect(Status::FOUND, "/function"))
        .files("/files", folder.root());
    let server = Server::routes(in_clear(setup), routes);
    let mut client = Http2Client::connect(server.address());
    for (target, status) in [
        ("/nothing", 404),
        ("/post", 405),
        ("/files/", 405),
        ("/text", 501),
        ("/stream", 501),
        ("/other", 501),
        ("/page", 501),
        ("/connect", 405),
        ("/moved", 302),
    ] {
        let id = open(&mut client, target);
        let answer = client.answer(id);
        assert_eq!((answer.status, answer.reset), (status, None), "{target}");
        let allow = (status == 405).then(|| answer.field("allow").is_some());
        assert_ne!(allow, Some(false), "{target}");
    }
    // Who asks for no tunnel gets none.
    assert_eq!(client.ask("/function").status, 426);
    assert_eq!(client.ask("/page").text(), "for others");
}

fn malformed_requests_for_a_tunnel_end_their_stream(setup: Setup) {
    let server = server(setup);
    let mut client = Http2Client::connect(server.address());
    let whole = [
        (":method", "CONNECT"),
        (":protocol", "echo"),
        (":scheme", "http"),
        (":path", "/function"),
        (":authority", "gust.example"),
    ];
    let mut broken: Vec<Vec<(&str, &str)>> = ["http", "/function", "gust.example"]
        .iter()
        .map(|without| whole.iter().copied().filter(|field| field.1 != *without).collect())
        .collect();
    let other = |name: &'static str, value: &'static str| {
        let change = |field: (&'static str, &'static str)| {
            if field.0 == name { (name, value) } else { field }
        };
        whole.map(change).to_vec()
    };
    // No method but CONNECT has a protocol.
    broken.push(other(":method", "GET"));
    broken.push(other(":protocol", ""));
    broken.push(other(":protocol", "a b"));
    broken.push(other(":path", "*"));
    broken.push(other(":path", "example.org:443"));
    broken.push([&whole[..], &[(":protocol", "echo")]].concat());
    broken.push([&whole[..], &[("content-length", "5")]].concat());
    broken.push([&whole[..], &[("upgrade", "echo")]].concat());
    for fields in broken {
        let id = client.new_stream();
        let block: Vec<u8> = fields.iter().flat_map(|(name, value)| literal(name, value)).collect();
        client.send_frame(kind::HEADERS, flag::END_HEADERS, id, &block);
        assert_eq!(client.answer(id).reset, Some(ErrorCode::ProtocolError), "{fields:?}");
    }
    // Nothing but DATA may follow (RFC 9113 §8.5).
    let id = opened(&mut client, "/function");
    let trailers = literal("x-sum", "1");
    client.send_frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, id, &trailers);
    assert_eq!(client.answer(id).reset, Some(ErrorCode::ProtocolError));
    assert_eq!(client.ask("/text").text(), "text");
}

fn much_goes_both_ways(setup: Setup) {
    let server = server(setup);
    let bytes = noise(5, 2_000_000);
    for target in ["/protocol", "/function"] {
        let mut client = Http2Client::connect(server.address());
        let id = opened(&mut client, target);
        let mut left = &bytes[..];
        while !left.is_empty() {
            let room = usize::try_from(client.window(id).min(client.window(0))).unwrap_or(0);
            let count = left.len().min(room).min(16_384);
            if count == 0 {
                client.next_frame().expect("more room");
                continue;
            }
            client.send_data(id, &left[..count], count == left.len());
            left = &left[count..];
        }
        let answer = client.answer(id);
        assert!(answer.body == bytes, "{target}: {} bytes {:?}", answer.body.len(), answer.reset);
    }
}

fn a_full_window_stops_one_tunnel_alone(setup: Setup) {
    let deaf = |_: &Request| Response::upgrade("echo", async |_: Tunnel| pending().await);
    let talks = |_: &Request| {
        Response::upgrade("echo", async |mut tunnel: Tunnel| {
            tunnel.send(noise(6, 300_000)).await.expect("the peer reads in the end");
        })
    };
    let server = Server::routes(in_clear(setup), routes().get("/deaf", deaf).get("/talks", talks));
    let mut client =
        Http2Client::connect_with(server.address(), &[(setting::INITIAL_WINDOW_SIZE, 20_000)]);
    // The client's stream window is shut, that of the connection is not.
    client.give(0, 1 << 20);
    client.gives_window = false;
    let talking = opened(&mut client, "/talks");
    client.wait_for(talking, |answer| answer.body.len() == 20_000);
    // The server's is: its function takes nothing.
    let deaf = opened(&mut client, "/deaf");
    for _ in 0..4 {
        client.send_data(deaf, &noise(7, 16_384), false);
    }
    let echoing = opened(&mut client, "/function");
    client.send_data(echoing, b"hello", true);
    assert_eq!(client.answer(echoing).text(), "hello");
    assert_eq!(client.so_far(talking).body.len(), 20_000);
    assert_eq!(client.window(deaf), 0, "nothing was taken, so no more may be sent");
    client.give(talking, 1 << 20);
    assert!(client.answer(talking).body == noise(6, 300_000));
}

fn each_side_may_end_before_the_other(setup: Setup) {
    let first = |_: &Request| {
        Response::upgrade("echo", async |mut tunnel: Tunnel| {
            tunnel.send("all of it").await.expect("the peer reads");
            tunnel.shutdown().expect("it is open");
            let refused = tunnel.send("more").await;
            assert!(matches!(refused, Err(TunnelError::Closed)), "{refused:?}");
            let said = tunnel.recv().await.expect("the peer goes on");
            assert_eq!(said, "thanks");
            assert_eq!(tunnel.recv().await.expect("its end"), "");
        })
    };
    let last = |_: &Request| {
        Response::upgrade("echo", async |mut tunnel: Tunnel| {
            while !tunnel.recv().await.expect("no loss").is_empty() {}
            assert_eq!(tunnel.recv().await.expect("still the end"), "");
            sleep(Duration::from_millis(20)).await;
            tunnel.send("bye").await.expect("the peer reads");
        })
    };
    let server = Server::routes(in_clear(setup), routes().get("/first", first).get("/last", last));
    let mut client = Http2Client::connect(server.address());
    let id = open(&mut client, "/first");
    let answer = client.answer(id);
    assert_eq!((&*answer.text(), answer.reset), ("all of it", None));
    client.send_data(id, b"thanks", true);
    let id = opened(&mut client, "/last");
    client.send_data(id, b"that is all", true);
    let answer = client.answer(id);
    assert_eq!((&*answer.text(), answer.reset), ("bye", None));
    assert_eq!(server.stats().panics, 0);
}

/// A route whose function tells what ends its tunnel.
fn telling() -> (Routes, mpsc::Receiver<Result<usize, TunnelError>>) {
    let (sender, receiver) = mpsc::channel();
    let routes = routes().get("/told", move |_: &Request| {
        let sender = sender.clone();
        Response::upgrade("echo", async move |mut tunnel: Tunnel| {
            sender.send(tunnel.recv().await.map(|bytes| bytes.len())).expect("the test waits");
            sender.send(tunnel.send("x").await.map(|()| 0)).expect("the test waits");
        })
    });
    (routes, receiver)
}

fn a_reset_is_a_loss(setup: Setup) {
    let (routes, receiver) = telling();
    let server = Server::routes(in_clear(setup), routes);
    let mut client = Http2Client::connect(server.address());
    let id = opened(&mut client, "/told");
    client.reset(id, ErrorCode::Cancel);
    let told = receiver.recv().expect("the function goes on");
    assert!(matches!(told, Err(TunnelError::Broken(_))), "{told:?}");
    let told = receiver.recv().expect("the function goes on");
    assert!(matches!(told, Err(TunnelError::Closed)), "{told:?}");
    assert_eq!(client.ask("/text").text(), "text");
}

fn the_end_of_the_connection_is_a_loss(setup: Setup) {
    for half in [false, true] {
        let (routes, receiver) = telling();
        let server = Server::routes(in_clear(setup), routes);
        let mut client = Http2Client::connect(server.address());
        let id = opened(&mut client, "/told");
        if half {
            client.half_close();
            assert_eq!(client.answer(id).reset, Some(ErrorCode::Cancel));
        } else {
            client.cut();
        }
        let told = receiver.recv().expect("the function goes on");
        assert!(matches!(told, Err(TunnelError::Broken(_))), "{told:?}");
        server.wait_until_empty();
    }
}

fn a_function_that_ignores_a_reset_ends_with_the_server(setup: Setup) {
    let deaf = |_: &Request| Response::upgrade("echo", async |_: Tunnel| pending().await);
    let server = Server::routes(in_clear(setup), routes().get("/deaf", deaf));
    let mut client = Http2Client::connect(server.address());
    for _ in 0..3 {
        let id = opened(&mut client, "/deaf");
        client.reset(id, ErrorCode::Cancel);
    }
    client.ping();
    let report = server.running().drain(Duration::from_secs(20));
    assert_eq!(report.cut, 0, "{report:?}");
}

fn plain_connect_is_refused_unless_a_route_takes_it(setup: Setup) {
    async fn tunnel(request: Request) -> Response {
        assert_eq!((request.target(), request.wants_upgrade()), ("example.org:443", false));
        Response::tunnel(async |tunnel: Tunnel| {
            tunnel.peer().expect("it is connected");
            tunnel.local().expect("it is connected");
            echo(tunnel).await;
        })
    }
    let connect = |client: &mut Http2Client| {
        let id = client.new_stream();
        let target = [literal(":method", "CONNECT"), literal(":authority", "example.org:443")];
        client.send_frame(kind::HEADERS, flag::END_HEADERS, id, &target.concat());
        id
    };
    let inline = || route().any(|_: &Request| Response::tunnel(echo));
    for (route, status) in [
        (inline(), 405),
        (route().any(|_: &Request| "a page").takes_connect(true), 501),
        (route().any(|_: &Request| Response::upgrade("echo", echo)).takes_connect(true), 501),
    ] {
        let server = Server::routes(in_clear(setup), routes().fallback_route(route));
        let mut client = Http2Client::connect(server.address());
        let id = connect(&mut client);
        assert_eq!(client.answer(id).status, status);
        assert_eq!(client.ask("/text").text(), "text");
    }
    for route in [inline().takes_connect(true), route().any(tunnel).takes_connect(true)] {
        let server = Server::routes(in_clear(setup), routes().fallback_route(route));
        let mut client = Http2Client::connect(server.address());
        let id = connect(&mut client);
        client.send_data(id, b"GET / HTTP/1.1\r\n\r\n", true);
        let answer = client.answer(id);
        assert_eq!((answer.status, &*answer.text()), (200, "GET / HTTP/1.1\r\n\r\n"));
        assert_eq!(answer.reset, None);
    }
}

fn the_access_log_has_the_bytes_of_a_tunnel(setup: Setup) {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("access.log");
    let config = Config {
        access_log: Some(path.clone()),
        access_log_format: "%(m)s %(U)s %(s)s %(B)s".to_owned(),
        ..in_clear(setup)
    };
    let server = Server::routes(config, routes());
    let mut client = Http2Client::connect(server.address());
    for target in ["/function", "/protocol", "/task"] {
        let id = opened(&mut client, target);
        client.send_data(id, b"12345", true);
        assert_eq!(client.answer(id).text(), "12345");
    }
    let id = opened(&mut client, "/function");
    client.send_data(id, b"123", false);
    expect(&mut client, id, b"123");
    client.cut();
    server.wait_until_empty();
    let lines = || fs::read_to_string(&path).unwrap_or_default();
    wait_until("four lines", || lines().lines().count() >= 4);
    let text = lines();
    let mut written: Vec<_> = text.lines().collect();
    written.sort_unstable();
    let expected =
        ["CONNECT /function 200 3", "CONNECT /function 200 5", "CONNECT /protocol 200 5"];
    assert_eq!(written, [&expected[..], &["CONNECT /task 200 5"]].concat());
}
