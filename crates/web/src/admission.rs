//! One limit of handlers that run at a time, and the requests that wait for it.
//!
//! A server that starts every handler at once gets slower for all of them, until no response comes
//! in time. Here as many run as may; the others wait in a bounded queue, in their order and for a
//! bounded time. When the queue is full, or the memory for those that wait is short, the oldest
//! gives up its place: its client has waited for longest, and is the most likely to have gone.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use gustnado_http::status::Status;
use gustnado_tasks::{Charge, MemoryKind, timeout};

use crate::response::Response;

/// How many handlers may run at a time, and how many requests may wait for how long.
#[derive(Clone, Copy, Debug, Default)]
pub struct AdmissionLimits {
    /// Handlers at a time; 0 is no limit.
    pub running_max: usize,
    /// Requests that wait.
    pub queue_max: usize,
    /// How long each waits.
    pub wait_max: Duration,
}

/// Counts over all limits of a server.
#[derive(Debug, Default)]
pub struct HandlerCounts {
    /// Handlers that run under a limit.
    pub running: AtomicU64,
    /// Requests that wait for a handler.
    pub queued: AtomicU64,
    /// Requests that got no handler.
    pub refused: AtomicU64,
}

impl HandlerCounts {
    /// Counts a request that gets no handler.
    pub fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
}

/// Handlers that run under one limit, and requests that wait for one.
#[derive(Debug)]
pub struct Admission {
    state: Mutex<AdmissionState>,
    counts: Arc<HandlerCounts>,
}

#[derive(Debug, Default)]
struct AdmissionState {
    limits: AdmissionLimits,
    running: usize,
    queue: VecDeque<Arc<Waiting>>,
}

/// A request that waits.
#[derive(Debug)]
struct Waiting {
    outcome: Mutex<QueueOutcome>,
    /// What it holds.
    bytes: usize,
}

#[derive(Debug, Default)]
enum QueueOutcome {
    #[default]
    None,
    /// The task is woken when there is an outcome.
    Awaited(Waker),
    Admitted,
    GivenUp,
}

/// Permission to run one handler; dropping it lets the next one run.
#[derive(Debug)]
pub struct Permit(Arc<Admission>);

impl Admission {
    /// Creates a limit.
    ///
    /// - `counts`: those of its server.
    pub fn new(counts: &Arc<HandlerCounts>, limits: AdmissionLimits) -> Arc<Self> {
        let state = Mutex::new(AdmissionState { limits, ..AdmissionState::default() });
        Arc::new(Self { state, counts: Arc::clone(counts) })
    }

    /// Sets the limits. Handlers that run already are not ended.
    pub fn set_limits(&self, limits: AdmissionLimits) {
        self.lock().limits = limits;
    }

    /// Waits for a permit. `None`: it waited for too long, or others needed its place.
    ///
    /// - `bytes`: what the request holds while it waits.
    pub async fn admit(self: &Arc<Self>, bytes: usize) -> Option<Permit> {
        let (place, wait_max, given_up) = {
            let mut state = self.lock();
            let AdmissionLimits { running_max, queue_max, wait_max } = state.limits;
            if running_max == 0 || state.running < running_max {
                state.running += 1;
                return Some(Permit(Arc::clone(self)));
            }
            if queue_max == 0 {
                self.counts.count_refused();
                return None;
            }
            let mut charge = Charge::new(MemoryKind::Queue);
            charge.set(bytes);
            let given_up = self.make_room(&mut state, bytes, charge.is_over_budget());
            let waiting = Arc::new(Waiting { outcome: Mutex::default(), bytes });
            state.queue.push_back(Arc::clone(&waiting));
            self.counts.queued.fetch_add(1, Ordering::Relaxed);
            (QueuePlace { admission: self, waiting, _charge: charge }, wait_max, given_up)
        };
        for oldest in given_up {
            oldest.end(QueueOutcome::GivenUp);
        }
        // The place is given back if the client goes meanwhile.
        let is_admitted = timeout(wait_max, place.waiting.outcome()).await.unwrap_or(false);
        let permit = is_admitted.then(|| place.take());
        if permit.is_none() {
            self.counts.count_refused();
        }
        permit
    }

    /// Takes the oldest out of the queue, as many as have to go for one more. One alone may always
    /// wait: so a queue that holds all the memory does not close the others.
    fn make_room(
        &self,
        state: &mut AdmissionState,
        bytes: usize,
        is_short: bool,
    ) -> Vec<Arc<Waiting>> {
        let (mut given_up, mut freed) = (Vec::new(), 0);
        while state.queue.len() >= state.limits.queue_max || (is_short && freed < bytes) {
            let Some(oldest) = self.next_of(state) else { break };
            freed += oldest.bytes;
            given_up.push(oldest);
        }
        given_up
    }

    /// Takes the oldest out of the queue.
    fn next_of(&self, state: &mut AdmissionState) -> Option<Arc<Waiting>> {
        let next = state.queue.pop_front()?;
        self.counts.queued.fetch_sub(1, Ordering::Relaxed);
        Some(next)
    }

    fn lock(&self) -> MutexGuard<'_, AdmissionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Waits for the outcome. Returns whether it is admitted.
    async fn outcome(&self) -> bool {
        poll_fn(|context| {
            let mut outcome = self.lock();
            match &*outcome {
                QueueOutcome::Admitted => Poll::Ready(true),
                QueueOutcome::GivenUp => Poll::Ready(false),
                QueueOutcome::None | QueueOutcome::Awaited(_) => {
                    *outcome = QueueOutcome::Awaited(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn end(&self, with: QueueOutcome) {
        let before = mem::replace(&mut *self.lock(), with);
        if let QueueOutcome::Awaited(waker) = before {
            waker.wake();
        }
    }

    fn is_admitted(&self) -> bool {
        matches!(*self.lock(), QueueOutcome::Admitted)
    }

    fn lock(&self) -> MutexGuard<'_, QueueOutcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the queue. Dropping it leaves the queue, or gives an unused permit to the next.
struct QueuePlace<'a> {
    admission: &'a Arc<Admission>,
    waiting: Arc<Waiting>,
    _charge: Charge,
}

impl QueuePlace<'_> {
    /// Takes the permit of a request that was admitted.
    fn take(self) -> Permit {
        self.waiting.end(QueueOutcome::GivenUp);
        Permit(Arc::clone(self.admission))
    }
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        // Under the lock, so that it is not admitted between the two.
        let mut state = self.admission.lock();
        let before = state.queue.len();
        state.queue.retain(|waiting| !Arc::ptr_eq(waiting, &self.waiting));
        let left = (before - state.queue.len()) as u64;
        self.admission.counts.queued.fetch_sub(left, Ordering::Relaxed);
        if self.waiting.is_admitted() {
            self.waiting.end(QueueOutcome::GivenUp);
            drop(state);
            drop(Permit(Arc::clone(self.admission)));
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        // A reload may have lowered the limit.
        let running_max = state.limits.running_max;
        let may_admit = running_max == 0 || state.running <= running_max;
        let next = if may_admit { self.0.next_of(&mut state) } else { None };
        match next {
            // It takes over this one's number.
            Some(next) => next.end(QueueOutcome::Admitted),
            None => state.running -= 1,
        }
    }
}

/// Returns the response to a request that got no handler.
pub fn overloaded() -> Response {
    Response::new(Status::SERVICE_UNAVAILABLE).header("Retry-After", "1")
}
