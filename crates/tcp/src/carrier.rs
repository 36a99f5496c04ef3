//! What carries a connection's bytes: a socket of its own, or a stream of a connection that carries
//! others, too.

use std::fmt;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use gustnado_tasks::{Connection, ConnectionError, RecvBuf, SendBuf, Sleep, now, sleep};
use gustnado_tls::Socket;

/// Bytes in both directions that have no socket of their own. Its owner ends it when it is dropped.
#[doc(hidden)]
pub trait ByteStream: fmt::Debug + Send {
    /// Receives the next bytes. None mean that the peer sends no more.
    ///
    /// # Errors
    /// The peer has gone, or the stream was ended.
    fn poll_recv(&mut self, context: &Context<'_>) -> Poll<Result<Vec<u8>, ConnectionError>>;

    /// Begins to send bytes. Only one send is under way at a time.
    fn start_send(&mut self, bytes: Vec<u8>);

    /// Waits for the end of the send.
    ///
    /// # Errors
    /// As [`ByteStream::poll_recv`].
    fn poll_sent(&mut self, context: &Context<'_>) -> Poll<Result<(), ConnectionError>>;

    /// Tells the peer that no more is sent.
    fn shutdown_write(&mut self);

    /// Ends it at once; the peer is told that it was cut.
    fn abort(&mut self);
}

/// What carries a connection's bytes.
#[derive(Debug)]
pub(super) enum Carrier {
    Socket(Socket),
    Stream(StreamCarrier),
}

/// A stream, and the time in which something has to move on it.
pub(super) struct StreamCarrier {
    stream: Box<dyn ByteStream>,
    deadline_ms: u64,
    /// Fires at that time or before, if there is one.
    timer: Option<(u64, Pin<Box<Sleep>>)>,
}

/// Received bytes.
pub(super) enum ReceivedBytes {
    OfSocket(RecvBuf),
    OfStream(Vec<u8>),
}

impl ReceivedBytes {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::OfSocket(piece) => piece.bytes(),
            Self::OfStream(bytes) => bytes,
        }
    }
}

impl Carrier {
    /// Creates one of a stream.
    pub(super) fn of_stream(stream: Box<dyn ByteStream>) -> Self {
        Self::Stream(StreamCarrier { stream, deadline_ms: u64::MAX, timer: None })
    }

    /// Receives the next bytes; none are the peer's end.
    ///
    /// - `task`: the running one, which a stream wakes.
    pub(super) fn poll_recv(
        &mut self,
        task: &Waker,
    ) -> Poll<Result<ReceivedBytes, ConnectionError>> {
        match self {
            Self::Socket(socket) => socket.poll_recv(false).map_ok(ReceivedBytes::OfSocket),
            Self::Stream(carrier) => {
                let received = carrier.stream.poll_recv(&Context::from_waker(task));
                if received.is_pending() {
                    return carrier.poll_deadline(task).map(Err);
                }
                received.map_ok(ReceivedBytes::OfStream)
            }
        }
    }

    /// Waits only for the deadline.
    pub(super) fn poll_deadline(&mut self, task: &Waker) -> Poll<ConnectionError> {
        match self {
            Self::Socket(socket) => socket.poll_deadline(false),
            Self::Stream(carrier) => carrier.poll_deadline(task),
        }
    }

    /// Begins a send.
    pub(super) fn start_send(&mut self, mut chunk: Box<SendBuf>) {
        match self {
            Self::Socket(socket) => socket.start_send(chunk),
            Self::Stream(carrier) => {
                carrier.stream.start_send(mem::take(&mut chunk.bytes));
                Connection::put_back(chunk);
            }
        }
    }

    /// Waits for its end.
    pub(super) fn poll_sent(&mut self, task: &Waker) -> Poll<Result<(), ConnectionError>> {
        match self {
            Self::Socket(socket) => socket.poll_sent(),
            Self::Stream(carrier) => {
                let sent = carrier.stream.poll_sent(&Context::from_waker(task));
                if sent.is_pending() { carrier.poll_deadline(task).map(Err) } else { sent }
            }
        }
    }

    /// Tells the peer that no more is sent.
    pub(super) fn shutdown_write(&mut self) {
        match self {
            Self::Socket(socket) => socket.shutdown_write(),
            Self::Stream(carrier) => carrier.stream.shutdown_write(),
        }
    }

    /// Ends it at once: the peer is told that something was lost.
    pub(super) fn cut(&mut self) {
        match self {
            Self::Socket(socket) => socket.reset_on_drop(),
            Self::Stream(carrier) => carrier.stream.abort(),
        }
    }

    /// Sets the time past which operations fail.
    pub(super) fn set_deadline(&mut self, at_ms: u64) {
        match self {
            Self::Socket(socket) => socket.set_deadline(at_ms),
            Self::Stream(carrier) => carrier.deadline_ms = at_ms,
        }
    }

    /// Returns the socket, if it is one.
    pub(super) fn socket(&mut self) -> Option<&mut Socket> {
        match self {
            Self::Socket(socket) => Some(socket),
            Self::Stream(_) => None,
        }
    }
}

impl StreamCarrier {
    fn poll_deadline(&mut self, task: &Waker) -> Poll<ConnectionError> {
        loop {
            let left_ms = self.deadline_ms.saturating_sub(now().mono_ms);
            if left_ms == 0 {
                self.timer = None;
                return Poll::Ready(ConnectionError::TimedOut);
            }
            match &mut self.timer {
                // A deadline that moves away leaves the timer as it is, which then is too early.
                Some((at_ms, timer)) if *at_ms <= self.deadline_ms => {
                    ready!(timer.as_mut().poll(&mut Context::from_waker(task)));
                    self.timer = None;
                }
                _ if self.deadline_ms == u64::MAX => {
                    self.timer = None;
                    return Poll::Pending;
                }
                timer => {
                    let wait = Duration::from_millis(left_ms);
                    *timer = Some((self.deadline_ms, Box::pin(sleep(wait))));
                }
            }
        }
    }
}

impl fmt::Debug for StreamCarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StreamCarrier").field(&self.stream).finish()
    }
}
