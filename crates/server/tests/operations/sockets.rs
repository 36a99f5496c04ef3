//! Where a server listens: free and given ports, IPv6, Unix sockets, and what it says when it
//! cannot.

use std::fs;
use std::net::{IpAddr, Ipv6Addr, TcpListener};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use gustnado::StartError;
use gustnado::config::Config;

use crate::harness::client::get;
use crate::harness::folder::noise;
use crate::harness::{Client, Folder, Server, Setup, wait_until};

on_every_server!(
    a_free_port_is_found_and_told,
    a_given_port_is_used,
    ipv6_is_served,
    a_name_is_looked_up,
    a_unix_socket_is_served,
    a_unix_socket_carries_big_files_and_half_closes,
    a_unix_socket_is_removed_at_the_end,
    a_socket_that_listens_already_is_served,
    an_inherited_unix_socket_keeps_its_file,
    a_stale_unix_socket_is_replaced,
    a_unix_socket_in_use_is_left_alone,
    a_file_where_the_unix_socket_should_be_is_left_alone,
    a_port_in_use_is_one_clear_line,
    an_address_that_is_not_ours_is_one_clear_line,
    a_missing_root_is_one_clear_line,
    a_silent_client_is_accepted_in_the_end,
    without_deferring_a_silent_client_is_accepted_in_its_turn,
);

fn a_free_port_is_found_and_told(setup: Setup) {
    let (one, two) = (setup.default_site(), setup.default_site());
    assert_ne!(one.address().port(), 0);
    assert_ne!(one.address(), two.address());
    for server in [&one, &two] {
        assert_eq!(server.running().addresses().len(), 1);
        assert_eq!(server.get("/").status, 200);
    }
}

fn a_given_port_is_used(setup: Setup) {
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = free.local_addr().expect("its address");
    drop(free);
    let server = Server::start(Config { port: address.port(), ..setup.config() });
    assert_eq!(server.address(), address);
    assert_eq!(Client::connect(address).get("/").status, 200);
}

fn ipv6_is_served(setup: Setup) {
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        return; // a machine without IPv6
    }
    let server = Server::start(Config { host: "::1".to_owned(), ..setup.config() });
    assert_eq!(server.address().ip(), IpAddr::V6(Ipv6Addr::LOCALHOST));
    let told = server.running().addresses()[0].to_string();
    assert!(told.starts_with("[::1]:"), "{told}");
    let mut client = server.connect();
    for _ in 0..3 {
        assert_eq!(client.get("/").status, 200);
    }
}

fn a_name_is_looked_up(setup: Setup) {
    let server = Server::start(Config { host: "localhost".to_owned(), ..setup.config() });
    assert!(server.address().ip().is_loopback());
    assert_eq!(server.get("/").status, 200);
}

/// A server on a Unix socket of that path.
fn on_socket(setup: Setup, path: &Path) -> Config {
    Config { uds: Some(path.to_owned()), ..setup.config() }
}

fn a_unix_socket_is_served(setup: Setup) {
    let folder = Folder::new();
    let path = folder.path("gust.sock");
    let server = Server::start(on_socket(setup, &path));
    let told = server.running().addresses()[0].to_string();
    assert_eq!(told, format!("unix:{}", path.display()));
    let mut clients: Vec<_> = (0..20).map(|_| Client::connect_unix(&path)).collect();
    for _ in 0..3 {
        for client in &mut clients {
            assert_eq!(client.get("/").status, 200);
        }
    }
    let mut bad = Client::connect_unix(&path);
    assert_eq!(bad.ask("BAD\r\n\r\n").status, 400);
    bad.expect_end("a bad request");
    drop((clients, bad));
    server.wait_until_empty();
}

fn a_unix_socket_carries_big_files_and_half_closes(setup: Setup) {
    let folder = Folder::new();
    // Who sends no more gives no more window.
    let content = noise(1, if Setup::is_http2() { 1_000_000 } else { 3_000_000 });
    folder.file("big.bin", &content);
    let path = folder.outside().join("gust.sock");
    let root = Some(folder.root());
    let server = Server::start(Config { root, ..on_socket(setup, &path) });
    let mut client = Client::connect_unix(&path);
    client.send(get("/big.bin").repeat(2));
    client.shut_write();
    for _ in 0..2 {
        assert!(client.read_answer().body == content, "another body came");
    }
    client.expect_end("the last answer");
    assert_eq!(server.running().drain(Duration::from_secs(5)).cut, 0);
}

fn a_unix_socket_is_removed_at_the_end(setup: Setup) {
    let folder = Folder::new();
    let path = folder.path("gust.sock");
    for drains in [true, false] {
        let server = Server::start(on_socket(setup, &path));
        assert!(path.exists());
        if drains {
            assert_eq!(server.running().drain(Duration::from_secs(5)).cut, 0);
        }
        server.stop();
        assert!(!path.exists(), "the socket is left behind (drained: {drains})");
    }
}

fn a_socket_that_listens_already_is_served(setup: Setup) {
    let theirs = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = theirs.local_addr().expect("its address");
    let listen = vec![format!("fd:{}", theirs.as_raw_fd())];
    let server = Server::start(Config { listen: listen.clone(), ..setup.config() });
    assert_eq!(server.running().addresses()[0].to_string(), listen[0]);
    let mut clients: Vec<_> = (0..20).map(|_| Client::connect(address)).collect();
    for _ in 0..3 {
        for client in &mut clients {
            assert_eq!(client.get("/").status, 200);
        }
    }
    drop(clients);
    server.wait_until_empty();
    server.stop();
    // It goes on listening for whoever has it: connections wait there, and nobody is refused.
    let server = Server::start(Config { listen, ..setup.config() });
    assert_eq!(Client::connect(address).get("/").status, 200);
    drop(server);
}

fn an_inherited_unix_socket_keeps_its_file(setup: Setup) {
    let folder = Folder::new();
    let path = folder.path("gust.sock");
    let theirs = UnixListener::bind(&path).expect("the folder is writable");
    let listen = vec![format!("fd:{}", theirs.as_raw_fd())];
    let server = Server::start(Config { listen, ..setup.config() });
    assert_eq!(Client::connect_unix(&path).get("/").status, 200);
    server.stop();
    assert!(path.exists(), "it is not ours");
}

fn a_stale_unix_socket_is_replaced(setup: Setup) {
    let folder = Folder::new();
    let path = folder.path("gust.sock");
    drop(UnixListener::bind(&path).expect("a socket that nobody serves any more"));
    assert!(path.exists());
    let _server = Server::start(on_socket(setup, &path));
    assert_eq!(Client::connect_unix(&path).get("/").status, 200);
}

/// Why the server does not start: one line that names `what`, for the exit code of a failure.
fn refusal(config: Config, what: &str) -> StartError {
    let Err(error) = gustnado::start(config) else { panic!("it started: {what}") };
    let line = error.to_string();
    assert!(line.contains(what), "{what} is not named: {line}");
    assert!(!line.contains('\n') && line.len() < 400, "not one clear line: {line}");
    error
}

fn a_unix_socket_in_use_is_left_alone(setup: Setup) {
    let folder = Folder::new();
    let path = folder.path("gust.sock");
    let server = Server::start(on_socket(setup, &path));
    let error = refusal(on_socket(setup, &path), "gust.sock");
    assert_eq!(error.exit_code(), 1);
    assert_eq!(Client::connect_unix(&path).get("/").status, 200, "the first goes on");
    drop(server);
}

fn a_file_where_the_unix_socket_should_be_is_left_alone(setup: Setup) {
    let folder = Folder::new();
    let path = folder.file("gust.sock", "precious");
    refusal(on_socket(setup, &path), "gust.sock");
    assert_eq!(fs::read(&path).expect("the file is still there"), b"precious");
}

fn a_port_in_use_is_one_clear_line(setup: Setup) {
    let other = TcpListener::bind("127.0.0.1:0").expect("a port of someone else");
    let port = other.local_addr().expect("its address").port();
    let error = refusal(Config { port, ..setup.config() }, &port.to_string());
    assert_eq!(error.exit_code(), 1);
    let ours = setup.default_site();
    let port = ours.address().port();
    let error = refusal(Config { port, ..setup.config() }, &port.to_string());
    assert_eq!(error.exit_code(), 1, "not even beside one of its own kind");
    assert_eq!(ours.get("/").status, 200);
}

fn an_address_that_is_not_ours_is_one_clear_line(setup: Setup) {
    // 192.0.2.0/24 belongs to nobody (RFC 5737).
    let error = refusal(Config { host: "192.0.2.1".to_owned(), ..setup.config() }, "192.0.2.1");
    assert_eq!(error.exit_code(), 1);
}

fn a_missing_root_is_one_clear_line(setup: Setup) {
    let folder = Folder::new();
    let file = folder.file("a.txt", "no folder");
    for root in [folder.path("nowhere"), file] {
        let name = root.file_name().expect("a name").to_string_lossy().into_owned();
        refusal(Config { root: Some(root), ..setup.config() }, &name);
    }
}

fn a_silent_client_is_accepted_in_the_end(setup: Setup) {
    if Setup::plain_only("a client of TLS is not silent") {
        return;
    }
    let server = Server::start(Config { workers: 1, ..setup.config() });
    let began = Instant::now();
    let mut silent = server.connect();
    assert_eq!(server.get("/").status, 200);
    let accepted = server.stats().connections_accepted;
    // The kernel keeps it back for a second, so what comes later is first.
    assert!(accepted == 1 || began.elapsed() > Duration::from_millis(900), "{accepted}");
    wait_until("it is accepted", || server.stats().connections_accepted == 2);
    assert_eq!(silent.get("/").status, 200);
}

fn without_deferring_a_silent_client_is_accepted_in_its_turn(setup: Setup) {
    let server = Server::start(Config { workers: 1, defer_accept: false, ..setup.config() });
    let silent = server.connect();
    assert_eq!(server.get("/").status, 200);
    assert_eq!(server.stats().connections_accepted, 2);
    drop(silent);
}
