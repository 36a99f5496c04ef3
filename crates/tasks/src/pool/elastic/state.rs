//! State that autoscaler and workers share: what it wants to hear, and what was reported.
//!
//! Workers report only where their path is cold: an acceptor that waits for a slot, a poller that
//! finds no worker to poll after it. Each report that may come often has a flag, so that it costs a
//! load while the autoscaler does not care.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use gustnado_reactor::{ReactorWaker, prepare_to_share};

use super::life_cycle::ElasticWorkers;
use crate::exec::worker::elastic::{Elastic, LoadEvent, PolledListener, RetireAction};
use crate::sync::lock::Lock;

/// State that autoscaler and workers share.
pub(super) struct AutoscaleState {
    pub(super) elastic: ElasticWorkers,
    /// Workers share their tasks, so none has a listener of its own to be polled.
    is_group: bool,
    pub(super) waker: ReactorWaker,
    /// The alert was raised and not heard yet.
    pub(super) is_told: AtomicBool,
    /// It wants to hear that all slots are taken.
    pub(super) hears_full: AtomicBool,
    /// It wants to hear that a connection was handed over.
    pub(super) hears_arrivals: AtomicBool,
    /// A connection waits, or may.
    pub(super) has_arrival: AtomicBool,
    /// It was told that no worker is left to poll.
    pub(super) is_group_busy: AtomicBool,
    /// Times that a group's poller has come round. Written by the poller alone.
    pub(super) rounds: AtomicU64,
    /// A worker's thread could not start.
    pub(super) has_failed: AtomicBool,
    polled_listeners: Lock<Vec<Weak<PolledListener>>>,
}

impl AutoscaleState {
    pub(super) fn new(elastic: ElasticWorkers, is_group: bool, waker: ReactorWaker) -> Self {
        Self {
            elastic,
            is_group,
            waker,
            is_told: AtomicBool::new(false),
            hears_full: AtomicBool::new(true),
            hears_arrivals: AtomicBool::new(true),
            has_arrival: AtomicBool::new(false),
            is_group_busy: AtomicBool::new(false),
            rounds: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
            polled_listeners: Lock::default(),
        }
    }

    /// Wakes the autoscaler. One system call, however many report before it has come round.
    pub(super) fn tell(&self) {
        if !self.is_told.swap(true, Ordering::SeqCst) {
            self.waker.wake();
        }
    }

    /// A worker's thread could not start, so the worker is absent again.
    pub(super) fn tell_failed(&self, worker: usize) {
        self.elastic.vacate(worker);
        self.has_failed.store(true, Ordering::SeqCst);
        self.tell();
    }

    pub(super) fn polled_listeners(&self) -> Vec<Arc<PolledListener>> {
        self.polled_listeners.lock().iter().filter_map(Weak::upgrade).collect()
    }
}

impl Elastic for AutoscaleState {
    fn floor(&self) -> usize {
        self.elastic.floor()
    }

    fn workers(&self) -> usize {
        let counts = self.elastic.counts();
        self.elastic.floor() + counts.running + counts.draining
    }

    fn is_present(&self, worker: usize) -> bool {
        self.elastic.is_present(worker)
    }

    fn report(&self, event: LoadEvent) {
        match event {
            LoadEvent::Changed => self.tell(),
            LoadEvent::SlotsFull => {
                if self.hears_full.load(Ordering::SeqCst) {
                    self.tell();
                }
            }
            LoadEvent::HandedOver => {
                if self.hears_arrivals.load(Ordering::SeqCst) {
                    // Once is enough: it asks again when it has looked.
                    self.hears_arrivals.store(false, Ordering::SeqCst);
                    self.has_arrival.store(true, Ordering::SeqCst);
                    self.tell();
                }
            }
            LoadEvent::GroupPolled => {
                // Only the poller writes, so this need not be a read-modify-write.
                let rounds = self.rounds.load(Ordering::Relaxed).wrapping_add(1);
                self.rounds.store(rounds, Ordering::SeqCst);
            }
            LoadEvent::GroupBusy => {
                if !self.is_group_busy.load(Ordering::Relaxed)
                    && !self.is_group_busy.swap(true, Ordering::SeqCst)
                {
                    self.tell();
                }
            }
            LoadEvent::PhaseChanged => {
                self.tell();
                self.elastic.unpark_all();
            }
        }
    }

    fn poll_listener(&self, listener: PolledListener) -> io::Result<Option<Arc<PolledListener>>> {
        if self.is_group {
            return Ok(None);
        }
        prepare_to_share(&listener.socket)?;
        let listener = Arc::new(listener);
        {
            let mut polled_listeners = self.polled_listeners.lock();
            polled_listeners.retain(|polled| polled.strong_count() > 0);
            polled_listeners.push(Arc::downgrade(&listener));
        }
        self.tell();
        Ok(Some(listener))
    }

    fn leave(&self, worker: usize, close: &mut dyn FnMut() -> bool) -> RetireAction {
        self.elastic.leave(worker, close)
    }

    fn is_parked(&self, worker: usize) -> bool {
        self.elastic.is_parked(worker)
    }

    fn take_threads(&self) -> (Vec<JoinHandle<()>>, Vec<u16>) {
        self.elastic.take()
    }
}
