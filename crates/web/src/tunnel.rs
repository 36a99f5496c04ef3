//! A connection, or a stream of one, that carries another protocol than HTTP.

mod lent;
mod pipe;

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use gustnado_config::millis;
use gustnado_tasks::{ConnectionError, Endpoint, ProgressTimeout, Sleep, TaskMark, now, sleep};
use gustnado_tcp::{Protocol, Reason};
use gustnado_tls::Socket;
use thiserror::Error;

pub use lent::Lent;
use lent::SocketTunnel;
pub use pipe::{PipeClose, PipeLoss, PipeOutput, StreamPipe};
use pipe::{PipeFailure, ProtocolPipe};

/// A connection after an upgrade, or after CONNECT: bytes in both directions, in a protocol that is
/// not HTTP. See [`Response::upgrade`](crate::response::Response::upgrade).
///
/// In HTTP/2 it is one stream of its connection (RFC 8441), which goes on beside it: what is said
/// here of the connection holds for that stream. Shutting the sending side ends it in one direction
/// (`END_STREAM`), closing in both. Flow control stops it alone.
///
/// It belongs to the task that its function runs in: when that returns, the connection is closed.
/// Operations on other tasks fail. The connection still counts for `connections-max`, and keeps its
/// pace.
///
/// No time-out of HTTP applies, except that sends have to make progress within `write-timeout`: see
/// [`Tunnel::set_timeout`].
pub struct Tunnel {
    over: TunnelCarrier,
    /// How slowly the peer may take bytes.
    write: ProgressTimeout,
    /// How long the peer may be silent; `u64::MAX` is no limit.
    silence_ms: u64,
    /// [`TunnelError::Ending`] was returned.
    end_reported: bool,
    task: TaskMark,
}

/// What carries the bytes.
enum TunnelCarrier {
    Socket(SocketTunnel),
    Stream(StreamTunnel),
}

/// The tunnel's side of a stream.
struct StreamTunnel {
    pipe: Arc<StreamPipe>,
    /// When the peer has to have sent something; `u64::MAX` is never.
    silent_until_ms: u64,
    /// Wakes the task at that time, or before.
    alarm: Option<(u64, Pin<Box<Sleep>>)>,
}

impl StreamTunnel {
    /// Receives what has come; `None`: the peer has been silent for too long.
    fn poll_recv(
        &mut self,
        context: &Context<'_>,
        tells_end: bool,
    ) -> Poll<Result<Option<Bytes>, TunnelError>> {
        if let Poll::Ready(received) = self.pipe.poll_recv(context, tells_end) {
            return Poll::Ready(received.map(|bytes| Some(bytes.into())).map_err(Into::into));
        }
        let until_ms = self.silent_until_ms;
        if until_ms == u64::MAX {
            return Poll::Pending;
        }
        loop {
            let now_ms = now().mono_ms;
            if now_ms >= until_ms {
                return Poll::Ready(Ok(None));
            }
            // One that comes too early is set again then: mostly the time moves on with each
            // receive.
            if self.alarm.as_ref().is_none_or(|(at_ms, _)| *at_ms > until_ms) {
                let left = Duration::from_millis(until_ms - now_ms);
                self.alarm = Some((until_ms, Box::pin(sleep(left))));
            }
            let Some((_, alarm)) = &mut self.alarm else { return Poll::Pending };
            ready!(alarm.as_mut().poll(&mut Context::from_waker(context.waker())));
            self.alarm = None;
        }
    }
}

impl Tunnel {
    /// Creates one over a socket, and what its owner keeps of that.
    ///
    /// - `task`: the connection's.
    /// - `write`: how slowly the peer may take bytes.
    #[doc(hidden)]
    pub fn over_socket(
        socket: Socket,
        unread: Vec<u8>,
        task: TaskMark,
        write: ProgressTimeout,
    ) -> (Self, Arc<Lent>) {
        let lent = Lent::new(socket);
        let over = TunnelCarrier::Socket(SocketTunnel::new(Arc::clone(&lent), unread));
        (Self { over, write, silence_ms: u64::MAX, end_reported: false, task }, lent)
    }

    /// Creates one over a stream.
    ///
    /// - `task`: the one that its function runs in.
    #[doc(hidden)]
    pub fn over_stream(pipe: Arc<StreamPipe>, task: TaskMark) -> Self {
        let write = pipe.write_timeout();
        let over =
            TunnelCarrier::Stream(StreamTunnel { pipe, silent_until_ms: u64::MAX, alarm: None });
        Self { over, write, silence_ms: u64::MAX, end_reported: false, task }
    }

    /// Receives the next bytes from the peer, as soon as there are any: a part of a stream, cut
    /// anywhere. No bytes mean that the peer has shut its sending side.
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`TunnelError`]. [`TunnelError::Ending`] is returned once, when a drain begins; after that
    /// the tunnel may continue until the drain's deadline.
    pub async fn recv(&mut self) -> Result<Bytes, TunnelError> {
        self.check_task()?;
        match (&mut self.over, self.silence_ms) {
            (TunnelCarrier::Socket(socket), silence_ms) => socket.expect_within(silence_ms),
            (TunnelCarrier::Stream(stream), u64::MAX) => stream.silent_until_ms = u64::MAX,
            (TunnelCarrier::Stream(stream), silence_ms) => {
                stream.silent_until_ms = now().mono_ms.saturating_add(silence_ms);
            }
        }
        let received = poll_fn(|context| self.poll_next(context)).await?;
        received.ok_or(TunnelError::TimedOut)
    }

    /// Sends bytes, and waits until the kernel has taken them; in HTTP/2 until the connection has,
    /// as the peer's windows allow. If that fails, the connection is closed, because the peer has
    /// received only a part.
    ///
    /// Dropping the future before that may lose some of them.
    ///
    /// # Errors
    /// [`TunnelError`]: the peer takes nothing for too long or has gone, the server is draining, or
    /// the tunnel is closed.
    pub async fn send(&mut self, bytes: impl Into<Bytes>) -> Result<(), TunnelError> {
        // The future of an earlier send may have been dropped.
        poll_fn(|context| self.poll_sent(context)).await?;
        self.start_send(bytes.into());
        poll_fn(|context| self.poll_sent(context)).await
    }

    /// [`Tunnel::recv`] as it is polled; a send may be under way meanwhile. `None`: `until_ms` of
    /// the clock has come, and nothing else. No other time-out applies.
    #[doc(hidden)]
    pub fn poll_recv(
        &mut self,
        context: &Context<'_>,
        until_ms: u64,
    ) -> Poll<Result<Option<Bytes>, TunnelError>> {
        match &mut self.over {
            TunnelCarrier::Socket(socket) => socket.expect_until(until_ms),
            TunnelCarrier::Stream(stream) => stream.silent_until_ms = until_ms,
        }
        self.poll_next(context)
    }

    fn poll_next(&mut self, context: &Context<'_>) -> Poll<Result<Option<Bytes>, TunnelError>> {
        self.check_task()?;
        let tells_end = !self.end_reported;
        let received = match &mut self.over {
            TunnelCarrier::Socket(socket) => ready!(socket.poll_recv(tells_end, self.write)),
            TunnelCarrier::Stream(stream) => ready!(stream.poll_recv(context, tells_end)),
        };
        self.end_reported |= matches!(received, Err(TunnelError::Ending));
        Poll::Ready(received)
    }

    /// Returns whether the running task is the one that it belongs to.
    #[doc(hidden)]
    pub fn is_here(&self) -> bool {
        self.task.is_here()
    }

    /// Begins to send bytes. [`Tunnel::poll_sent`] must have said that those before have left.
    #[doc(hidden)]
    pub fn start_send(&mut self, bytes: Bytes) {
        match &mut self.over {
            TunnelCarrier::Socket(socket) => socket.start_send(bytes, self.write),
            TunnelCarrier::Stream(stream) => stream.pipe.start_send(bytes),
        }
    }

    /// Waits until nothing is being sent.
    ///
    /// # Errors
    /// As [`Tunnel::send`].
    #[doc(hidden)]
    pub fn poll_sent(&mut self, context: &Context<'_>) -> Poll<Result<(), TunnelError>> {
        self.check_task()?;
        match &mut self.over {
            TunnelCarrier::Socket(socket) => socket.poll_sent(self.write),
            TunnelCarrier::Stream(StreamTunnel { pipe, .. }) => {
                match ready!(pipe.poll_sent(context)) {
                    Ok(()) if !pipe.is_open() => Poll::Ready(Err(TunnelError::Closed)),
                    sent => Poll::Ready(sent.map_err(TunnelError::from)),
                }
            }
        }
    }

    /// Shuts the sending side. The peer may still send.
    ///
    /// # Errors
    /// [`TunnelError::Closed`]: the connection was closed, or this is not its task.
    pub fn shutdown(&mut self) -> Result<(), TunnelError> {
        self.check_task()?;
        match &self.over {
            TunnelCarrier::Socket(socket) => socket.shutdown(),
            TunnelCarrier::Stream(StreamTunnel { pipe, .. }) => {
                pipe.shut();
                Ok(())
            }
        }
    }

    /// Sets how long the peer may send nothing, and take nothing. `None` is no limit. It is rounded
    /// to whole milliseconds.
    pub fn set_timeout(&mut self, time: Option<Duration>) {
        self.silence_ms = time.map_or(u64::MAX, millis);
        self.write = ProgressTimeout { silence_ms: self.silence_ms, rate_min: 0 };
        if let TunnelCarrier::Stream(StreamTunnel { pipe, .. }) = &self.over {
            pipe.set_write(self.write);
        }
    }

    /// Returns the address of the peer. The peer of a Unix socket usually has no name, which is an
    /// empty path.
    ///
    /// # Errors
    /// The kernel does not know the address, or this is not the connection's task.
    pub fn peer(&self) -> io::Result<Endpoint> {
        self.check_task().map_err(io::Error::other)?;
        match &self.over {
            TunnelCarrier::Socket(socket) => socket.peer(),
            TunnelCarrier::Stream(StreamTunnel { pipe, .. }) => Ok(pipe.addresses()?.0.clone()),
        }
    }

    /// Returns the address of this end.
    ///
    /// # Errors
    /// As [`Tunnel::peer`].
    pub fn local(&self) -> io::Result<Endpoint> {
        self.check_task().map_err(io::Error::other)?;
        match &self.over {
            TunnelCarrier::Socket(socket) => socket.local(),
            TunnelCarrier::Stream(StreamTunnel { pipe, .. }) => Ok(pipe.addresses()?.1.clone()),
        }
    }

    /// Runs a [`Protocol`] on the connection until it ends; bytes that arrived behind the request
    /// are the first that it receives. Its time-out is
    /// [`Transport::set_timeout`](crate::protocol::Transport::set_timeout); its traffic has no
    /// pace.
    ///
    /// # Errors
    /// [`TunnelError::Closed`]: the connection was closed, or this is not its task.
    pub async fn run(self, protocol: impl Protocol + 'static) -> Result<Reason, TunnelError> {
        self.check_task()?;
        let (write, protocol) = (self.write, Box::new(protocol));
        match self.over {
            TunnelCarrier::Socket(socket) => socket.run(protocol, write).await,
            TunnelCarrier::Stream(StreamTunnel { pipe, .. }) => {
                poll_fn(|context| pipe.poll_sent(context)).await?;
                let addresses = pipe.addresses().map_err(TunnelError::Broken)?.clone();
                let stream = Box::new(ProtocolPipe(pipe));
                Ok(gustnado_tcp::run_on_stream(stream, addresses, protocol, write.silence_ms).await)
            }
        }
    }

    fn check_task(&self) -> Result<(), TunnelError> {
        if self.task.is_here() { Ok(()) } else { Err(TunnelError::Closed) }
    }
}

impl fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.over {
            TunnelCarrier::Socket(_) => "Tunnel (connection)",
            TunnelCarrier::Stream(_) => "Tunnel (stream)",
        })
    }
}

/// Error of an operation on a [`Tunnel`].
#[derive(Error)]
#[non_exhaustive]
pub enum TunnelError {
    /// The peer was silent for too long.
    #[error("the peer was silent for too long")]
    TimedOut,
    /// The server is shutting down.
    #[error("the server is shutting down")]
    Ending,
    /// The peer closed the connection, or the network failed. Of a stream of HTTP/2 also: there is
    /// no memory for what the peer has sent and the function has not taken
    /// ([`io::ErrorKind::OutOfMemory`]).
    #[error("the connection failed")]
    Broken(#[source] io::Error),
    /// The connection was closed, or this is not its task.
    #[error("the tunnel is closed, or this is not the task of its connection")]
    Closed,
}

impl From<ConnectionError> for TunnelError {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::TimedOut => Self::TimedOut,
            ConnectionError::Broken(error) => Self::Broken(error),
            _ => Self::Ending,
        }
    }
}

impl From<PipeFailure> for TunnelError {
    fn from(failure: PipeFailure) -> Self {
        match failure {
            PipeFailure::Lost(PipeLoss::Cut) | PipeFailure::Closed => Self::Closed,
            lost @ PipeFailure::Lost(_) => ConnectionError::from(lost).into(),
        }
    }
}
