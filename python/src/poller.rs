//! Readiness for loops that are written in Python, in the form of Python's own `select.epoll`.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::os::fd::RawFd;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use send_wrapper::SendWrapper;

use gustnado_reactor::{Clock, IoChoice, Options, Reactor, Ready, Token, Wants};

use crate::errors;
use crate::twisted::{Looked, Names, TwistedLink};
use crate::wishes::Wishes;

pub(crate) const IN: u32 = 0x1;
pub(crate) const OUT: u32 = 0x4;
const ERR: u32 = 0x8;
const HUP: u32 = 0x10;

/// What a reactor of the engine's finds of the descriptors that it watches.
#[pyclass(unsendable, frozen, module = "gustnado._gustnado")]
pub(crate) struct Poller {
    inside: RefCell<Option<Inside>>,
    sites: OnceCell<Sites>,
}

struct Inside {
    reactor: Reactor,
    ready: Vec<Ready>,
    /// Nobody has sockets of the reactor's own here.
    woken: Vec<Token>,
    wishes: Wishes,
}

/// Connections whose plain requests are answered while the poller looks.
struct Sites {
    links: RefCell<HashMap<RawFd, Py<TwistedLink>>>,
    /// Those that have something to be sent.
    waiting: RefCell<Vec<Py<TwistedLink>>>,
    names: Names,
    /// Called with a descriptor and an exception that came of what was received on it.
    on_failure: Py<PyAny>,
    room: RefCell<Vec<u8>>,
}

#[pymethods]
impl Poller {
    #[new]
    fn new() -> PyResult<Self> {
        let (io, clock) = (IoChoice::Epoll, Clock::start());
        let options = Options { io, direct_max: 0, buffers: 8, clock };
        let (reactor, _) = Reactor::new(&options).map_err(|error| errors::of_io(&error))?;
        let wishes = Wishes::default();
        let inside = Inside { reactor, ready: Vec::new(), woken: Vec::new(), wishes };
        Ok(Self { inside: RefCell::new(Some(inside)), sites: OnceCell::new() })
    }

    /// Watches a descriptor: its `fileno()` is not asked for.
    fn register(&self, number: RawFd, events: u32) -> PyResult<()> {
        self.with(|inside| {
            let key = u64::from(number.cast_unsigned());
            let watched = inside.reactor.watch(number, wants(events), key);
            watched.map_err(|error| errors::of_io(&error))?;
            inside.wishes.begin(number, events);
            Ok(())
        })
    }

    /// Watches it for something else, from the next look on.
    fn modify(&self, number: RawFd, events: u32) -> PyResult<()> {
        self.with(|inside| {
            if inside.wishes.change(number, events) {
                return Ok(());
            }
            inside.reactor.rewatch(number, wants(events)).map_err(|error| errors::of_io(&error))
        })
    }

    /// Watches it no longer. It may have been closed already.
    fn unregister(&self, number: RawFd) -> PyResult<()> {
        self.with(|inside| {
            inside.wishes.end(number);
            inside.reactor.unwatch(number).map_err(|error| errors::of_io(&error))
        })
    }

    /// Sleeps until something is ready, and returns what is, as pairs of descriptor and events.
    ///
    /// - `timeout`: seconds at most; negative: until something happens.
    /// - `_maxevents`: there is no limit but the number of descriptors.
    #[pyo3(signature = (timeout = -1.0, _maxevents = -1))]
    fn poll(&self, py: Python<'_>, timeout: f64, _maxevents: i64) -> PyResult<Vec<(u64, u32)>> {
        self.flush(py)?;
        let timeout = (timeout >= 0.0).then(|| up_to_ms(timeout));
        let (is_interrupted, found) = self.with(|inside| {
            let Inside { reactor, ready, woken, wishes } = inside;
            let mut found = wishes.settle(reactor);
            if wishes.may_go_on(&found) {
                return Ok((false, found));
            }
            let timeout = if found.is_empty() { timeout } else { Some(Duration::ZERO) };
            reactor.tick();
            let slept = {
                let reactor = SendWrapper::new(&mut *reactor);
                // The closure runs on this thread: only the interpreter's lock is given up.
                py.detach(move || reactor.take().sleep(timeout))
            };
            let slept = slept.map_err(|error| errors::of_io(&error))?;
            reactor.collect(woken, ready).map_err(|error| errors::of_io(&error))?;
            woken.clear();
            for one in ready.drain(..) {
                let wanted = wishes.wanted(one.key, events(&one));
                if wanted != 0 {
                    found.push((one.key, wanted));
                }
            }
            Ok((slept, found))
        })?;
        if is_interrupted {
            py.check_signals()?;
        }
        match self.sites.get() {
            Some(sites) => self.answer(py, sites, found),
            None => Ok(found),
        }
    }

    /// Makes it answer requests.
    ///
    /// - `encode`: spells field names as the channels do.
    /// - `on_failure`: called with a descriptor and an exception that came of what was received, or
    ///   none: nothing more can be received.
    fn answer_requests(&self, py: Python<'_>, encode: Py<PyAny>, on_failure: Py<PyAny>) {
        // (The second time it is what it was.)
        _ = self.sites.set(Sites {
            links: RefCell::default(),
            waiting: RefCell::default(),
            names: Names::new(py, encode),
            on_failure,
            room: RefCell::default(),
        });
    }

    /// Has what is received on a descriptor taken by a link.
    fn serve(&self, number: RawFd, link: Py<TwistedLink>) {
        if let Some(sites) = self.sites.get() {
            sites.links.borrow_mut().insert(number, link);
        }
    }

    fn unserve(&self, number: RawFd) {
        if let Some(sites) = self.sites.get() {
            sites.links.borrow_mut().remove(&number);
        }
    }

    /// Has a link flushed before the next sleep.
    fn flush_later(&self, link: Py<TwistedLink>) {
        if let Some(sites) = self.sites.get() {
            sites.waiting.borrow_mut().push(link);
        }
    }

    fn close(&self) {
        self.inside.take();
    }

    #[getter]
    fn closed(&self) -> bool {
        self.inside.borrow().is_none()
    }
}

impl Poller {
    fn with<T>(&self, f: impl FnOnce(&mut Inside) -> PyResult<T>) -> PyResult<T> {
        match self.inside.borrow_mut().as_mut() {
            Some(inside) => f(inside),
            None => Err(PyValueError::new_err("this poller was closed")),
        }
    }

    /// Asks the reactor for something, if it was not closed.
    pub(crate) fn with_reactor<T>(&self, f: impl FnOnce(&Reactor) -> T) -> Option<T> {
        self.inside.borrow().as_ref().map(|inside| f(&inside.reactor))
    }

    /// Sends what links have been given since the last look.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let Some(sites) = self.sites.get() else { return Ok(()) };
        let waiting = sites.waiting.take();
        for link in &waiting {
            link.bind(py).borrow().flush(py, self)?;
        }
        Ok(())
    }

    /// Has links take what has come for them. Returns what is left for others.
    fn answer(
        &self,
        py: Python<'_>,
        sites: &Sites,
        found: Vec<(u64, u32)>,
    ) -> PyResult<Vec<(u64, u32)>> {
        let mut left = Vec::with_capacity(found.len());
        let mut room = sites.room.take();
        for (key, events) in found {
            let number = RawFd::try_from(key).unwrap_or(-1);
            let link = sites.links.borrow().get(&number).map(|link| link.clone_ref(py));
            let Some(link) = link.filter(|_| events & IN != 0) else {
                left.push((key, events));
                continue;
            };
            let looked = link.bind(py).borrow().look(py, self, &sites.names, &mut room);
            sites.waiting.borrow_mut().push(link);
            match looked {
                Ok(Looked::Done) if events & OUT == 0 => {}
                Ok(Looked::Done) => left.push((key, OUT)),
                Ok(Looked::Ended) => left.push((key, events)),
                Ok(Looked::Failed) => {
                    sites.on_failure.call1(py, (number, py.None()))?;
                }
                Err(error) => {
                    sites.on_failure.call1(py, (number, error.into_value(py)))?;
                }
            }
        }
        sites.room.replace(room);
        // Together: a client that is woken for each answer costs more than its answer.
        self.flush(py)?;
        Ok(left)
    }
}

pub(crate) fn wants(events: u32) -> Wants {
    Wants { read: events & IN != 0, write: events & OUT != 0 }
}

fn events(ready: &Ready) -> u32 {
    let all = [(ready.read, IN), (ready.write, OUT), (ready.error, ERR), (ready.hang_up, HUP)];
    all.iter().filter(|(is, _)| *is).fold(0, |events, (_, event)| events | event)
}

/// Upwards to the millisecond, or a loop would turn idly until its timer is due.
pub(crate) fn up_to_ms(seconds: f64) -> Duration {
    let ms = (seconds.max(0.0) * 1e3).ceil();
    Duration::try_from_secs_f64(ms / 1e3).unwrap_or(Duration::MAX)
}
