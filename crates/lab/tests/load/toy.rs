//! A toy server on threads: it does what a test sets, also what no server should.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;

/// The toy's reaction to a request.
pub(crate) enum Reply {
    /// Sends these bytes.
    Bytes(Vec<u8>),
    /// Sends these bytes and closes.
    Last(Vec<u8>),
    /// Resets the connection.
    Reset,
    /// Never responds.
    Silence,
}

/// A request as the toy sees it.
pub(crate) struct Asked {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// Number of requests before it, on all connections.
    pub(crate) number: u64,
}

impl Asked {
    pub(crate) fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }
}

pub(crate) struct Toy {
    pub(crate) address: SocketAddr,
    pub(crate) requests: Arc<AtomicU64>,
    pub(crate) connections: Arc<AtomicU64>,
}

impl Toy {
    /// Serves until the test process ends.
    pub(crate) fn start(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::with_room(usize::MAX, answer)
    }

    /// One that accepts so many connections, and leaves all others to its backlog.
    pub(crate) fn with_room(
        most: usize,
        answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let (requests, connections) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let answer = Arc::new(answer);
        let (counted, opened) = (Arc::clone(&requests), Arc::clone(&connections));
        thread::spawn(move || {
            for stream in listener.incoming().flatten().take(most) {
                opened.fetch_add(1, Ordering::Relaxed);
                let (answer, counted) = (Arc::clone(&answer), Arc::clone(&counted));
                thread::spawn(move || serve(stream, &*answer, &counted));
            }
            // The listener stays, and so do those who wait at it.
            loop {
                thread::park();
            }
        });
        Self { address, requests, connections }
    }

    /// Starts one that responds to each request with 200 and `hello`.
    pub(crate) fn friendly() -> Self {
        Self::start(|_| Reply::Bytes(ok("hello")))
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn seen(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    pub(crate) fn opened(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }
}

/// A response with a length.
pub(crate) fn ok(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn serve(mut stream: TcpStream, answer: &dyn Fn(&Asked) -> Reply, counted: &AtomicU64) {
    stream.set_nodelay(true).expect("it is a TCP socket");
    let mut bytes = Vec::new();
    loop {
        let Some(mut asked) = next(&mut stream, &mut bytes) else { return };
        asked.number = counted.fetch_add(1, Ordering::Relaxed);
        match answer(&asked) {
            Reply::Bytes(bytes) => {
                if stream.write_all(&bytes).is_err() {
                    return;
                }
            }
            Reply::Last(bytes) => {
                _ = stream.write_all(&bytes);
                return;
            }
            Reply::Reset => {
                set_socket_linger(&stream, Some(Duration::ZERO)).expect("it is a socket");
                return;
            }
            Reply::Silence => thread::sleep(Duration::from_secs(30)),
        }
    }
}

/// Reads one request, body included.
fn next(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<Asked> {
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        read_more(stream, bytes)?;
    };
    let head: Vec<u8> = bytes.drain(..end).collect();
    let head = String::from_utf8(head).expect("requests of these tests are text");
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let length: usize = length.map_or(0, |length| length.parse().expect("it is a number"));
    while bytes.len() < length {
        read_more(stream, bytes)?;
    }
    Some(Asked { head, body: bytes.drain(..length).collect(), number: 0 })
}

fn read_more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<()> {
    let mut more = [0; 4096];
    match stream.read(&mut more) {
        Ok(0) | Err(_) => None,
        Ok(count) => {
            bytes.extend_from_slice(&more[..count]);
            Some(())
        }
    }
}
