//! The access log at the start: what is refused, and a socket whose peers have no address.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use gustnado::Server;

#[test]
fn a_peer_of_a_unix_socket_has_no_address() {
    let folder = tempfile::tempdir().expect("a folder");
    let (socket, log) = (folder.path().join("socket"), folder.path().join("access.log"));
    let server = Server::new().uds(&socket).access_log(&log).access_log_format("%(h)s %(s)s");
    let running = server.quiet(true).start().expect("it starts");
    let mut stream = UnixStream::connect(&socket).expect("it listens");
    let request = b"GET /none HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(request).expect("sent");
    stream.read_to_end(&mut Vec::new()).expect("answered");
    running.stop();
    assert_eq!(std::fs::read_to_string(&log).expect("a log"), "unix: 404\n");
}

#[test]
fn what_is_wrong_is_said_before_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("access.log");
    let start = |path: PathBuf, format: &str| {
        let server = Server::new().port(0).access_log(path).access_log_format(format);
        let error = server.start().expect_err("it cannot start");
        assert_eq!(error.exit_code(), 78);
        error.to_string()
    };
    assert_eq!(
        start(log.clone(), "%(h)s %(status)s"),
        "--access-log-format: expected an atom such as %(h)s or %({host}i)s, or %% for a percent \
         sign, at position 7, found \"%(status)s\"; did you mean %(s)s?"
    );
    let nowhere = folder.path().join("no/such/folder/access.log");
    let said = start(nowhere.clone(), "common");
    assert!(said.starts_with(&format!("--access-log {}: cannot be written", nowhere.display())));
    // A check makes nothing, but sees a wrong format even where the log is off.
    let wrong = Server::new().access_log_format("comon").check().expect_err("no format");
    assert!(wrong.to_string().ends_with("did you mean common?"), "{wrong}");
    let fine = Server::new().access_log(log.clone());
    fine.check().expect("nothing is wrong");
    assert!(!log.exists());
}
