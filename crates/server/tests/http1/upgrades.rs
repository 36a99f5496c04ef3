//! Connections that go on in another protocol: after an upgrade (RFC 9110 §7.8), or CONNECT.

use std::fs;
use std::future::pending;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use gustnado::config::Config;
use gustnado::task::{sleep, spawn};
use gustnado::{Request, Response, Routes, Tunnel, TunnelError, route};
use tempfile::TempDir;

use crate::harness::client::{get, request};
use crate::harness::echo::{Echo, echo};
use crate::harness::folder::noise;
use crate::harness::{Answer, Server, Setup, wait_until};

on_every_server!(http1 "an upgrade is a thing of HTTP/1.1 (RFC 9113 §8.6)":
    an_upgrade_gives_the_connection_to_a_protocol,
    a_function_may_take_the_connection,
    bytes_in_the_packet_of_the_request_reach_the_protocol,
    requests_before_it_are_answered_first,
    bytes_that_come_while_the_handler_works_reach_the_tunnel,
    without_being_asked_for_no_upgrade_comes_about,
    a_request_whose_body_is_unread_is_not_upgraded,
    a_request_whose_body_was_read_is_upgraded,
    a_fallback_is_for_clients_that_do_not_ask,
    a_drain_tells_protocols_and_tunnels,
    a_tunnel_that_does_not_end_is_cut,
    no_time_limit_of_http_holds_for_a_tunnel,
    a_tunnel_has_a_time_limit_of_its_own,
    a_peer_that_takes_nothing_is_given_up,
    a_tunnel_that_panics_ends_its_connection_only,
    a_tunnel_is_for_the_task_of_its_connection,
    a_tunnel_keeps_the_pace_of_its_connection,
    the_access_log_has_the_bytes_of_a_tunnel,
    connect_is_refused_unless_a_route_takes_it,
    connect_opens_a_tunnel,
);

fn echo_protocol() -> Response {
    Response::upgrade("echo", async |tunnel: Tunnel| _ = tunnel.run(Echo).await)
}

fn routes() -> Routes {
    Routes::new()
        .get("/echo", |_: &Request| echo_protocol())
        .get("/function", |_: &Request| Response::upgrade("echo", echo))
        .get("/text", |_: &Request| "text")
}

fn server(setup: Setup) -> Server {
    Server::routes(setup.patient_config(), routes())
}

fn upgrade(path: &str) -> String {
    request("GET", path, "Connection: Upgrade\r\nUpgrade: echo\r\n")
}

fn assert_switched(answer: &Answer) {
    assert_eq!(answer.status, 101, "{answer:?}");
    assert_eq!(answer.expect_field("connection"), "Upgrade");
    assert_eq!(answer.expect_field("upgrade"), "echo");
    for field in ["content-length", "transfer-encoding", "content-type"] {
        assert_eq!(answer.count(field), 0, "{answer:?}");
    }
}

fn assert_declined(answer: &Answer) {
    assert_eq!(answer.status, 426, "{answer:?}");
    assert_eq!(answer.expect_field("upgrade"), "echo");
    assert!(answer.fields.iter().any(|(name, value)| {
        name.eq_ignore_ascii_case("connection") && value.eq_ignore_ascii_case("upgrade")
    }));
}

fn an_upgrade_gives_the_connection_to_a_protocol(setup: Setup) {
    let server = server(setup);
    let mut client = server.connect();
    client.send(upgrade("/echo"));
    assert_switched(&client.read_head());
    let bytes = noise(1, 300_000);
    for _ in 0..3 {
        let mut writer = client.second_handle();
        let sent = bytes.clone();
        let sending = thread::spawn(move || writer.send(sent));
        assert!(client.take(bytes.len()).expect("all of it") == bytes, "other bytes came");
        sending.join().expect("all was sent");
    }
    assert_eq!(server.stats().connections_open, 1);
    client.send(get("/text"));
    assert_eq!(client.take(4).expect("no response, but an echo"), b"GET ");
    client.shut_write();
    client.read_to_end();
    server.wait_until_empty();
}

fn a_function_may_take_the_connection(setup: Setup) {
    let server = server(setup);
    let mut client = server.connect();
    client.send(upgrade("/function"));
    assert_switched(&client.read_head());
    for bytes in [b"one".to_vec(), b"two".to_vec(), noise(2, 100_000)] {
        client.send(&bytes);
        assert!(client.take(bytes.len()).expect("all of it") == bytes, "other bytes came");
    }
    client.shut_write();
    client.expect_end("the echo");
    server.wait_until_empty();
}

fn bytes_in_the_packet_of_the_request_reach_the_protocol(setup: Setup) {
    let server = server(setup);
    for path in ["/echo", "/function"] {
        let mut client = server.connect();
        client.send(upgrade(path) + "hello");
        assert_switched(&client.read_head());
        assert_eq!(client.take(5).expect("the echo"), b"hello");
        client.send(" again");
        assert_eq!(client.take(6).expect("the echo"), b" again");
    }
    server.wait_until_empty();
}

fn requests_before_it_are_answered_first(setup: Setup) {
    let server = server(setup);
    let mut client = server.connect();
    client.send(get("/text").repeat(3) + &upgrade("/echo") + &get("/text"));
    for _ in 0..3 {
        assert_eq!(client.read_answer().body, b"text");
    }
    assert_switched(&client.read_head());
    let echoed = client.take(get("/text").len()).expect("the echo");
    assert_eq!(echoed, get("/text").into_bytes(), "it is no request any more");
    server.wait_until("four requests", |stats| stats.requests == 4);
}

fn bytes_that_come_while_the_handler_works_reach_the_tunnel(setup: Setup) {
    let slow = async |_: Request| {
        sleep(Duration::from_millis(60)).await;
        echo_protocol()
    };
    let server = Server::routes(setup.patient_config(), Routes::new().get("/slow", slow));
    let mut client = server.connect();
    client.send(upgrade("/slow"));
    thread::sleep(Duration::from_millis(20));
    client.send("early");
    assert_switched(&client.read_head());
    assert_eq!(client.take(5).expect("the echo"), b"early");
}

fn without_being_asked_for_no_upgrade_comes_about(setup: Setup) {
    let server = server(setup);
    let mut client = server.connect();
    for fields in [
        "",
        "Upgrade: echo\r\n",
        "Connection: Upgrade\r\n",
        "Connection: Upgrade\r\nUpgrade: echoes, other/1\r\n",
    ] {
        assert_declined(&client.ask(request("GET", "/echo", fields)));
    }
    assert_eq!(client.get("/text").body, b"text", "the connection goes on");
    client.send(request("GET", "/echo", "Connection: x, upgrade\r\nUpgrade: a/1, ECHO\r\n"));
    assert_switched(&client.read_head());
    let old = "GET /echo HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
    let mut client = server.connect();
    assert_eq!(client.ask(old).status, 426);
    client.expect_end("a response to HTTP/1.0");
}

fn a_request_whose_body_is_unread_is_not_upgraded(setup: Setup) {
    let routes = routes().post("/task", async |_: Request| echo_protocol());
    let server = Server::routes(setup.patient_config(), routes);
    let mut client = server.connect();
    let fields = "Connection: Upgrade\r\nUpgrade: echo\r\nContent-Length: 9\r\n";
    client.send(request("POST", "/task", fields) + "some");
    thread::sleep(Duration::from_millis(20));
    client.send(" body".to_owned() + &get("/text"));
    assert_declined(&client.read_answer());
    assert_eq!(client.read_answer().body, b"text", "the body was no request");
}

fn a_request_whose_body_was_read_is_upgraded(setup: Setup) {
    let read = async |mut request: Request| {
        let body = request.body_mut().bytes(1_000).await.expect("a short body");
        assert_eq!(body, &b"some body"[..]);
        echo_protocol()
    };
    let whole = |request: &Request| {
        assert_eq!(request.bytes(), b"some body");
        echo_protocol()
    };
    let routes = routes().post("/task", read).post("/inline", whole);
    let server = Server::routes(setup.patient_config(), routes);
    let fields = "Connection: Upgrade\r\nUpgrade: echo\r\nContent-Length: 9\r\n";
    for path in ["/task", "/inline"] {
        for pause in [0, 20] {
            let mut client = server.connect();
            client.send(request("POST", path, fields) + "some");
            thread::sleep(Duration::from_millis(pause));
            client.send(" bodyhello");
            assert_switched(&client.read_head());
            assert_eq!(client.take(5).expect("the echo"), b"hello");
        }
    }
}

fn a_fallback_is_for_clients_that_do_not_ask(setup: Setup) {
    let page = |_: &Request| {
        Response::html("<p>Use a client that knows echo.")
            .header("X-Kept", "yes")
            .on_upgrade("echo", echo)
    };
    let server = Server::routes(setup.patient_config(), Routes::new().get("/", page));
    let mut client = server.connect();
    let answer = client.get("/");
    assert_eq!((answer.status, answer.count("upgrade")), (200, 0));
    client.send(upgrade("/"));
    let head = client.read_head();
    assert_switched(&head);
    assert_eq!(head.expect_field("x-kept"), "yes");
    client.send("x");
    assert_eq!(client.take(1).expect("the echo"), b"x", "its content is not sent");
}

fn a_drain_tells_protocols_and_tunnels(setup: Setup) {
    async fn polite(mut tunnel: Tunnel) {
        while let Ok(bytes) = tunnel.recv().await {
            tunnel.send(bytes).await.expect("the peer reads");
        }
        tunnel.send("bye").await.expect("the peer reads");
        let last = tunnel.recv().await.expect("there is still time");
        tunnel.send(last).await.expect("the peer reads");
    }
    let routes = routes().get("/polite", |_: &Request| Response::upgrade("echo", polite));
    let server = Server::routes(setup.patient_config(), routes);
    let (mut protocol, mut tunnel) = (server.connect(), server.connect());
    protocol.send(upgrade("/echo"));
    assert_switched(&protocol.read_head());
    tunnel.send(upgrade("/polite"));
    assert_switched(&tunnel.read_head());
    let report = thread::scope(|scope| {
        let draining = scope.spawn(|| server.running().drain(Duration::from_secs(20)));
        protocol.expect_end("nothing, as the protocol knows of the end");
        assert_eq!(tunnel.take(3).expect("a last word"), b"bye");
        tunnel.send("thanks");
        assert_eq!(tunnel.take(6).expect("the echo"), b"thanks");
        tunnel.expect_end("its last word");
        draining.join().expect("it ends")
    });
    assert_eq!(report.cut, 0, "{report:?}");
}

fn a_tunnel_that_does_not_end_is_cut(setup: Setup) {
    let stubborn = async |mut tunnel: Tunnel| {
        while !matches!(tunnel.recv().await, Err(TunnelError::Ending)) {}
        while tunnel.recv().await.is_ok() {}
    };
    let handler = move |_: &Request| Response::upgrade("echo", stubborn);
    let server = Server::routes(setup.patient_config(), Routes::new().get("/", handler));
    let mut client = server.connect();
    client.send(upgrade("/"));
    assert_switched(&client.read_head());
    let report = server.running().drain(Duration::from_millis(100));
    assert_eq!(report.cut, 1, "{report:?}");
    client.read_until_ended();
}

fn no_time_limit_of_http_holds_for_a_tunnel(setup: Setup) {
    let short = Duration::from_millis(50);
    let config =
        Config { timeout_keep_alive: short, header_timeout: short, ..setup.patient_config() };
    let server = Server::routes(config, routes());
    for path in ["/echo", "/function"] {
        let mut client = server.connect();
        client.send(upgrade(path));
        assert_switched(&client.read_head());
        thread::sleep(short * 4);
        client.send("late");
        assert_eq!(client.take(4).expect("the echo"), b"late");
    }
}

fn a_tunnel_has_a_time_limit_of_its_own(setup: Setup) {
    let bounded = async |mut tunnel: Tunnel| {
        tunnel.set_timeout(Some(Duration::from_millis(60)));
        let received = tunnel.recv().await;
        assert!(matches!(received, Err(TunnelError::TimedOut)), "{received:?}");
        tunnel.send("late").await.expect("the peer reads");
    };
    let handler = move |_: &Request| Response::upgrade("echo", bounded);
    let server = Server::routes(setup.patient_config(), Routes::new().get("/", handler));
    let mut client = server.connect();
    client.send(upgrade("/"));
    assert_switched(&client.read_head());
    assert_eq!(client.read_to_end(), b"late");
}

fn a_peer_that_takes_nothing_is_given_up(setup: Setup) {
    let (sender, receiver) = mpsc::channel();
    let handler = move |_: &Request| {
        let sender = sender.clone();
        Response::upgrade("echo", async move |mut tunnel: Tunnel| {
            tunnel.set_timeout(Some(Duration::from_millis(100)));
            sender.send(tunnel.send(noise(4, 30 << 20)).await).expect("the test waits");
            sender.send(tunnel.send("more").await).expect("the test waits");
        })
    };
    let server = Server::routes(setup.patient_config(), Routes::new().get("/", handler));
    let mut client = server.connect();
    client.send(upgrade("/"));
    let result = receiver.recv().expect("it was tried");
    assert!(matches!(result, Err(TunnelError::TimedOut)), "{result:?}");
    let result = receiver.recv().expect("it was tried");
    assert!(matches!(result, Err(TunnelError::Closed)), "{result:?}");
    server.wait_until_empty();
    assert_switched(&client.read_head());
    client.read_until_ended();
}

fn a_tunnel_that_panics_ends_its_connection_only(setup: Setup) {
    let failing = async |mut tunnel: Tunnel| {
        _ = tunnel.recv().await;
        panic!("of a tunnel");
    };
    let handler = move |_: &Request| Response::upgrade("echo", failing);
    let server = Server::routes(setup.patient_config(), routes().get("/", handler));
    let (mut client, mut other) = (server.connect(), server.connect());
    client.send(upgrade("/") + "x");
    assert_switched(&client.read_head());
    client.read_until_ended();
    assert_eq!(other.get("/text").body, b"text");
    server.wait_until("it was counted", |stats| stats.panics == 1);
}

fn a_tunnel_is_for_the_task_of_its_connection(setup: Setup) {
    let (sender, receiver) = mpsc::channel();
    let handler = move |_: &Request| {
        let sender = sender.clone();
        Response::upgrade("echo", async move |mut tunnel: Tunnel| {
            let elsewhere = spawn(async move {
                sender.send(tunnel.send("x").await).expect("the test waits");
                sender.send(tunnel.recv().await.map(|_| ())).expect("the test waits");
                tunnel
            });
            let tunnel = elsewhere.expect("there is room").await.expect("it does not panic");
            // It may be dropped anywhere.
            thread::spawn(move || drop(tunnel)).join().expect("it does not panic");
        })
    };
    let server = Server::routes(setup.patient_config(), Routes::new().get("/", handler));
    let mut client = server.connect();
    client.send(upgrade("/"));
    assert_switched(&client.read_head());
    for _ in 0..2 {
        let result = receiver.recv().expect("it was tried");
        assert!(matches!(result, Err(TunnelError::Closed)), "{result:?}");
    }
    client.expect_end("a tunnel that was dropped");
    server.wait_until_empty();
}

fn a_tunnel_keeps_the_pace_of_its_connection(setup: Setup) {
    let mut config = setup.patient_config();
    (config.pace.write_rate, config.pace.write_burst) = (100_000, 10_000);
    let server = Server::routes(config, routes());
    let mut client = server.connect();
    client.send(get("/text") + &upgrade("/function") + "early");
    assert_eq!(client.read_answer().body, b"text");
    assert_switched(&client.read_head());
    assert_eq!(client.take(5).expect("the echo"), b"early");
    let bytes = noise(3, 30_000);
    let began = std::time::Instant::now();
    client.send(&bytes);
    assert!(client.take(bytes.len()).expect("all of it") == bytes, "other bytes came");
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(150), "20,000 bytes beyond the burst took {took:?}");
}

fn the_access_log_has_the_bytes_of_a_tunnel(setup: Setup) {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("access.log");
    let config = Config {
        access_log: Some(path.clone()),
        access_log_format: "%(m)s %(U)s %(s)s %(B)s".to_owned(),
        ..setup.patient_config()
    };
    let server = Server::routes(config, routes());
    for path in ["/echo", "/function"] {
        let mut client = server.connect();
        client.send(upgrade(path) + "12345");
        assert_switched(&client.read_head());
        assert_eq!(client.take(5).expect("the echo"), b"12345");
        client.shut_write();
        client.expect_end("the echo");
        server.wait_until_empty();
    }
    let lines = || fs::read_to_string(&path).unwrap_or_default();
    wait_until("two lines", || lines().lines().count() >= 2);
    let text = lines();
    // (Each worker writes its own.)
    let mut written: Vec<_> = text.lines().collect();
    written.sort_unstable();
    assert_eq!(written, ["GET /echo 101 5", "GET /function 101 5"]);
}

const CONNECT: &str = "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n";

fn connect_is_refused_unless_a_route_takes_it(setup: Setup) {
    let tunnel = || route().any(|_: &Request| Response::tunnel(echo));
    for routes in [routes(), routes().fallback_route(tunnel())] {
        let server = Server::routes(setup.patient_config(), routes);
        let mut client = server.connect();
        client.send(CONNECT.to_owned() + "bytes of a tunnel");
        let answer = client.read_answer();
        assert_eq!(answer.status, 405);
        assert!(answer.closes());
    }
    // A route that takes it may refuse it, and gets other methods, too.
    let refuse = route().any(|_: &Request| Response::upgrade("echo", echo)).takes_connect(true);
    let server = Server::routes(setup.patient_config(), Routes::new().fallback_route(refuse));
    let mut client = server.connect();
    client.send(CONNECT);
    assert!(client.read_answer().closes());
    let tunnel = Routes::new().fallback_route(tunnel().takes_connect(true));
    let server = Server::routes(setup.patient_config(), tunnel);
    let answer = server.get("/");
    assert_eq!((answer.status, answer.expect_field("allow")), (405, "CONNECT"));
}

fn connect_opens_a_tunnel(setup: Setup) {
    async fn tunnel(request: Request) -> Response {
        assert_eq!(request.target(), "example.org:443");
        Response::tunnel(async |tunnel: Tunnel| {
            tunnel.peer().expect("it is connected");
            tunnel.local().expect("it is connected");
            echo(tunnel).await;
        })
    }
    let inline = |_: &Request| Response::tunnel(echo);
    let never = |_: &Request| Response::tunnel(|_| pending());
    let routes = |route: gustnado::Route| Routes::new().fallback_route(route.takes_connect(true));
    for route in [route().any(tunnel), route().any(inline)] {
        let server = Server::routes(setup.patient_config(), routes(route));
        let mut client = server.connect();
        client.send(CONNECT.to_owned() + "GET / HTTP/1.1\r\n\r\n");
        let head = client.read_head();
        assert_eq!(head.status, 200);
        for field in ["content-length", "transfer-encoding", "connection", "upgrade", "allow"] {
            assert_eq!(head.count(field), 0, "{head:?}");
        }
        assert_eq!(client.take(18).expect("the echo"), b"GET / HTTP/1.1\r\n\r\n");
        client.shut_write();
        client.expect_end("the echo");
        server.wait_until_empty();
    }
    // A tunnel that waits for something else ends with the server, too.
    let server = Server::routes(setup.patient_config(), routes(route().any(never)));
    let mut client = server.connect();
    client.send(CONNECT);
    assert_eq!(client.read_head().status, 200);
    server.stop();
    client.read_until_ended();
}
