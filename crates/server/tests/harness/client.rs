//! A client that sends raw bytes and reads answers. Every wait ends.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use super::answer::{Answer, Length};
use super::link::{Link, Wire};
use super::{PATIENCE, TransportKind, tcp_table, wait_until};

/// A plain request for a target.
pub(crate) fn get(target: &str) -> String {
    request("GET", target, "")
}

/// A request without a body. `fields` are whole lines, each with its line end.
pub(crate) fn request(method: &str, target: &str, fields: &str) -> String {
    format!("{method} {target} HTTP/1.1\r\nHost: gust.example\r\n{fields}\r\n")
}

/// A POST request with a body of a type.
pub(crate) fn post_of(path: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let fields = format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", body.len());
    [request("POST", path, &fields).as_bytes(), body].concat()
}

/// The same in chunks of a few bytes.
pub(crate) fn post_chunked(path: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let fields = format!("Content-Type: {kind}\r\nTransfer-Encoding: chunked\r\n");
    let mut sent = request("POST", path, &fields).into_bytes();
    for piece in body.chunks(7) {
        sent.extend(format!("{:x}\r\n", piece.len()).into_bytes());
        sent.extend(piece);
        sent.extend(b"\r\n");
    }
    sent.extend(b"0\r\n\r\n");
    sent
}

/// A request that posts a body and says its length.
pub(crate) fn post(path: &str, body: &str) -> String {
    request("POST", path, &format!("Content-Length: {}\r\n", body.len())) + body
}

/// How a connection ended where an answer, or more of one, was due.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// In order, with so many bytes of an answer received.
    Closed(usize),
    /// By a reset, with so many bytes of an answer received.
    Reset(usize),
    /// Without the alert that ends a connection by TLS in order (RFC 8446 §6.1).
    Cut(usize),
}

impl End {
    /// How many bytes of the answer came before the end.
    pub(crate) fn received(&self) -> usize {
        match self {
            Self::Closed(bytes) | Self::Reset(bytes) | Self::Cut(bytes) => *bytes,
        }
    }
}

/// One connection to a server.
pub(crate) struct Client {
    link: Link,
    unread: Vec<u8>,
}

impl Client {
    /// Connects over TCP.
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&address, PATIENCE).expect("a connection");
        Self::over(stream)
    }

    /// Connects to another server, which has no TLS.
    pub(crate) fn connect_plain(address: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&address, PATIENCE).expect("a connection");
        Self::speaking(stream.into(), Link::plain)
    }

    /// Connects over TCP where the server may not accept it yet.
    pub(crate) fn connect_early(address: SocketAddr) -> Self {
        Self::early_over(TcpStream::connect_timeout(&address, PATIENCE).expect("a connection"))
    }

    /// Connects over TCP with room for a few kilobytes only, so that an answer soon fills it.
    pub(crate) fn connect_narrow(address: SocketAddr) -> Self {
        Self::connect_narrow_from(1, address)
    }

    /// The same from the address 127.0.0.`host`.
    pub(crate) fn connect_narrow_from(host: u8, address: SocketAddr) -> Self {
        let socket = Self::socket();
        sockopt::set_socket_recv_buffer_size(&socket, 8192).expect("a small buffer");
        Self::bound(socket, host, address)
    }

    /// Connects over TCP from the address 127.0.0.`host`: as another client.
    pub(crate) fn connect_from(host: u8, address: SocketAddr) -> Self {
        Self::bound(Self::socket(), host, address)
    }

    fn bound(socket: std::os::fd::OwnedFd, host: u8, address: SocketAddr) -> Self {
        rustix::net::bind(&socket, &SocketAddr::from(([127, 0, 0, host], 0))).expect("our own");
        rustix::net::connect(&socket, &address).expect("a connection");
        Self::over(TcpStream::from(socket))
    }

    /// A TCP socket that is not connected yet.
    pub(crate) fn socket() -> std::os::fd::OwnedFd {
        // Not left to the processes that other tests start meanwhile.
        let (family, kind, flags) = (AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC);
        rustix::net::socket_with(family, kind, flags, None).expect("a socket")
    }

    /// Speaks over a connection that exists.
    pub(crate) fn over(stream: impl Into<Wire>) -> Self {
        Self::speaking(stream.into(), |wire| Link::over(wire, false))
    }

    /// The same on a connection that the server may not accept yet: a handshake of TLS is not
    /// waited for. Over TLS, what is sent leaves when the client reads.
    pub(crate) fn early_over(stream: TcpStream) -> Self {
        Self::speaking(stream.into(), |wire| Link::over(wire, true))
    }

    fn speaking(wire: Wire, speak: impl FnOnce(Wire) -> Link) -> Self {
        wire.set_read_timeout(PATIENCE);
        wire.set_write_timeout(PATIENCE);
        if let Wire::Tcp(stream) = &wire {
            stream.set_nodelay(true).expect("small pieces leave at once");
        }
        Self { link: speak(wire), unread: Vec::new() }
    }

    /// Connects over a Unix socket.
    pub(crate) fn connect_unix(path: &Path) -> Self {
        Self::over(UnixStream::connect(path).expect("a connection"))
    }

    /// The addresses of both ends: its own, and the server's.
    pub(crate) fn ends(&self) -> (SocketAddr, SocketAddr) {
        let stream = self.link.wire().tcp();
        let (own, server) = (stream.local_addr(), stream.peer_addr());
        (own.expect("it is connected"), server.expect("it is connected"))
    }

    /// A second handle of this connection, to send while this one reads.
    pub(crate) fn second_handle(&self) -> Self {
        Self { link: self.link.second_handle(), unread: Vec::new() }
    }

    /// Sends bytes; the server must take them.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.write_all(bytes.as_ref()).expect("the server takes the bytes");
    }

    /// Sends bytes to a server that may close before it has taken them all.
    pub(crate) fn send_unless_closed(&mut self, bytes: impl AsRef<[u8]>) {
        match self.write_all(bytes.as_ref()) {
            Err(error) if !is_close(&error) => panic!("neither taken nor closed: {error}"),
            _ => {}
        }
    }

    /// Waits until the server has read what was sent.
    pub(crate) fn wait_until_read(&self) {
        let (own, server) = self.ends();
        wait_until("the server has read all", || tcp_table::is_all_read(own, server));
    }

    /// Sends bytes in two pieces, with time for the server to see the first alone.
    pub(crate) fn send_cut(&mut self, bytes: &[u8], at: usize) {
        self.send(&bytes[..at]);
        thread::sleep(Duration::from_millis(1));
        self.send(&bytes[at..]);
    }

    /// Sends `bytes` again and again until the server takes no more for 300 ms, or `bytes_max`
    /// are sent. Returns how many were.
    pub(crate) fn send_until_blocked(&mut self, bytes: &[u8], bytes_max: usize) -> usize {
        self.link.wire().set_write_timeout(Duration::from_millis(300));
        let mut sent = 0;
        while sent < bytes_max {
            match self.link.write(&bytes[sent % bytes.len()..]) {
                Ok(count) => sent += count,
                Err(error) if is_timeout(&error) => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("neither taken nor held back: {error}"),
            }
        }
        self.link.wire().set_write_timeout(PATIENCE);
        sent
    }

    /// Says that nothing more is sent; answers can still be read.
    pub(crate) fn shut_write(&self) {
        self.link.shut_write().expect("the write side closes");
    }

    /// The same where the server may have closed already.
    pub(crate) fn shut_write_unless_closed(&self) {
        drop(self.link.shut_write());
    }

    /// Two handles to write and to read with, each operation within `time`, without what was read
    /// ahead.
    pub(crate) fn into_handles(self, time: Duration) -> (Link, Link) {
        self.link.wire().set_read_timeout(time);
        self.link.wire().set_write_timeout(time);
        (self.link.second_handle(), self.link)
    }

    /// The bare connection, without what was read ahead.
    pub(crate) fn into_stream(self) -> TcpStream {
        self.link.keep_silent();
        self.link.wire().tcp().try_clone().expect("a second handle")
    }

    /// Ends the connection for every handle of it.
    pub(crate) fn hang_up(self) {
        // The server may have ended it already; then there is nothing left to do.
        drop(self.link.wire().shutdown(Shutdown::Both));
    }

    /// Ends the connection with a reset, as a client does that crashed.
    pub(crate) fn reset(self) {
        self.link.reset_on_close();
    }

    /// Sends a request and reads the answer.
    pub(crate) fn ask(&mut self, request: impl AsRef<[u8]>) -> Answer {
        self.send(request);
        self.read_answer()
    }

    /// Sends a plain GET and reads the answer.
    pub(crate) fn get(&mut self, target: &str) -> Answer {
        self.ask(get(target))
    }

    /// Reads the next answer, which must come whole.
    pub(crate) fn read_answer(&mut self) -> Answer {
        self.try_answer().unwrap_or_else(|end| panic!("no whole answer: {end:?} {}", self.shown()))
    }

    /// Reads the next answer to a HEAD request.
    pub(crate) fn read_head(&mut self) -> Answer {
        self.try_head().expect("an answer's head")
    }

    /// Reads the next answer, or says how the connection ended instead.
    pub(crate) fn try_answer(&mut self) -> Result<Answer, End> {
        let mut answer = self.try_head()?;
        answer.body = match answer.length() {
            None => Vec::new(),
            Some(Length::Bytes(count)) => self.take(count)?,
            Some(Length::Chunks) => self.read_chunks()?,
            Some(Length::UntilClose) => {
                assert!(answer.closes(), "a body without an end: {answer:?}");
                self.read_to_end()
            }
        };
        Ok(answer)
    }

    fn try_head(&mut self) -> Result<Answer, End> {
        let head = self.take_through(b"\r\n\r\n")?;
        Ok(Answer::from_head(&head))
    }

    fn read_chunks(&mut self) -> Result<Vec<u8>, End> {
        let mut body = Vec::new();
        loop {
            let line = self.take_through(b"\r\n")?;
            let digits = std::str::from_utf8(&line[..line.len() - 2]).expect("a chunk size");
            let count = usize::from_str_radix(digits, 16).expect("a chunk size in hex");
            body.extend(self.take(count)?);
            assert_eq!(self.take(2)?, b"\r\n", "the end of a chunk, or of all");
            if count == 0 {
                return Ok(body);
            }
        }
    }

    /// Takes exactly `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Result<Vec<u8>, End> {
        while self.unread.len() < count {
            self.read_more()?;
        }
        let rest = self.unread.split_off(count);
        Ok(std::mem::replace(&mut self.unread, rest))
    }

    fn take_through(&mut self, mark: &[u8]) -> Result<Vec<u8>, End> {
        let mut seen = 0;
        loop {
            let fresh = &self.unread[seen..];
            if let Some(at) = fresh.windows(mark.len()).position(|window| window == mark) {
                return self.take(seen + at + mark.len());
            }
            seen = self.unread.len().saturating_sub(mark.len() - 1);
            self.read_more()?;
        }
    }

    fn read_more(&mut self) -> Result<(), End> {
        let mut piece = [0; 16_384];
        match self.read(&mut piece) {
            Ok(0) => Err(End::Closed(self.unread.len())),
            Ok(count) => {
                self.unread.extend_from_slice(&piece[..count]);
                Ok(())
            }
            Err(error) if is_close(&error) => Err(End::Reset(self.unread.len())),
            Err(error) if is_cut(&error) => Err(End::Cut(self.unread.len())),
            Err(error) => panic!("nothing within {PATIENCE:?} ({error}) {}", self.shown()),
        }
    }

    /// What was received and not taken, for messages.
    fn shown(&self) -> String {
        let start = &self.unread[..self.unread.len().min(80)];
        format!("after {} bytes: {}", self.unread.len(), start.escape_ascii())
    }

    /// Reads everything up to the end, which must come in order: a reset fails the test.
    pub(crate) fn read_to_end(&mut self) -> Vec<u8> {
        let (bytes, end) = self.read_until_ended();
        assert!(matches!(end, End::Closed(_)), "{end:?} after {} bytes", bytes.len());
        bytes
    }

    /// Reads everything up to the end, whichever way it comes.
    pub(crate) fn read_until_ended(&mut self) -> (Vec<u8>, End) {
        loop {
            if let Err(end) = self.read_more() {
                return (std::mem::take(&mut self.unread), end);
            }
        }
    }

    /// The server closes in order without another byte, while this side stays open.
    pub(crate) fn expect_end(&mut self, context: &str) {
        let (bytes, end) = self.read_until_ended();
        let bytes = String::from_utf8_lossy(&bytes);
        assert_eq!((&*bytes, end), ("", End::Closed(0)), "{context}: an end without a byte");
    }

    /// The server closes in order without another byte, before it has taken a handshake: over TLS
    /// it cannot say so there.
    pub(crate) fn expect_refusal(&mut self, context: &str) {
        let is_tls = matches!(TransportKind::chosen(), TransportKind::Tls(_));
        let due = if is_tls { End::Cut(0) } else { End::Closed(0) };
        let (bytes, end) = self.read_until_ended();
        let bytes = String::from_utf8_lossy(&bytes);
        assert_eq!((&*bytes, end), ("", due), "{context}: an end without a byte");
    }

    /// The connection is as the answer says: closed, or good for one more request.
    pub(crate) fn expect_as_said(&mut self, answer: &Answer, context: &str) {
        if answer.closes() {
            self.expect_end(context);
        } else {
            let next = self.get("/");
            assert!(next.status < 500, "{context}: the next request got {next:?}");
        }
    }

    /// The server sends nothing and does not close for so long.
    pub(crate) fn expect_silence(&mut self, time: Duration) {
        assert_eq!(String::from_utf8_lossy(&self.unread), "", "silence was due");
        self.link.wire().set_read_timeout(time);
        let mut byte = [0; 1];
        match self.read(&mut byte) {
            Err(error) if is_timeout(&error) => {}
            other => panic!("silence was due, not {other:?} {byte:?}"),
        }
        self.link.wire().set_read_timeout(PATIENCE);
    }

    /// Reads at most `bytes_max` bytes as they come, after whatever was read too early.
    pub(crate) fn read_some(&mut self, bytes_max: usize) -> Result<Vec<u8>, End> {
        if self.unread.is_empty() {
            let mut piece = vec![0; bytes_max];
            return match self.read(&mut piece) {
                Ok(0) => Err(End::Closed(0)),
                Ok(count) => Ok(piece[..count].to_vec()),
                Err(error) if is_close(&error) => Err(End::Reset(0)),
                Err(error) if is_cut(&error) => Err(End::Cut(0)),
                Err(error) => panic!("nothing to read: {error}"),
            };
        }
        self.take(bytes_max.min(self.unread.len()))
    }

    /// Waits until something can be read, without taking it.
    pub(crate) fn wait_for_bytes(&mut self) {
        if self.unread.is_empty() {
            self.read_more().expect("the beginning of an answer");
        }
    }

    /// Whether something can be read within `time`.
    pub(crate) fn has_bytes_within(&mut self, time: Duration) -> bool {
        self.link.wire().set_read_timeout(time);
        let mut piece = [0; 16_384];
        let read = self.read(&mut piece);
        self.link.wire().set_read_timeout(PATIENCE);
        match read {
            Ok(count) => self.unread.extend_from_slice(&piece[..count]),
            Err(error) if is_timeout(&error) => {}
            Err(error) => panic!("neither bytes nor silence: {error}"),
        }
        !self.unread.is_empty()
    }

    /// How long the server takes to close, counted from now.
    pub(crate) fn time_to_end(&mut self) -> (Vec<u8>, Duration) {
        let start = Instant::now();
        (self.read_to_end(), start.elapsed())
    }

    /// Reads `bytes` and keeps them for the next answer.
    pub(crate) fn read_ahead(&mut self, bytes: usize) {
        let due = self.unread.len() + bytes;
        while self.unread.len() < due {
            self.read_more().expect("more of an answer");
        }
    }

    /// Sends one byte at a time, `gap` apart; the server must take them.
    pub(crate) fn trickle(&mut self, bytes: &[u8], gap: Duration) {
        for byte in bytes {
            self.send([*byte]);
            thread::sleep(gap);
        }
    }

    /// Sends one byte at a time, `gap` apart, until all are sent or the server closes.
    pub(crate) fn trickle_until_closed(&mut self, bytes: &[u8], gap: Duration) {
        for byte in bytes {
            if self.write_all(&[*byte]).is_err() {
                return;
            }
            thread::sleep(gap);
        }
    }

    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.link.read(piece);
            // A thread that once held a ring is interrupted when the kernel takes the ring apart.
            if !matches!(&read, Err(error) if error.kind() == ErrorKind::Interrupted) {
                return read;
            }
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.link.write_all(bytes)?;
        self.link.flush()
    }
}

/// Waits until nothing listens there any more.
pub(crate) fn wait_until_refused(address: SocketAddr) {
    wait_until("connections are refused", || TcpStream::connect(address).is_err());
}

fn is_close(error: &io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected};
    matches!(error.kind(), ConnectionReset | BrokenPipe | ConnectionAborted | NotConnected)
}

fn is_cut(error: &io::Error) -> bool {
    error.kind() == ErrorKind::UnexpectedEof
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
