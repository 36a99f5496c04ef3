//! The engine as a Python object: started with settings and routes, and driven by its owner's loop.

mod handlers;

use std::cell::RefCell;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use send_wrapper::SendWrapper;

use gustnado::config::Listing;
use gustnado::driven::{Driven, ReactorWaker, Wants, WatchEvent};
use gustnado::{Drain, Routes, Running, Server, route};

use crate::asgi::Asgi;
use crate::call::CallContext;
use crate::coroutine::has_paused;
use crate::poller::up_to_ms;
use crate::wsgi::Wsgi;
use crate::{coroutine, errors, hang_watch, limits};
use handlers::{HandlerSpec, SocketSpec, policy_of};

/// A folder: its path, where it is, and names and values of settings of its own.
type FolderSpec = (String, String, Vec<(String, String)>);

/// State of the engine's turns for other threads.
struct TurnState {
    began: Instant,
    /// Number of sleeps and wake-ups.
    turns: AtomicU64,
    /// Last wake-up, in microseconds since `began`.
    up_us: AtomicU64,
}

impl TurnState {
    fn new() -> Arc<Self> {
        Arc::new(Self { began: Instant::now(), turns: AtomicU64::new(0), up_us: AtomicU64::new(0) })
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn lie_down(&self) {
        self.turns.fetch_add(1, Ordering::Relaxed);
    }

    fn get_up(&self) {
        self.up_us.store(self.now_us(), Ordering::Relaxed);
        self.turns.fetch_add(1, Ordering::Relaxed);
    }
}

/// A worker of the engine on the thread that created it.
#[pyclass(unsendable, frozen, module = "gustnado._gustnado", name = "Engine")]
pub(crate) struct PyEngine {
    running: Running,
    driven: Driven,
    ready: RefCell<Vec<WatchEvent>>,
    /// Whether `run` should return.
    is_alerted: Arc<AtomicBool>,
    pulse: Arc<TurnState>,
    drain: RefCell<Option<Drain>>,
    /// The descriptor for loops that sleep in place of the engine.
    descriptor: RefCell<Option<OwnedFd>>,
    context: Arc<CallContext>,
}

#[pymethods]
impl PyEngine {
    /// Starts a server. It listens once this has returned, and responds in turns.
    ///
    /// - `settings`: names and values, as on the command line.
    /// - `handlers`, `folders`: the routes; a folder has its path and settings of its own.
    /// - `context`: shared context of handlers; see `gustnado._routes.CallContext`.
    /// - `application`: the fallback: an `Asgi` or a `Wsgi`.
    /// - `processes`: how many share the memory of `max-memory`.
    /// - `sockets`: handlers of `WebSocket`s.
    #[new]
    #[pyo3(signature = (
        settings, handlers, folders, context, application, processes = 1, sockets = Vec::new()
    ))]
    fn new(
        settings: Vec<(String, String)>,
        handlers: Vec<HandlerSpec>,
        folders: Vec<FolderSpec>,
        context: &Bound<'_, PyAny>,
        application: Option<&Bound<'_, PyAny>>,
        processes: usize,
        sockets: Vec<SocketSpec>,
    ) -> PyResult<Self> {
        let usual_policy = settings.iter().rfind(|(name, _)| name == "body-policy");
        let usual_policy = usual_policy.map(|(_, name)| policy_of(name)).transpose()?;
        let has_body_limit = settings.iter().any(|(name, _)| name == "limit-body-bytes");
        let py = context.py();
        let context = Arc::new(CallContext::of(context, has_body_limit)?);
        // Folders next to an application are its assets: they have no listings by default.
        let mut server = Server::new().listing(Listing::Off);
        if application.is_some() {
            // An ASGI application reads at its own pace, a WSGI application from a file. An
            // explicit setting takes precedence.
            server = server.limit_body_bytes(u64::MAX);
        }
        for (name, value) in settings {
            server = server
                .set(&name, &value)
                .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
        }
        let mut usual_max = 0;
        let server = server.tune(|config| usual_max = config.limit_body_bytes);
        let server = server.on_limit(move |event| limits::tell(event, usual_max));
        let server = server.share_memory(processes);
        let mut routes = Routes::new();
        for (path, folder, settings) in folders {
            let mut files = route().files(folder);
            for (name, value) in settings {
                files = files.set(&name, &value).map_err(|error| {
                    pyo3::exceptions::PyValueError::new_err(format!("files({path:?}): {error}"))
                })?;
            }
            routes = routes.route(&path, files);
        }
        routes = handlers::add(py, routes, (handlers, sockets), usual_policy, &context)?;
        if let Some(application) = application {
            routes = match application.cast::<Asgi>() {
                Ok(asgi) => asgi.get().add_to(routes),
                Err(_) => application.cast::<Wsgi>()?.get().add_to(routes),
            };
        }
        let (running, driven) =
            server.routes(routes).start_driven().map_err(|error| errors::of_start(&error))?;
        Ok(Self {
            running,
            driven,
            ready: RefCell::default(),
            is_alerted: Arc::default(),
            pulse: TurnState::new(),
            drain: RefCell::default(),
            descriptor: RefCell::default(),
            context,
        })
    }

    /// Runs one turn: sleeps until an event, responds to requests, and returns ready descriptors as
    /// (key, readable, writable).
    ///
    /// - `timeout`: maximum sleep in seconds; none: unlimited.
    fn turn(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Vec<(u64, bool, bool)>> {
        let timeout = if has_paused() { Some(Duration::ZERO) } else { timeout.map(up_to_ms) };
        let mut ready = self.ready.take();
        let turned = self.driven.turn(timeout, &mut ready, &mut |sleep| {
            let sleep = SendWrapper::new(sleep);
            // The closure runs on this thread: only the interpreter's lock is released.
            self.pulse.lie_down();
            py.detach(move || (sleep.take())());
            self.pulse.get_up();
        });
        // The next read or write returns an error or hang-up.
        let found = ready.drain(..).map(|one| {
            let is_over = one.error || one.hang_up;
            (one.key, one.read || is_over, one.write || is_over)
        });
        let found = found.collect();
        self.ready.replace(ready);
        let turned = turned.map_err(|error| errors::of_io(&error))?;
        coroutine::go_on(py);
        if turned.is_interrupted {
            py.check_signals()?;
        }
        Ok(found)
    }

    /// Runs turns for that many seconds, or until `is_over`, a signal, or an `Alert`.
    fn run(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let until = Instant::now() + Duration::from_secs_f64(seconds);
        while !self.is_over() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.is_alerted.swap(false, Ordering::Relaxed) {
                break;
            }
            self.turn(py, Some(left.as_secs_f64()))?;
        }
        Ok(())
    }

    /// Returns a descriptor that is readable when `poll_once` has work, for loops that sleep
    /// themselves.
    fn fileno(&self) -> PyResult<RawFd> {
        let mut descriptor_slot = self.descriptor.borrow_mut();
        if let Some(descriptor) = &*descriptor_slot {
            return Ok(descriptor.as_raw_fd());
        }
        let descriptor = self.driven.descriptor().map_err(|error| errors::of_io(&error))?;
        Ok(descriptor_slot.insert(descriptor).as_raw_fd())
    }

    /// Runs one turn without sleeping. Returns in how many seconds the next one is due, if it is
    /// due without an event of `fileno`.
    fn poll_once(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        self.pulse.get_up();
        let due = self.driven.look().map_err(|error| errors::of_io(&error))?;
        coroutine::go_on(py);
        let due = if has_paused() { Some(Duration::ZERO) } else { due };
        Ok(due.map(|due| due.as_secs_f64()))
    }

    /// Watches a descriptor of the caller.
    fn watch(&self, fd: RawFd, read: bool, write: bool, key: u64) -> PyResult<()> {
        let wants = Wants { read, write };
        self.driven.watch(fd, wants, key).map_err(|error| errors::of_io(&error))
    }

    /// Changes the events of a watched descriptor.
    fn rewatch(&self, fd: RawFd, read: bool, write: bool) -> PyResult<()> {
        let wants = Wants { read, write };
        self.driven.rewatch(fd, wants).map_err(|error| errors::of_io(&error))
    }

    /// Stops watching a descriptor.
    fn unwatch(&self, fd: RawFd) -> PyResult<()> {
        self.driven.unwatch(fd).map_err(|error| errors::of_io(&error))
    }

    /// Calls `note` before calls of this thread into the application, at most once in `interval`
    /// seconds.
    ///
    /// - `note`: none: not any more.
    #[staticmethod]
    fn watch_calls(note: Option<Py<PyAny>>, interval: f64) {
        let interval = Duration::try_from_secs_f64(interval).unwrap_or(Duration::MAX);
        hang_watch::set(note, interval);
    }

    /// Returns an object that ends a turn's sleep from another thread.
    fn alert(&self) -> PyAlert {
        let (is_alerted, pulse) = (Arc::clone(&self.is_alerted), Arc::clone(&self.pulse));
        PyAlert { raised: self.driven.waker(), is_alerted, pulse }
    }

    /// Returns the addresses it listens on.
    fn addresses(&self) -> Vec<String> {
        self.running.addresses().iter().map(ToString::to_string).collect()
    }

    /// Returns deviations from the settings, in sentences.
    fn notes(&self) -> Vec<String> {
        self.running.notes().to_vec()
    }

    /// Reopens the access log after a rotation.
    fn reopen_logs(&self) -> PyResult<()> {
        self.running.reopen_logs().map_err(|error| errors::of_start(&error))
    }

    /// Writes buffered lines of the access log, before a process ends without a drain.
    fn flush_logs(&self) {
        self.running.flush_logs();
    }

    /// Returns the counters since the start.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        for (name, value) in self.running.stats().named() {
            found.set_item(name, value)?;
        }
        Ok(found)
    }

    /// Drains the queue of an inherited socket at the end, when no other process serves it.
    fn take_socket_over(&self, fd: RawFd) -> bool {
        self.running.take_socket_over(fd)
    }

    /// Shares the load with other processes on the same sockets, by a shared memory file: a process
    /// with more connections than the mean lets the others accept first.
    ///
    /// - `fd`: the file's descriptor.
    /// - `place`: the index of this process in it.
    fn share_load(&self, fd: RawFd, place: u32) -> PyResult<()> {
        self.running.share_load(fd, place).map_err(|error| errors::of_io(&error))
    }

    /// Adds up counters on pages with other processes on the same sockets, by a file in memory.
    ///
    /// - `fd`: the file's descriptor.
    /// - `place`: the place of this process in it.
    fn share_stats(&self, fd: RawFd, place: u32) -> PyResult<()> {
        self.running.share_stats(fd, place).map_err(|error| errors::of_io(&error))
    }

    /// Returns of how many `WebSocket`s handlers run.
    fn running_sockets(&self) -> usize {
        self.context.running_sockets()
    }

    /// Says that another process takes the place of this one: clients of `WebSocket`s are told to
    /// come back. Before the drain.
    fn announce_restart(&self) {
        self.running.announce_restart();
    }

    /// Begins the drain: accepts no more connections, and responses in progress have `deadline`
    /// seconds.
    fn begin_drain(&self, deadline: f64) {
        let mut drain = self.drain.borrow_mut();
        if drain.is_none() {
            let deadline = Duration::try_from_secs_f64(deadline).unwrap_or(Duration::MAX);
            *drain = Some(self.running.begin_drain(deadline));
        }
    }

    /// Continues the drain between two turns. Returns the number of cut connections once it is
    /// over.
    fn step_drain(&self) -> Option<u64> {
        let mut drain = self.drain.borrow_mut();
        let report = drain.as_mut()?.step(&self.running)?;
        self.running.leave_stats();
        Some(report.cut as u64)
    }

    /// Returns whether its server has ended.
    fn is_over(&self) -> bool {
        self.driven.has_ended()
    }
}

/// Ends a sleep, and `Engine.run`, from any thread.
#[pyclass(frozen, module = "gustnado._gustnado", name = "Alert")]
pub(crate) struct PyAlert {
    raised: ReactorWaker,
    is_alerted: Arc<AtomicBool>,
    pulse: Arc<TurnState>,
}

#[pymethods]
impl PyAlert {
    fn set(&self) {
        self.is_alerted.store(true, Ordering::Relaxed);
        self.raised.wake();
    }

    /// Returns a number that changes with each sleep, and the seconds since the last wake-up. While
    /// the number stays the same, the engine sleeps, or is busy or blocked.
    fn pulse(&self) -> (u64, f64) {
        let turns = self.pulse.turns.load(Ordering::Relaxed);
        let up_us = self.pulse.up_us.load(Ordering::Relaxed);
        let for_us = self.pulse.now_us().saturating_sub(up_us);
        (turns, Duration::from_micros(for_us).as_secs_f64())
    }
}
