//! What every test here stands on: a reactor that is asked until an operation is complete.

use std::io::{ErrorKind, Read, Result, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use gustnado_reactor::{
    Accepted, BackendKind, BufferAccount, Clock, Endpoint, Io, IoChoice, Listener, Options,
    Reactor, SendBuf, Token, Wait, bind, probe_uring,
};

/// How long one wait may take. Nothing that works comes near it, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);
const PATIENCE_MS: u64 = 15_000;
/// What the operations of [`Harness::finish`] are asked for with.
const TOKEN: Token = 7;
const BACKLOG: u32 = 16;

/// A reactor, and the tokens that its turns hand out.
pub(crate) struct Harness {
    pub(crate) reactor: Reactor,
    pub(crate) woken: Vec<Token>,
}

impl Harness {
    pub(crate) fn open(io: IoChoice) -> Self {
        Self::with(io, 64, 64)
    }

    /// - `direct_max`: entries of the ring's descriptor table.
    /// - `buffers`: receive buffers of the ring.
    pub(crate) fn with(io: IoChoice, direct_max: usize, buffers: u16) -> Self {
        Self::over(&Self::options(io, direct_max, buffers))
    }

    /// The same, for tests that change others.
    pub(crate) fn options(io: IoChoice, direct_max: usize, buffers: u16) -> Options {
        let (clock, account) = (Clock::start(), BufferAccount::default());
        Options { io, direct_max, buffers, installed_max: 64, clock, account }
    }

    pub(crate) fn over(options: &Options) -> Self {
        let io = options.io;
        let (reactor, refused) = Reactor::new(options).expect("a reactor can be had");
        assert!(refused.is_none(), "{refused:?}");
        let wanted = if io == IoChoice::Epoll { BackendKind::Epoll } else { BackendKind::Uring };
        assert_eq!(reactor.backend(), wanted);
        Self { reactor, woken: Vec::new() }
    }

    /// One turn, of a tenth of a second at most.
    pub(crate) fn turn(&mut self) {
        let until_ms = self.reactor.clock().read_ms() + 100;
        self.reactor.turn(Wait::Until(until_ms), &mut self.woken).expect("the kernel waits");
    }

    /// Turns for a while, whatever happens.
    pub(crate) fn turn_for(&mut self, millis: u64) {
        let until_ms = self.reactor.clock().read_ms() + millis;
        while self.reactor.clock().read_ms() < until_ms {
            self.reactor.turn(Wait::Until(until_ms), &mut self.woken).expect("the kernel waits");
        }
    }

    /// Turns until `done`.
    pub(crate) fn turn_until(&mut self, what: &str, mut done: impl FnMut(&Reactor) -> bool) {
        let start_ms = self.reactor.clock().read_ms();
        while !done(&self.reactor) {
            let waited_ms = self.reactor.clock().read_ms() - start_ms;
            assert!(waited_ms < PATIENCE_MS, "waited in vain: {what}");
            self.turn();
        }
    }

    /// Asks for an operation until it is complete. A wait must end with its token being handed
    /// out: asking again without that would hide a lost wake-up.
    pub(crate) fn finish<T>(
        &mut self,
        what: &str,
        mut operation: impl FnMut(&mut Reactor, Token) -> Poll<T>,
    ) -> T {
        let start_ms = self.reactor.clock().read_ms();
        loop {
            if let Poll::Ready(done) = operation(&mut self.reactor, TOKEN) {
                return done;
            }
            self.woken.clear();
            while !self.woken.contains(&TOKEN) {
                let waited_ms = self.reactor.clock().read_ms() - start_ms;
                assert!(waited_ms < PATIENCE_MS, "nobody was woken: {what}");
                self.turn();
            }
        }
    }

    /// Listens on a free port of 127.0.0.1.
    pub(crate) fn listen(&mut self) -> (Listener, SocketAddr) {
        let (mut sockets, endpoint) = bind(&anywhere(), 1, BACKLOG).expect("a port is free");
        let socket = sockets.pop().expect("one was asked for");
        (self.listen_on(socket), address(&endpoint))
    }

    pub(crate) fn listen_on(&mut self, socket: OwnedFd) -> Listener {
        self.reactor.listen(Arc::new(socket), BACKLOG as usize).expect("it can be listened on")
    }

    /// Accepts a connection into this reactor.
    pub(crate) fn accept(&mut self, listener: &Listener) -> Io {
        let accepted = self.finish("accept", |reactor, token| reactor.accept(listener, 8, token));
        self.take_in(accepted.expect("a connection is accepted"))
    }

    pub(crate) fn take_in(&mut self, accepted: Accepted) -> Io {
        match accepted {
            Accepted::Here(io) => io,
            Accepted::Away(fd) => self.reactor.adopt(fd).expect("its number is below the limit"),
        }
    }

    /// A connection: this side of it in the reactor, the other a blocking socket.
    pub(crate) fn pair(&mut self) -> (Io, TcpStream) {
        let (listener, address) = self.listen();
        let client = connect(address);
        let io = self.accept(&listener);
        self.reactor.unlisten(&listener);
        self.turn_until("nothing listens", |reactor| !reactor.is_listening(&listener));
        (io, client)
    }

    /// Receives one piece; an empty one is the end.
    pub(crate) fn recv(&mut self, io: &Io) -> Result<Vec<u8>> {
        let piece = self.finish("receive", |reactor, token| reactor.recv(io, token));
        piece.map(|piece| piece.bytes().to_vec())
    }

    /// Receives until the end.
    pub(crate) fn recv_all(&mut self, io: &Io) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let piece = self.recv(io).expect("bytes or the end come");
            if piece.is_empty() {
                return all;
            }
            all.extend(piece);
        }
    }

    #[expect(clippy::unnecessary_box_returns, reason = "the reactor hands them out boxed")]
    pub(crate) fn outgoing(&mut self, bytes: &[u8]) -> Box<SendBuf> {
        let mut out = self.reactor.outgoing(false);
        assert!(out.is_empty(), "what comes from the store is empty");
        out.bytes.extend_from_slice(bytes);
        out
    }

    pub(crate) fn send(&mut self, io: &Io, bytes: &[u8]) -> Result<()> {
        let mut out = Some(self.outgoing(bytes));
        self.finish("send", |reactor, token| reactor.send(io, &mut out, token))
    }

    /// Closes a socket, and lets the kernel hear of it.
    pub(crate) fn close(&mut self, io: Io) {
        self.reactor.close(io);
        self.reactor.turn(Wait::Poll, &mut self.woken).expect("the kernel waits");
    }
}

/// A free port of 127.0.0.1.
pub(crate) fn anywhere() -> Endpoint {
    Endpoint::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
}

pub(crate) fn address(endpoint: &Endpoint) -> SocketAddr {
    match endpoint {
        Endpoint::Tcp(address) => *address,
        other => panic!("bound to {other}"),
    }
}

/// A blocking connection whose reads do not wait for ever.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let client = TcpStream::connect(address).expect("somebody listens");
    client.set_read_timeout(Some(PATIENCE)).expect("a timeout above zero is valid");
    client
}

/// Reads once. (A ring's completions may interrupt a call of its thread.)
pub(crate) fn read_some(client: &mut impl Read, bytes: &mut [u8]) -> Result<usize> {
    loop {
        match client.read(bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Bytes that tell where they stood.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| at.to_le_bytes()[0] ^ at.to_le_bytes()[1] ^ at.to_le_bytes()[2]).collect()
}

/// Writes bytes from a thread, which then closes the connection.
pub(crate) fn write_aside(
    mut client: impl Write + Send + 'static,
    bytes: &[u8],
) -> thread::JoinHandle<()> {
    let bytes = bytes.to_vec();
    thread::spawn(move || client.write_all(&bytes).expect("the reactor reads"))
}

/// Makes two tests of each function named: one over epoll, one over `io_uring`.
macro_rules! on_both_backends {
    ($($test:ident),+ $(,)?) => {
        mod epoll {
            $(
                #[test]
                fn $test() {
                    super::$test(gustnado_reactor::IoChoice::Epoll);
                }
            )+
        }

        mod uring {
            $(
                #[test]
                fn $test() {
                    if crate::harness::has_uring(concat!(module_path!(), "::", stringify!($test))) {
                        super::$test(gustnado_reactor::IoChoice::Uring);
                    }
                }
            )+
        }
    };
}

/// Whether there is an `io_uring` for the test `name`; a line says that it is skipped if not.
pub(crate) fn has_uring(name: &str) -> bool {
    match probe_uring() {
        Ok(()) => true,
        Err(error) => {
            // (Not by `println!`: libtest shows that of tests that fail only.)
            let line = format!("skipped: {name}: io_uring cannot be used here ({error})\n");
            std::io::stderr().write_all(line.as_bytes()).expect("standard error takes a line");
            false
        }
    }
}
