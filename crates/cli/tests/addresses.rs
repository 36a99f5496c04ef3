//! Messages about addresses: those that cannot be listened on, and those that are.

mod gustnado;

use gustnado::{Server, command, ended};
use rustix::process::Signal;

#[track_caller]
fn refused(args: &[&str], code: i32, line: &str) {
    let found = ended(&mut command(args));
    assert_eq!(found.code, Some(code), "{found:?}");
    assert_eq!(found.stderr.lines().count(), 1, "one line: {found:?}");
    assert!(found.stderr.contains(line), "expected {line:?} in {found:?}");
}

#[test]
fn an_address_that_lacks_something_says_what() {
    for (address, line) in [
        (":8012", "write 127.0.0.1:8012 for this machine alone, 0.0.0.0:8012 for every interface"),
        ("127.0.0.1", "add the port: 127.0.0.1:8080"),
        ("8012", "write 127.0.0.1:8012, or use --port 8012"),
        ("127.0.0.1:99999", "ports end at 65535"),
        ("/run/site.sock", "write unix:/run/site.sock for a Unix socket"),
    ] {
        refused(&["serve", "--listen", address], 2, line);
    }
    let network = ["serve", "--forwarded-allow-ips", "10.0.0.0/33"];
    refused(&network, 2, "found \"10.0.0.0/33\"; leave it out for none");
    let twice = "127.0.0.1:8012,127.0.0.1:8012";
    refused(&["serve", "--listen", twice], 78, "cannot listen on 127.0.0.1:8012 twice");
}

#[test]
fn a_unix_socket_that_cannot_be_made_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file.txt");
    std::fs::write(&file, "kept").expect("written");
    let path = file.to_str().expect("UTF-8");
    refused(&["serve", "--uds", path], 78, "a file that is no socket is there; remove ");
    assert_eq!(std::fs::read(&file).expect("it is there"), b"kept");
    let nowhere = folder.path().join("none/x.sock");
    let line = format!("create it with `mkdir -p {}`", folder.path().join("none").display());
    refused(&["serve", "--uds", nowhere.to_str().expect("UTF-8")], 1, &line);
    refused(&["serve", "--host", "192.0.2.1"], 1, "no interface of this machine has that address");
}

#[test]
fn an_inherited_socket_is_shown_by_its_address() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let number = std::os::fd::AsRawFd::as_raw_fd(&listener);
    rustix::io::fcntl_setfd(&listener, rustix::io::FdFlags::empty()).expect("it is ours");
    let inherited = format!("fd:{number}");
    let mut server =
        Server::start_by(command(&["serve", "--listen", &inherited]).args::<_, &str>([]));
    assert_eq!(server.address, address);
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0));
    let all = server.seen.join("\n");
    assert!(!all.contains("draining") && all.contains("no connection was cut"), "{all}");
}

#[test]
fn more_workers_than_processors_are_remarked_upon() {
    let mut server = Server::start(&["serve", "--workers", "200", "--slots", "8"]);
    server.line_with("200 workers on ");
}
