//! The load generator: runs a [`LoadPlan`] on threads of this process and returns its outcome.
//!
//! Each thread is a worker of the engine with a light task per connection. Threads share nothing
//! that changes while the load runs; their results are merged at the end.
//!
//! ```no_run
//! use gustnado_lab::load::{self, LoadProgress, ProgressObserver, StopHandle};
//! use gustnado_lab::plan::LoadPlan;
//!
//! struct Quiet;
//! impl ProgressObserver for Quiet {
//!     fn progress(&self, _: &LoadProgress) {}
//! }
//!
//! let mut plan = LoadPlan::closed("http://127.0.0.1:8080/", 50);
//! plan.end.requests = Some(10_000);
//! let outcome = load::run(&plan, &Quiet, &StopHandle::default()).expect("the plan is good");
//! println!("{:.0} requests per second", outcome.requests_per_s);
//! ```

mod connection;
mod coordinator;
mod counts;
mod findings;
mod held;
mod http1;
mod http2;
mod in_flight;
mod missing;
mod model;
mod pending;
mod response_reader;
mod route;
mod schedule;
mod script;
mod secure;
mod series;
mod shared;
mod slow;
mod sock_diag;
mod standstill;
mod thread;
mod totals;
mod trace;
pub(crate) mod usage;
mod warnings;
mod websocket;
mod websocket_requests;

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self as threads, JoinHandle};
use std::time::{Duration, Instant};

use gustnado_tasks::{WorkersStartError, descriptor_limit, probe_uring};
use rustix::io::Errno;

use crate::outcome::Outcome;
use crate::plan::{BackendChoice, LoadPlan, PlanError};
use script::Script;
use secure::LoadTls;
use series::TimeSeries;
use shared::LoadShared;
use thread::{ThreadError, ThreadResult};
use usage::MachineSnapshot;

/// Descriptors that each ring needs for connections that are being opened.
const DESCRIPTORS_OPENING: u64 = 256;
/// Interval of progress reports.
const BEAT: Duration = Duration::from_millis(100);

/// Observes the progress of a run.
pub trait ProgressObserver: Sync {
    /// Called about ten times a second, always on the thread that called [`run`].
    fn progress(&self, progress: &LoadProgress);
}

/// Progress of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadProgress {
    /// Time since measuring began; before that, since the start.
    pub elapsed: Duration,
    /// Planned time of measuring, if known.
    pub of: Option<Duration>,
    /// Successful responses so far.
    pub requests: u64,
    /// Planned number of requests, if known.
    pub asked: Option<u64>,
    /// Errors so far.
    pub errors: u64,
    /// Open connections.
    pub connections: u64,
    /// Successful responses in the last complete second.
    pub requests_per_s: f64,
    /// Median latency in that second, in microseconds; 0 with too few responses.
    pub p50_us: f64,
    /// 99th percentile in that second, in microseconds; 0 with too few responses.
    pub p99_us: f64,
    /// Current phase.
    pub phase: LoadPhase,
}

/// Phase of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoadPhase {
    /// Connections are being opened, and each is to have a response.
    #[default]
    Opening,
    /// The load runs and is not counted yet.
    Warming,
    /// The load runs and is counted.
    Measuring,
    /// The last responses are awaited.
    Ending,
}

/// Stops a run early, from any thread: the run then reports what it has.
#[derive(Clone, Debug, Default)]
pub struct StopHandle(Arc<AtomicBool>);

impl StopHandle {
    /// Stops the run, within about a tenth of a second.
    pub fn now(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Returns whether the run was stopped.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Error of a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoadError {
    /// The plan is invalid.
    Plan(PlanError),
    /// `io_uring` was requested, or is needed for this many connections, and is not available.
    Uring(io::Error),
    /// The first connections of all were refused: no server listens.
    Refused {
        /// The addresses that were tried.
        addresses: Vec<String>,
    },
    /// The first connections of all failed in their handshakes of TLS.
    Handshake {
        /// Why.
        reason: String,
    },
    /// The server has not chosen HTTP/2.
    NoHttp2,
    /// A thread or its reactor could not be started.
    Thread(io::Error),
    /// The trace could not be written.
    Trace {
        /// Its path.
        path: PathBuf,
        /// The cause.
        error: io::Error,
        /// The outcome of the run; `None` if the file could not be opened before the load.
        found: Option<Box<Outcome>>,
    },
    /// A thread has panicked: a bug in this program.
    Panicked,
}

impl LoadError {
    fn trace(path: &Path, error: io::Error, found: Option<Outcome>) -> Self {
        Self::Trace { path: path.to_owned(), error, found: found.map(Box::new) }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(error) => error.fmt(f),
            Self::Uring(error) if error.raw_os_error() == Some(Errno::MFILE.raw_os_error()) => {
                write!(
                    f,
                    "this many connections need more descriptors than this process may have ({}): \
                     raise the limit with ulimit -n, or give fewer connections",
                    descriptor_limit()
                )
            }
            Self::Refused { addresses } => write!(
                f,
                "nothing was measured: {} refused the connection; does a server listen there?",
                addresses.join(" and ")
            ),
            Self::Handshake { reason } => write!(
                f,
                "nothing was measured: no TLS with the server: {reason}; --cacert FILE names an \
                 authority to trust, --insecure trusts any certificate"
            ),
            Self::NoHttp2 => write!(
                f,
                "nothing was measured: the server does not speak HTTP/2 by TLS: {}; leave out --h2",
                secure::NO_HTTP2
            ),
            Self::Uring(error) => write!(
                f,
                "io_uring cannot be used here: {error}; take epoll, with fewer connections than \
                 descriptors (ulimit -n)"
            ),
            Self::Thread(error) => write!(f, "a thread of the generator cannot start: {error}"),
            Self::Trace { path, error, .. } => {
                write!(f, "the trace {} cannot be written: {error}", path.display())
            }
            Self::Panicked => f.write_str("a thread of the generator has panicked"),
        }
    }
}

impl Error for LoadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Plan(error) => error.source(),
            Self::Uring(error) | Self::Thread(error) | Self::Trace { error, .. } => Some(error),
            Self::Refused { .. } | Self::Handshake { .. } | Self::NoHttp2 | Self::Panicked => None,
        }
    }
}

/// Runs a plan on threads of this process. Returns at its end, or soon after it was stopped.
///
/// # Errors
/// [`LoadError`]. An unreachable server is not an error but an outcome without successful
/// responses.
pub fn run(
    plan: &LoadPlan,
    watch: &dyn ProgressObserver,
    stop: &StopHandle,
) -> Result<Outcome, LoadError> {
    plan.check().map_err(LoadError::Plan)?;
    let script = Script::prepare(plan).map_err(LoadError::Plan)?;
    let (io, count) = choose(plan)?;
    let trace = open_trace(plan)?;
    let shared = Arc::new(LoadShared::new(plan, script, stop, count));
    let mut handles = Vec::new();
    for thread in 0..count {
        match start(&shared, thread, io) {
            Ok(handle) => handles.push(handle),
            Err(error) => {
                shared.failed.store(true, Ordering::Relaxed);
                for handle in handles {
                    drop(handle.join());
                }
                return Err(LoadError::Thread(error));
            }
        }
    }
    let mut series = TimeSeries::default();
    let before = watch_until(&shared, &handles, watch, &mut series);
    let machine_delta = MachineSnapshot::read().since(&before);
    let results = join(handles, io)?;
    if let Some(addrs) = shared.script.only_way().filter(|_| shared.is_unreachable()) {
        if let Some(reason) = shared.script.tls.as_ref().and_then(LoadTls::failure) {
            if reason == secure::NO_HTTP2 {
                return Err(LoadError::NoHttp2);
            }
            return Err(LoadError::Handshake { reason: reason.to_owned() });
        }
        let addresses = addrs.all.iter().map(ToString::to_string).collect();
        return Err(LoadError::Refused { addresses });
    }
    series.collect(&shared);
    let (outcome, entries) = findings::outcome_of(&shared, io, results, series, machine_delta);
    match (trace, &plan.trace) {
        (Some(file), Some(path)) => match trace::write(file, entries) {
            Ok(()) => Ok(outcome),
            Err(error) => Err(LoadError::trace(path, error, Some(outcome))),
        },
        _ => Ok(outcome),
    }
}

/// Opens the file for the trace before the load, so that a wrong path costs no measurement.
fn open_trace(plan: &LoadPlan) -> Result<Option<File>, LoadError> {
    let open =
        |path: &PathBuf| File::create(path).map_err(|error| LoadError::trace(path, error, None));
    plan.trace.as_ref().map(open).transpose()
}

type LoadThread = JoinHandle<Result<ThreadResult, ThreadError>>;

fn start(shared: &Arc<LoadShared>, thread: u32, io: BackendChoice) -> io::Result<LoadThread> {
    let shared = Arc::clone(shared);
    threads::Builder::new().name(format!("load-{thread}")).spawn(move || {
        let result = thread::run(&shared, thread, io);
        if result.is_err() {
            shared.failed.store(true, Ordering::Relaxed);
        }
        result
    })
}

/// Reports progress until all threads have ended. Returns the machine's counters at the begin of
/// measuring.
fn watch_until(
    shared: &LoadShared,
    handles: &[LoadThread],
    watch: &dyn ProgressObserver,
    series: &mut TimeSeries,
) -> MachineSnapshot {
    let began = Instant::now();
    let mut measures = false;
    let mut before = MachineSnapshot::read();
    let mut shown = began;
    while !handles.iter().all(JoinHandle::is_finished) {
        threads::park_timeout(Duration::from_millis(5));
        let progress = if shown.elapsed() >= BEAT {
            shown = Instant::now();
            series.collect(shared);
            Some(series.progress(shared, began.elapsed()))
        } else {
            None
        };
        if let Some(progress) = progress {
            if !measures && progress.phase >= LoadPhase::Measuring {
                measures = true;
                before = MachineSnapshot::read();
            }
            watch.progress(&progress);
        }
        // The other threads wait for a thread that has panicked.
        if handles.iter().any(JoinHandle::is_finished) && shared.times().is_none() {
            shared.failed.store(true, Ordering::Relaxed);
        }
    }
    before
}

fn join(handles: Vec<LoadThread>, io: BackendChoice) -> Result<Vec<ThreadResult>, LoadError> {
    let joined: Vec<_> = handles.into_iter().map(JoinHandle::join).collect();
    joined
        .into_iter()
        .map(|result| match result.map_err(|_| LoadError::Panicked)? {
            Ok(result) => Ok(result),
            Err(ThreadError::Engine(WorkersStartError::Thread(error)))
                if io == BackendChoice::Uring =>
            {
                Err(LoadError::Uring(error))
            }
            Err(
                ThreadError::Engine(WorkersStartError::Thread(error)) | ThreadError::Timer(error),
            ) => Err(LoadError::Thread(error)),
            Err(ThreadError::Engine(error)) => Err(LoadError::Thread(io::Error::other(error))),
            Err(ThreadError::Spawn(error)) => Err(LoadError::Thread(io::Error::other(error))),
        })
        .collect()
}

/// Returns the backend and the number of threads: as many rings as the connections need.
fn choose(plan: &LoadPlan) -> Result<(BackendChoice, u32), LoadError> {
    let io = match plan.io {
        Some(io) => io,
        None if plan.needs_rings() => BackendChoice::Uring,
        None => BackendChoice::Epoll,
    };
    let cpus = threads::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    // Each thread has at least one connection.
    let usual = cpus.min(plan.connections);
    let mut count = plan.threads.map_or(usual, u64::from).min(plan.all_connections());
    if io == BackendChoice::Uring {
        probe_uring().map_err(LoadError::Uring)?;
        let table = (descriptor_limit() as u64).saturating_sub(DESCRIPTORS_OPENING).max(1);
        count = count.max(plan.all_connections().div_ceil(table));
    }
    Ok((io, u32::try_from(count).unwrap_or(u32::MAX).max(1)))
}
