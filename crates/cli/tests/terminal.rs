//! Output on a terminal: lines for requests, lists of folders, bold headings.

mod gustnado;

use gustnado::{PATIENCE, command};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server whose standard error is a terminal, and the terminal's other end.
struct Seen {
    child: Child,
    terminal: File,
    text: String,
    address: String,
}

fn terminal() -> (File, File) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).expect("a terminal");
    grantpt(&master).expect("it is ours");
    unlockpt(&master).expect("it is ours");
    let name = ptsname(&master, Vec::new()).expect("it has a name");
    let path = name.to_str().expect("UTF-8").to_owned();
    let slave = OpenOptions::new().read(true).write(true).open(path).expect("it opens");
    (File::from(master), slave)
}

impl Seen {
    fn start(args: &[&str]) -> Self {
        Self::start_by(command(args).args(["--port", "0", "--io", "epoll"]))
    }

    fn start_by(command: &mut Command) -> Self {
        let (terminal, slave) = terminal();
        let child = command.stdout(Stdio::null()).stderr(slave).spawn().expect("it starts");
        let mut seen = Self { child, terminal, text: String::new(), address: String::new() };
        seen.read_to(" stop ");
        let place = seen.text.split("listens on http://").nth(1).expect("an address");
        seen.address = place.split('/').next().expect("an address").to_owned();
        seen
    }

    /// Reads until the text holds `part`.
    fn read_to(&mut self, part: &str) {
        let until = Instant::now() + PATIENCE;
        let mut bytes = [0; 4096];
        while !self.text.contains(part) {
            assert!(Instant::now() < until, "no {part:?} in {:?}", self.text);
            let read = self.terminal.read(&mut bytes).expect("what it shows");
            self.text.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
    }

    fn get(&self, path: &str) -> String {
        let mut stream = self.connect();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        answer
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a bound");
        stream
    }

    /// Sends so many requests, a hundred at a time on one connection, and reads the responses.
    fn send_many(&self, count: usize) {
        let mut stream = self.connect();
        let one = self.get("/hello.txt").replace("Connection: close\r\n", "").len();
        let mut bytes = [0; 4096];
        for _ in 0..count / 100 {
            ask_often(&mut stream, "/hello.txt", 100);
            let mut left = 100 * one;
            while left > 0 {
                let read = stream.read(&mut bytes).expect("answered");
                assert!(read > 0, "the server has closed");
                left -= read;
            }
        }
    }

    fn end(&mut self) -> Option<i32> {
        let id = i32::try_from(self.child.id()).expect("ids are small");
        let id = rustix::process::Pid::from_raw(id).expect("never 0");
        rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it is ours");
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait().expect("it is ours") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ask_often(stream: &mut TcpStream, path: &str, times: usize) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").repeat(times);
    stream.write_all(request.as_bytes()).expect("sent");
}

fn folder() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("hello.txt"), "Hello!\n").expect("written");
    let path = folder.path().to_str().expect("UTF-8").to_owned();
    (folder, path)
}

#[test]
fn each_request_is_a_line_on_a_terminal() {
    let (_folder, path) = folder();
    let mut seen = Seen::start(&[&path]);
    seen.get("/hello.txt?a=b");
    // Lines of two workers may come in any order.
    seen.read_to("/hello.txt?a=b");
    seen.get("/none%1b[2J");
    seen.read_to("/none");
    seen.read_to(" ms\r\n");
    let line = seen.text.lines().find(|line| line.contains("/hello.txt")).expect("a line");
    let words: Vec<&str> = line.split_whitespace().collect();
    let [time, "GET", "/hello.txt?a=b", "200", "7", "B", took, "ms"] = words[..] else {
        panic!("{line}");
    };
    assert!(time.len() == "08:49:37Z".len() && time.ends_with('Z'), "{line}");
    assert!(took.parse::<f64>().is_ok_and(|took| took < 5_000.0), "{line}");
    assert_eq!(seen.end(), Some(0));
}

#[test]
fn no_request_is_shown_to_who_wants_quiet_or_another_log() {
    let (folder, path) = folder();
    let log = folder.path().join("log");
    for args in [&["--access-log", log.to_str().expect("UTF-8")][..], &["--access-log="]] {
        let mut seen = Seen::start(&[&[path.as_str()], args].concat());
        seen.get("/hello.txt");
        assert_eq!(seen.end(), Some(0));
        seen.read_to("no connection was cut");
        assert!(!seen.text.contains("/hello.txt"), "{}", seen.text);
    }
    let piped = gustnado::Server::start(&[&path]);
    piped.get("/hello.txt");
    piped.signal(rustix::process::Signal::TERM);
    let mut piped = piped;
    assert_eq!(piped.wait(), Some(0));
    assert!(piped.seen.iter().all(|line| !line.contains("/hello.txt")), "{:?}", piped.seen);
}

#[test]
fn a_flood_of_requests_is_cut_short_and_counted() {
    let (_folder, path) = folder();
    let mut seen = Seen::start(&[&path]);
    seen.send_many(2_000);
    seen.read_to(" more requests");
    assert!(seen.text.matches("/hello.txt").count() < 1_000, "{}", seen.text);
    assert_eq!(seen.end(), Some(0));
}

#[test]
fn a_terminal_that_nobody_reads_stops_no_request() {
    let (_folder, path) = folder();
    let mut seen = Seen::start(&[&path]);
    // Ctrl-S; and then far more lines than any terminal holds.
    seen.terminal.write_all(b"\x13").expect("typed");
    seen.send_many(20_000);
    assert!(seen.get("/hello.txt").ends_with("Hello!\n"));
    let started = Instant::now();
    assert_eq!(seen.end(), Some(0), "no connection was cut");
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    drop(seen);
}

#[test]
fn a_folder_without_index_is_listed_on_a_terminal_only() {
    let (_folder, path) = folder();
    let seen = Seen::start(&[&path]);
    assert!(seen.get("/").contains("<a href=\"hello.txt\">"), "{}", seen.get("/"));
    for args in [&["--listing=off"][..], &["--host", "0.0.0.0"]] {
        let seen = Seen::start(&[&[path.as_str()], args].concat());
        let answer = seen.get("/");
        assert!(answer.starts_with("HTTP/1.1 404 ") && answer.contains("--listing"), "{answer}");
    }
    let piped = gustnado::Server::start(&[&path]);
    assert!(piped.get("/").starts_with("HTTP/1.1 404 "));
    let piped = gustnado::Server::start(&[&path, "--listing"]);
    assert!(piped.get("/").contains("<a href=\"hello.txt\">"));
}
