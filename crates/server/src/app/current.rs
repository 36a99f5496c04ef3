//! What changes when a server is reloaded, and what lasts.
//!
//! A connection holds the [`App`] it was accepted under. A reload puts another one in its place and
//! gives the old one notice. Each connection sees that at its next request, in the branch where it
//! would see a drain, and takes the new one before it answers. So a reload costs nothing where none
//! happens, drops no connection, and counts for all of them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};

use gustnado_tasks::{Phase, Workers};

use super::App;
use crate::access_log::Logs;
use crate::stats::Tally;

/// The app that counts now.
pub(crate) struct Current {
    app: RwLock<Arc<App>>,
}

impl Current {
    /// - `make`: makes the first app; it can reach this later.
    pub(crate) fn new(make: impl FnOnce(Weak<Self>) -> App) -> Arc<Self> {
        Arc::new_cyclic(|current| {
            let app = make(Weak::clone(current));
            Self { app: RwLock::new(introduced(app)) }
        })
    }

    /// What a connection is to be served by from now on.
    pub(crate) fn app(&self) -> Arc<App> {
        Arc::clone(&self.app.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another app in the place of this one, which every connection will see.
    pub(crate) fn replace(&self, app: App) {
        let app = introduced(app);
        let lasting = Arc::clone(&app.lasting);
        let mut place = self.app.write().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *place, app);
        drop(place);
        old.give_notice();
        lasting.reloads.fetch_add(1, Ordering::Relaxed);
        if lasting.is_draining() {
            self.app().give_notice();
        }
    }

    /// From now on each connection's next answer is its last.
    pub(crate) fn drain(&self) {
        let app = self.app();
        app.lasting.draining.store(true, Ordering::SeqCst);
        app.give_notice();
        // (One that came meanwhile has seen it.)
        self.app().give_notice();
    }
}

/// An app that its routes know.
fn introduced(app: App) -> Arc<App> {
    let app = Arc::new(app);
    let itself: Weak<App> = Arc::downgrade(&app);
    let first = app.routes().build.app.set(itself);
    debug_assert!(first.is_ok(), "made for this app");
    app
}

/// What all apps of a server have in common, one after the other.
pub(crate) struct Lasting {
    pub(super) tallies: Arc<[Tally]>,
    draining: AtomicBool,
    /// Set once they run; weak, for they hold this.
    workers: OnceLock<Weak<Workers>>,
    pub(super) scheduler: &'static str,
    /// Ready field lines of every answer, but for the date. Looked at once a second per worker.
    lines: Mutex<Arc<[u8]>>,
    /// What was told of the bytes sent.
    pub(super) bytes_told: AtomicU64,
    /// Counted by all folders of the server, also those of routes that are gone.
    pub(super) files_exhausted: Arc<AtomicU64>,
    pub(crate) reloads: AtomicU64,
    pub(crate) reloads_refused: AtomicU64,
    pub(crate) logs: Logs,
}

impl Lasting {
    pub(crate) fn new(
        workers: usize,
        scheduler: &'static str,
        files_exhausted: Arc<AtomicU64>,
    ) -> Arc<Self> {
        Arc::new(Self {
            // One more for a thread that only accepts.
            tallies: (0..=workers).map(|_| Tally::default()).collect(),
            draining: AtomicBool::new(false),
            workers: OnceLock::new(),
            scheduler,
            lines: Mutex::new(Arc::from([])),
            bytes_told: AtomicU64::new(0),
            files_exhausted,
            reloads: AtomicU64::new(0),
            reloads_refused: AtomicU64::new(0),
            logs: Logs::default(),
        })
    }

    pub(crate) fn attach(&self, workers: &Arc<Workers>) {
        let first = self.workers.set(Arc::downgrade(workers));
        debug_assert!(first.is_ok(), "workers are attached once");
    }

    /// How many threads count, and write, each for itself.
    pub(crate) fn places(&self) -> usize {
        self.tallies.len()
    }

    pub(super) fn workers(&self) -> Option<Arc<Workers>> {
        self.workers.get().and_then(Weak::upgrade)
    }

    /// Whether new connections are welcome.
    pub(crate) fn is_ready(&self) -> bool {
        let serves = |workers: Arc<Workers>| workers.phase() == Phase::Serving;
        !self.is_draining() && self.workers().is_some_and(serves)
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Sets the field lines of every answer. All workers follow within a second.
    pub(crate) fn set_lines(&self, lines: Vec<u8>) {
        *self.lines.lock().unwrap_or_else(PoisonError::into_inner) = lines.into();
    }

    pub(super) fn lines(&self) -> Arc<[u8]> {
        Arc::clone(&self.lines.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
