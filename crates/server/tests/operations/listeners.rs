//! Listeners with settings of their own: PROXY headers, Unix sockets' files and abstract names,
//! IPv6 only and both families, addresses to come, interfaces.

use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr as UnixAddr, UnixStream};

use gustnado::{Endpoint, Routes, Running, StartError};

use crate::harness::link::Wire;
use crate::harness::{Client, Folder, PATIENCE, Setup};

on_every_server!(
    each_listener_has_its_own_rule_about_proxies,
    a_reload_changes_the_rule_of_a_listener,
    an_abstract_socket_is_served_and_leaves_nothing,
    a_unix_socket_has_the_mode_and_the_owner_that_are_set,
    ipv6_alone_or_both_families,
    an_address_that_is_yet_to_come_can_be_listened_on,
    a_listener_can_be_bound_to_an_interface,
    settings_that_do_not_fit_are_one_clear_line,
);

const HEADER: &str = "PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n";

fn routes() -> Routes {
    Routes::new().get("/", |request: &gustnado::Request| {
        request.peer().map(|peer| peer.to_string()).unwrap_or_default()
    })
}

fn start(setup: Setup, listeners: &[&str]) -> Result<Running, StartError> {
    let server = gustnado::Server::new().config(setup.config()).routes(routes());
    server.listen_on(listeners).start()
}

fn started(setup: Setup, listeners: &[&str]) -> Running {
    let running = start(setup, listeners).expect("the server starts");
    setup.assert_backend(running.backend(), running.notes());
    running
}

fn port(running: &Running, place: usize) -> u16 {
    match &running.addresses()[place] {
        Endpoint::Tcp(address) => address.port(),
        other => panic!("{other} has no port"),
    }
}

/// What comes back until the end, for these bytes on a connection of their own.
fn answer(stream: impl Into<Wire>, before: &str) -> String {
    let request = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let mut client = Client::over(stream);
    client.send(format!("{before}{request}"));
    String::from_utf8_lossy(&client.read_to_end()).into_owned()
}

fn tcp(host: &str, port: u16) -> TcpStream {
    let address: SocketAddr = format!("{host}:{port}").parse().expect("an address");
    TcpStream::connect_timeout(&address, PATIENCE).expect("it listens")
}

fn each_listener_has_its_own_rule_about_proxies(setup: Setup) {
    if Setup::plain_only("the header comes before the handshake") {
        return;
    }
    let own = "127.0.0.1:0 proxy-protocol proxy-allow-from=127.0.0.0/8";
    let stranger = "127.0.0.1:0 proxy-protocol proxy-allow-from=192.0.2.9";
    let running = started(setup, &["127.0.0.1:0", own, stranger]);
    let of = |place, before| answer(tcp("127.0.0.1", port(&running, place)), before);
    assert!(of(0, "").contains("\r\n\r\n127.0.0.1:"));
    assert!(of(0, HEADER).starts_with("HTTP/1.1 400 "));
    assert!(of(1, HEADER).ends_with("\r\n\r\n192.0.2.1:56324"));
    assert!(of(1, "").starts_with("HTTP/1.1 400 "));
    assert!(of(2, HEADER).starts_with("HTTP/1.1 403 "));
}

fn a_reload_changes_the_rule_of_a_listener(setup: Setup) {
    if Setup::plain_only("the header comes before the handshake") {
        return;
    }
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = free.local_addr().expect("its address").to_string();
    drop(free);
    let proxied = format!("{address} proxy-protocol proxy-allow-from=*");
    let running = started(setup, &[&proxied]);
    assert!(answer(tcp("127.0.0.1", port(&running, 0)), HEADER).contains("192.0.2.1:56324"));
    let plain = gustnado::Server::new().config(setup.config()).routes(routes());
    let reloaded = running.reload(plain.clone().listen_on(&[&address])).expect("it is valid");
    assert_eq!((reloaded.opened.len(), reloaded.kept.len()), (0, 0), "{reloaded:?}");
    assert!(answer(tcp("127.0.0.1", port(&running, 0)), "").contains("\r\n\r\n127.0.0.1:"));
    let other = format!("{address} backlog=7");
    let reloaded = running.reload(plain.listen_on(&[&other])).expect("it is valid");
    assert_eq!(reloaded.kept, ["listen"]);
}

fn an_abstract_socket_is_served_and_leaves_nothing(setup: Setup) {
    let name = format!("gustnado-{}-{setup:?}", std::process::id());
    let listen = format!("unix:@{}", name.replace(' ', ""));
    let name = listen.trim_start_matches("unix:@");
    let running = started(setup, &[&listen]);
    assert_eq!(running.addresses()[0].to_string(), listen);
    let address = UnixAddr::from_abstract_name(name).expect("a name");
    let stream = UnixStream::connect_addr(&address).expect("it listens");
    assert!(answer(stream, "").starts_with("HTTP/1.1 200 "));
    running.stop();
    assert!(UnixStream::connect_addr(&address).is_err(), "it is gone");
    started(setup, &[&listen]).stop();
}

fn a_unix_socket_has_the_mode_and_the_owner_that_are_set(setup: Setup) {
    let folder = Folder::new();
    let path = |name: &str| folder.root().join(name);
    let own = format!("unix:{} mode=640", path("own").display());
    let usual = format!("unix:{}", path("with\\ blank").display());
    let is_root = rustix::process::geteuid().is_root();
    let owner = if is_root { "nobody:daemon" } else { "" };
    let server = gustnado::Server::new().config(setup.config()).routes(routes());
    let server = server.uds_mode("606").uds_owner(owner).listen_on(&[&own, &usual]);
    let running = server.start().expect("the server starts");
    for (name, mode) in [("own", 0o640), ("with blank", 0o606)] {
        let found = std::fs::metadata(path(name)).expect("it is there");
        assert_eq!(found.permissions().mode() & 0o777, mode, "{name}");
        if is_root {
            assert_eq!((found.uid(), found.gid()), (65_534, 1), "{name}");
        } else {
            eprintln!("skipped: only root can give a socket to another user");
        }
        let stream = UnixStream::connect(path(name)).expect("it listens");
        assert!(answer(stream, "").starts_with("HTTP/1.1 200 "));
    }
    running.stop();
    assert!(!path("own").exists());
}

fn ipv6_alone_or_both_families(setup: Setup) {
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        return eprintln!("skipped: a machine without IPv6");
    }
    let alone = started(setup, &["[::]:0 v6only"]);
    // The same port of IPv4 may be another test's, but hardly three times in a row.
    let others = [(); 2].map(|()| started(setup, &["[::]:0 v6only"]));
    let refuses = |one| TcpStream::connect(("127.0.0.1", port(one, 0))).is_err();
    assert!(refuses(&alone) || others.iter().any(refuses), "IPv4 is not its");
    assert!(answer(tcp("[::1]", port(&alone, 0)), "").starts_with("HTTP/1.1 200 "));
    let both = started(setup, &["[::]:0 v6only=false"]);
    for host in ["[::1]", "127.0.0.1"] {
        assert!(answer(tcp(host, port(&both, 0)), "").starts_with("HTTP/1.1 200 "), "{host}");
    }
    let shared = port(&both, 0);
    both.stop();
    let pair = [format!("0.0.0.0:{shared}"), format!("[::]:{shared} v6only")];
    let pair = started(setup, &[&pair[0], &pair[1]]);
    assert_eq!(pair.addresses().len(), 2);
}

fn an_address_that_is_yet_to_come_can_be_listened_on(setup: Setup) {
    assert!(start(setup, &["192.0.2.77:0"]).is_err(), "no interface has it");
    let running = started(setup, &["192.0.2.77:0 freebind", "127.0.0.1:0"]);
    assert!(running.addresses()[0].to_string().starts_with("192.0.2.77:"));
    assert!(answer(tcp("127.0.0.1", port(&running, 1)), "").starts_with("HTTP/1.1 200 "));
}

fn a_listener_can_be_bound_to_an_interface(setup: Setup) {
    let running = started(setup, &["0.0.0.0:0 device=lo"]);
    assert!(answer(tcp("127.0.0.1", port(&running, 0)), "").starts_with("HTTP/1.1 200 "));
    let none = start(setup, &["0.0.0.0:0 device=none0"]).map(drop).expect_err("no such one");
    assert!(none.to_string().contains("`ip link` lists"), "{none}");
}

fn settings_that_do_not_fit_are_one_clear_line(setup: Setup) {
    let line = |listen: &str| {
        let error = start(setup, &[listen]).map(drop).expect_err(listen);
        assert_eq!(error.exit_code(), 78, "{listen}");
        error.to_string()
    };
    assert!(line("127.0.0.1:0 mode=660").contains("mode is of a Unix socket with a path"));
    assert!(line("127.0.0.1:0 proxy-protocol").contains("--proxy-allow-from"));
    assert!(line("unix:/x owner=no-such").contains("expected a user and a group"));
}
