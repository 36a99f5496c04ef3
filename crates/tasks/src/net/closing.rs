//! How far the acceptors of one listener have come with closing it.
//!
//! The first acceptor that comes to a step does it for all of them, so one whose worker is held
//! holds nobody else.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, Weak};

use gustnado_reactor::{gather_connections, refuse_connections, stop_deferring};

use crate::sync::lock::Lock;

/// Accepting ends once nothing has come for so long.
pub(crate) const QUIET_MS: u64 = 20;

/// What the acceptors of one listener share while it closes.
#[derive(Default)]
pub(crate) struct Closing {
    steps: Lock<Steps>,
    /// When a connection last came since it began.
    last_ms: AtomicU64,
}

/// The listener's sockets, and how far closing them has come.
#[derive(Default)]
struct Steps {
    /// For each endpoint, in the order they were opened in.
    groups: Vec<Vec<Weak<OwnedFd>>>,
    began_ms: Option<u64>,
    gathered_ms: Option<u64>,
    refused: Option<RefusedAt>,
}

/// When newcomers were to be refused, and whether the kernel refuses them.
#[derive(Clone, Copy)]
pub(crate) struct RefusedAt {
    pub(crate) at_ms: u64,
    pub(crate) works: bool,
    /// Nothing had come for a while.
    pub(crate) was_quiet: bool,
}

impl Steps {
    fn open(&self) -> impl Iterator<Item = Vec<Arc<OwnedFd>>> {
        self.groups.iter().map(|group| group.iter().filter_map(Weak::upgrade).collect())
    }
}

impl Closing {
    /// The sockets of one more endpoint, in the order they were opened in.
    pub(crate) fn add(&self, group: &[Arc<OwnedFd>]) {
        self.steps().groups.push(group.iter().map(Arc::downgrade).collect());
    }

    fn steps(&self) -> MutexGuard<'_, Steps> {
        self.steps.lock()
    }

    /// Deferred accepting ends, unless it has ended already. Returns when.
    pub(crate) fn begin(&self, now_ms: u64) -> u64 {
        let mut steps = self.steps();
        if steps.began_ms.is_none() {
            for socket in steps.open().flatten() {
                // Where it cannot be switched off, who is held back may be lost.
                let _ = stop_deferring(&socket);
            }
        }
        *steps.began_ms.get_or_insert(now_ms)
    }

    /// One socket of each group gets all newcomers, unless it does already. Returns since when.
    pub(crate) fn gather(&self, now_ms: u64) -> u64 {
        let mut steps = self.steps();
        if steps.gathered_ms.is_none() {
            for group in steps.open() {
                // Without it, one who comes in the next moment may have to ask again.
                let _ = gather_connections(&group);
            }
        }
        *steps.gathered_ms.get_or_insert(now_ms)
    }

    /// Newcomers are refused, unless they are already.
    pub(crate) fn refuse(&self, now_ms: u64) -> RefusedAt {
        let mut steps = self.steps();
        if let Some(refused) = steps.refused {
            return refused;
        }
        let was_quiet = steps.began_ms.is_some_and(|at| self.quiet_at(at, QUIET_MS) <= now_ms);
        let mut works = true;
        for group in steps.open() {
            works &= refuse_connections(&group).is_ok();
        }
        *steps.refused.insert(RefusedAt { at_ms: now_ms, works, was_quiet })
    }

    pub(crate) fn note_arrival(&self, now_ms: u64) {
        self.last_ms.fetch_max(now_ms, Ordering::Relaxed);
    }

    /// When nothing will have come for `quiet_ms` since `since_ms`, if nothing comes.
    pub(crate) fn quiet_at(&self, since_ms: u64, quiet_ms: u64) -> u64 {
        self.last_ms.load(Ordering::Relaxed).max(since_ms) + quiet_ms
    }
}
