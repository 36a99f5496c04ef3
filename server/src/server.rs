//! A server from start to end.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use gustnado_tasks::{BlockingPool, Endpoint, Phase, Plan, Serve, SpawnError, Workers};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_shutdown;
use signal_hook::iterator::Signals;

use crate::app::{App, Routed, Site};
use crate::config::{Config, Machine};
use crate::conn;
use crate::files::{FileOptions, Files, FilesError};
use crate::hooks::Hooks;
use crate::pace;
use crate::routes::{Means, RouteError, Routes, Tables};
use crate::stats::{Stats, WorkerStats, write_regularly};

/// How long workers may take to end once nothing is left to do.
const STOP_WITHIN: Duration = Duration::from_secs(1);

/// Starts a server. Its threads run; it listens when this returns.
///
/// # Errors
/// [`StartError`]: one line that says what is wrong, where, and what helps.
pub fn start(config: Config) -> Result<Running, StartError> {
    start_site(config, Hooks::default(), open_site)
}

/// Starts a server with routes.
pub(crate) fn start_routes(
    config: Config,
    routes: &Routes,
    hooks: Hooks,
) -> Result<Running, StartError> {
    start_site(config, hooks, |config, workers| {
        let pool = BlockingPool::new(config.blocking_threads, config.blocking_queue);
        let means = Means::new(pool, file_options(config, workers));
        let tables = Tables::new(routes, &means).map_err(StartError::Routes)?;
        Ok(Site::Routes(Box::new(Routed::new(tables, means))))
    })
}

/// Whether `io_uring` can be used here, found by trying.
///
/// # Errors
/// The step that failed, and why.
pub fn probe_io_uring() -> Result<(), String> {
    gustnado_tasks::probe_uring().map_err(|error| error.to_string())
}

fn start_site(
    config: Config,
    hooks: Hooks,
    open: impl FnOnce(&Config, usize) -> Result<Site, StartError>,
) -> Result<Running, StartError> {
    let workers = Machine::read().workers(&config).value;
    let endpoints = endpoints(&config)?;
    let plan = plan(&config, workers);
    let site = open(&config, plan.workers_max())?;
    let app = App::shared(&config, plan.workers_max(), site, hooks);
    let serve = server_of(Arc::clone(&app));
    let workers = Workers::start(&plan, &endpoints, serve).map_err(StartError::from_workers)?;
    let workers = Arc::new(workers);
    app.attach(&workers);
    if !config.stats_interval.is_zero() {
        let writing = write_regularly(Arc::downgrade(&app), config.stats_interval);
        let failed = |error: SpawnError| StartError::Worker { error: io::Error::other(error) };
        workers.spawner().spawn(writing).map_err(failed)?;
    }
    Ok(Running { workers, app, config })
}

/// What makes the task of a connection: known once and for all.
fn server_of(app: Arc<App>) -> Box<Serve> {
    if app.pace().is_some() {
        return Box::new(move |link| Box::pin(conn::serve_paced(link, Arc::clone(&app))) as _);
    }
    Box::new(move |link| Box::pin(conn::serve(link, Arc::clone(&app))) as _)
}

fn plan(config: &Config, workers: usize) -> Plan {
    Plan {
        workers,
        growth: config.growth(),
        io: config.io,
        scheduler: config.scheduler,
        slots: config.slots,
        connections_max: config.connections_max,
        placement: config.placement,
        acceptor: config.acceptor,
        backlog: config.backlog,
        defer_accept: config.defer_accept,
        sockets: config.sockets(),
        spin_us: u64::from(config.spin_us),
        buffers: config.uring_buffers(),
        slowness: pace::slowness(&config.pace),
    }
}

fn endpoints(config: &Config) -> Result<Vec<Endpoint>, StartError> {
    if let Some(path) = &config.uds {
        return Ok(vec![Endpoint::Unix(path.clone())]);
    }
    let unknown = |error| StartError::Host { host: config.host.clone(), error };
    let addresses = (config.host.as_str(), config.port).to_socket_addrs().map_err(unknown)?;
    // A name may have several addresses; IPv4 first, as clients of `localhost` expect.
    let mut addresses: Vec<SocketAddr> = addresses.collect();
    addresses.sort_by_key(SocketAddr::is_ipv6);
    let first = addresses.into_iter().next();
    first
        .map(|address| vec![Endpoint::Tcp(address)])
        .ok_or_else(|| unknown(io::Error::new(io::ErrorKind::NotFound, "the name has no address")))
}

fn open_site(config: &Config, workers: usize) -> Result<Site, StartError> {
    let Some(root) = &config.root else { return Ok(Site::BuiltIn) };
    let options = file_options(config, workers);
    Ok(Site::Folder(Files::open(root, options).map_err(StartError::Folder)?))
}

fn file_options(config: &Config, workers: usize) -> FileOptions {
    FileOptions { hidden: config.hidden, cache_bytes: config.cache_bytes, workers }
}

/// A server that runs. Dropping it stops it at once.
pub struct Running {
    workers: Arc<Workers>,
    app: Arc<App>,
    config: Config,
}

/// How a drain ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainReport {
    /// Connections that were cut at the deadline.
    pub cut: usize,
    /// How long it took.
    pub took: Duration,
}

impl Running {
    /// Where it listens: `127.0.0.1:8080`, `unix:/run/site.sock`.
    pub fn addresses(&self) -> &[Endpoint] {
        self.workers.addresses()
    }

    /// What a user should know about the start: why a wish was not granted.
    pub fn notes(&self) -> &[String] {
        self.workers.notes()
    }

    /// The configuration it was started with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The backend at work: `io_uring` or `epoll`.
    pub fn backend(&self) -> &'static str {
        self.workers.backend().name()
    }

    /// What it has done so far.
    pub fn stats(&self) -> Stats {
        self.app.stats()
    }

    /// Workers there are now. One that is not needed any more counts until its last connection has
    /// ended.
    pub fn workers(&self) -> usize {
        self.workers.workers()
    }

    /// What each worker has done so far.
    pub fn stats_by_worker(&self) -> Vec<WorkerStats> {
        self.app.stats_by_worker()
    }

    /// Connections open now on each worker, those included that may still be added; one number
    /// where workers share them.
    pub fn connections_by_worker(&self) -> Vec<usize> {
        self.workers.connections_by_place()
    }

    /// Serves by other routes from now on; requests that are being answered go on by the old ones.
    /// Nothing is locked and nobody waits.
    ///
    /// # Errors
    /// [`RouteError`], and the old routes stay. A server without routes takes none: that is
    /// [`RouteError::NoRoutes`].
    pub fn swap_routes(&self, routes: &Routes) -> Result<(), RouteError> {
        let Site::Routes(site) = self.app.site() else { return Err(RouteError::NoRoutes) };
        site.swap(Tables::new(routes, &site.means)?);
        Ok(())
    }

    /// Ends the server in order, and returns when it has ended: accepts no more, closes idle
    /// connections at once and the others after their answer, cuts what is left at the `deadline`.
    pub fn drain(&self, deadline: Duration) -> DrainReport {
        let began = Instant::now();
        self.app.drain();
        self.workers.advance(Phase::Draining);
        self.wait_until_closed(deadline);
        let cut = self.workers.connections_open();
        self.workers.advance(Phase::Cutting);
        self.wait_until_closed(STOP_WITHIN);
        self.workers.stop(STOP_WITHIN);
        DrainReport { cut, took: began.elapsed() }
    }

    fn wait_until_closed(&self, within: Duration) {
        let began = Instant::now();
        while self.workers.connections_open() > 0 && began.elapsed() < within {
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Serves until INT or TERM comes, then ends in order within `timeout-graceful-shutdown`. A
    /// second signal ends the process at once, with 128 and the signal's number.
    ///
    /// # Errors
    /// [`StartError::Signals`].
    pub fn run(self) -> Result<(), StartError> {
        let failed = |error| StartError::Signals { error };
        let is_ending = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            let ending = Arc::clone(&is_ending);
            register_conditional_shutdown(signal, 128 + signal, ending).map_err(failed)?;
        }
        let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
        signals.wait().next();
        is_ending.store(true, Ordering::SeqCst);
        self.drain(self.config.timeout_graceful_shutdown);
        Ok(())
    }

    /// Ends the server at once.
    pub fn stop(self) {
        self.workers.advance(Phase::Cutting);
        self.workers.stop(STOP_WITHIN);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.workers.stop(STOP_WITHIN);
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("addresses", &self.addresses()).finish_non_exhaustive()
    }
}

/// Why a server did not start. `Display` is one line: what, where, remedy.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The host is no address and no known name.
    Host {
        /// What was given.
        host: String,
        /// What the resolver says.
        error: io::Error,
    },
    /// The folder cannot be served.
    Folder(FilesError),
    /// The routes cannot be served.
    Routes(RouteError),
    /// Another process listens there.
    InUse {
        /// Where.
        endpoint: Endpoint,
    },
    /// The user may not listen there.
    Denied {
        /// Where.
        endpoint: Endpoint,
    },
    /// Listening failed otherwise.
    Listen {
        /// Where.
        endpoint: Endpoint,
        /// What the kernel says.
        error: io::Error,
    },
    /// Signals could not be listened to.
    Signals {
        /// What the kernel says.
        error: io::Error,
    },
    /// A worker thread could not be started.
    Worker {
        /// What the kernel says.
        error: io::Error,
    },
}

impl StartError {
    fn from_workers(error: gustnado_tasks::StartError) -> Self {
        match error {
            gustnado_tasks::StartError::Bind(endpoint, error) => match error.kind() {
                io::ErrorKind::AddrInUse => Self::InUse { endpoint },
                io::ErrorKind::PermissionDenied => Self::Denied { endpoint },
                _ => Self::Listen { endpoint, error },
            },
            gustnado_tasks::StartError::Thread(error) => Self::Worker { error },
            other => Self::Worker { error: io::Error::other(other.to_string()) },
        }
    }

    /// The process's exit code: 78 (`EX_CONFIG`) where only another configuration can help, else 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Host { .. } | Self::Folder(_) | Self::Routes(_) => 78,
            _ => 1,
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host { host, error } => write!(
                f,
                "--host {host}: no such address ({error}); give an address such as 127.0.0.1, or \
                 0.0.0.0 for all"
            ),
            Self::Folder(error) => error.fmt(f),
            Self::Routes(error) => error.fmt(f),
            Self::InUse { endpoint } => write!(
                f,
                "cannot listen on {endpoint}: another process listens there; end it, or take \
                 another port with --port (0 picks a free one)"
            ),
            Self::Denied { endpoint: endpoint @ Endpoint::Tcp(address) } => write!(
                f,
                "cannot listen on {endpoint}: not permitted; ports below 1024 need privileges: \
                 take --port {} or give the binary CAP_NET_BIND_SERVICE",
                u32::from(address.port()) + 8000
            ),
            Self::Denied { endpoint } => write!(
                f,
                "cannot listen on {endpoint}: not permitted; choose a folder that you may write to"
            ),
            Self::Listen { endpoint, error } => write!(
                f,
                "cannot listen on {endpoint}: {error}; give an address of this machine with --host"
            ),
            Self::Signals { error } => write!(
                f,
                "cannot listen to signals: {error}; use `drain` and `stop` in place of `run`"
            ),
            Self::Worker { error } => write!(
                f,
                "cannot start a worker thread: {error}; lower --workers, or raise the limits that \
                 `gustnado doctor` shows"
            ),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Host { error, .. }
            | Self::Listen { error, .. }
            | Self::Signals { error }
            | Self::Worker { error } => Some(error),
            Self::Folder(error) => Some(error),
            _ => None,
        }
    }
}
