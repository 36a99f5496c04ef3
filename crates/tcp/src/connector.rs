//! Connections that an engine makes.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use gustnado_tasks::{Connection, ConnectionError, Endpoint, Lock, Outbound, Phase};
use gustnado_tls::Socket;

use super::connection::ProtocolLoop;
use super::counters::EngineCounters;
use super::engine::{Engine, first_address};
use super::handle::TransportHandle;
use super::port::OpenGuard;
use super::{Factory, Reason};

/// Options of an outgoing connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectOptions {
    /// Longest time for that. 30 s by default. Whole milliseconds count.
    pub timeout: Duration,
    /// From which address of this machine; the kernel's choice by default. Port 0 is a free one.
    pub source: Option<SocketAddr>,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(30), source: None }
    }
}

/// A connection of an engine to one address: being made, made, or over and perhaps made again.
/// Clones are the same connector; dropping it changes nothing. It holds its engine.
#[derive(Clone)]
pub struct Connector {
    shared: Arc<ConnectorShared>,
}

struct ConnectorShared {
    engine: Engine,
    to: Endpoint,
    options: ConnectOptions,
    factory: Box<dyn Factory>,
    stage: Lock<ConnectorStage>,
}

/// The state of a connector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectorState {
    /// There is no connection, and none is being made.
    Disconnected,
    /// A connection is being made.
    Connecting,
    /// There is a connection.
    Connected,
}

enum ConnectorStage {
    Disconnected,
    /// Woken when the attempt is to end.
    Connecting {
        cancelled: bool,
        task: Option<Waker>,
    },
    Connected(TransportHandle),
}

impl Engine {
    /// Makes a connection to a TCP address, and has `factory` build its protocol, or passes it the
    /// cause of a failure. A name is looked up here and now, which may hold the thread: in
    /// callbacks, give an address.
    ///
    /// # Errors
    /// The name has no address.
    pub fn connect_tcp(
        &self,
        address: impl ToSocketAddrs,
        options: ConnectOptions,
        factory: impl Factory + 'static,
    ) -> io::Result<Connector> {
        let to = Endpoint::Tcp(first_address(address)?);
        Ok(self.connect(to, options, Box::new(factory)))
    }

    /// Makes a connection to a Unix socket. Of the options only the time-out counts.
    pub fn connect_unix(
        &self,
        path: impl AsRef<Path>,
        options: ConnectOptions,
        factory: impl Factory + 'static,
    ) -> Connector {
        let options = ConnectOptions { source: None, ..options };
        self.connect(Endpoint::Unix(path.as_ref().to_owned()), options, Box::new(factory))
    }

    fn connect(
        &self,
        to: Endpoint,
        options: ConnectOptions,
        factory: Box<dyn Factory>,
    ) -> Connector {
        let connector = Connector::new(self.clone(), to, options, factory);
        connector.connect();
        connector
    }
}

impl Connector {
    fn new(
        engine: Engine,
        to: Endpoint,
        options: ConnectOptions,
        factory: Box<dyn Factory>,
    ) -> Self {
        let stage = Lock::new(ConnectorStage::Disconnected);
        Self { shared: Arc::new(ConnectorShared { engine, to, options, factory, stage }) }
    }

    /// Makes a connection, unless there is one or one is being made. Its factory hears how that
    /// goes.
    pub fn connect(&self) {
        {
            let mut stage = self.shared.stage.lock();
            if !matches!(*stage, ConnectorStage::Disconnected) {
                return;
            }
            *stage = ConnectorStage::Connecting { cancelled: false, task: None };
        }
        self.tell(|factory| factory.started());
        let attempt = Attempt { connector: self.clone(), open: None, made: false, notified: false };
        // Where it is not taken, it is dropped, and tells the factory by that.
        if !self.shared.engine.is_stopping() {
            self.shared.engine.spawn(attempt.run());
        }
    }

    /// Ends the attempt to make a connection.
    pub fn stop_connecting(&self) {
        if let ConnectorStage::Connecting { cancelled, task } = &mut *self.shared.stage.lock() {
            *cancelled = true;
            if let Some(task) = task.take() {
                task.wake();
            }
        }
    }

    /// Ends the attempt, or closes the connection in order.
    pub fn disconnect(&self) {
        self.stop_connecting();
        if let Some(handle) = self.handle() {
            handle.lose_connection();
        }
    }

    /// Returns the connection, if there is one.
    pub fn handle(&self) -> Option<TransportHandle> {
        match &*self.shared.stage.lock() {
            ConnectorStage::Connected(handle) => Some(handle.clone()),
            _ => None,
        }
    }

    /// Returns where it connects to.
    pub fn destination(&self) -> &Endpoint {
        &self.shared.to
    }

    /// Returns how far it is.
    pub fn state(&self) -> ConnectorState {
        match &*self.shared.stage.lock() {
            ConnectorStage::Disconnected => ConnectorState::Disconnected,
            ConnectorStage::Connecting { .. } => ConnectorState::Connecting,
            ConnectorStage::Connected(_) => ConnectorState::Connected,
        }
    }

    /// Returns the engine that it belongs to.
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// Makes the connection itself.
    async fn open(&self) -> Result<Connection, ConnectError> {
        let ConnectorShared { to, options, .. } = &*self.shared;
        let timeout_ms = u64::try_from(options.timeout.as_millis()).unwrap_or(u64::MAX >> 1);
        let outbound = Outbound { source: options.source, ..Outbound::default() };
        let mut connecting = pin!(Connection::connect(to, &outbound, timeout_ms));
        poll_fn(|context| {
            if let ConnectorStage::Connecting { cancelled, task } = &mut *self.shared.stage.lock() {
                if *cancelled {
                    return Poll::Ready(Err(ConnectError::Cancelled));
                }
                *task = Some(context.waker().clone());
            }
            if gustnado_tasks::phase() != Phase::Serving {
                return Poll::Ready(Err(ConnectError::Stopped));
            }
            connecting.as_mut().poll(context).map_err(ConnectError::of)
        })
        .await
    }

    /// Calls the factory. A panic in it is counted, and changes nothing else.
    fn tell(&self, callback: impl FnOnce(&dyn Factory)) {
        let shared = &self.shared;
        shared.engine.counters().contain(|| callback(&*shared.factory));
    }

    /// There is no connection any more: tells the factory, which may begin another.
    fn tell_over(&self, callback: impl FnOnce(&dyn Factory)) {
        *self.shared.stage.lock() = ConnectorStage::Disconnected;
        self.tell(callback);
        if self.state() == ConnectorState::Disconnected {
            self.tell(|factory| factory.stopped());
        }
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector")
            .field("to", &self.shared.to)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

/// One connection of a connector, from the first step to the last. Its factory hears of the end
/// once, also if the task is dropped where it waits.
struct Attempt {
    connector: Connector,
    open: Option<OpenGuard>,
    made: bool,
    notified: bool,
}

impl Attempt {
    async fn run(mut self) {
        let counters = Arc::clone(self.connector.engine().counters());
        self.open = Some(OpenGuard::new(Arc::clone(&counters)));
        match self.connect(&counters).await {
            Err(error) => self.tell_failed(&error),
            Ok(mut running) => {
                self.made = true;
                let handle = running.handle();
                *self.connector.shared.stage.lock() = ConnectorStage::Connected(handle);
                let reason = running.run().await;
                self.tell_lost(reason);
                running.linger(reason).await;
            }
        }
    }

    async fn connect(
        &self,
        counters: &Arc<EngineCounters>,
    ) -> Result<Box<ProtocolLoop>, ConnectError> {
        let mut connection = self.connector.open().await?;
        connection.set_deadline(u64::MAX);
        let policy = self.connector.engine().client_policy();
        let factory = &*self.connector.shared.factory;
        let built = ProtocolLoop::build(Socket::new(connection), factory, counters, policy);
        let mut running = built.ok_or(ConnectError::NoProtocol)?;
        running.attend().await;
        Ok(running)
    }

    fn tell_failed(&mut self, error: &ConnectError) {
        self.notified = true;
        let connector = &self.connector;
        connector.tell_over(|factory| factory.connection_failed(connector, error));
    }

    fn tell_lost(&mut self, reason: Reason) {
        self.notified = true;
        let connector = &self.connector;
        connector.tell_over(|factory| factory.connection_lost(connector, reason));
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        match (self.notified, self.made) {
            (true, _) => {}
            (false, true) => self.tell_lost(Reason::Ended),
            (false, false) if self.open.is_some() => self.tell_failed(&ConnectError::Stopped),
            (false, false) => {
                // Not even begun. It counts as connecting while the factory hears of that: if this
                // made it try again, there would be no end.
                let connector = &self.connector;
                connector.tell(|factory| {
                    factory.connection_failed(connector, &ConnectError::Stopped);
                });
                connector.tell_over(|_| {});
            }
        }
    }
}

/// The error of a connection that could not be made.
#[non_exhaustive]
pub enum ConnectError {
    /// It took too long.
    TimedOut,
    /// Nothing listens there, there is no route, or the source address is not this machine's.
    Refused(io::Error),
    /// The factory built no protocol, or the peer was gone at once.
    NoProtocol,
    /// [`Connector::stop_connecting`] was called.
    Cancelled,
    /// The engine stops, or has no room for one more task.
    Stopped,
}

impl ConnectError {
    fn of(error: ConnectionError) -> Self {
        match error {
            ConnectionError::TimedOut => Self::TimedOut,
            ConnectionError::Broken(error) => Self::Refused(error),
            _ => Self::Stopped,
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "connecting took too long",
            Self::Refused(_) => "no connection could be made",
            Self::NoProtocol => "no protocol wants the connection",
            Self::Cancelled => "connecting was given up",
            Self::Stopped => "the engine takes no more connections",
        })
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Refused(error) => Some(error),
            _ => None,
        }
    }
}
