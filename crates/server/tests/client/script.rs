//! The other end of a client under test: a thread that does, connection by connection, what a test
//! has written down for it; and workers to run the client on.

use std::collections::VecDeque;
use std::future::Future;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError, mpsc};
use std::task::{Context, Poll};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use gustnado::Endpoint;
use gustnado::client::{Client, ClientError, ClientOptions, ClientResponse};
use gustnado::config::{Acceptor, Placement};
use gustnado_tasks::{BoxTask, Connection, Growth, SocketOptions, Throttle, WorkerPlan, Workers};

use crate::harness::{PATIENCE, Setup};

/// The shortest answer of these tests.
pub(crate) const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// A client as it comes.
pub(crate) fn client() -> Client {
    Client::new(ClientOptions::default())
}

/// A client that is impatient in one way.
pub(crate) fn hasty(change: impl FnOnce(&mut ClientOptions)) -> Client {
    let mut options = ClientOptions::default();
    change(&mut options);
    Client::new(options)
}

/// The body of an answer that must come.
pub(crate) async fn text(answer: Result<ClientResponse, ClientError>) -> String {
    let mut answer = answer.expect("an answer comes");
    answer.text(1 << 20).await.expect("a whole body of text")
}

/// The body of the answer to a GET.
pub(crate) async fn get(client: &Client, url: &str) -> String {
    text(client.get(url).send().await).await
}

/// The error that must come instead of an answer.
pub(crate) fn refused(outcome: Result<ClientResponse, ClientError>) -> ClientError {
    match outcome {
        Ok(answer) => panic!("no error, but {answer:?}"),
        Err(error) => error,
    }
}

/// What a server does with one connection.
pub(crate) type Act = Box<dyn FnOnce(&mut Peer) + Send>;

/// Makes an [`Act`] of a closure.
pub(crate) fn act(act: impl FnOnce(&mut Peer) + Send + 'static) -> Act {
    Box::new(act)
}

/// Answers one request without a body with these bytes, and then closes.
pub(crate) fn answer(bytes: &'static str) -> Act {
    act(move |peer| {
        peer.read_head();
        peer.send(bytes);
    })
}

/// A server that follows a script: one act for each connection, in the order they come. It accepts
/// no more than that.
pub(crate) struct Script {
    address: SocketAddr,
    thread: JoinHandle<()>,
}

impl Script {
    pub(crate) fn start(acts: Vec<Act>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let thread = thread::spawn(move || {
            thread::scope(|scope| {
                for act in acts {
                    let (stream, from) = listener.accept().expect("the client connects");
                    stream.set_read_timeout(Some(PATIENCE)).expect("a time limit for reads");
                    stream.set_write_timeout(Some(PATIENCE)).expect("a time limit for writes");
                    stream.set_nodelay(true).expect("small pieces leave at once");
                    scope.spawn(move || act(&mut Peer { stream, from, unread: Vec::new() }));
                }
            });
        });
        Self { address, thread }
    }

    /// The URL of a path on it.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Waits for the last act; what failed in one fails the test.
    pub(crate) fn end(self) {
        if let Err(failure) = self.thread.join() {
            std::panic::resume_unwind(failure);
        }
    }
}

/// The client as the script sees it.
pub(crate) struct Peer {
    stream: TcpStream,
    pub(crate) from: SocketAddr,
    unread: Vec<u8>,
}

impl Peer {
    /// Reads a request's head, blank line included.
    pub(crate) fn read_head(&mut self) -> String {
        loop {
            if let Some(at) = self.unread.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                let head = self.unread.drain(..at + 4).collect();
                return String::from_utf8(head).expect("heads here are ASCII");
            }
            assert!(self.receive() > 0, "closed after {:?}", self.unread.escape_ascii());
        }
    }

    /// Reads so many bytes.
    pub(crate) fn read(&mut self, bytes: usize) -> Vec<u8> {
        while self.unread.len() < bytes {
            assert!(self.receive() > 0, "closed before {bytes} bytes came");
        }
        self.unread.drain(..bytes).collect()
    }

    /// Reads up to and with some bytes.
    pub(crate) fn read_until(&mut self, end: &[u8]) -> Vec<u8> {
        loop {
            let at = self.unread.windows(end.len()).position(|bytes| bytes == end);
            if let Some(at) = at {
                return self.unread.drain(..at + end.len()).collect();
            }
            assert!(self.receive() > 0, "closed before {:?}", end.escape_ascii());
        }
    }

    /// What came next, at least one byte; empty at the end.
    pub(crate) fn read_some(&mut self) -> Vec<u8> {
        if self.unread.is_empty() {
            self.receive();
        }
        std::mem::take(&mut self.unread)
    }

    /// Whether the client closes without another byte.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.unread.is_empty() && self.receive() == 0
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("the client takes the bytes");
    }

    /// Sends to a client that may have closed.
    pub(crate) fn send_unless_closed(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    fn receive(&mut self) -> usize {
        let mut bytes = vec![0; 64 << 10];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(len) => {
                    self.unread.extend_from_slice(&bytes[..len]);
                    return len;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return 0,
                Err(error) => panic!("neither bytes nor an end: {error}"),
            }
        }
    }
}

/// Runs a client's part of a test as a task, on one worker of this setup, and waits for its end.
pub(crate) fn in_task<T: Send + 'static>(
    setup: Setup,
    test: impl Future<Output = T> + Send + 'static,
) -> T {
    let plan = WorkerPlan {
        workers: 1,
        growth: Growth::default(),
        io: setup.io,
        scheduler: setup.scheduler,
        slots: 0,
        connections_max: 64,
        placement: Placement::Spread,
        acceptor: Acceptor::PerWorker,
        defer_accept: false,
        drain_accept: Duration::ZERO,
        backlog: 16,
        sockets: SocketOptions::default(),
        spin_us: 0,
        buffers: 64,
        throttle: Throttle::default(),
    };
    let (done, outcome) = mpsc::channel();
    let job = Mutex::new(Some(async move {
        let result = test.await;
        done.send(result).expect("the test is waited for");
    }));
    let serve = Box::new(move |connection: Connection| {
        let job = job.lock().unwrap_or_else(PoisonError::into_inner).take();
        Box::pin(async move {
            if let Some(job) = job {
                job.await;
            }
            drop(connection);
        }) as BoxTask
    });
    let anywhere = Endpoint::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let workers = Workers::start(&plan).expect("workers start");
    setup.assert_backend(workers.backend().name(), workers.notes());
    let listener = workers.listen(&anywhere, false, serve).expect("a port is free");
    let Endpoint::Tcp(address) = listener.endpoint() else { panic!("not on TCP") };
    let _trigger = TcpStream::connect(address).expect("the workers listen");
    let result = outcome.recv_timeout(PATIENCE).expect("the task ends well and in time");
    workers.stop(PATIENCE);
    result
}

/// A body that comes piece by piece: each at the second look, or after a while.
pub(crate) struct Pieces {
    left: VecDeque<Result<Bytes, std::io::Error>>,
    looked: bool,
    every: Option<Duration>,
    rest: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Pieces {
    pub(crate) fn new<B: Into<Bytes>>(pieces: impl IntoIterator<Item = B>) -> Self {
        let left = pieces.into_iter().map(|bytes| Ok(bytes.into())).collect();
        Self { left, looked: false, every: None, rest: None }
    }

    /// Each one takes so long.
    pub(crate) fn every(mut self, pause: Duration) -> Self {
        self.every = Some(pause);
        self
    }

    /// The stream breaks after its last piece.
    pub(crate) fn broken(mut self) -> Self {
        self.left.push_back(Err(std::io::Error::other("the source broke")));
        self
    }
}

impl Stream for Pieces {
    type Item = Result<Bytes, std::io::Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(every) = self.every {
            let rest = || Box::pin(gustnado_tasks::sleep(every)) as Pin<Box<_>>;
            let rest = self.rest.get_or_insert_with(rest);
            std::task::ready!(rest.as_mut().poll(cx));
            self.rest = None;
        } else if !std::mem::replace(&mut self.looked, true) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.looked = false;
        Poll::Ready(self.left.pop_front())
    }
}
