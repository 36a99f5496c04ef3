//! A server under test, ended with the test.

use std::net::SocketAddr;

use gustnado::config::Config;
use gustnado::{Routes, Running, Stats};

use super::{Answer, Client, Setup, client};

/// A running server. It stops when it is dropped.
pub(crate) struct Server {
    running: Option<Running>,
    address: Option<SocketAddr>,
}

impl Server {
    /// Starts what `config` says.
    pub(crate) fn start(config: Config) -> Self {
        Self::of(gustnado::start(config).expect("the server starts"))
    }

    /// Starts with routes.
    pub(crate) fn routes(config: Config, routes: Routes) -> Self {
        let server = gustnado::Server::new().config(config).routes(routes);
        Self::of(server.start().expect("the server starts"))
    }

    /// Starts what a program has put together.
    pub(crate) fn built(server: gustnado::Server) -> Self {
        Self::of(server.start().expect("the server starts"))
    }

    /// What has been started, which is on the backend that was asked for.
    pub(crate) fn of(running: Running) -> Self {
        Setup::of(running.config()).assert_backend(running.backend(), running.notes());
        let address = running.addresses().iter().find_map(|found| found.to_string().parse().ok());
        Self { running: Some(running), address }
    }

    /// The server itself.
    pub(crate) fn running(&self) -> &Running {
        self.running.as_ref().expect("only the drop takes it")
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address.expect("it listens on TCP")
    }

    /// Its counters.
    pub(crate) fn stats(&self) -> Stats {
        self.running().stats()
    }

    /// A new connection.
    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.address())
    }

    /// A new connection that may not be accepted yet.
    pub(crate) fn connect_early(&self) -> Client {
        Client::connect_early(self.address())
    }

    /// The answer to one request on a connection of its own.
    pub(crate) fn ask(&self, request: impl AsRef<[u8]>) -> Answer {
        self.connect().ask(request)
    }

    /// The answer to a plain GET on a connection of its own.
    pub(crate) fn get(&self, target: &str) -> Answer {
        self.ask(client::get(target))
    }

    /// Waits until the counters are as they should be.
    pub(crate) fn wait_until(&self, what: &str, holds: impl Fn(&Stats) -> bool) {
        super::wait_until(what, || holds(&self.stats()));
    }

    /// Waits until no connection is left.
    pub(crate) fn wait_until_empty(&self) {
        self.wait_until("no connection is open", |stats| stats.connections_open == 0);
    }

    /// Ends it at once.
    pub(crate) fn stop(self) {
        drop(self);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop();
        }
    }
}
