//! What every test of protocols stands on: an engine that ends with its test, a tape that callbacks
//! write on, a protocol that does so.

use std::fmt;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use gustnado::Endpoint;
use gustnado::config::Config;
use gustnado::protocol::{Engine, Port, Protocol, Reason, Transport};

use crate::harness::{Client, PATIENCE, Setup};

/// An engine that ends with its test.
pub(crate) struct Running(Engine);

impl Running {
    pub(crate) fn start(config: &Config) -> Self {
        let engine = Engine::start(config).expect("the engine starts");
        Setup::of(config).assert_backend(engine.backend(), engine.notes());
        Self(engine)
    }
}

impl Deref for Running {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.drain(Duration::from_secs(2));
    }
}

/// An engine of two workers.
pub(crate) fn engine(setup: Setup) -> Running {
    Running::start(&setup.config())
}

/// Where a TCP listener is.
pub(crate) fn address(port: &Port) -> SocketAddr {
    match port.address() {
        Endpoint::Tcp(address) => *address,
        other => panic!("{other} is no TCP address"),
    }
}

/// A connection to a listener.
pub(crate) fn connect(port: &Port) -> Client {
    Client::connect(address(port))
}

/// What happened, in the order in which it was noted, from whichever thread.
#[derive(Clone, Default)]
pub(crate) struct Tape(Arc<(Mutex<Vec<String>>, Condvar)>);

impl Tape {
    pub(crate) fn note(&self, what: impl fmt::Display) {
        self.entries().push(what.to_string());
        self.0.1.notify_all();
    }

    pub(crate) fn entries(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.0.lock().expect("no test panics with the tape")
    }

    pub(crate) fn has(&self, what: &str) -> bool {
        self.count(what) > 0
    }

    pub(crate) fn count(&self, what: &str) -> usize {
        self.entries().iter().filter(|entry| *entry == what).count()
    }

    /// Waits until something has been noted.
    pub(crate) fn wait_for(&self, what: &str) {
        self.wait_for_count(what, 1);
    }

    /// Waits until something has been noted so many times.
    pub(crate) fn wait_for_count(&self, what: &str, count: usize) {
        let began = Instant::now();
        let mut entries = self.entries();
        while entries.iter().filter(|entry| *entry == what).count() < count {
            let rest = PATIENCE.saturating_sub(began.elapsed());
            assert!(rest > Duration::ZERO, "waited in vain for {what:?}: {entries:?}");
            (entries, _) =
                self.0.1.wait_timeout(entries, rest).expect("no test panics with the tape");
        }
    }
}

/// A protocol that notes what it is told, and does something with data.
pub(crate) struct Taped<F> {
    tape: Tape,
    act: F,
}

/// Notes what it is told, and hands data to `act`; an empty piece says that the connection is made.
pub(crate) fn taped<F>(tape: &Tape, act: F) -> Taped<F>
where
    F: FnMut(&mut Transport, &[u8]) + Send,
{
    Taped { tape: tape.clone(), act }
}

impl<F: FnMut(&mut Transport, &[u8]) + Send> Protocol for Taped<F> {
    fn connection_made(&mut self, transport: &mut Transport) {
        self.tape.note("made");
        (self.act)(transport, &[]);
    }

    fn data_received(&mut self, transport: &mut Transport, data: &[u8]) {
        assert!(!data.is_empty(), "data is never empty");
        (self.act)(transport, data);
    }

    fn connection_lost(&mut self, reason: Reason) {
        self.tape.note(format!("lost: {reason:?}"));
    }

    fn pause_producing(&mut self, _transport: &mut Transport) {
        self.tape.note("pause producing");
    }

    fn resume_producing(&mut self, _transport: &mut Transport) {
        self.tape.note("resume producing");
    }
}

/// Sends back what it receives.
pub(crate) fn echo(transport: &mut Transport, data: &[u8]) {
    transport.write(data);
}
