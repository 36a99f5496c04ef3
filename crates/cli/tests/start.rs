//! The lines printed at the start, and their truth.

mod gustnado;

use gustnado::{Server, command};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

#[test]
fn port_0_is_printed_as_the_port_that_it_became() {
    let server = Server::start(&["serve"]);
    let port = server.address.rsplit(':').next().expect("a port");
    assert_ne!(port, "0");
    assert!(server.get("/").starts_with("HTTP/1.1 200 "));
}

#[test]
fn the_banner_names_engine_scheduler_and_workers() {
    let mut server = Server::start(&["serve", "--scheduler", "queue", "--workers", "2"]);
    let line = server.line_with("engine");
    assert!(line.contains("scheduler queue, 2 workers"), "{line}");
    server.line_with("stop");
}

#[test]
fn nothing_but_flags_serves_the_built_in_page_and_its_counters() {
    let server = Server::start(&[]);
    let page = server.get("/");
    assert!(page.contains("<title>Gustnado is running</title>"), "{page}");
    let stats = server.get("/stats.json");
    assert!(stats.contains("Content-Type: application/json"), "{stats}");
    let counted = stats.split("\"requests\":").nth(1).expect("a counter");
    let counted = counted.split(|byte: char| !byte.is_ascii_digit()).next();
    let counted: u64 = counted.and_then(|digits| digits.parse().ok()).expect("a number");
    assert!(counted >= 1, "{stats}");
    for name in ["uptime_ms", "connections_open", "cpu_ms", "memory_bytes", "backend", "scheduler"]
    {
        assert!(stats.contains(&format!("\"{name}\":")), "{name} in {stats}");
    }
}

#[test]
fn a_folder_alone_is_served() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("hello.txt"), "hello from a file").expect("written");
    let server = Server::start(&[folder.path().to_str().expect("UTF-8")]);
    assert!(server.get("/hello.txt").ends_with("\r\n\r\nhello from a file"));
    assert!(server.get("/none").starts_with("HTTP/1.1 404 "));
}

#[test]
fn settings_from_the_environment_count() {
    let mut command = command(&["--port", "0"]);
    let server = Server::start_by(command.env("GUSTNADO_SERVER_NAME", "breeze"));
    assert!(server.get("/").contains("\r\nServer: breeze\r\n"));
}

#[test]
fn quiet_prints_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("socket");
    let path = socket.to_str().expect("UTF-8");
    let mut quiet = command(&["serve", "--quiet", "--uds", path]);
    let mut child = quiet.stderr(std::process::Stdio::piped()).spawn().expect("it starts");
    let until = Instant::now() + gustnado::PATIENCE;
    while UnixStream::connect(&socket).is_err() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    let id = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    let id = id.expect("a process id");
    rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("our child");
    let mut text = String::new();
    let mut stderr = child.stderr.take().expect("piped");
    let watchdog = std::thread::spawn(move || {
        stderr.read_to_string(&mut text).expect("UTF-8");
        text
    });
    while !watchdog.is_finished() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("our child, if it is still there");
    assert_eq!(child.wait().expect("our child").code(), Some(0));
    assert_eq!(watchdog.join().expect("read"), "");
}

#[test]
fn a_unix_socket_is_listened_on_instead_of_a_port() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("socket");
    let path = socket.to_str().expect("UTF-8");
    let server = Server::start_by(&mut command(&["serve", "--uds", path]));
    assert_eq!(server.address, path);
    let mut stream = UnixStream::connect(&socket).expect("it listens");
    stream.set_read_timeout(Some(gustnado::PATIENCE)).expect("a bound");
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[test]
fn statistics_are_printed_now_and_then_on_every_engine() {
    for io in ["uring", "epoll"] {
        for scheduler in ["pool", "pool-shared", "queue", "queue-shared"] {
            let setup = ["--io", io, "--scheduler", scheduler, "--stats-interval", "50ms"];
            let mut server = Server::start(&setup);
            server.line_with("event=stats ");
            assert!(server.get("/").starts_with("HTTP/1.1 200 "));
            let line = server.line_with(" requests=1 ");
            let started = line.starts_with("event=stats requests_per_s=");
            assert!(started && line.contains(" connections_accepted=1 "), "{setup:?}: {line}");
            for field in line.split(' ') {
                let (name, value) = field.split_once('=').expect("logfmt: name=value");
                let is_number = value.parse::<u64>().is_ok();
                assert!(is_number || name == "event", "{setup:?}: {line}");
            }
        }
    }
}
