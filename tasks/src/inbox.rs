//! What other threads send to one worker: wake-ups and connections.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, OnceLock, PoisonError};

use gustnado_reactor::Alert;

use crate::crew::Post;
use crate::queue::TokenQueue;
use crate::sync::{AtomicBool, Ordering, fence};
use crate::wake::{Station, TaskId};

/// Wake-ups that are kept one by one; with more, all tasks are woken, which is as good.
const WAKES_MAX: usize = 1024;

/// A worker's letter box. It is bounded: connections by their places, wake-ups by [`WAKES_MAX`].
pub(crate) struct Inbox {
    wakes: TokenQueue,
    all: AtomicBool,
    arrivals: Arrivals,
    doorbell: Doorbell,
    alert: OnceLock<Alert>,
}

impl Default for Inbox {
    fn default() -> Self {
        Self {
            wakes: TokenQueue::new(WAKES_MAX),
            all: AtomicBool::new(false),
            arrivals: Arrivals::default(),
            doorbell: Doorbell::default(),
            alert: OnceLock::new(),
        }
    }
}

impl Inbox {
    /// The worker has a reactor now, which `alert` wakes.
    pub(crate) fn open(&self, alert: Alert) {
        let first = self.alert.set(alert);
        debug_assert!(first.is_ok(), "a worker opens its inbox once");
    }

    /// Takes all wake-ups. Returns whether every task is to be woken.
    pub(crate) fn take_wakes(&self, mut wake: impl FnMut(TaskId)) -> bool {
        while let Some(token) = self.wakes.pop() {
            wake(TaskId::of_token(token));
        }
        self.all.load(Ordering::Relaxed) && self.all.swap(false, Ordering::SeqCst)
    }

    pub(crate) fn arrivals(&self) -> &Arrivals {
        &self.arrivals
    }

    /// Says that the worker goes to sleep. Returns whether it may: nothing has come meanwhile.
    pub(crate) fn lie_down(&self) -> bool {
        self.doorbell.lie_down();
        if self.is_empty() {
            return true;
        }
        self.doorbell.get_up();
        false
    }

    pub(crate) fn get_up(&self) {
        self.doorbell.get_up();
    }

    fn is_empty(&self) -> bool {
        self.wakes.is_empty() && !self.all.load(Ordering::SeqCst) && self.arrivals.is_empty()
    }

    fn ring(&self) {
        if self.doorbell.ring()
            && let Some(alert) = self.alert.get()
        {
            alert.raise();
        }
    }
}

impl Station for Inbox {
    fn wake(&self, id: TaskId) {
        if self.wakes.push(id.token()).is_err() {
            self.all.store(true, Ordering::SeqCst);
        }
        self.ring();
    }
}

impl Post for Inbox {
    fn arrive(&self, connection: OwnedFd) {
        self.arrivals.put(connection);
        self.ring();
    }

    fn wake_all(&self) {
        self.all.store(true, Ordering::SeqCst);
        self.ring();
    }
}

/// Whether someone sleeps and must be woken for what was just left for them.
///
/// The sleeper says so before it looks a last time; the visitor leaves something before it looks
/// whether anyone sleeps. One of the two sees the other.
#[derive(Debug)]
pub(crate) struct Doorbell {
    asleep: AtomicBool,
}

impl Default for Doorbell {
    fn default() -> Self {
        Self { asleep: AtomicBool::new(false) }
    }
}

impl Doorbell {
    pub(crate) fn lie_down(&self) {
        self.asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    pub(crate) fn get_up(&self) {
        self.asleep.store(false, Ordering::Relaxed);
    }

    /// Returns whether the caller must wake the sleeper: one visitor does, for all.
    pub(crate) fn ring(&self) -> bool {
        fence(Ordering::SeqCst);
        self.asleep.load(Ordering::SeqCst) && self.asleep.swap(false, Ordering::SeqCst)
    }
}

/// Connections on their way to a worker.
#[derive(Debug)]
pub(crate) struct Arrivals {
    any: AtomicBool,
    connections: Mutex<VecDeque<OwnedFd>>,
}

impl Default for Arrivals {
    fn default() -> Self {
        Self { any: AtomicBool::new(false), connections: Mutex::default() }
    }
}

impl Arrivals {
    pub(crate) fn put(&self, connection: OwnedFd) {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.push_back(connection);
        self.any.store(true, Ordering::SeqCst);
    }

    /// Takes the next one. Costs a load while there is none.
    pub(crate) fn take(&self) -> Option<OwnedFd> {
        if self.is_empty() {
            return None;
        }
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let next = connections.pop_front();
        self.any.store(!connections.is_empty(), Ordering::SeqCst);
        next
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::SeqCst)
    }
}
