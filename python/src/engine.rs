//! The engine as an object: started with settings and routes, and driven by its owner's loop.

use std::cell::RefCell;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use send_wrapper::SendWrapper;

use gustnado::driven::{Alert as EngineAlert, Driven, Ready, Wants};
use gustnado::{Drain, Method, Routes, Running, Server};

use crate::asgi::Asgi;
use crate::call::{Callee, Ground};
use crate::errors;
use crate::poller::up_to_ms;
use crate::wsgi::Wsgi;

/// A handler's place, as `gustnado._routes` lays it out: method (none: all), path, function, whether
/// it takes the request, which named parts of the path it takes, and whether it is a coroutine
/// function.
type Handler = (Option<String>, String, Py<PyAny>, bool, Vec<String>, bool);

/// A worker of the engine on the thread that has made it.
#[pyclass(unsendable, frozen, module = "gustnado._gustnado")]
pub(crate) struct Engine {
    running: Running,
    driven: Driven,
    ready: RefCell<Vec<Ready>>,
    /// [`Engine::run`] is to return.
    is_alerted: Arc<AtomicBool>,
    drain: RefCell<Option<Drain>>,
}

#[pymethods]
impl Engine {
    /// Starts a server: it listens once this has returned, and answers in turns.
    ///
    /// - `settings`: names and values, as on the command line.
    /// - `handlers`, `folders`: what is where.
    /// - `ground`: what handlers stand on; see `gustnado._routes.Ground`.
    /// - `application`: what answers the rest: an [`Asgi`] or a [`Wsgi`].
    #[new]
    fn new(
        settings: Vec<(String, String)>,
        handlers: Vec<Handler>,
        folders: Vec<(String, String)>,
        ground: &Bound<'_, PyAny>,
        application: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let ground = Arc::new(Ground::of(ground)?);
        let mut server = Server::new();
        for (name, value) in settings {
            server = server
                .set(&name, &value)
                .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
        }
        let mut routes = Routes::new();
        for (path, folder) in folders {
            routes = routes.files(&path, folder);
        }
        for (method, path, function, takes_request, params, is_coroutine) in handlers {
            let method = method.map(|name| method_of(&name)).transpose()?;
            let callee =
                Callee::new(function, takes_request, params, is_coroutine, Arc::clone(&ground));
            routes = Arc::new(callee).add_to(routes, method, &path);
        }
        if let Some(application) = application {
            routes = match application.cast::<Asgi>() {
                Ok(asgi) => asgi.get().add_to(routes),
                Err(_) => application.cast::<Wsgi>()?.get().add_to(routes),
            };
        }
        let (running, driven) =
            server.routes(routes).start_driven().map_err(|error| errors::of_start(&error))?;
        let (ready, drain) = (RefCell::default(), RefCell::default());
        Ok(Self { running, driven, ready, is_alerted: Arc::default(), drain })
    }

    /// One turn: sleeps until something happens, answers requests, and returns what is ready of the
    /// watched descriptors, as (key, readable, writable).
    ///
    /// - `timeout`: seconds to sleep at most; none: until something happens.
    fn turn(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Vec<(u64, bool, bool)>> {
        let timeout = timeout.map(up_to_ms);
        let mut ready = self.ready.take();
        let turned = self.driven.turn(timeout, &mut ready, &mut |sleep| {
            let sleep = SendWrapper::new(sleep);
            // The closure runs on this thread: only the interpreter's lock is given up.
            py.detach(move || (sleep.take())());
        });
        let found = ready.drain(..).map(|one| (one.key, one.read, one.write)).collect();
        self.ready.replace(ready);
        let turned = turned.map_err(|error| errors::of_io(&error))?;
        if turned.is_interrupted {
            py.check_signals()?;
        }
        Ok(found)
    }

    /// Turns for so many seconds, or until [`Engine::is_over`], a signal, or an [`Alert`].
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

    /// Watches a descriptor of the caller's.
    fn watch(&self, number: RawFd, read: bool, write: bool, key: u64) -> PyResult<()> {
        let wants = Wants { read, write };
        self.driven.watch(number, wants, key).map_err(|error| errors::of_io(&error))
    }

    /// Watches it for something else.
    fn rewatch(&self, number: RawFd, read: bool, write: bool) -> PyResult<()> {
        let wants = Wants { read, write };
        self.driven.rewatch(number, wants).map_err(|error| errors::of_io(&error))
    }

    /// Watches it no longer.
    fn unwatch(&self, number: RawFd) -> PyResult<()> {
        self.driven.unwatch(number).map_err(|error| errors::of_io(&error))
    }

    /// What ends a turn's sleep from another thread.
    fn alert(&self) -> Alert {
        Alert(self.driven.alert(), Arc::clone(&self.is_alerted))
    }

    /// Where it listens.
    fn addresses(&self) -> Vec<String> {
        self.running.addresses().iter().map(ToString::to_string).collect()
    }

    /// What is not as it was asked for, in sentences.
    fn notes(&self) -> Vec<String> {
        self.running.notes().to_vec()
    }

    /// Counters since the start.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        for (name, value) in self.running.stats().named() {
            found.set_item(name, value)?;
        }
        Ok(found)
    }

    /// Begins to end: no more connections, answers under way may end within `deadline` seconds.
    fn begin_drain(&self, deadline: f64) {
        let mut drain = self.drain.borrow_mut();
        if drain.is_none() {
            let deadline = Duration::try_from_secs_f64(deadline).unwrap_or(Duration::MAX);
            *drain = Some(self.running.begin_drain(deadline));
        }
    }

    /// Goes on with ending, between two turns. Returns how many connections were cut, once it is
    /// over.
    fn step_drain(&self) -> Option<u64> {
        let mut drain = self.drain.borrow_mut();
        drain.as_mut()?.step(&self.running).map(|report| report.cut as u64)
    }

    /// Whether its server has ended.
    fn is_over(&self) -> bool {
        self.driven.has_ended()
    }
}

/// Ends a sleep, and [`Engine::run`], from any thread.
#[pyclass(frozen, module = "gustnado._gustnado")]
pub(crate) struct Alert(EngineAlert, Arc<AtomicBool>);

#[pymethods]
impl Alert {
    fn set(&self) {
        self.1.store(true, Ordering::Relaxed);
        self.0.raise();
    }
}

fn method_of(name: &str) -> PyResult<Method> {
    Method::from_token(name.as_bytes()).ok_or_else(|| {
        let text = format!("expected a method such as GET, found {name:?}; correct it");
        pyo3::exceptions::PyValueError::new_err(text)
    })
}
