//! The access log: a line for each request, whatever became of it.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use gustnado::config::Config;
use gustnado::task::sleep;
use gustnado::{Request, Response, Routes, Server as Builder, StartError};
use tempfile::TempDir;

use crate::harness::client::{get, post, request};
use crate::harness::{Client, Folder, Server, Setup, wait_until};

on_every_server!(
    pipelined_requests_are_written_in_their_order,
    files_are_written_with_the_bytes_that_were_sent,
    handlers_and_streams_are_written_at_their_end,
    bodies_do_not_change_what_is_written,
    refusals_are_written_with_what_is_known,
    a_client_that_leaves_is_written_with_what_it_got,
    a_client_that_waits_no_longer_has_no_status,
    nothing_that_is_sent_forges_a_line,
    every_atom_has_its_value,
    clients_of_a_proxy_have_their_own_addresses,
    a_file_that_was_moved_away_is_made_anew,
    a_full_disk_costs_lines_and_nothing_else,
    a_graceful_stop_loses_no_line,
    a_stop_at_once_writes_what_was_cut,
    a_reload_changes_the_log_of_open_connections,
);

/// Where a test's server writes its log.
pub(crate) struct Log {
    folder: TempDir,
}

impl Log {
    pub(crate) fn new() -> Self {
        Self { folder: TempDir::new().expect("a temporary folder") }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("access.log")
    }

    pub(crate) fn config(&self, setup: Setup, format: &str) -> Config {
        Config {
            access_log: Some(self.path()),
            access_log_format: format.to_owned(),
            ..setup.patient_config()
        }
    }

    fn lines(&self) -> Vec<String> {
        lines_of(&self.path())
    }

    /// Waits for so many lines, and no more.
    pub(crate) fn wait_for(&self, count: usize) -> Vec<String> {
        wait_until(&format!("{count} lines"), || self.lines().len() >= count);
        let lines = self.lines();
        assert_eq!(lines.len(), count, "{lines:#?}");
        lines
    }
}

/// The whole lines of a file.
fn lines_of(path: &Path) -> Vec<String> {
    let text = fs::read(path).expect("the log");
    let text = String::from_utf8(text).expect("a log is UTF-8");
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(str::to_owned).collect()
}

fn pipelined_requests_are_written_in_their_order(setup: Setup) {
    let log = Log::new();
    let routes = Routes::new().get("/", |request: &Request| request.path().into_owned());
    let server = Server::routes(log.config(setup, "%(q)s %(s)s %(B)s"), routes);
    let mut client = server.connect();
    let all: String = (0..300).map(|number| get(&format!("/?{number}"))).collect();
    client.send(&all);
    for _ in 0..300 {
        assert_eq!(client.read_answer().text(), "/");
    }
    let expected: Vec<String> = (0..300).map(|number| format!("{number} 200 1")).collect();
    assert_eq!(log.wait_for(300), expected);
}

fn files_are_written_with_the_bytes_that_were_sent(setup: Setup) {
    let (log, folder) = (Log::new(), Folder::new());
    folder.file("small", "0123456789");
    folder.file("large", vec![b'x'; 3 << 20]);
    let config =
        Config { root: Some(folder.root()), ..log.config(setup, "%(r)s %(s)s %(B)s %(b)s") };
    let server = Server::start(config);
    let mut client = server.connect();
    let tag = client.get("/small").expect_field("etag").to_owned();
    client.get("/large");
    client.get("/none");
    client.send(request("HEAD", "/large", ""));
    client.read_head();
    client.ask(request("GET", "/large", "Range: bytes=5-14\r\n"));
    client.ask(request("GET", "/large", "Range: bytes=0-1999999\r\n"));
    client.send(request("GET", "/small", &format!("If-None-Match: {tag}\r\n")));
    client.read_head();
    let lines: Vec<_> =
        log.wait_for(7).iter().map(|line| line.replace(Setup::protocol(), "HTTP/1.1")).collect();
    let missing = lines[2].strip_prefix("GET /none HTTP/1.1 404 ").expect("the third");
    let (all, again) = missing.split_once(' ').expect("two numbers");
    assert!(all == again && all.parse::<u64>().is_ok_and(|bytes| bytes > 0), "{missing}");
    assert_eq!(lines[0], "GET /small HTTP/1.1 200 10 10");
    assert_eq!(lines[1], "GET /large HTTP/1.1 200 3145728 3145728");
    assert_eq!(lines[3], "HEAD /large HTTP/1.1 200 0 -");
    assert_eq!(lines[4], "GET /large HTTP/1.1 206 10 10");
    assert_eq!(lines[5], "GET /large HTTP/1.1 206 2000000 2000000");
    assert_eq!(lines[6], "GET /small HTTP/1.1 304 0 -");
}

fn numbers(pause: Duration) -> Response {
    let (appender, response) = Response::append(4);
    let appending = gustnado_tasks::spawn(async move {
        for number in 0..3 {
            appender.append(format!("{number},")).await.expect("the client reads");
            sleep(pause).await;
        }
    });
    drop(appending.expect("a task slot is free"));
    response
}

/// Two bytes again and again.
fn endless() -> Response {
    let (appender, response) = Response::append(4);
    let appending = gustnado_tasks::spawn(async move {
        while appender.append("..").await.is_ok() {
            sleep(Duration::from_millis(5)).await;
        }
    });
    drop(appending.expect("a task slot is free"));
    response
}

fn handlers_and_streams_are_written_at_their_end(setup: Setup) {
    let log = Log::new();
    let routes = Routes::new()
        .get("/inline", |_: &Request| "inline")
        .get("/long", |_: &Request| vec![b'x'; 200_000])
        .get("/task", async |_: Request| {
            sleep(Duration::from_millis(30)).await;
            "task"
        })
        .get("/stream", async |_: Request| numbers(Duration::from_millis(20)))
        .get("/panic", async |_: Request| -> &'static str { panic!("on purpose") });
    let server = Server::routes(log.config(setup, "%(U)s %(H)s %(s)s %(B)s %(M)s"), routes);
    let mut client = server.connect();
    for target in ["/inline", "/long", "/task", "/stream", "/panic", "/none"] {
        client.get(target);
    }
    let lines: Vec<_> =
        log.wait_for(6).iter().map(|line| line.replace(Setup::protocol(), "HTTP/1.1")).collect();
    let took = |place: usize, start: &str| {
        let millis = lines[place].strip_prefix(start).unwrap_or_else(|| panic!("{}", lines[place]));
        millis.trim_start().parse::<u64>().expect("milliseconds")
    };
    took(0, "/inline HTTP/1.1 200 6");
    took(1, "/long HTTP/1.1 200 200000");
    assert!(took(2, "/task HTTP/1.1 200 4") >= 29);
    assert!(took(3, "/stream HTTP/1.1 200 6") >= 39, "till its end: {}", lines[3]);
    assert!(lines[4].starts_with("/panic HTTP/1.1 500 "), "{}", lines[4]);
    assert!(lines[5].starts_with("/none HTTP/1.1 404 "), "{}", lines[5]);
    if Setup::is_http2() {
        return;
    }
    server.connect().ask("GET /stream HTTP/1.0\r\n\r\n");
    assert!(log.wait_for(7)[6].starts_with("/stream HTTP/1.0 200 6 "));
}

fn bodies_do_not_change_what_is_written(setup: Setup) {
    let log = Log::new();
    let routes = Routes::new()
        .post("/inline", |_: &Request| "inline")
        .post("/task", async |mut request: Request| {
            request
                .body_mut()
                .bytes(1 << 20)
                .await
                .map(|bytes| bytes.len().to_string())
                .unwrap_or_default()
        })
        .post("/ignored", async |_: Request| "ignored");
    let server = Server::routes(log.config(setup, "%(m)s %(U)s %(s)s %(B)s"), routes);
    let mut client = server.connect();
    let body = "y".repeat(100_000);
    for path in ["/inline", "/task", "/ignored"] {
        assert_eq!(client.ask(post(path, "short")).status, 200);
        assert_eq!(client.ask(post(path, &body)).status, 200);
    }
    let fields = "Content-Length: 5\r\nExpect: 100-continue\r\n";
    client.send(request("POST", "/task", fields));
    assert_eq!(client.read_head().status, 100);
    client.send("short");
    assert_eq!(client.read_answer().text(), "5");
    let lines = log.wait_for(7);
    let expected = [
        "POST /inline 200 6",
        "POST /inline 200 6",
        "POST /task 200 1",
        "POST /task 200 6",
        "POST /ignored 200 7",
        "POST /ignored 200 7",
        "POST /task 200 1",
    ];
    assert_eq!(lines, expected);
}

fn refusals_are_written_with_what_is_known(setup: Setup) {
    if Setup::http1_only("what is malformed ends its stream, and is in no log") {
        return;
    }
    let log = Log::new();
    let config = Config {
        limit_target_bytes: 64,
        limit_header_fields: 8,
        limit_body_bytes: 100,
        header_timeout: Duration::from_millis(200),
        ..log.config(setup, "%(h)s \"%(r)s\" %(m)s %(U)s %(s)s")
    };
    let routes = Routes::new().post("/", async |mut request: Request| {
        request
            .body_mut()
            .bytes(1 << 20)
            .await
            .map(|bytes| bytes.len().to_string())
            .unwrap_or_default()
    });
    let server = Server::routes(config, routes);
    let many = "X: 1\r\n".repeat(9);
    let name = "a".repeat(70);
    for (sent, line) in [
        ("GET / \r\nHost: x\r\n\r\n".to_owned(), "\"GET / \" GET / 400"),
        ("GET /a HTTP/1.1\r\n\r\n".to_owned(), "\"GET /a HTTP/1.1\" GET /a 400"),
        (get(&format!("/{name}")), &*format!("\"GET /{name} HTTP/1.1\" GET /{name} 414")),
        (request("GET", "/b", &many), "\"GET /b HTTP/1.1\" GET /b 431"),
        ("GET /c HTTP/3.0\r\nHost: x\r\n\r\n".to_owned(), "\"GET /c HTTP/3.0\" GET /c 505"),
        (request("POST", "/", "Content-Length: 101\r\n"), "\"POST / HTTP/1.1\" POST / 413"),
        ("GET /d HT".to_owned(), "\"-\" - - 408"),
        ("GET /e HTTP/1.1\r\nHo".to_owned(), "\"GET /e HTTP/1.1\" GET /e 408"),
    ] {
        let before = log.lines().len();
        server.ask(&sent);
        let lines = log.wait_for(before + 1);
        assert_eq!(lines[before], format!("127.0.0.1 {line}"), "{sent:?}");
    }
}

fn a_client_that_leaves_is_written_with_what_it_got(setup: Setup) {
    let (log, folder) = (Log::new(), Folder::new());
    folder.hollow("huge", 256 << 20);
    let config = Config { root: Some(folder.root()), ..log.config(setup, "%(U)s %(s)s %(B)s") };
    let server = Server::start(config);
    let mut client = Client::connect_narrow(server.address());
    client.send(get("/huge"));
    client.read_head();
    client.take(100_000).expect("a part of it");
    client.reset();
    let lines = log.wait_for(1);
    let bytes = lines[0].strip_prefix("/huge 200 ").expect("its status is known");
    let bytes: u64 = bytes.parse().expect("a number");
    assert!((100_000..256 << 20).contains(&bytes), "{bytes}");
}

fn a_client_that_waits_no_longer_has_no_status(setup: Setup) {
    let log = Log::new();
    let config = Config {
        half_close_timeout: Duration::from_millis(50),
        ..log.config(setup, "%(U)s %(s)s %(b)s")
    };
    let routes = Routes::new().get("/", async |_: Request| {
        sleep(Duration::from_mins(1)).await;
        "never"
    });
    let server = Server::routes(config, routes);
    let mut client = server.connect();
    client.send(get("/"));
    client.hang_up();
    assert_eq!(log.wait_for(1), ["/ - -"]);
}

fn nothing_that_is_sent_forges_a_line(setup: Setup) {
    let log = Log::new();
    let server = Server::start(log.config(setup, "%(u)s \"%(r)s\" \"%(f)s\" \"%(a)s\""));
    // "a\r\nb c\"" and a password
    let fields =
        b"Authorization: Basic YQ0KYiBjIjpw\r\nReferer: \" - \\\"\r\nUser-Agent: \t\xff\xc3\xa9";
    let sent = [b"GET /'%0d%0a HTTP/1.1\r\nHost: x\r\n", &fields[..], b"\r\n\r\n"].concat();
    server.ask(&sent);
    let expected = r#"a\x0d\x0ab\x20c\" "GET /'%0d%0a HTTP/1.1" "\" - \\\"" "\xff\xc3\xa9""#;
    assert_eq!(log.wait_for(1), [expected.replace("HTTP/1.1", Setup::protocol())]);
    if Setup::is_http2() {
        // What is malformed ends its stream, and is in no log.
        return;
    }
    server.ask(b"GET /\x00\x1b[31m\x7f\" 200 HTTP/1.1\r\nHost: x\r\n\r\n");
    let expected = r#"- "GET /\x00\x1b[31m\x7f\" 200 HTTP/1.1" "-" "-""#;
    assert_eq!(log.wait_for(2)[1], expected);
    server.ask(b"\x16\x03\x01\r\rGET / HTTP/1.1\r\n\r\n");
    let expected = r#"- "\x16\x03\x01\x0d\x0dGET / HTTP/1.1" "-" "-""#;
    assert_eq!(log.wait_for(3)[2], expected);
    server.stop();
    assert_eq!(log.lines().len(), 3);
}

fn every_atom_has_its_value(setup: Setup) {
    let log = Log::new();
    let format = "%(h)s|%(l)s|%(u)s|%(t)s|%(r)s|%(m)s|%(U)s|%(q)s|%(H)s|%(s)s|%(B)s|%(b)s|%(f)s|\
                  %(a)s|%(T)s|%(M)s|%(D)s|%(L)s|%(p)s|%({x-trace}i)s|%({Content-Type}o)s|\
                  %({GUSTNADO_NOT_SET}e)s|%%";
    let routes = Routes::new().get("/a", async |_: Request| {
        sleep(Duration::from_millis(10)).await;
        "hello"
    });
    let server = Server::routes(log.config(setup, format), routes);
    let fields = "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\nReferer: http://r/\r\n\
                  User-Agent: me\r\nX-Trace: 17\r\n";
    server.ask(request("GET", "/a?b=c", fields));
    let lines = log.wait_for(1);
    let values: Vec<&str> = lines[0].split('|').collect();
    assert_eq!(values[..3], ["127.0.0.1", "-", "Aladdin"]);
    let (time, shape) = (values[3], "[00/Xxx/0000:00:00:00 +0000]");
    let is_like = |(one, like): (char, char)| match like {
        '0' => one.is_ascii_digit(),
        'X' | 'x' => one.is_ascii_alphabetic(),
        like => one == like,
    };
    assert!(time.len() == shape.len() && time.chars().zip(shape.chars()).all(is_like), "{time}");
    let protocol = Setup::protocol();
    let line = format!("GET /a?b=c {protocol}");
    assert_eq!(values[4..10], [&*line, "GET", "/a", "b=c", protocol, "200"]);
    assert_eq!(values[10..14], ["5", "5", "http://r/", "me"]);
    let number = |place: usize| values[place].parse::<u64>().expect("a number");
    let (secs, millis, micros) = (number(14), number(15), number(16));
    assert!(micros >= 9_000 && millis == micros / 1_000 && secs == micros / 1_000_000);
    assert_eq!(values[17], format!("{secs}.{:06}", micros % 1_000_000));
    assert_eq!(values[18], format!("<{}>", std::process::id()));
    assert_eq!(values[19..], ["17", "text/plain; charset=utf-8", "-", "%"]);
}

fn clients_of_a_proxy_have_their_own_addresses(setup: Setup) {
    let log = Log::new();
    let config = Config {
        forwarded_allow_ips: vec!["127.0.0.1".to_owned()],
        ..log.config(setup, "%(h)s %(U)s")
    };
    let server = Server::start(config);
    let mut client = server.connect();
    let asks = [("/one", "192.0.2.9"), ("/two", "1.1.1.1, 2001:db8::9"), ("/three", "unknown")];
    for (path, from) in asks {
        client.send(request("GET", path, &format!("X-Forwarded-For: {from}\r\n")));
        client.read_answer();
    }
    client.get("/four");
    client.send("nonsense\r\n\r\n");
    client.read_answer();
    let mut expected = vec![
        "192.0.2.9 /one",
        "2001:db8::9 /two",
        "127.0.0.1 /three",
        "127.0.0.1 /four",
        "127.0.0.1 -",
    ];
    if Setup::is_http2() {
        // What is malformed ends its stream, and is in no log.
        expected.pop();
    }
    assert_eq!(log.wait_for(expected.len()), expected);
}

fn a_file_that_was_moved_away_is_made_anew(setup: Setup) {
    let log = Log::new();
    let server = Server::start(log.config(setup, "%(U)s %(s)s"));
    let mut client = server.connect();
    client.get("/one");
    log.wait_for(1);
    let old = log.folder.path().join("access.log.1");
    fs::rename(log.path(), &old).expect("moved away");
    client.get("/two");
    wait_until("the old file is written on", || lines_of(&old).len() == 2);
    server.running().reopen_logs().expect("made anew");
    client.get("/three");
    assert_eq!(log.wait_for(1), ["/three 404"]);
    assert_eq!(lines_of(&old), ["/one 404", "/two 404"]);
    fs::remove_file(log.path()).expect("removed");
    fs::create_dir(log.path()).expect("a folder in its place");
    let error = server.running().reopen_logs().expect_err("a folder is no log");
    assert!(matches!(error, StartError::AccessLog { .. }), "{error}");
    assert_eq!(client.get("/four").status, 404);
}

fn a_full_disk_costs_lines_and_nothing_else(setup: Setup) {
    let is_there = fs::metadata("/dev/full").is_ok_and(|it| it.file_type().is_char_device());
    if !is_there {
        return eprintln!("skipped: there is no /dev/full");
    }
    let config = Config {
        access_log: Some("/dev/full".into()),
        access_log_format: "json".to_owned(),
        ..setup.patient_config()
    };
    let server = Server::start(config);
    let mut client = server.connect();
    for _ in 0..500 {
        assert_eq!(client.get("/").status, 200);
    }
    server.wait_until("all lines are lost", |stats| stats.log_lines_lost == 500);
}

fn a_graceful_stop_loses_no_line(setup: Setup) {
    let log = Log::new();
    let server = Server::start(log.config(setup, "%(q)s"));
    let address = server.address();
    let clients: Vec<_> = (0..4)
        .map(|client| {
            thread::spawn(move || {
                let mut connection = Client::connect(address);
                for number in 0..250 {
                    connection.get(&format!("/?{client}.{number}"));
                }
            })
        })
        .collect();
    for client in clients {
        client.join().expect("all answers came");
    }
    let report = server.running().drain(Duration::from_secs(5));
    assert_eq!(report.cut, 0);
    let mut lines = log.lines();
    assert_eq!((lines.len() as u64, server.stats().requests), (1000, 1000));
    lines.sort();
    lines.dedup();
    assert_eq!((lines.len(), server.stats().log_lines_lost), (1000, 0));
}

fn a_stop_at_once_writes_what_was_cut(setup: Setup) {
    let log = Log::new();
    let routes = Routes::new().get("/stream", async |_: Request| endless());
    let server = Server::routes(log.config(setup, "%(U)s %(s)s %(B)s"), routes);
    let mut client = server.connect();
    client.get("/");
    client.send(get("/stream"));
    client.read_head();
    // (What has come means that the piece before it was counted.)
    client.take(3 * "2\r\n..\r\n".len()).expect("three pieces");
    server.stop();
    let lines = log.lines();
    assert_eq!(lines.len(), 2, "{lines:?}");
    let bytes = lines[1].strip_prefix("/stream 200 ").expect("its status is known");
    let bytes: u64 = bytes.parse().expect("a number");
    assert!(bytes >= 4 && bytes.is_multiple_of(2), "content and no framing: {bytes}");
}

fn a_reload_changes_the_log_of_open_connections(setup: Setup) {
    let (log, other) = (Log::new(), Log::new());
    let server = Server::start(log.config(setup, "%(U)s"));
    let mut client = server.connect();
    let reload = |config: Config| {
        server.running().reload(Builder::new().config(config)).map(|reloaded| reloaded.changed)
    };
    client.get("/one");
    log.wait_for(1);
    reload(log.config(setup, "%(m)s %(U)s")).expect("another format");
    client.get("/two");
    reload(setup.patient_config()).expect("none");
    client.get("/three");
    reload(other.config(setup, "%(U)s")).expect("another file");
    client.get("/four");
    let error = reload(other.config(setup, "%(x)s")).expect_err("no format");
    assert!(matches!(error, StartError::AccessLogFormat(_)), "{error}");
    client.get("/five");
    drop(server);
    assert_eq!(log.lines(), ["/one", "GET /two"]);
    assert_eq!(other.lines(), ["/four", "/five"]);
}
