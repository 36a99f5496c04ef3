//! A server from start to end.

#[cfg(feature = "acme")]
mod acme;
mod asked_app;
#[cfg(feature = "acme")]
mod certificate_actions;
mod check;
mod drain;
mod held_workers;
mod listeners;
mod logs;
#[cfg(not(feature = "acme"))]
mod no_acme;
mod pages;
mod reload;
mod serve;
mod shared_stats;
mod start_error;
mod tls;
#[cfg(feature = "tls-any")]
mod tls_front;
mod urls;

use std::io::{self, IsTerminal, Write as _};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, thread};

use gustnado_config::{Headers, WebSocketSettings};
use gustnado_tasks::{
    BlockingPool, Driven, Endpoint, Ledger, MemoryKind, Phase, SpawnError, WorkerPlan, Workers,
};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_shutdown;
use signal_hook::iterator::Signals;

use crate::builder::Server;
use crate::config::{Config, Listing, Machine, MemoryPlan};
use crate::privileges::{self, Account};
use crate::status_page;
use gustnado_app::app::{App, AppHandle, ServerShared};
use gustnado_files::{FileOptions, Folders, LookupTrace};
use gustnado_observe::access_log::AccessLog;
use gustnado_observe::server_stats::ServerStats;
use gustnado_observe::stats::{Stats, WorkerStats};
use gustnado_web::build_context::BuildContext;
use gustnado_web::handler_limits::LimitContext;
use gustnado_web::routes::{RouteError, Routes, Tables};
use gustnado_web::spool::Spool;
use gustnado_web::stats_page::write_regularly;
#[cfg(not(feature = "acme"))]
use no_acme as acme;

use listeners::{Listeners, NameLookup};

pub(crate) use asked_app::AskedApp;
pub(crate) use check::check_server;
pub use drain::Drain;
pub(crate) use listeners::endpoint_of;
pub use reload::Reloaded;
pub use serve::IntoListener;
pub use start_error::StartError;
#[cfg(feature = "tls-any")]
pub use tls_front::TlsFront;

/// Starts a server. Its threads run; it listens when this returns.
///
/// # Errors
/// [`StartError`]: one line with the problem, its place and the remedy.
pub fn start(config: Config) -> Result<Running, StartError> {
    start_server(Server::of_config(config))
}

/// Tries whether `io_uring` can be used on this machine.
///
/// # Errors
/// The step that failed, and its error.
pub fn probe_io_uring() -> Result<(), String> {
    gustnado_tasks::probe_uring().map_err(|error| error.to_string())
}

/// Starts the server of a builder.
pub(crate) fn start_server(builder: Server) -> Result<Running, StartError> {
    let start = |plan: &WorkerPlan| Workers::start(plan).map(|workers| (workers, ()));
    start_with(builder, start).map(|(running, ())| running)
}

/// Starts a server with one worker on the calling thread.
pub(crate) fn start_server_driven(builder: Server) -> Result<(Running, Driven), StartError> {
    start_with(builder, Workers::start_driven)
}

fn start_with<D>(
    builder: Server,
    start: impl FnOnce(&WorkerPlan) -> Result<(Workers, D), gustnado_tasks::WorkersStartError>,
) -> Result<(Running, D), StartError> {
    let config = &builder.config;
    // Before the first thread is started: all inherit it.
    let account = account(config)?.map(locked).transpose()?;
    let machine = Machine::read();
    let count = machine.workers(config).value;
    let plans = listeners::plans(&builder, NameLookup::Now)?;
    let endpoints: Vec<_> = plans.iter().map(|plan| plan.endpoint.clone()).collect();
    let owner = account.as_ref().map(Account::ids);
    let keeper = acme::open(config, listeners::has_plain(&plans), owner)?;
    let tls = listeners::tls_acceptor(&builder, &plans)?;
    let openings = listeners::openings(config, &plans, tls.as_ref());
    let plan = config.worker_plan(count);
    let resources = RouteResources::new(config, plan.workers_max());
    let scheduler = config.scheduler.as_str();
    let shared = ServerShared::new(plan.workers_max(), scheduler, resources.folders.counts());
    let tables = resources.tables(&builder, &shared, &machine, lists(config, &endpoints))?;
    shared.set_lines(lines(&builder.config, &builder.fields));
    shared.handler_limits.set(config);
    shared.spool.set(config);
    let log = AccessLog::of(config, shared.places(), &shared.logs, None)?;
    let hooks = (logs::with_lines(&builder.hooks, config), log);
    let current = AppHandle::new(|current| {
        App::new(config, tables, hooks, Arc::clone(&shared), current, openings)
    });
    let (workers, driven) = start(&plan).map_err(StartError::from_workers)?;
    let workers = Arc::new(workers);
    shared.attach(&workers);
    set_budgets(workers.ledger(), &machine.memory_plan(config));
    let mut listeners = Listeners::default();
    for plan in plans {
        listeners.open(&workers, plan, &current)?;
    }
    if !config.stats_interval.is_zero() {
        let server: Arc<dyn ServerStats> = Arc::clone(&shared) as _;
        let writing = write_regularly(Arc::downgrade(&server), config.stats_interval);
        let failed = |error: SpawnError| StartError::Worker { error: io::Error::other(error) };
        workers.spawner().spawn(writing).map_err(failed)?;
    }
    held_workers::watch(&workers, &shared, &current, config.restart_hung)?;
    if let Some(tls) = &tls {
        tls::tell_ends(tls, &shared);
        let failed = |error| StartError::Worker { error };
        tls::watch_files(&current, &shared).map_err(failed)?;
    }
    if let Some(account) = account {
        account.enter().map_err(StartError::User)?;
    }
    let keeping = keeper.map(|keeper| acme::keep(keeper, &shared)).transpose()?;
    let (addresses, has_tls) = (listeners.addresses(), listeners.has_tls());
    let of_tls = tls.as_deref().map(tls::notes).unwrap_or_default();
    let notes = workers.notes().iter().cloned().chain(listeners.refused()).chain(of_tls).collect();
    let config = builder.config;
    let watches_files = tls.is_some();
    let state = ReloadState { config: config.clone(), listeners, keeping, watches_files };
    let state = Mutex::new(state);
    let running =
        Running { workers, current, shared, resources, state, config, addresses, has_tls, notes };
    Ok((running, driven))
}

/// Sets how much memory of each kind may be held.
fn set_budgets(ledger: &Ledger, plan: &MemoryPlan) {
    for kind in MemoryKind::ALL {
        ledger.set_budget(kind, plan.budget(kind));
    }
}

/// Returns the account that the process changes to.
fn account(config: &Config) -> Result<Option<Account>, StartError> {
    let text = Some(config.user.as_str()).filter(|text| !text.is_empty());
    text.map(Account::find).transpose().map_err(StartError::User)
}

/// Checks that the process may change to the account, and keeps it from gaining privileges.
fn locked(account: Account) -> Result<Account, StartError> {
    let locked = account.check().and_then(|()| privileges::lock(&account));
    locked.map_err(StartError::User).map(|()| account)
}

/// Changes the whole process from root to another user for good, as the setting `user` does at the
/// start: for programs that open sockets themselves. Call it before other threads are started, so
/// that none of them can gain privileges.
///
/// - `user`: `www-data`, `www-data:web`, or numbers.
///
/// # Errors
/// [`StartError::User`]: there is no such user or group, or the process may not change to it.
pub fn drop_privileges(user: &str) -> Result<(), StartError> {
    let account = locked(Account::find(user).map_err(StartError::User)?)?;
    account.enter().map_err(StartError::User)
}

/// Returns whether folders without an index are listed where `listing` is `auto`.
fn lists(config: &Config, endpoints: &[Endpoint]) -> bool {
    Listing::Auto.is_on(config, endpoints, io::stderr().is_terminal())
}

/// Returns the field lines of every response, except for the date.
pub(crate) fn lines(config: &Config, fields: &Headers) -> Vec<u8> {
    let name = &config.server_name;
    let mut lines = Vec::new();
    if !name.is_empty() {
        lines.extend_from_slice(format!("Server: {name}\r\n").as_bytes());
    }
    lines.extend_from_slice(&fields.lines());
    lines
}

/// Returns the pool for blocking handlers. Its own queue takes those that have their permit, a
/// thread's worth each, and as many that are exempt as others may wait.
pub(crate) fn blocking_pool(config: &Config) -> BlockingPool {
    BlockingPool::new(config.blocking_threads, config.blocking_threads + config.blocking_queue)
}

/// Resources that routes are built with, at the start and at each reload.
struct RouteResources {
    workers: usize,
    pool: BlockingPool,
    folders: Folders,
    /// Where lookups of files are noted, if somebody asks.
    trace: Option<LookupTrace>,
    #[cfg(feature = "tower")]
    tokio: Arc<gustnado_web::tokio_runtime::Tokio>,
}

impl RouteResources {
    fn new(config: &Config, workers: usize) -> Self {
        let pool = blocking_pool(config);
        Self {
            workers,
            pool,
            folders: Folders::default(),
            trace: None,
            #[cfg(feature = "tower")]
            tokio: Arc::default(),
        }
    }

    /// - `lists`: as returned by [`lists`].
    fn tables(
        &self,
        builder: &Server,
        server: &Arc<ServerShared>,
        machine: &Machine,
        lists: bool,
    ) -> Result<Arc<Tables>, StartError> {
        let field = |(name, error)| StartError::Routes(RouteError::Field { name, error });
        builder.fields.check().map_err(field)?;
        builder.overridden.check().map_err(field)?;
        check::check_networks(&builder.config)?;
        Spool::check(&builder.config).map_err(StartError::from_spool)?;
        let common: Arc<[u8]> = builder.fields.lines().into();
        let (config, routes) = (&builder.config, &builder.routes);
        let folders = routes.folders() + usize::from(config.root.is_some());
        let files = FileOptions {
            settings: config.routes.clone(),
            lists_on_auto: lists,
            cache_bytes: machine.memory_plan(config).cache / folders.max(1) as u64,
            workers: self.workers,
            threads: config.file_threads,
            wait: config.write_timeout,
            counts: Arc::clone(&server.handler_limits.compression),
            trace: self.trace.clone(),
            archives_max: config.archives_max,
            elsewhere: Vec::new(),
            spool: Spool::folder_of(config),
        };
        let limits = LimitContext::new(&server.handler_limits, config);
        let build = BuildContext {
            body_policy: config.body_policy,
            spool: Arc::clone(&server.spool),
            websockets: WebSocketSettings::of(config),
            folders: self.folders.clone(),
            common,
            overridden: Arc::new(builder.overridden.fields()),
            pages: pages::of(config),
            error_pages: pages::of_errors(config)?,
            uploads: Some(gustnado_web::uploads::handler),
            #[cfg(feature = "tower")]
            service_body_bytes: Some(config.limit_body_bytes)
                .filter(|bytes| *bytes != Config::default().limit_body_bytes),
            server: Some(Arc::clone(server) as Arc<dyn ServerStats>),
            #[cfg(feature = "tower")]
            tokio: Arc::clone(&self.tokio),
            ..BuildContext::new(self.pool.clone(), limits, files)
        };
        let routes = match &config.root {
            Some(root) => routes.clone().root(root),
            None if routes.is_bare() && builder.or_built_in => status_page::add_to(routes.clone()),
            None => routes.clone(),
        };
        let tables = Tables::new(&pages::add_to(routes, &build), &build);
        tables.map(Arc::new).map_err(StartError::Routes)
    }
}

/// A server that runs. Dropping it stops it at once.
pub struct Running {
    workers: Arc<Workers>,
    current: Arc<AppHandle>,
    shared: Arc<ServerShared>,
    resources: RouteResources,
    state: Mutex<ReloadState>,
    config: Config,
    addresses: Vec<Endpoint>,
    /// Which of them speak TLS.
    has_tls: Vec<bool>,
    notes: Vec<String>,
}

/// State that a reload replaces.
struct ReloadState {
    config: Config,
    listeners: Listeners,
    /// Keeps the certificate of an authority valid.
    keeping: Option<acme::KeeperHandle>,
    /// Whether a thread looks at the files of certificates. It begins with the first certificate,
    /// at the start or by a reload, and ends with the server.
    watches_files: bool,
}

impl Running {
    /// Returns the addresses from the start: `127.0.0.1:8080`, `unix:/run/site.sock`.
    pub fn addresses(&self) -> &[Endpoint] {
        &self.addresses
    }

    /// Returns the same addresses as URLs: `http://127.0.0.1:8080/`.
    pub fn urls(&self) -> Vec<String> {
        let has_tls = self.has_tls.iter().copied().chain(std::iter::repeat(false));
        self.addresses.iter().zip(has_tls).map(|(to, has_tls)| urls::url(to, has_tls)).collect()
    }

    /// Returns the current addresses: a reload may have opened and closed listeners.
    pub fn listens_on(&self) -> Vec<Endpoint> {
        self.state().listeners.addresses()
    }

    fn state(&self) -> MutexGuard<'_, ReloadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns notes on the start, e.g. why a requested setting was not applied.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the configuration of the start.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the name of the backend in use: `io_uring` or `epoll`.
    pub fn backend(&self) -> &'static str {
        self.workers.backend().name()
    }

    /// Returns whether the server is ready for new connections. A drain clears this first and still
    /// serves new connections, so that a load balancer can redirect clients in time. It is false
    /// too while a handler has held a worker for 5 seconds or longer.
    pub fn ready(&self) -> bool {
        self.shared.is_ready()
    }

    /// Takes over a listening socket inherited by number (`fd:3`): no other process accepts from it
    /// once this server has ended, so its queue is served to the end, like those of its own
    /// sockets. Otherwise the queue is left to the other processes. Returns whether the server
    /// listens there.
    pub fn take_socket_over(&self, number: RawFd) -> bool {
        self.state().listeners.take_over(&Endpoint::Inherited(number))
    }

    /// Shares the load with other processes that accept from the same sockets (`fd:3`): one that
    /// has more connections than the mean lets the others accept first.
    ///
    /// - `number`: a descriptor of a memory file that all processes share, in which each has a
    ///   `place` for its number of connections (`u32`, in the machine's byte order). The process
    ///   supervisor writes `u32::MAX` there for a process that has died.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn share_load(&self, number: RawFd, place: u32) -> io::Result<()> {
        self.workers.share_load(number, place)
    }

    /// Returns the counters so far.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// Returns the number of workers. A retired worker counts until its last connection has ended.
    pub fn workers(&self) -> usize {
        self.workers.workers()
    }

    /// Returns the counters of each worker.
    pub fn stats_by_worker(&self) -> Vec<WorkerStats> {
        self.shared.stats_by_worker()
    }

    /// Returns the open connections of each worker, reserved ones too; one number if shared.
    pub fn connections_by_worker(&self) -> Vec<usize> {
        self.workers.connections_by_place()
    }

    /// Replaces the routes. Requests that are already running finish by the old ones. It takes no
    /// lock and does not wait.
    ///
    /// # Errors
    /// [`RouteError`], and the old routes stay.
    pub fn swap_routes(&self, routes: &Routes) -> Result<(), RouteError> {
        let build = &self.current.app().tables.build;
        let tables = Tables::new(&pages::add_to(routes.clone(), build), build)?;
        self.current.swap_routes(tables);
        Ok(())
    }

    /// Serves until INT or TERM comes, then ends in order within `timeout-graceful-shutdown`. A
    /// second signal ends the process at once, with 128 and the signal's number.
    ///
    /// Writes the addresses that it listens on to standard error, unless the setting `quiet` is on.
    ///
    /// # Errors
    /// [`StartError::Signals`]: the signal handlers cannot be installed.
    pub fn run(self) -> Result<(), StartError> {
        let failed = |error| StartError::Signals { error };
        let is_ending = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            let ending = Arc::clone(&is_ending);
            register_conditional_shutdown(signal, 128 + signal, ending).map_err(failed)?;
        }
        let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
        if !self.config.quiet {
            let text = concat!("gustnado ", env!("CARGO_PKG_VERSION"), " listens on");
            // Standard error may be closed; the message is not essential.
            _ = writeln!(io::stderr(), "{text} {}", self.urls().join(" and "));
        }
        signals.wait().next();
        is_ending.store(true, Ordering::SeqCst);
        let deadline = self.state().config.timeout_graceful_shutdown;
        self.drain(deadline);
        Ok(())
    }

    /// Closes all connections and listening sockets, and waits for that, for at most `within`: for
    /// a process that is about to exit and must free its ports.
    pub fn close_listeners(&self, within: Duration) {
        self.workers.advance(Phase::Cutting);
        let began = Instant::now();
        while self.workers.is_accepting() && began.elapsed() < within {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends the server at once.
    pub fn stop(self) {
        self.workers.advance(Phase::Cutting);
        self.end();
    }

    fn end(&self) {
        self.workers.stop(Workers::STOP_WITHIN);
        self.state().listeners.stop();
        self.shared.logs.finish();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("addresses", &self.addresses()).finish_non_exhaustive()
    }
}
