//! Closing of a listener by its acceptors, step by step.
//!
//! The first acceptor that comes to a step does it for all of them, so an acceptor whose worker is
//! held does not hold up the others.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use gustnado_reactor::{gather_connections, refuse_connections, stop_deferring};

use crate::sync::lock::Lock;

/// Accepting ends once no connection has come for so long.
pub(crate) const QUIET_MS: u64 = 20;

/// State that the acceptors of one listener share while it closes.
pub(crate) struct Closing {
    steps: Lock<Steps>,
    /// When the last connection came since closing began.
    last_ms: AtomicU64,
}

/// The listener's sockets, and how far closing them has come.
#[derive(Default)]
struct Steps {
    /// In the order they were opened in. Weak: a socket that an acceptor has closed must not be
    /// kept open from here, for its queue would then be reset late.
    group: Vec<Weak<OwnedFd>>,
    began_ms: Option<u64>,
    gathered_ms: Option<u64>,
    refused: Option<RefusedAt>,
}

/// When the kernel was asked to refuse new connections, and whether it does.
#[derive(Clone, Copy)]
pub(crate) struct RefusedAt {
    pub(crate) at_ms: u64,
    pub(crate) works: bool,
    /// No connection had come for [`QUIET_MS`], so hardly a handshake is under way.
    pub(crate) was_quiet: bool,
}

impl Steps {
    fn open(&self) -> Vec<Arc<OwnedFd>> {
        self.group.iter().filter_map(Weak::upgrade).collect()
    }
}

impl Closing {
    /// The closing of these sockets, in the order they were opened in.
    pub(crate) fn of(sockets: &[Arc<OwnedFd>]) -> Self {
        let group = sockets.iter().map(Arc::downgrade).collect();
        let steps = Lock::new(Steps { group, ..Steps::default() });
        Self { steps, last_ms: AtomicU64::new(0) }
    }

    /// Ends deferred accepting, unless that was done. Returns when it was.
    pub(crate) fn begin(&self, now_ms: u64) -> u64 {
        let mut steps = self.steps.lock();
        if steps.began_ms.is_none() {
            for socket in steps.open() {
                // A connection that the kernel holds back for its first bytes is in no queue yet,
                // so closing would reset it. If this fails, such a one is lost.
                let _ = stop_deferring(&socket);
            }
        }
        *steps.began_ms.get_or_insert(now_ms)
    }

    /// Gives all new connections of each group to its first socket, unless that was done. Returns
    /// when it was.
    pub(crate) fn gather(&self, now_ms: u64) -> u64 {
        let mut steps = self.steps.lock();
        if steps.gathered_ms.is_none() {
            // While the sockets are told to refuse one by one, the kernel would still spread new
            // connections over the group. If this fails, a client may have to try again.
            let _ = gather_connections(&steps.open());
        }
        *steps.gathered_ms.get_or_insert(now_ms)
    }

    /// Makes the kernel refuse new connections, unless that was done.
    pub(crate) fn refuse(&self, now_ms: u64) -> RefusedAt {
        let mut steps = self.steps.lock();
        if let Some(refused) = steps.refused {
            return refused;
        }
        let was_quiet = steps.began_ms.is_some_and(|at| self.quiet_at(at, QUIET_MS) <= now_ms);
        let works = refuse_connections(&steps.open()).is_ok();
        *steps.refused.insert(RefusedAt { at_ms: now_ms, works, was_quiet })
    }

    pub(crate) fn note_arrival(&self, now_ms: u64) {
        self.last_ms.fetch_max(now_ms, Ordering::Relaxed);
    }

    /// Returns when no connection will have come for `quiet_ms`, counted from `since_ms` at the
    /// earliest.
    pub(crate) fn quiet_at(&self, since_ms: u64, quiet_ms: u64) -> u64 {
        self.last_ms.load(Ordering::Relaxed).max(since_ms) + quiet_ms
    }
}
