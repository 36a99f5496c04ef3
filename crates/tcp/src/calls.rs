//! Calls that belong to no connection: delayed ones, and those from other threads.
//!
//! One task makes them all, so they never run concurrently with each other, and those from threads
//! run in the order they came.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use gustnado_tasks::{Lock, timeout, yield_now};

use super::counters::EngineCounters;

type QueuedCall = Box<dyn FnOnce() + Send>;

/// Calls from threads that may wait.
const CALLS_MAX: usize = 1 << 16;
/// Delayed calls that may wait.
const DELAYED_MAX: usize = 1 << 20;
/// Calls made before other tasks have their turn.
const RUNS_MAX: u32 = 64;

/// Calls that wait for their time.
pub(super) struct CallQueue {
    /// All times here are milliseconds since then.
    origin: Instant,
    table: Lock<CallTable>,
    counters: Arc<EngineCounters>,
}

/// The calls that wait. Its rules take the time as an argument.
#[derive(Default)]
struct CallTable {
    calls: VecDeque<QueuedCall>,
    /// By time, and in the order they were asked for.
    delayed: BTreeMap<(u64, u64), QueuedCall>,
    /// The time of each delayed call, by its number.
    times: HashMap<u64, u64>,
    next_number: u64,
    task: Option<Waker>,
    /// Something was entered since the task looked last.
    changed: bool,
    closed: bool,
}

impl CallQueue {
    pub(super) fn new(counters: Arc<EngineCounters>) -> Arc<Self> {
        Arc::new(Self { origin: Instant::now(), table: Lock::default(), counters })
    }

    /// Queues `call`, to be made soon.
    pub(super) fn call(&self, call: QueuedCall) -> Result<(), CallError> {
        let mut table = self.table.lock();
        if table.closed {
            return Err(CallError::Stopped);
        }
        if table.calls.len() >= CALLS_MAX {
            return Err(CallError::Full);
        }
        table.calls.push_back(call);
        table.tell_task();
        Ok(())
    }

    /// Queues `call`, to be made after `delay`.
    pub(super) fn call_later(
        self: &Arc<Self>,
        delay: Duration,
        call: QueuedCall,
    ) -> Result<DelayedCall, CallError> {
        let at_ms = self.after(delay);
        let number = self.table.lock().enter(at_ms, call)?;
        Ok(DelayedCall { calls: Arc::clone(self), number })
    }

    /// Makes all calls, each in its time, until the engine ends.
    pub(super) async fn run(self: Arc<Self>) {
        let _closed = ClosedOnDrop(&self);
        loop {
            for _ in 0..RUNS_MAX {
                let Some(call) = self.table.lock().take(self.now_ms()) else { break };
                self.counters.contain(call);
            }
            let (now_ms, due_ms) = (self.now_ms(), self.table.lock().due_ms());
            match due_ms.map(|due_ms| due_ms.saturating_sub(now_ms)) {
                None => self.changed().await,
                Some(0) => yield_now().await,
                Some(wait_ms) => {
                    // Whichever comes first, what is due then is looked up.
                    let _ = timeout(Duration::from_millis(wait_ms), self.changed()).await;
                }
            }
        }
    }

    /// Makes no more calls, and drops those that wait.
    pub(super) fn close(&self) {
        let left = {
            let mut table = self.table.lock();
            table.closed = true;
            table.times.clear();
            (mem::take(&mut table.calls), mem::take(&mut table.delayed))
        };
        // A call's drop may have a say of its own, so no lock is held.
        self.counters.contain(|| drop(left));
    }

    /// Waits until something is entered.
    async fn changed(&self) {
        poll_fn(|context| {
            let mut table = self.table.lock();
            if mem::take(&mut table.changed) {
                return Poll::Ready(());
            }
            table.task = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns the first whole millisecond at which `delay` has passed.
    fn after(&self, delay: Duration) -> u64 {
        let at = self.origin.elapsed().saturating_add(delay).as_nanos().div_ceil(1_000_000);
        u64::try_from(at).unwrap_or(u64::MAX)
    }
}

struct ClosedOnDrop<'a>(&'a CallQueue);

impl Drop for ClosedOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl CallTable {
    fn enter(&mut self, at_ms: u64, call: QueuedCall) -> Result<u64, CallError> {
        if self.closed {
            return Err(CallError::Stopped);
        }
        if self.delayed.len() >= DELAYED_MAX {
            return Err(CallError::Full);
        }
        let number = self.next_number;
        self.next_number += 1;
        self.put(number, at_ms, call);
        Ok(number)
    }

    fn put(&mut self, number: u64, at_ms: u64, call: QueuedCall) {
        self.delayed.insert((at_ms, number), call);
        self.times.insert(number, at_ms);
        self.tell_task();
    }

    /// Takes a call out of the line.
    fn cancel(&mut self, number: u64) -> Option<(u64, QueuedCall)> {
        let at_ms = self.times.remove(&number)?;
        Some((at_ms, self.delayed.remove(&(at_ms, number))?))
    }

    /// Returns the next call to make now.
    fn take(&mut self, now_ms: u64) -> Option<QueuedCall> {
        if let Some(first) = self.delayed.first_entry()
            && first.key().0 <= now_ms
        {
            let ((_, number), call) = first.remove_entry();
            self.times.remove(&number);
            return Some(call);
        }
        self.calls.pop_front()
    }

    /// Returns when the next call is to be made; 0 is now.
    fn due_ms(&self) -> Option<u64> {
        if !self.calls.is_empty() {
            return Some(0);
        }
        self.delayed.first_key_value().map(|((at_ms, _), _)| *at_ms)
    }

    fn tell_task(&mut self) {
        self.changed = true;
        if let Some(task) = self.task.take() {
            task.wake();
        }
    }
}

/// A call that waits for its time. Dropping this changes nothing; clones name the same call.
#[derive(Clone)]
pub struct DelayedCall {
    calls: Arc<CallQueue>,
    number: u64,
}

impl DelayedCall {
    /// Takes the call back. Returns whether it was still to be made.
    pub fn cancel(&self) -> bool {
        // Dropped after the lock is given back: the call may own anything.
        let taken = self.calls.table.lock().cancel(self.number);
        taken.is_some()
    }

    /// Moves the call to `delay` from now. Returns whether it was still to be made.
    pub fn reset(&self, delay: Duration) -> bool {
        let at_ms = self.calls.after(delay);
        self.move_to(|_| at_ms)
    }

    /// Moves the call `by` later. Returns whether it was still to be made.
    pub fn delay(&self, by: Duration) -> bool {
        let by_ms = u64::try_from(by.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        self.move_to(|at_ms| at_ms.saturating_add(by_ms))
    }

    /// Returns whether the call is still to be made.
    pub fn is_active(&self) -> bool {
        self.calls.table.lock().times.contains_key(&self.number)
    }

    fn move_to(&self, time: impl FnOnce(u64) -> u64) -> bool {
        let mut table = self.calls.table.lock();
        let Some((at_ms, call)) = table.cancel(self.number) else { return false };
        table.put(self.number, time(at_ms), call);
        true
    }
}

impl fmt::Debug for DelayedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DelayedCall").field("is_active", &self.is_active()).finish_non_exhaustive()
    }
}

/// The error of a call that is not made.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallError {
    /// Too many calls wait: 65,536 from threads, or 1,048,576 delayed ones.
    Full,
    /// The engine stops.
    Stopped,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "too many calls wait",
            Self::Stopped => "the engine stops",
        })
    }
}

impl std::error::Error for CallError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_calls() -> Arc<CallQueue> {
        CallQueue::new(Arc::default())
    }

    fn nothing() -> QueuedCall {
        Box::new(|| {})
    }

    #[test]
    fn a_call_is_made_at_its_time_and_not_before() {
        let mut table = CallTable::default();
        table.enter(20, nothing()).expect("there is room");
        table.enter(10, nothing()).expect("there is room");
        assert_eq!(table.due_ms(), Some(10));
        assert!(table.take(9).is_none());
        assert!(table.take(10).is_some() && table.take(19).is_none());
        assert!(table.take(20).is_some());
        assert!(table.due_ms().is_none() && table.times.is_empty());
    }

    #[test]
    fn a_call_can_be_moved_and_taken_back_until_it_is_made() {
        let calls = new_calls();
        let call = calls.call_later(Duration::from_mins(1), nothing()).expect("there is room");
        let later = call.clone();
        assert!(call.is_active() && call.reset(Duration::from_secs(5)));
        let first_ms = calls.table.lock().due_ms().expect("one waits");
        assert!(call.delay(Duration::from_secs(2)));
        assert_eq!(calls.table.lock().due_ms(), Some(first_ms + 2_000));
        assert!(later.cancel() && !later.cancel());
        assert!(!call.is_active() && !call.reset(Duration::ZERO) && !call.delay(Duration::ZERO));
        assert_eq!(calls.table.lock().due_ms(), None);
    }

    #[test]
    fn no_more_calls_wait_than_may() {
        let calls = new_calls();
        for _ in 0..CALLS_MAX {
            calls.call(nothing()).expect("there is room");
        }
        assert_eq!(calls.call(nothing()), Err(CallError::Full));
        calls.close();
        assert_eq!(calls.call(nothing()), Err(CallError::Stopped));
        assert!(calls.call_later(Duration::ZERO, nothing()).is_err());
    }

    #[test]
    fn what_waits_is_dropped_with_the_engine_and_may_ask_it_meanwhile() {
        struct AsksOnDrop(DelayedCall);
        impl Drop for AsksOnDrop {
            fn drop(&mut self) {
                assert!(!self.0.is_active());
            }
        }
        let calls = new_calls();
        let first = calls.call_later(Duration::from_secs(9), nothing()).expect("there is room");
        let asks = AsksOnDrop(first);
        let call = move || drop(asks);
        calls.call_later(Duration::from_secs(9), Box::new(call)).expect("there is room");
        calls.close();
        assert_eq!(calls.counters.stats().panics, 0);
    }
}
