//! One end of a connection: TCP or a Unix socket, plain, sealed by TLS, or by HTTP/2.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt;

use super::gateway::Gateway;
use super::sealing::Sealing;
use super::transport::TransportKind;

/// A connection's socket.
pub(crate) enum Wire {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Wire {
    /// The socket of TCP.
    pub(crate) fn tcp(&self) -> &TcpStream {
        let Self::Tcp(stream) = self else { panic!("this test needs TCP") };
        stream
    }

    /// Ends one direction, or both.
    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.shutdown(how),
            Self::Unix(stream) => stream.shutdown(how),
        }
    }

    /// Limits the time of each read.
    pub(crate) fn set_read_timeout(&self, time: Duration) {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(Some(time)),
            Self::Unix(stream) => stream.set_read_timeout(Some(time)),
        }
        .expect("a time limit for reads");
    }

    /// Limits the time of each write.
    pub(crate) fn set_write_timeout(&self, time: Duration) {
        match self {
            Self::Tcp(stream) => stream.set_write_timeout(Some(time)),
            Self::Unix(stream) => stream.set_write_timeout(Some(time)),
        }
        .expect("a time limit for writes");
    }

    /// The time limit of each read.
    pub(crate) fn read_timeout(&self) -> Option<Duration> {
        match self {
            Self::Tcp(stream) => stream.read_timeout(),
            Self::Unix(stream) => stream.read_timeout(),
        }
        .expect("a time limit for reads")
    }

    /// The time limit of each write.
    pub(crate) fn write_timeout(&self) -> Option<Duration> {
        match self {
            Self::Tcp(stream) => stream.write_timeout(),
            Self::Unix(stream) => stream.write_timeout(),
        }
        .expect("a time limit for writes")
    }

    /// Makes the close a reset.
    pub(crate) fn reset_on_close(&self) {
        sockopt::set_socket_linger(self, Some(Duration::ZERO)).expect("no lingering");
    }
}

impl From<TcpStream> for Wire {
    fn from(stream: TcpStream) -> Self {
        Self::Tcp(stream)
    }
}

impl From<UnixStream> for Wire {
    fn from(stream: UnixStream) -> Self {
        Self::Unix(stream)
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Read for &Wire {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        match self {
            Wire::Tcp(stream) => { stream }.read(piece),
            Wire::Unix(stream) => { stream }.read(piece),
        }
    }
}

impl Write for &Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Wire::Tcp(stream) => { stream }.write(bytes),
            Wire::Unix(stream) => { stream }.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A handle of a connection. All handles share its state of TLS, or of HTTP/2.
pub(crate) enum Link {
    Plain(Arc<Wire>),
    Sealed(Arc<Sealing>),
    Translated(Arc<Gateway>),
}

impl Link {
    /// Speaks over a socket as the environment asks for, and begins with a handshake over TLS.
    ///
    /// - `is_early`: as for [`Sealing::begin`].
    pub(crate) fn over(wire: Wire, is_early: bool) -> Self {
        match TransportKind::chosen() {
            TransportKind::Plain => Self::plain(wire),
            TransportKind::Tls(_) => Self::Sealed(Arc::new(Sealing::begin(wire, is_early))),
            TransportKind::Http2 => Self::Translated(Arc::new(Gateway::begin(wire))),
        }
    }

    /// Speaks over a socket as it is.
    pub(crate) fn plain(wire: Wire) -> Self {
        Self::Plain(Arc::new(wire))
    }

    /// The socket below.
    pub(crate) fn wire(&self) -> &Wire {
        match self {
            Self::Plain(wire) => wire,
            Self::Sealed(sealing) => sealing.wire(),
            Self::Translated(gateway) => gateway.wire(),
        }
    }

    /// A second handle, to send while this one reads.
    pub(crate) fn second_handle(&self) -> Self {
        match self {
            Self::Plain(wire) => Self::Plain(Arc::clone(wire)),
            Self::Sealed(sealing) => Self::Sealed(Arc::clone(sealing)),
            Self::Translated(gateway) => Self::Translated(Arc::clone(gateway)),
        }
    }

    /// Says that nothing more is sent.
    pub(crate) fn shut_write(&self) -> io::Result<()> {
        match self {
            Self::Plain(wire) => wire.shutdown(Shutdown::Write),
            Self::Sealed(sealing) => sealing.send_close(),
            Self::Translated(gateway) => gateway.shut_write(),
        }
    }

    /// Makes the close a reset.
    pub(crate) fn reset_on_close(&self) {
        self.wire().reset_on_close();
        self.keep_silent();
    }

    /// Makes the close one of the socket alone, as of a client that was cut off.
    pub(crate) fn keep_silent(&self) {
        match self {
            Self::Plain(_) => {}
            Self::Sealed(sealing) => sealing.keep_silent(),
            Self::Translated(gateway) => gateway.keep_silent(),
        }
    }
}

impl Read for Link {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        match self {
            Link::Plain(wire) => { &**wire }.read(piece),
            Link::Sealed(sealing) => sealing.read(piece),
            Link::Translated(gateway) => gateway.read(piece),
        }
    }
}

impl Write for Link {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Link::Plain(wire) => { &**wire }.write(bytes),
            Link::Sealed(sealing) => sealing.write(bytes),
            Link::Translated(gateway) => gateway.write(bytes),
        }
    }

    /// Fails as a write does where records are left that the kernel has not taken.
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Link::Plain(_) | Link::Translated(_) => Ok(()),
            Link::Sealed(sealing) => sealing.flush(),
        }
    }
}
