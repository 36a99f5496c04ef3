//! The engine: workers that carry protocols, from start to end.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::{Arc, Condvar, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use gustnado_tasks::{
    DrainReport, Endpoint, Lock, Phase, WorkerPlan, Workers, descriptors_for_connections,
};

use gustnado_config::{Config, Machine};

use super::Factory;
use super::calls::{CallError, CallQueue, DelayedCall};
use super::counters::{EngineCounters, EngineStats};
use super::port::{ListenError, Port, Ports, UsedFactory};
use super::transport::ConnectionPolicy;

/// Workers that carry the connections of protocols. Clones are the same engine.
///
/// It runs from [`Engine::start`] until [`Engine::run`] or [`Engine::drain`] has ended it, or until
/// the last clone is dropped, those in connectors, factories and delayed calls included.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<EngineShared>,
}

struct EngineShared {
    workers: Workers,
    calls: Arc<CallQueue>,
    counters: Arc<EngineCounters>,
    ports: Lock<Ports>,
    stop_wanted: Lock<bool>,
    stop_bell: Condvar,
    drained: Lock<Option<DrainReport>>,
    drain_within: Duration,
    closing_ms: u64,
}

impl Engine {
    /// Starts the workers. Nothing is listened to yet.
    ///
    /// - `config`: `workers` and how they grow, `io`, `scheduler`, `slots`, `placement`,
    ///   `acceptor`, `spin_us`, `connections_max` and `backlog` say how they work;
    ///   `timeout_graceful_shutdown` is how long the end may take, and `write_timeout` the longest
    ///   time without progress while a connection that ends is written out. Of `pace`, what slows
    ///   accepting and the workers counts. Nothing else of it does. Connections are accepted before
    ///   their first bytes are here, since a server may send first. Those that the engine makes
    ///   itself are not counted against `connections_max`.
    ///
    /// # Errors
    /// A thread cannot be had, or the process is out of descriptors.
    pub fn start(config: &Config) -> Result<Self, EngineError> {
        let failed = |error: gustnado_tasks::WorkersStartError| match error {
            gustnado_tasks::WorkersStartError::Thread(error) => EngineError::Worker(error),
            other => EngineError::Worker(io::Error::other(other.to_string())),
        };
        let workers = Workers::start(&plan(config)).map_err(failed)?;
        let counters = Arc::<EngineCounters>::default();
        let calls = CallQueue::new(Arc::clone(&counters));
        let desk = workers.spawner().spawn(Arc::clone(&calls).run());
        desk.map_err(|error| EngineError::Worker(io::Error::other(error.to_string())))?;
        let closing_ms = u64::try_from(config.write_timeout.as_millis()).unwrap_or(u64::MAX);
        Ok(Self {
            shared: Arc::new(EngineShared {
                workers,
                calls,
                counters,
                ports: Lock::default(),
                stop_wanted: Lock::new(false),
                stop_bell: Condvar::new(),
                drained: Lock::new(None),
                drain_within: config.timeout_graceful_shutdown,
                closing_ms,
            }),
        })
    }

    /// Listens on a TCP address, and has `factory` build a protocol for each connection. Port 0
    /// takes a free one. An engine may have any number of listeners, also while it runs.
    ///
    /// # Errors
    /// [`ListenError`]: the address is malformed, in use or not permitted, or the engine stops.
    pub fn listen_tcp(
        &self,
        address: impl ToSocketAddrs,
        factory: impl Factory + 'static,
    ) -> Result<Port, ListenError> {
        let address = first_address(address).map_err(ListenError::Address)?;
        self.listen(&Endpoint::Tcp(address), Box::new(factory))
    }

    /// Listens on a Unix socket, whose file is removed when listening ends.
    ///
    /// # Errors
    /// [`ListenError`]: the path is in use or not permitted, or the engine stops.
    pub fn listen_unix(
        &self,
        path: impl AsRef<Path>,
        factory: impl Factory + 'static,
    ) -> Result<Port, ListenError> {
        self.listen(&Endpoint::Unix(path.as_ref().to_owned()), Box::new(factory))
    }

    fn listen(&self, endpoint: &Endpoint, factory: Box<dyn Factory>) -> Result<Port, ListenError> {
        let policy = ConnectionPolicy { hold_reading: true, closing_ms: self.shared.closing_ms };
        // Told of its begin, and perhaps of its end, while no lock is held.
        let used_factory = UsedFactory::start(factory, Arc::clone(&self.shared.counters));
        self.shared.ports.lock().open(&self.shared.workers, endpoint, &used_factory, policy)
    }

    /// Makes a call after `delay`, on a worker. Calls of an engine never run concurrently with each
    /// other; they must not block, for those behind them wait.
    ///
    /// # Errors
    /// [`CallError`]: 1,048,576 delayed calls wait already, or the engine stops.
    pub fn call_later(
        &self,
        delay: Duration,
        call: impl FnOnce() + Send + 'static,
    ) -> Result<DelayedCall, CallError> {
        self.shared.calls.call_later(delay, Box::new(call))
    }

    /// Makes a call soon, on a worker, from any thread. Calls are made in the order they came.
    ///
    /// # Errors
    /// [`CallError`]: 65,536 calls wait already, or the engine stops.
    pub fn call_from_thread(&self, call: impl FnOnce() + Send + 'static) -> Result<(), CallError> {
        self.shared.calls.call(Box::new(call))
    }

    /// Waits until someone calls [`Engine::stop`], then ends the engine in order, within the
    /// configuration's `timeout_graceful_shutdown`. Not from a callback.
    pub fn run(&self) -> DrainReport {
        let mut wanted = self.shared.stop_wanted.lock();
        while !*wanted {
            wanted = self.shared.stop_bell.wait(wanted).unwrap_or_else(PoisonError::into_inner);
        }
        drop(wanted);
        self.drain(self.shared.drain_within)
    }

    /// Makes [`Engine::run`] end the engine. From any thread, and from callbacks.
    pub fn stop(&self) {
        *self.shared.stop_wanted.lock() = true;
        self.shared.stop_bell.notify_all();
    }

    /// Returns whether the engine is stopping.
    pub fn is_stopping(&self) -> bool {
        *self.shared.stop_wanted.lock()
    }

    /// Ends the engine in order, and returns when it has ended: stops listening, notifies every
    /// protocol, lets connections write what is pending, cuts what is left at the `deadline`. Not
    /// from a callback: it would wait for itself.
    pub fn drain(&self, deadline: Duration) -> DrainReport {
        self.stop();
        let mut drained = self.shared.drained.lock();
        *drained.get_or_insert_with(|| {
            let began = Instant::now();
            let EngineShared { workers, calls, counters, .. } = &*self.shared;
            self.shared.ports.lock().close();
            workers.advance(Phase::Draining);
            let is_open = || counters.open() > 0;
            wait_while(|| workers.is_accepting() || is_open(), deadline);
            let cut = counters.open();
            workers.advance(Phase::Cutting);
            wait_while(is_open, Workers::STOP_WITHIN);
            workers.stop(Workers::STOP_WITHIN);
            calls.close();
            DrainReport { cut, took: began.elapsed() }
        })
    }

    /// Returns what it has done so far.
    pub fn stats(&self) -> EngineStats {
        self.shared.counters.stats()
    }

    /// Returns the backend at work: `io_uring` or `epoll`.
    pub fn backend(&self) -> &'static str {
        self.shared.workers.backend().name()
    }

    /// Returns notes on the start, e.g. why a requested setting was not applied.
    pub fn notes(&self) -> &[String] {
        self.shared.workers.notes()
    }

    pub(super) fn counters(&self) -> &Arc<EngineCounters> {
        &self.shared.counters
    }

    /// Returns the policy of connections that the engine makes.
    pub(super) fn client_policy(&self) -> ConnectionPolicy {
        ConnectionPolicy { hold_reading: false, closing_ms: self.shared.closing_ms }
    }

    /// Runs a task on some worker, or drops it.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        // A task that is not taken is dropped, which says enough to whom it belongs.
        let _ = self.shared.workers.spawner().spawn(task);
    }
}

fn plan(config: &Config) -> WorkerPlan {
    // Addresses are told to factories, so every connection is an ordinary descriptor.
    let ordinary = descriptors_for_connections(gustnado_tasks::descriptor_limit());
    let wanted = if config.connections_max == 0 { ordinary } else { config.connections_max };
    WorkerPlan {
        connections_max: wanted.min(ordinary),
        defer_accept: false,
        drain_accept: Duration::ZERO,
        ..config.worker_plan(Machine::read().workers(config).value)
    }
}

/// Returns the first address of a name; IPv4 first, as clients of `localhost` expect.
///
/// # Errors
/// The resolver's, or `NotFound` where the name has no address.
#[doc(hidden)]
pub fn first_address(name: impl ToSocketAddrs) -> io::Result<SocketAddr> {
    let mut addresses: Vec<SocketAddr> = name.to_socket_addrs()?.collect();
    addresses.sort_by_key(SocketAddr::is_ipv6);
    let none = || io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    addresses.into_iter().next().ok_or_else(none)
}

fn wait_while(goes_on: impl Fn() -> bool, within: Duration) {
    let began = Instant::now();
    while goes_on() && began.elapsed() < within {
        thread::sleep(Duration::from_millis(2));
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// The error of an engine that did not start.
#[non_exhaustive]
pub enum EngineError {
    /// A worker thread could not be started, or its I/O backend could not be created.
    Worker(io::Error),
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Worker(_) = self;
        f.write_str("cannot start a worker thread; lower `workers`, or raise the limits")
    }
}

impl std::error::Error for EngineError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let Self::Worker(error) = self;
        Some(error)
    }
}
