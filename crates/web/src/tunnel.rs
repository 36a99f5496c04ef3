//! A connection, or a stream of one, that carries another protocol than HTTP.

mod lent;
mod pipe;
mod sending;
mod socket;

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use gustnado_config::millis;
use gustnado_tasks::{ConnectionError, Endpoint, ProgressTimeout, TaskMark, now};
use gustnado_tcp::{Protocol, Reason};
use gustnado_tls::Socket;
use thiserror::Error;

pub use lent::lend;
use pipe::PipeFailure;
use pipe::protocol::ProtocolPipe;
pub use pipe::{PipeClose, PipeConnection, PipeLoss, PipeOutput, StreamPipe};
use sending::TunnelSend;

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
    task: TaskMark,
    over: TunnelCarrier,
    /// When the peer has to have sent something; `u64::MAX` is never.
    silent_until_ms: u64,
    /// What most tunnels that wait do not have.
    more: Option<Box<TunnelMore>>,
}

/// What carries the bytes.
enum TunnelCarrier {
    /// The socket that the task lends.
    Socket,
    Stream(Arc<StreamPipe>),
}

/// What few tunnels have, or only for a time.
#[derive(Default)]
struct TunnelMore {
    /// Bytes that arrived behind the request.
    unread: Vec<u8>,
    /// What is being sent on a socket.
    sending: TunnelSend,
    /// The time that was set by [`Tunnel::set_timeout`].
    times: Option<TunnelTimes>,
    /// [`TunnelError::Ending`] was returned.
    is_end_told: bool,
}

/// How slow the peer of a tunnel may be, as its user says.
#[derive(Clone, Copy)]
struct TunnelTimes {
    /// How slowly it may take bytes.
    write: ProgressTimeout,
    /// How long it may be silent; `u64::MAX` is no limit.
    silence_ms: u64,
}

impl TunnelMore {
    fn write(&self) -> Option<ProgressTimeout> {
        self.times.map(|times| times.write)
    }

    fn is_unused(&self) -> bool {
        self.unread.is_empty()
            && self.sending.is_over()
            && self.times.is_none()
            && !self.is_end_told
    }
}

impl Tunnel {
    /// Creates one over the socket that its task [lends](lend).
    ///
    /// - `unread`: bytes that arrived behind the request.
    #[doc(hidden)]
    pub fn over_socket(unread: Vec<u8>, task: TaskMark) -> Self {
        let more = TunnelMore { unread, ..TunnelMore::default() };
        let mut tunnel = Self::new(TunnelCarrier::Socket, task);
        tunnel.more = (!more.is_unused()).then(|| more.into());
        tunnel
    }

    /// Creates one over a stream.
    ///
    /// - `task`: the one that its function runs in.
    #[doc(hidden)]
    pub fn over_stream(pipe: Arc<StreamPipe>, task: TaskMark) -> Self {
        Self::new(TunnelCarrier::Stream(pipe), task)
    }

    fn new(over: TunnelCarrier, task: TaskMark) -> Self {
        Self { task, over, silent_until_ms: u64::MAX, more: None }
    }

    fn own_write(&self) -> Option<ProgressTimeout> {
        self.more.as_ref().and_then(|more| more.write())
    }

    /// Drops what is of no use any more.
    fn settle(&mut self) {
        if self.more.as_ref().is_some_and(|more| more.is_unused()) {
            self.more = None;
        }
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
        let silence_ms = self.more.as_ref().and_then(|more| more.times);
        let silence_ms = silence_ms.map_or(u64::MAX, |times| times.silence_ms);
        match self.over {
            TunnelCarrier::Socket => self.expect_within(silence_ms),
            TunnelCarrier::Stream(_) if silence_ms == u64::MAX => self.silent_until_ms = u64::MAX,
            TunnelCarrier::Stream(_) => {
                self.silent_until_ms = now().mono_ms.saturating_add(silence_ms);
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
        self.silent_until_ms = until_ms;
        self.poll_next(context)
    }

    /// Sets when the peer has to have sent something, in milliseconds of the clock.
    #[doc(hidden)]
    pub fn expect_until(&mut self, at_ms: u64) {
        self.silent_until_ms = at_ms;
    }

    /// Returns when the peer has to have sent something.
    #[doc(hidden)]
    pub fn silent_until_ms(&self) -> u64 {
        self.silent_until_ms
    }

    fn poll_next(&mut self, context: &Context<'_>) -> Poll<Result<Option<Bytes>, TunnelError>> {
        let tells_end = self.more.as_ref().is_none_or(|more| !more.is_end_told);
        let received = match self.over {
            TunnelCarrier::Socket => ready!(self.poll_socket_recv(tells_end)),
            TunnelCarrier::Stream(_) => {
                self.check_task()?;
                ready!(self.poll_stream_recv(context, tells_end))
            }
        };
        if matches!(received, Err(TunnelError::Ending)) {
            self.more.get_or_insert_default().is_end_told = true;
        }
        Poll::Ready(received)
    }

    /// Receives what has come on a stream; `None`: the peer has been silent for too long.
    fn poll_stream_recv(
        &mut self,
        context: &Context<'_>,
        tells_end: bool,
    ) -> Poll<Result<Option<Bytes>, TunnelError>> {
        let TunnelCarrier::Stream(pipe) = &self.over else {
            return Poll::Ready(Err(TunnelError::Closed));
        };
        if let Poll::Ready(received) = pipe.poll_recv(context, tells_end) {
            return Poll::Ready(received.map(|bytes| Some(bytes.into())).map_err(Into::into));
        }
        let until_ms = self.silent_until_ms;
        if until_ms == u64::MAX {
            return Poll::Pending;
        }
        ready!(pipe.poll_time(context, until_ms));
        Poll::Ready(Ok(None))
    }

    /// Waits until the server drains, while nothing is received. It is told once, by this or by a
    /// receive.
    #[doc(hidden)]
    pub fn poll_ending(&mut self, context: &Context<'_>) -> Poll<()> {
        if self.check_task().is_err() || self.more.as_ref().is_some_and(|more| more.is_end_told) {
            return Poll::Pending;
        }
        match &self.over {
            TunnelCarrier::Socket => ready!(self.poll_socket_ending()),
            TunnelCarrier::Stream(pipe) => ready!(pipe.poll_ending(context)),
        }
        self.more.get_or_insert_default().is_end_told = true;
        Poll::Ready(())
    }

    /// Wakes the task that it belongs to, from any thread.
    #[doc(hidden)]
    pub fn wake(&self) {
        self.task.wake();
    }

    /// Returns whether the running task is the one that it belongs to.
    #[doc(hidden)]
    pub fn is_here(&self) -> bool {
        self.task.is_here()
    }

    /// Begins to send bytes. [`Tunnel::poll_sent`] must have said that those before have left.
    #[doc(hidden)]
    pub fn start_send(&mut self, bytes: Bytes) {
        match &self.over {
            TunnelCarrier::Socket => self.start_socket_send(bytes),
            TunnelCarrier::Stream(pipe) => pipe.start_send(bytes),
        }
    }

    /// Begins to send few bytes, which are copied, and at least one.
    #[doc(hidden)]
    pub fn start_copy(&mut self, bytes: &[u8]) {
        match &self.over {
            TunnelCarrier::Socket => self.start_socket_copy(bytes),
            TunnelCarrier::Stream(pipe) => pipe.start_send(Bytes::copy_from_slice(bytes)),
        }
    }

    /// Waits until nothing is being sent.
    ///
    /// # Errors
    /// As [`Tunnel::send`].
    #[doc(hidden)]
    pub fn poll_sent(&mut self, context: &Context<'_>) -> Poll<Result<(), TunnelError>> {
        let TunnelCarrier::Stream(pipe) = &self.over else { return self.poll_socket_sent() };
        self.check_task()?;
        match ready!(pipe.poll_sent(context)) {
            Ok(()) if !pipe.is_open() => Poll::Ready(Err(TunnelError::Closed)),
            sent => Poll::Ready(sent.map_err(TunnelError::from)),
        }
    }

    /// Shuts the sending side. The peer may still send.
    ///
    /// # Errors
    /// [`TunnelError::Closed`]: the connection was closed, or this is not its task.
    pub fn shutdown(&mut self) -> Result<(), TunnelError> {
        self.check_task()?;
        match &self.over {
            TunnelCarrier::Socket => self.shut_socket(),
            TunnelCarrier::Stream(pipe) => {
                pipe.shut();
                Ok(())
            }
        }
    }

    /// Sets how long the peer may send nothing, and take nothing. `None` is no limit. It is rounded
    /// to whole milliseconds.
    pub fn set_timeout(&mut self, time: Option<Duration>) {
        let silence_ms = time.map_or(u64::MAX, millis);
        let write = ProgressTimeout { silence_ms, rate_min: 0 };
        self.more.get_or_insert_default().times = Some(TunnelTimes { write, silence_ms });
        if let TunnelCarrier::Stream(pipe) = &self.over {
            pipe.set_write(write);
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
            TunnelCarrier::Socket => self.socket_address(Socket::peer),
            TunnelCarrier::Stream(pipe) => Ok(pipe.addresses()?.0.clone()),
        }
    }

    /// Returns the address of this end.
    ///
    /// # Errors
    /// As [`Tunnel::peer`].
    pub fn local(&self) -> io::Result<Endpoint> {
        self.check_task().map_err(io::Error::other)?;
        match &self.over {
            TunnelCarrier::Socket => self.socket_address(Socket::local),
            TunnelCarrier::Stream(pipe) => Ok(pipe.addresses()?.1.clone()),
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
        let protocol = Box::new(protocol);
        let TunnelCarrier::Stream(pipe) = self.over else {
            return self.run_on_socket(protocol).await;
        };
        poll_fn(|context| pipe.poll_sent(context)).await?;
        let closing_ms = pipe.write_timeout().silence_ms;
        let addresses = pipe.addresses().map_err(TunnelError::Broken)?.clone();
        let stream = Box::new(ProtocolPipe(pipe));
        Ok(gustnado_tcp::run_on_stream(stream, addresses, protocol, closing_ms).await)
    }

    fn check_task(&self) -> Result<(), TunnelError> {
        if self.task.is_here() { Ok(()) } else { Err(TunnelError::Closed) }
    }
}

impl fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.over {
            TunnelCarrier::Socket => "Tunnel (connection)",
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
