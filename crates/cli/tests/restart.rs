//! Restart at once: however a server ended, the next one gets its port. And a server that is being
//! started obeys a signal that ends it.

mod gustnado;

use gustnado::{PATIENCE, command};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A server process that does not outlive its test.
struct Process(Child);

impl Process {
    fn start(args: &[&str]) -> Self {
        Self(command(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts"))
    }

    /// Its lines, up to the one that says where it listens; all of them if it never does.
    fn lines_to_start(&mut self) -> (bool, Vec<String>) {
        let stderr = self.0.stderr.as_mut().expect("piped");
        let mut seen = Vec::new();
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            seen.push(line);
            if seen.last().is_some_and(|line| line.contains(" listens on ")) {
                return (true, seen);
            }
        }
        (false, seen)
    }

    /// Waits until a signal does not end it at once any more.
    fn wait_for_handler_of(&self, signal: Signal) {
        let began = Instant::now();
        loop {
            let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()));
            let status = status.expect("it is our child");
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t"));
            let caught = u64::from_str_radix(caught.expect("a mask"), 16).expect("hexadecimal");
            if caught >> (signal.as_raw() - 1) & 1 == 1 {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "it has no handler of {signal:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        kill_process(id.expect("it has a process id"), signal).expect("it is our child");
    }

    /// Waits for its end, and loses no time over it.
    fn wait(&mut self) -> ExitStatus {
        self.0.wait().expect("it is our child")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A free port below those that the kernel gives to others by itself. Each test that needs one has
/// its own hundred, beginning at `offset`.
fn quiet_port(offset: u16) -> u16 {
    let first = 10_000 + u16::try_from(std::process::id() % 7_000).expect("small") + offset;
    let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (first..first + 100).find(free).expect("one of a hundred ports is free")
}

/// Ends a server with open connections, and starts the next one, again and again.
fn restart(io: &str, signal: Signal, rounds: usize, port: u16) {
    const CONNECTIONS: usize = 200;
    let args = ["--io", io, "--workers", "2", "--port", &port.to_string()].map(str::to_owned);
    let args = args.each_ref().map(String::as_str);
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let mut server = Process::start(&args);
    for round in 0..=rounds {
        let (listens, seen) = server.lines_to_start();
        assert!(listens, "{io}, {signal:?}, start {round}: {seen:#?}");
        let connect = |_| TcpStream::connect_timeout(&address, PATIENCE).expect("it listens");
        let mut open: Vec<_> = (0..CONNECTIONS).map(connect).collect();
        for stream in &mut open {
            stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
        }
        let mut first = [0; 12];
        open[0].set_read_timeout(Some(PATIENCE)).expect("a bound");
        open[0].read_exact(&mut first).expect("answered");
        assert_eq!(&first, b"HTTP/1.1 200");
        server.signal(signal);
        server.wait();
        if round < rounds {
            server = Process::start(&args);
        }
        drop(open);
    }
}

const SIGNALS: [Signal; 3] = [Signal::TERM, Signal::QUIT, Signal::KILL];

#[test]
fn the_next_server_gets_the_port_however_the_last_one_ended() {
    for (io, offset) in [("epoll", 0), ("uring", 100)] {
        for signal in SIGNALS {
            restart(io, signal, 2, quiet_port(offset));
        }
    }
}

#[test]
#[ignore = "takes minutes; the one above is a part of it"]
fn a_hundred_of_a_hundred_next_servers_get_the_port() {
    for (io, offset) in [("epoll", 200), ("uring", 300)] {
        for signal in SIGNALS {
            restart(io, signal, 100, quiet_port(offset));
            println!("{io}, {signal:?}: 100 of 100");
        }
    }
}

#[test]
fn a_port_that_another_server_serves_is_refused_at_once() {
    let holder = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = holder.local_addr().expect("it is bound").port().to_string();
    let began = Instant::now();
    let ended = gustnado::ended(&mut command(&["--port", &port]));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains(&port), "{}", ended.stderr);
    // 200 ms, and the start of a process.
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

/// A port whose holder resets every connection, as a server does that is ending; and a count of
/// them.
fn reset_all(is_over: Arc<AtomicBool>) -> (u16, Receiver<()>) {
    let (came, comes) = channel();
    let holder = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = holder.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        while !is_over.load(Ordering::SeqCst) {
            drop(holder.accept());
            // The test may be over.
            let _ = came.send(());
        }
    });
    (port, comes)
}

#[test]
fn a_start_that_waits_for_its_port_obeys_int() {
    for (signal, code) in [(Signal::INT, 0), (Signal::TERM, 0), (Signal::QUIT, 131)] {
        let is_over = Arc::new(AtomicBool::new(false));
        let (port, comes) = reset_all(Arc::clone(&is_over));
        let mut server = Process::start(&["--port", &port.to_string()]);
        comes.recv_timeout(PATIENCE).expect("it looks who holds the port");
        let began = Instant::now();
        server.signal(signal);
        assert_eq!(server.wait().code(), Some(code), "{signal:?}");
        // (It would wait for the port for two seconds.)
        assert!(began.elapsed() < Duration::from_millis(1_900), "{:?}", began.elapsed());
        is_over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", port));
    }
}

// (By TERM: in the background of a shell INT is ignored, and a server that begins that way ignores
// it until its own handler is set.)
#[test]
fn a_start_of_many_workers_obeys_a_signal() {
    for io in ["epoll", "uring"] {
        for wait_ms in [0, 30, 100] {
            let port = quiet_port(400).to_string();
            let mut server = Process::start(&["--io", io, "--workers", "1024", "--port", &port]);
            server.wait_for_handler_of(Signal::TERM);
            std::thread::sleep(Duration::from_millis(wait_ms));
            let began = Instant::now();
            server.signal(Signal::TERM);
            let status = server.wait();
            assert_eq!(status.code(), Some(0), "{io}, after {wait_ms} ms: {status}");
            let took = began.elapsed();
            assert!(took < Duration::from_secs(5), "{io}, after {wait_ms} ms: {took:?}");
        }
    }
}
