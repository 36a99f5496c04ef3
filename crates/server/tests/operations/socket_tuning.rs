//! Settings close to the wire: the kernel's buffers and classes, how much is taken ahead, the
//! version that answers call themselves, the time for a first byte.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use gustnado::config::{Config, ResponseVersion, TrafficClass};
use gustnado::task::sleep;
use gustnado::{Request, Response, Routes};
use rustix::net::{getsockname, sockopt};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

use crate::harness::client::{get, request};
use crate::harness::folder::noise;
use crate::harness::{Folder, PATIENCE, Server, Setup};

on_every_server!(
    sockets_have_the_buffers_and_the_class_that_were_wished_for,
    sockets_are_left_alone_by_default,
    a_buffer_that_the_kernel_does_not_grant_is_said,
    what_is_taken_ahead_of_a_handler_is_bounded,
    a_stream_is_gathered_by_its_buffer_and_comes_whole,
    a_small_ring_of_buffers_serves_all_the_same,
    a_first_byte_has_a_time_of_its_own,
    targets_and_fields_have_limits_of_their_own,
    answers_can_call_themselves_old,
    old_answers_come_from_folders_and_end_where_they_say,
    answers_can_follow_the_request,
);

/// The sockets of this process that are bound to a port, listening or not. (Every test has a server
/// of its own, but all share this process: another may be looking at a copy of one just now.)
fn sockets_at(address: SocketAddr, listening: bool) -> Vec<OwnedFd> {
    let own = pidfd_open(getpid(), PidfdFlags::empty()).expect("this process");
    let numbers = std::fs::read_dir("/proc/self/fd").expect("our descriptors");
    let numbers = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let sockets = numbers.filter_map(|number: i32| {
        let socket = pidfd_getfd(&own, number, PidfdGetfdFlags::empty()).ok()?;
        let bound = SocketAddr::try_from(getsockname(&socket).ok()?).ok()?;
        let is_wanted = bound == address && sockopt::socket_acceptconn(&socket) == Ok(listening);
        is_wanted.then(|| Some((sockopt::socket_cookie(&socket).ok()?, socket)))?
    });
    sockets.collect::<BTreeMap<_, _>>().into_values().collect()
}

fn recv_bytes(socket: impl AsFd) -> usize {
    sockopt::socket_recv_buffer_size(socket).expect("a socket")
}

fn sockets_have_the_buffers_and_the_class_that_were_wished_for(setup: Setup) {
    for (preference, class) in [(TrafficClass::Latency, 0x48), (TrafficClass::Throughput, 0x28)] {
        let server = Server::start(Config {
            recv_buffer_bytes: 20_000,
            send_buffer_bytes: 30_000,
            socket_preference: preference,
            ..setup.config()
        });
        let mut client = server.connect();
        assert_eq!(client.get("/").status, 200);
        let mut sockets = sockets_at(server.address(), true);
        assert!(!sockets.is_empty(), "no listening socket was found");
        // What io_uring accepts is in the ring's own table, where nobody else can look.
        let accepted = sockets_at(server.address(), false);
        if server.running().backend() == "epoll" {
            assert_eq!(accepted.len(), 1, "the connection was not found");
        }
        sockets.extend(accepted);
        for socket in &sockets {
            // The kernel doubles what it is asked for.
            assert_eq!(recv_bytes(socket), 40_000);
            assert_eq!(sockopt::socket_send_buffer_size(socket), Ok(60_000));
            assert_eq!(sockopt::ip_tos(socket), Ok(class));
            assert_eq!(sockopt::tcp_nodelay(socket), Ok(true));
        }
    }
}

fn sockets_are_left_alone_by_default(setup: Setup) {
    let server = setup.default_site();
    let usual = std::net::TcpListener::bind("127.0.0.1:0").expect("a socket");
    for socket in sockets_at(server.address(), true) {
        assert_eq!(recv_bytes(&socket), recv_bytes(&usual));
        let of_usual = sockopt::socket_send_buffer_size(&usual);
        assert_eq!(sockopt::socket_send_buffer_size(&socket), of_usual);
        assert_eq!(sockopt::ip_tos(&socket), Ok(0));
    }
}

fn a_buffer_that_the_kernel_does_not_grant_is_said(setup: Setup) {
    let most = std::fs::read_to_string("/proc/sys/net/core/rmem_max").expect("a sysctl");
    let most: usize = most.trim().parse().expect("a number");
    if most >= 1 << 30 {
        return; // A machine that grants everything.
    }
    let server = Server::start(Config { recv_buffer_bytes: most + 1_024, ..setup.config() });
    let notes = server.running().notes().join("\n");
    let wanted = format!("sysctl -w net.core.rmem_max={}", most + 1_024);
    assert!(notes.contains(&wanted) && notes.matches("rmem_max").count() == 1, "{notes}");
    assert_eq!(server.get("/").status, 200);
}

fn what_is_taken_ahead_of_a_handler_is_bounded(setup: Setup) {
    if Setup::http1_only("who reads nothing has no more than a hundred streams") {
        return;
    }
    let hang = async |_: Request| {
        sleep(PATIENCE).await;
        ""
    };
    let taken = |read_ahead_bytes, recv_buffer_bytes| {
        let config = Config { read_ahead_bytes, recv_buffer_bytes, ..setup.config() };
        let server = Server::routes(config, Routes::new().get("/", hang));
        let mut client = server.connect();
        client.send(get("/"));
        client.send_until_blocked(get("/").repeat(1_000).as_bytes(), 16 << 20)
    };
    assert!(taken(32 << 20, 0) >= 16 << 20, "all of it is taken where it may be");
    let little = taken(1_024, 8_192);
    assert!(little < 12 << 20, "{little} bytes were taken");
}

fn a_stream_is_gathered_by_its_buffer_and_comes_whole(setup: Setup) {
    for stream_buffer_bytes in [1, 64 << 20] {
        let routes =
            Routes::new().post("/", async |request: Request| Response::stream(request.into_body()));
        let server = Server::routes(Config { stream_buffer_bytes, ..setup.config() }, routes);
        let body = noise(3, 300_000);
        let mut client = server.connect();
        client.send(request("POST", "/", "Content-Length: 300000\r\n"));
        client.send(&body);
        assert!(client.read_answer().body == body);
    }
}

fn a_small_ring_of_buffers_serves_all_the_same(setup: Setup) {
    // (9 is rounded up to 16.)
    let server = Server::start(Config { uring_buffers: 9, ..setup.config() });
    let mut clients: Vec<_> = (0..50).map(|_| server.connect()).collect();
    for _ in 0..5 {
        for client in &mut clients {
            client.send(get("/"));
        }
        for client in &mut clients {
            assert_eq!(client.read_answer().status, 200);
        }
    }
    let body = noise(3, 400_000);
    clients[0].send(request("POST", "/echo", "Content-Length: 400000\r\n"));
    clients[0].send(&body);
    assert!(clients[0].read_answer().body == body);
}

fn a_first_byte_has_a_time_of_its_own(setup: Setup) {
    const SHORT: Duration = Duration::from_millis(400);
    if Setup::http1_only("by HTTP/2 the first request has to be whole in that time") {
        return;
    }
    let server = Server::start(Config {
        first_request_timeout: SHORT,
        header_timeout: PATIENCE,
        defer_accept: false,
        ..setup.config()
    });
    let began = Instant::now();
    let (mut silent, mut slow, mut kept) = (server.connect(), server.connect(), server.connect());
    slow.send("G");
    assert_eq!(kept.get("/").status, 200);
    silent.expect_end("not a byte");
    assert!(began.elapsed() >= SHORT / 2, "at once");
    slow.expect_silence(SHORT);
    slow.send(&get("/")[1..]);
    assert_eq!(slow.read_answer().status, 200);
    assert_eq!(kept.get("/").status, 200, "it counts for the first byte only");
    let stats = server.stats();
    assert_eq!((stats.never_asked, stats.timeouts, stats.idle_closed), (1, 1, 0));
}

fn targets_and_fields_have_limits_of_their_own(setup: Setup) {
    let config = Config { limit_target_bytes: 16, limit_header_fields: 3, ..setup.config() };
    let server = Server::start(config);
    assert_eq!(server.get("/?123456789012345").status, 414);
    assert_eq!(server.get("/?12345678901234").status, 200);
    // (By HTTP/2 the host is no field.)
    let many = 3 + usize::from(Setup::is_http2());
    assert_eq!(server.ask(request("GET", "/", &"X: y\r\n".repeat(many))).status, 431);
    assert_eq!(server.ask(request("GET", "/", &"X: y\r\n".repeat(2))).status, 200);
    let many = Config { limit_header_fields: 200, ..setup.config() };
    let many = Server::start(many);
    assert_eq!(many.ask(request("GET", "/", &"X: y\r\n".repeat(199))).status, 200);
}

/// All that a server says to bytes until it closes; it is told of the end if `shut`.
fn said(server: &Server, bytes: &str, shut: bool) -> String {
    let mut client = server.connect();
    client.send(bytes);
    if shut {
        client.shut_write();
    }
    String::from_utf8(client.read_to_end()).expect("text")
}

fn greeting_routes() -> Routes {
    Routes::new()
        .get("/", |_: &Request| "hello")
        .get("/task", async |_: Request| {
            sleep(Duration::from_millis(1)).await;
            "hello"
        })
        .get("/odd", |_: &Request| Response::text("hello").code(299, "Odd").expect("a good code"))
        .get("/stream", |_: &Request| {
            let (appender, response) = Response::append(2);
            appender.try_append("hello").expect("room for one");
            response
        })
}

fn answers_can_call_themselves_old(setup: Setup) {
    if Setup::http1_only("it is about HTTP/1.0") {
        return;
    }
    let config = Config { answer_version: ResponseVersion::Old, ..setup.config() };
    let server = Server::routes(config, greeting_routes());
    let asked = get("/") + &get("/task") + &get("/none") + &get("/odd") + &get("/");
    let text = said(&server, &asked, true);
    assert_eq!(text.matches("HTTP/1.0 200 OK\r\n").count(), 3, "{text}");
    assert_eq!(text.matches("HTTP/1.0 299 Odd\r\n").count(), 1, "{text}");
    assert_eq!(text.matches("HTTP/1.0 404 ").count(), 1, "{text}");
    assert_eq!(text.matches("Connection: keep-alive\r\n").count(), 5, "{text}");
    assert!(!text.contains("HTTP/1.1"), "{text}");
    let text = said(&server, &get("/stream"), false);
    assert!(text.starts_with("HTTP/1.0 200 OK\r\n") && text.ends_with("\r\n\r\nhello"), "{text}");
    assert!(text.contains("Connection: close\r\n") && !text.contains("chunked"), "{text}");
    for (bad, status) in [("nonsense\r\n\r\n", "400"), ("GET / HTTP/1.1\r\n\r\n", "400")] {
        let text = said(&server, bad, false);
        assert!(text.starts_with(&format!("HTTP/1.0 {status} ")), "{text}");
        assert!(text.contains("Connection: close\r\n"), "{text}");
    }
    let last = request("GET", "/", "Connection: close\r\n");
    let text = said(&server, &last, false);
    assert!(text.starts_with("HTTP/1.0 200 ") && text.contains("Connection: close\r\n"), "{text}");
}

fn old_answers_come_from_folders_and_end_where_they_say(setup: Setup) {
    if Setup::http1_only("it is about HTTP/1.0") {
        return;
    }
    let folder = Folder::new();
    folder.file("small.txt", "small");
    folder.file("large.bin", noise(1, 400_000));
    let server = Server::start(Config {
        answer_version: ResponseVersion::Old,
        max_requests_per_connection: 3,
        ..setup.folder_config(&folder)
    });
    let asked = get("/small.txt").repeat(2) + &request("HEAD", "/large.bin", "") + &get("/more");
    let text = said(&server, &asked, false);
    assert_eq!(text.matches("HTTP/1.0 200 OK\r\n").count(), 3, "{text}");
    assert_eq!(text.matches("Connection: keep-alive\r\n").count(), 2, "{text}");
    assert_eq!(text.matches("Connection: close\r\n").count(), 1, "{text}");
    let range = request("GET", "/large.bin", "Range: bytes=0-4\r\nConnection: close\r\n");
    let range = range.replace("Range", "X-Other");
    let mut client = server.connect();
    client.send(range);
    let bytes = client.read_to_end();
    assert!(bytes.starts_with(b"HTTP/1.0 200 OK\r\n") && bytes.ends_with(&noise(1, 400_000)));
}

fn answers_can_follow_the_request(setup: Setup) {
    if Setup::http1_only("it is about HTTP/1.0") {
        return;
    }
    let config = Config { answer_version: ResponseVersion::AsRequested, ..setup.config() };
    let server = Server::routes(config, greeting_routes());
    let old = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
    let text = said(&server, &(old.to_owned() + &get("/") + "GET / HTTP/1.0\r\n\r\n"), false);
    let lines: Vec<_> = text.split("hello").map(|head| head.lines().next().unwrap_or("")).collect();
    assert_eq!(lines, ["HTTP/1.0 200 OK", "HTTP/1.1 200 OK", "HTTP/1.0 200 OK", ""]);
    assert_eq!(text.matches("Connection: ").count(), 2, "{text}");
    let text = said(&server, &get("/stream"), true);
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.contains("chunked"), "{text}");
    // By itself, the server is of 1.1 and says so, whatever it is asked in.
    let server = Server::routes(setup.config(), greeting_routes());
    assert!(said(&server, "GET / HTTP/1.0\r\n\r\n", false).starts_with("HTTP/1.1 200 OK\r\n"));
}
