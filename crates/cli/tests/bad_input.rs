//! Each mistake is one clear line on standard error and the right exit code, never a backtrace.

mod gustnado;

use gustnado::{Ended, command, ended};
use std::net::TcpListener;

#[track_caller]
fn refused(found: &Ended, code: i32, line: &str) {
    assert_eq!(found.code, Some(code), "{found:?}");
    assert_eq!(found.stderr.lines().count(), 1, "one line: {found:?}");
    assert!(found.stderr.contains(line), "expected {line:?} in {found:?}");
    assert!(!found.stderr.contains("panicked"), "{found:?}");
}

#[test]
fn a_wrong_command_line_exits_2() {
    for (args, line) in [
        (&["serve", "--prot", "80"][..], "--prot: no such flag; did you mean --port?"),
        (
            &["--port", "eighty"],
            "--port: expected a whole number from 0 to 65535, found \"eighty\"",
        ),
        (&["--scheduler", "qeue"], "found \"qeue\"; did you mean queue?"),
        (&["--io", "iocp"], "expected one of auto, uring, epoll, found \"iocp\""),
        (&["--header-timeout", "soon"], "expected a duration such as 30s, 5m or 500ms"),
        (&["--limit-head-bytes", "64k"], "from 256 to 65535, found \"64k\""),
        (&["--hidden=perhaps"], "--hidden: expected true or false, found \"perhaps\""),
        (&["--host", "http://x"], "--host: expected a host name or an IP address"),
        (&["--server-name", "a\nb"], "--server-name: expected visible ASCII text"),
        (&["./a", "b"], "b: one folder is all that can be served"),
        (&["run", "--workers", "4", "main:app"], "run is in the Python package: `pip install"),
        (&["srve", "./public"], "did you mean gustnado serve ./public?"),
        (&["srve"], "did you mean gustnado serve?"),
        (&["completion", "bash"], "it is `gustnado completions SHELL`"),
        (&["completions", "cmd"], "expected bash, elvish, fish, powershell or zsh, found \"cmd\""),
        (&["completions"], "expected bash, elvish, fish, powershell or zsh, found nothing"),
        (&["man", "dance"], "man dance: no such command"),
        (&["9000"], "to listen on that port: --port 9000"),
        (&["--daemon"], "--daemon: no such flag: that is the service manager's work"),
        (&["--threads", "4"], "--threads: no such flag; here it is --workers N"),
        (&["doctor", "x"], "x"),
        (&["check", "--port", "-1"], "--port"),
    ] {
        refused(&ended(&mut command(args)), 2, line);
    }
}

#[test]
fn a_wrong_variable_exits_78() {
    for (name, value, line) in [
        ("GUSTNADO_PORT", "eighty", "GUSTNADO_PORT: expected a whole number from 0 to 65535"),
        ("PORT", "eighty", "PORT: expected a whole number from 0 to 65535"),
        ("GUSTNADO_IO", "urin", "did you mean uring?"),
        ("GUSTNADO_CACHE_BYTES", "much", "GUSTNADO_CACHE_BYTES: expected a size such as"),
    ] {
        refused(&ended(command(&["serve"]).env(name, value)), 78, line);
        refused(&ended(command(&["check"]).env(name, value)), 78, line);
    }
}

#[test]
fn proxy_headers_from_nobody_in_particular_exit_78() {
    let line = "--proxy-protocol: expected the proxies whose PROXY header is believed, found none; \
                set --proxy-allow-from 10.0.0.1";
    refused(&ended(&mut command(&["serve", "--port", "0", "--proxy-protocol"])), 78, line);
    let mut by_variable = command(&["serve", "--port", "0"]);
    refused(&ended(by_variable.env("GUSTNADO_PROXY_PROTOCOL", "true")), 78, line);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("site.toml");
    std::fs::write(&file, "port = 0\nproxy-protocol = true\n").expect("written");
    let path = file.to_str().expect("UTF-8");
    refused(&ended(&mut command(&["serve", "--config", path])), 78, line);
}

#[test]
fn a_wrong_folder_exits_78() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("page.html");
    std::fs::write(&file, "x").expect("written");
    let missing = folder.path().join("none");
    let serve = |path: &std::path::Path| {
        ended(command(&["serve", "--port", "0", path.to_str().expect("UTF-8")]).arg("--quiet"))
    };
    refused(&serve(&missing), 78, "no such folder; create it with `mkdir -p");
    refused(&serve(&file), 78, "not a folder; to serve the folder it is in, give");
}

#[test]
fn a_port_in_use_exits_1_and_says_which() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("bound").port().to_string();
    let found = ended(&mut command(&["serve", "--port", &port]));
    refused(&found, 1, &format!("127.0.0.1:{port}"));
    assert!(found.stderr.contains("--port"), "{found:?}");
}

#[test]
fn an_unknown_host_is_one_line() {
    let found = ended(&mut command(&["serve", "--host", "no-such-host.invalid", "--port", "0"]));
    assert!(matches!(found.code, Some(1 | 78)), "{found:?}");
    assert!(found.stderr.contains("no-such-host.invalid"), "{found:?}");
    assert_eq!(found.stderr.lines().count(), 1, "{found:?}");
}

#[test]
fn an_address_of_another_machine_exits_1() {
    let found = ended(&mut command(&["serve", "--host", "192.0.2.1", "--port", "0"]));
    refused(&found, 1, "192.0.2.1");
}

#[test]
fn a_unix_socket_in_a_missing_folder_exits_1() {
    let found = ended(&mut command(&["serve", "--uds", "/no/such/folder/socket"]));
    refused(&found, 1, "/no/such/folder/socket");
}
