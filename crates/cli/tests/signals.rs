//! Signals and exit codes: TERM and INT drain, a second one or QUIT does not wait, HUP goes on,
//! USR1 reopens the access log.

mod gustnado;

use gustnado::{PATIENCE, Server};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// More than the kernel takes from the server, so that a response stays under way.
const LARGE: usize = 64 << 20;

struct Download {
    server: Server,
    stream: TcpStream,
    _folder: tempfile::TempDir,
}

/// A server in the middle of a response that is not read; port 0 is a free one.
fn download(deadline: &str, port: u16) -> Download {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("large"), vec![b'x'; LARGE]).expect("written");
    let root = folder.path().to_str().expect("UTF-8");
    let port = port.to_string();
    let flags = [root, "--port", &port, "--timeout-graceful-shutdown", deadline];
    let server = Server::start_by(&mut gustnado::command(&flags));
    let mut stream = server.connect();
    stream.write_all(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
    stream.read_exact(&mut [0; 1]).expect("the response has begun");
    Download { server, stream, _folder: folder }
}

#[test]
fn term_and_int_drain_and_exit_0() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = Server::start(&[]);
        let idle = server.connect();
        server.signal(signal);
        let started = Instant::now();
        assert_eq!(server.wait(), Some(0), "{:#?}", server.seen);
        assert!(started.elapsed() < Duration::from_secs(5), "idle connections are not waited for");
        assert!(server.seen.iter().any(|line| line.starts_with("drained in ")));
        drop(idle);
    }
}

#[test]
fn an_answer_under_way_is_finished() {
    let mut download = download("20s", 0);
    download.server.signal(Signal::TERM);
    let line = download.server.line_with("draining: ");
    assert!(line.contains("1 connection open"), "{line}");
    let mut rest = Vec::with_capacity(LARGE);
    download.stream.read_to_end(&mut rest).expect("the whole response");
    assert!(rest.len() >= LARGE, "{} bytes came", rest.len());
    assert_eq!(download.server.wait(), Some(0), "{:#?}", download.server.seen);
}

#[test]
fn an_answer_past_the_deadline_is_cut_and_counted() {
    let mut download = download("1s", 0);
    download.server.signal(Signal::TERM);
    assert_eq!(download.server.wait(), Some(124), "{:#?}", download.server.seen);
    let line = download.server.seen.last().expect("a last line");
    assert!(line.contains("1 connection cut off"), "{line}");
    assert!(line.contains("--timeout-graceful-shutdown"), "{line}");
}

#[test]
fn a_second_signal_stops_at_once() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::QUIT, 131)] {
        let mut download = download("20s", 0);
        download.server.signal(Signal::TERM);
        download.server.line_with("draining: ");
        download.server.signal(signal);
        let started = Instant::now();
        assert_eq!(download.server.wait(), Some(code), "{:#?}", download.server.seen);
        assert!(started.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn quit_does_not_drain() {
    let mut server = Server::start(&[]);
    server.signal(Signal::QUIT);
    assert_eq!(server.wait(), Some(131), "{:#?}", server.seen);
}

#[test]
fn hup_is_answered_and_serving_goes_on() {
    let mut server = Server::start(&[]);
    server.signal(Signal::HUP);
    server.line_with("HUP: ");
    assert!(server.get("/").starts_with("HTTP/1.1 200 "));
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0), "{:#?}", server.seen);
}

/// A free port below those that the kernel gives to others by itself, so that no program takes it
/// while the server is away. Each test that needs one has its own hundred, beginning at `offset`.
fn quiet_port(offset: u16) -> u16 {
    let first = 18_000 + u16::try_from(std::process::id() % 8_000).expect("small") + offset;
    let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (first..first + 100).find(free).expect("one of a hundred ports is free")
}

#[test]
fn the_same_port_can_be_taken_again_at_once() {
    let port = quiet_port(0).to_string();
    let start = || Server::start_by(&mut gustnado::command(&["--port", &port]));
    let mut server = start();
    assert!(server.get("/").starts_with("HTTP/1.1 200 "));
    let held = server.connect();
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0), "{:#?}", server.seen);
    assert!(start().get("/").starts_with("HTTP/1.1 200 "));
    drop(held);
}

#[test]
fn while_draining_newcomers_are_not_taken() {
    let mut download = download("20s", quiet_port(100));
    download.server.signal(Signal::TERM);
    download.server.line_with("draining: ");
    let until = Instant::now() + PATIENCE;
    let address = download.server.address.clone();
    while TcpStream::connect(&address).is_ok() {
        assert!(Instant::now() < until, "the listener stayed open");
        std::thread::sleep(Duration::from_millis(20));
    }
    download.server.signal(Signal::QUIT);
    assert_eq!(download.server.wait(), Some(131));
}

#[test]
fn usr1_opens_the_access_log_anew_and_the_end_writes_all_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, old) = (folder.path().join("access.log"), folder.path().join("access.log.1"));
    let log = path.to_str().expect("UTF-8");
    let flags = ["--access-log", log, "--access-log-format", "%(m)s %(U)s %(s)s"];
    let mut server = Server::start(&flags);
    server.get("/one");
    std::fs::rename(&path, &old).expect("moved away");
    server.signal(Signal::USR1);
    let started = Instant::now();
    while !path.exists() {
        assert!(started.elapsed() < PATIENCE, "it was not created again");
        std::thread::sleep(Duration::from_millis(5));
    }
    server.get("/two");
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0), "{:#?}", server.seen);
    let lines = |path| std::fs::read_to_string(path).expect("a log");
    assert_eq!((&*lines(&old), &*lines(&path)), ("GET /one 404\n", "GET /two 404\n"));
}

/// A write past `RLIMIT_FSIZE` raises SIGXFSZ, which ends a process that says nothing about it.
#[test]
fn a_limit_on_the_size_of_files_costs_lines_of_the_log_and_no_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let log = path.to_str().expect("UTF-8");
    let flags = ["--access-log", log, "--access-log-format", "%(U)s %(s)s"];
    let mut server = Server::start_by(&mut gustnado::limited("-f 1", &flags));
    for _ in 0..500 {
        assert!(server.get("/a-path-of-some-length").starts_with("HTTP/1.1 404 "));
    }
    // (It is written a quarter of a second later.)
    std::thread::sleep(Duration::from_millis(400));
    assert!(server.get("/").starts_with("HTTP/1.1 200 "));
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0), "{:#?}", server.seen);
    let bytes = std::fs::metadata(&path).expect("a log").len();
    assert!((1..=1024).contains(&bytes), "{bytes} bytes of log");
}
