//! What all workers of one server have in common: how to reach each, the places for connections,
//! and the phase that the server is in.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::net::Link;
use crate::places::{Placement, Places};
use crate::schedule::BoxTask;
use crate::wake::Station;

/// How far a server is from its end. It only ever goes forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    /// Connections are accepted and served.
    Serving,
    /// No more are accepted; idle ones close; the rest finish what they have begun.
    Draining,
    /// The time for that is over: all connections end where they are.
    Cutting,
    /// Workers end.
    Stopping,
}

impl Phase {
    const ALL: [Self; 4] = [Self::Serving, Self::Draining, Self::Cutting, Self::Stopping];
}

/// Makes the task that serves a new connection.
pub type Serve = dyn Fn(Link) -> BoxTask + Send + Sync;

/// A post that connections can be handed to, and wake-ups sent to.
pub(crate) trait Post: Station {
    /// Hands over an accepted connection whose place is taken.
    fn arrive(&self, connection: OwnedFd);

    /// Makes all tasks ready, so that they see the phase has changed.
    fn wake_all(&self);
}

/// What the workers of one server share.
pub(crate) struct Crew {
    phase: AtomicU8,
    /// One per place of [`Places`]: each worker, or the group of all.
    pub(crate) posts: Vec<Arc<dyn Post>>,
    /// The accepting thread, if there is one: it has no place, but must hear of each phase.
    pub(crate) acceptor: OnceLock<Arc<dyn Post>>,
    pub(crate) places: Places,
    pub(crate) placement: Placement,
    pub(crate) backlog: usize,
    pub(crate) serve: Box<Serve>,
    pub(crate) spin_us: u64,
    pub(crate) counts: Counts,
}

/// What happened to connections and tasks since the start.
#[derive(Debug, Default)]
pub struct Counts {
    /// Connections accepted.
    pub accepted: AtomicU64,
    /// Accepts that failed for want of descriptors or memory; accepting paused for a moment.
    pub accept_exhausted: AtomicU64,
    /// Accepts that failed otherwise (the peer had gone).
    pub accept_failed: AtomicU64,
    /// Times that accepting paused because all places were taken.
    pub accept_paused: AtomicU64,
    /// Tasks that panicked. The panic is contained: the task is dropped, the worker lives.
    pub panics: AtomicU64,
}

/// Adds one to a count.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Crew {
    pub(crate) fn new(
        posts: Vec<Arc<dyn Post>>,
        places: Places,
        placement: Placement,
        backlog: usize,
        spin_us: u64,
        serve: Box<Serve>,
    ) -> Self {
        let (phase, counts) = (AtomicU8::new(Phase::Serving as u8), Counts::default());
        let acceptor = OnceLock::new();
        Self { phase, posts, acceptor, places, placement, backlog, serve, spin_us, counts }
    }

    pub(crate) fn phase(&self) -> Phase {
        let phase = self.phase.load(Ordering::SeqCst);
        Phase::ALL.get(usize::from(phase)).copied().unwrap_or(Phase::Stopping)
    }

    /// Goes forward to `phase`, and tells everybody.
    pub(crate) fn advance(&self, phase: Phase) {
        self.phase.fetch_max(phase as u8, Ordering::SeqCst);
        self.places.wake_waiting();
        for post in self.posts.iter().chain(self.acceptor.get()) {
            post.wake_all();
        }
    }
}
