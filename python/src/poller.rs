//! Readiness for event loops in Python, with the interface of Python's `select.epoll`.

mod interest_set;

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::os::fd::RawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, ThreadId};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rustix::io::Errno;
use send_wrapper::SendWrapper;

use gustnado_reactor::{
    BufferAccount, Clock, IoChoice, Options, Reactor, Token, Wants, WatchEvent,
};

use crate::errors;
use crate::guarded::Guarded;
use crate::twisted::{ConnectionLook, HeadWords, TwistedConnection};
use interest_set::InterestSet;

const IN: u32 = 0x1;
const OUT: u32 = 0x4;
const ERR: u32 = 0x8;
const HUP: u32 = 0x10;

/// Finds ready descriptors with a reactor of the engine.
///
/// The polling thread has the reactor. If another thread polls, as when a program starts its loop
/// in a thread, it makes its own reactor, which gets all interests.
#[pyclass(frozen, module = "gustnado._gustnado")]
pub(crate) struct Poller {
    number: u64,
    state: Guarded<PollerState>,
    sites: OnceLock<SiteConnections>,
}

struct PollerState {
    interest_set: InterestSet,
    owner: ThreadId,
    is_closed: bool,
}

/// State of the polling thread.
struct PollerThread {
    reactor: Reactor,
    ready: Vec<WatchEvent>,
    /// Always empty: there are no sockets of the reactor's own.
    woken: Vec<Token>,
}

thread_local! {
    /// By the numbers of their pollers.
    static POLLERS: RefCell<HashMap<u64, PollerThread>> = RefCell::default();
}

/// Connections whose plain requests get their responses during a poll.
struct SiteConnections {
    connections: Guarded<HashMap<RawFd, Py<TwistedConnection>>>,
    /// Those with unsent bytes.
    waiting: Guarded<Vec<Py<TwistedConnection>>>,
    head_words: HeadWords,
    /// Called with a descriptor and the exception of a request received on it.
    on_failure: Py<PyAny>,
    buf: Guarded<Vec<u8>>,
}

#[pymethods]
impl Poller {
    #[new]
    fn new() -> PyResult<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let thread_state = PollerThread::new()?;
        POLLERS.with_borrow_mut(|all| all.insert(number, thread_state));
        let owner = thread::current().id();
        let state = PollerState { interest_set: InterestSet::default(), owner, is_closed: false };
        Ok(Self { number, state: Guarded::new(state), sites: OnceLock::new() })
    }

    /// Watches a descriptor, without a call of its `fileno()`.
    fn register(&self, number: RawFd, events: u32) -> PyResult<()> {
        self.check_open()?;
        let key = u64::from(number.cast_unsigned());
        let watched = self.with_thread_state(|thread_state| {
            thread_state.reactor.watch(number, wants(events), key)
        });
        let is_told = watched.transpose().map_err(|error| errors::of_io(&error))?.is_some();
        self.state.borrow_mut().interest_set.begin(number, events, is_told);
        Ok(())
    }

    /// Changes its events, from the next poll on.
    fn modify(&self, number: RawFd, events: u32) -> PyResult<()> {
        self.check_open()?;
        if self.state.borrow_mut().interest_set.change(number, events) {
            return Ok(());
        }
        Err(errors::of_io(&Errno::NOENT.into()))
    }

    /// Stops watching it. It may have been closed already.
    fn unregister(&self, number: RawFd) -> PyResult<()> {
        self.check_open()?;
        let told = self.with_thread_state(|thread_state| thread_state.reactor.unwatch(number));
        self.state.borrow_mut().interest_set.end(number, told.is_some());
        told.transpose().map(drop).map_err(|error| errors::of_io(&error))
    }

    /// Sleeps until something is ready, and returns pairs of descriptor and events.
    ///
    /// - `timeout`: maximum sleep in seconds; negative: unlimited.
    /// - `_maxevents`: ignored.
    #[pyo3(signature = (timeout = -1.0, _maxevents = -1))]
    fn poll(&self, py: Python<'_>, timeout: f64, _maxevents: i64) -> PyResult<Vec<(u64, u32)>> {
        self.check_open()?;
        self.flush(py)?;
        let timeout = (timeout >= 0.0).then(|| up_to_ms(timeout));
        let mut thread_state = self.take_thread_state()?;
        let looked = self.poll_once(py, &mut thread_state, timeout);
        POLLERS.with_borrow_mut(|all| all.insert(self.number, thread_state));
        let (is_interrupted, found) = looked?;
        if is_interrupted {
            py.check_signals()?;
        }
        match self.sites.get() {
            Some(sites) => self.respond(py, sites, found),
            None => Ok(found),
        }
    }

    /// Enables responses to requests.
    ///
    /// - `encode`: spells field names as the channels do.
    /// - `on_failure`: called with a descriptor and the exception of a received request, or none:
    ///   nothing more can be received.
    fn answer_requests(&self, py: Python<'_>, encode: Py<PyAny>, on_failure: Py<PyAny>) {
        // A second call changes nothing.
        _ = self.sites.set(SiteConnections {
            connections: Guarded::default(),
            waiting: Guarded::default(),
            head_words: HeadWords::new(py, encode),
            on_failure,
            buf: Guarded::default(),
        });
    }

    /// Passes what is received on a descriptor to a connection.
    fn serve(&self, number: RawFd, connection: Py<TwistedConnection>) {
        if let Some(sites) = self.sites.get() {
            let before = sites.connections.borrow_mut().insert(number, connection);
            drop(before);
        }
    }

    fn unserve(&self, number: RawFd) {
        if let Some(sites) = self.sites.get() {
            // Without the lock: a finalizer of a dropped object may come back here.
            let before = sites.connections.borrow_mut().remove(&number);
            drop(before);
        }
    }

    /// Flushes a connection now.
    fn flush_now(&self, py: Python<'_>, connection: &Bound<'_, TwistedConnection>) -> PyResult<()> {
        connection.get().flush(py, |number, bytes| self.send_watched(number, bytes))
    }

    /// Flushes a connection before the next sleep.
    fn flush_later(&self, connection: Py<TwistedConnection>) {
        if let Some(sites) = self.sites.get() {
            sites.waiting.borrow_mut().push(connection);
        }
    }

    fn close(&self) {
        self.state.borrow_mut().is_closed = true;
        POLLERS.with_borrow_mut(|all| all.remove(&self.number));
    }

    #[getter]
    fn closed(&self) -> bool {
        self.state.borrow_mut().is_closed
    }
}

impl Poller {
    fn check_open(&self) -> PyResult<()> {
        if self.closed() {
            return Err(PyValueError::new_err("this poller was closed"));
        }
        Ok(())
    }

    /// Calls `f` with the state of the polling thread. `None` on another thread.
    fn with_thread_state<T>(&self, f: impl FnOnce(&mut PollerThread) -> T) -> Option<T> {
        let is_owner = self.state.borrow_mut().owner == thread::current().id();
        POLLERS.with_borrow_mut(|all| all.get_mut(&self.number).filter(|_| is_owner).map(f))
    }

    /// Takes the state of the polling thread, which is this one from now on.
    fn take_thread_state(&self) -> PyResult<PollerThread> {
        let thread_state = POLLERS.with_borrow_mut(|all| all.remove(&self.number));
        let mut state = self.state.borrow_mut();
        let me = thread::current().id();
        match thread_state {
            Some(thread_state) if state.owner == me => Ok(thread_state),
            _ => {
                let thread_state = PollerThread::new()?;
                state.owner = me;
                state.interest_set.retell_all();
                Ok(thread_state)
            }
        }
    }

    fn poll_once(
        &self,
        py: Python<'_>,
        thread_state: &mut PollerThread,
        timeout: Option<Duration>,
    ) -> PyResult<(bool, Vec<(u64, u32)>)> {
        let PollerThread { reactor, ready, woken } = thread_state;
        let (tried, mut found) = self.state.borrow_mut().interest_set.settle(reactor);
        let is_idle = found.is_empty() && tried.is_empty();
        let timeout = if is_idle { timeout } else { Some(Duration::ZERO) };
        reactor.tick();
        let slept = {
            let reactor = SendWrapper::new(&mut *reactor);
            // The closure runs on this thread: only the interpreter's lock is released.
            py.detach(move || reactor.take().sleep(timeout))
        };
        let slept = slept.map_err(|error| errors::of_io(&error))?;
        reactor.collect(woken, ready).map_err(|error| errors::of_io(&error))?;
        woken.clear();
        let interest_set = &mut self.state.borrow_mut().interest_set;
        for one in ready.drain(..) {
            let wanted = interest_set.wanted(one.key, events(&one));
            if wanted != 0 {
                found.push((one.key, wanted));
            }
        }
        found.extend(interest_set.left(tried));
        Ok((slept, found))
    }

    /// Sends to a descriptor, if this is the polling thread.
    fn send_watched(&self, number: RawFd, bytes: &[u8]) -> Option<io::Result<usize>> {
        self.with_thread_state(|thread_state| thread_state.reactor.send_watched(number, bytes))
    }

    /// Receives from a descriptor, if this is the polling thread.
    fn recv_watched(&self, number: RawFd, buf: &mut [u8]) -> Option<io::Result<usize>> {
        self.with_thread_state(|thread_state| thread_state.reactor.recv_watched(number, buf))
    }

    /// Sends the output of connections since the last poll.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let Some(sites) = self.sites.get() else { return Ok(()) };
        for connection in sites.waiting.take() {
            if let Err(error) = self.flush_now(py, connection.bind(py)) {
                sites.on_failure.call1(py, (connection.get().fd(), error.into_value(py)))?;
            }
        }
        Ok(())
    }

    /// Lets connections handle their events. Returns the events of others.
    fn respond(
        &self,
        py: Python<'_>,
        sites: &SiteConnections,
        found: Vec<(u64, u32)>,
    ) -> PyResult<Vec<(u64, u32)>> {
        let mut left = Vec::with_capacity(found.len());
        let mut buf = sites.buf.take();
        for (key, events) in found {
            let number = RawFd::try_from(key).unwrap_or(-1);
            let connection = sites
                .connections
                .borrow_mut()
                .get(&number)
                .map(|connection| connection.clone_ref(py));
            let Some(connection) = connection.filter(|_| events & IN != 0) else {
                left.push((key, events));
                continue;
            };
            let looked =
                connection.get().poll_once(py, &sites.head_words, &mut buf, |number, buf| {
                    self.recv_watched(number, buf)
                });
            sites.waiting.borrow_mut().push(connection);
            match looked {
                Ok(ConnectionLook::Done) if events & OUT == 0 => {}
                Ok(ConnectionLook::Done) => left.push((key, OUT)),
                Ok(ConnectionLook::Ended) => left.push((key, events)),
                Ok(ConnectionLook::Failed) => {
                    sites.on_failure.call1(py, (number, py.None()))?;
                }
                Err(error) => {
                    sites.on_failure.call1(py, (number, error.into_value(py)))?;
                }
            }
        }
        sites.buf.replace(buf);
        // Together: a client that is woken for each response costs more than the response.
        self.flush(py)?;
        Ok(left)
    }
}

impl PollerThread {
    fn new() -> PyResult<Self> {
        let (io, clock) = (IoChoice::Epoll, Clock::start());
        let options = Options {
            io,
            direct_max: 0,
            buffers: 8,
            installed_max: 0,
            clock,
            account: BufferAccount::default(),
        };
        let (reactor, _) = Reactor::new(&options).map_err(|error| errors::of_io(&error))?;
        Ok(Self { reactor, ready: Vec::new(), woken: Vec::new() })
    }
}

fn wants(events: u32) -> Wants {
    Wants { read: events & IN != 0, write: events & OUT != 0 }
}

fn events(ready: &WatchEvent) -> u32 {
    let all = [(ready.read, IN), (ready.write, OUT), (ready.error, ERR), (ready.hang_up, HUP)];
    all.iter().filter(|(is, _)| *is).fold(0, |events, (_, event)| events | event)
}

/// Rounds up to milliseconds, or a loop would spin until its timer is due.
pub(crate) fn up_to_ms(seconds: f64) -> Duration {
    let ms = (seconds.max(0.0) * 1e3).ceil();
    Duration::try_from_secs_f64(ms / 1e3).unwrap_or(Duration::MAX)
}
