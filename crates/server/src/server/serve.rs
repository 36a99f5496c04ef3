//! Start and end of a server as programs with an async `main` do it: on a socket that they have
//! bound, until a future is ready.

use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::{io, thread};

use gustnado_tasks::{DrainReport, Driven, Endpoint, mailbox};

use super::{Running, StartError, check_server, endpoint_of, start_server, start_server_driven};
use crate::builder::Server;
use crate::config::ListenSpec;

/// A listening socket: std's `TcpListener` or `UnixListener`, with the feature `tower`
/// also those of tokio.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no listener that a server can take over",
    label = "expected a `TcpListener` or `UnixListener` of std or tokio",
    note = "tokio's need the cargo feature `tower`; any other socket is served by its number: \
            `server.listen(\"fd:9\")`"
)]
pub trait IntoListener {
    /// Converts the listener to its socket.
    ///
    /// # Errors
    /// The socket could not be taken out of the listener.
    fn into_listener(self) -> io::Result<OwnedFd>;
}

impl IntoListener for TcpListener {
    fn into_listener(self) -> io::Result<OwnedFd> {
        Ok(self.into())
    }
}

impl IntoListener for UnixListener {
    fn into_listener(self) -> io::Result<OwnedFd> {
        Ok(self.into())
    }
}

#[cfg(feature = "tower")]
impl IntoListener for tokio::net::TcpListener {
    fn into_listener(self) -> io::Result<OwnedFd> {
        Ok(self.into_std()?.into())
    }
}

#[cfg(feature = "tower")]
impl IntoListener for tokio::net::UnixListener {
    fn into_listener(self) -> io::Result<OwnedFd> {
        Ok(self.into_std()?.into())
    }
}

impl Server {
    /// Starts the server on one address.
    ///
    /// - `address`: `127.0.0.1:3456`, `[::1]:80`, `localhost:0` (0 picks a free port),
    ///   `unix:/run/site.sock`, `unix:@name`, or `fd:3` for a socket that listens already. Settings
    ///   of its own follow with blanks between them: see [`ListenSpec`].
    ///
    /// # Errors
    /// [`StartError`]: one line with the problem, its place and the remedy.
    pub fn listen(mut self, address: &str) -> Result<Running, StartError> {
        let config = &mut self.config;
        (config.listen, config.uds) = (Vec::new(), None);
        let has_own = ListenSpec::parse(address).is_ok_and(|spec| spec.has_own());
        match endpoint_of(address)? {
            _ if has_own => config.listen = vec![address.to_owned()],
            Endpoint::Tcp(found) => {
                (config.host, config.port) = (found.ip().to_string(), found.port());
            }
            Endpoint::Unix(path) => config.uds = Some(path),
            Endpoint::Inherited(_) => config.listen = vec![address.to_owned()],
        }
        self.start()
    }

    /// Starts the server on the addresses of the settings.
    ///
    /// # Errors
    /// As [`Server::listen`].
    pub fn start(self) -> Result<Running, StartError> {
        start_server(self)
    }

    /// Starts the server with the first worker on the calling thread, for a program with a loop of
    /// its own, which [turns](Driven::turn) the worker. Further workers, if configured, are threads
    /// as usual.
    ///
    /// It listens when this returns; connections wait for the first turn. All workers use epoll and
    /// share no tasks; [`Running::notes`] has a line if another value was set.
    ///
    /// [`Running::drain`] must then be called on other threads; the driving thread uses
    /// [`Running::begin_drain`].
    ///
    /// # Errors
    /// As [`Server::listen`]; [`StartError::Worker`] if the thread runs tasks already.
    pub fn start_driven(self) -> Result<(Running, Driven), StartError> {
        start_server_driven(self)
    }

    /// Checks whether the server could start, without listening: folders, routes, header fields.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn check(&self) -> Result<(), StartError> {
        check_server(self)
    }

    /// Starts to serve on a socket that listens already, as `axum::serve` does. The file of a Unix
    /// socket stays; the code that bound it removes it.
    ///
    /// ```no_run
    /// use gustnado::{Request, Server};
    ///
    /// # fn main() -> gustnado::Result<()> {
    /// let listener = std::net::TcpListener::bind("127.0.0.1:3456").expect("a free port");
    /// Server::new().get("/", |_: &Request| "Hello, world!").serve(listener)?.run()
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Server::listen`].
    pub fn serve(mut self, listener: impl IntoListener) -> Result<Running, StartError> {
        let unusable = |error| StartError::Host { host: "the listener".to_owned(), error };
        let socket = listener.into_listener().map_err(unusable)?;
        let number = socket.as_raw_fd();
        self.config.listen = vec![format!("fd:{number}")];
        let running = self.start()?;
        // Only the server has the socket now: it serves the queue to its end, and closes it.
        running.take_socket_over(number);
        drop(socket);
        Ok(running)
    }
}

impl Running {
    /// Serves until `signal` comes, then ends in order within `timeout-graceful-shutdown`. For an
    /// async `main`; no thread of the runtime waits meanwhile. Dropping the future ends the server
    /// at once.
    ///
    /// ```no_run
    /// # async fn shutdown() {}
    /// # async fn serve(server: gustnado::Server) -> gustnado::Result<()> {
    /// server.listen("127.0.0.1:3456")?.until(shutdown()).await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn until<F: Future>(self, signal: F) -> DrainReport {
        signal.await;
        let deadline = self.state().config.timeout_graceful_shutdown;
        let (running, (report, mut reports)) = (Arc::new(self), mailbox(1));
        let drain = {
            let running = Arc::clone(&running);
            move || _ = report.try_send(running.drain(deadline))
        };
        match thread::Builder::new().name("gust-drain".to_owned()).spawn(drain) {
            Ok(_) => reports.recv().await.expect("a drain ends with a report"),
            // If no thread can be started, this one blocks instead.
            Err(_) => running.drain(deadline),
        }
    }

    /// Does the same as [`Running::until`], under the name that axum uses.
    pub async fn with_graceful_shutdown<F: Future>(self, signal: F) -> DrainReport {
        self.until(signal).await
    }
}
