//! A group of workers that share their tasks: one polls, the others sleep or run.
//!
//! A worker that finds nothing to run takes the poller's role, collects up to 64 events, queues
//! their tasks, gives the role up and wakes a sleeper **before** it runs anything. So a handler
//! that holds its thread holds nothing else: the events it collected are queued for all, and the
//! woken worker polls on.

use std::sync::{Arc, MutexGuard, OnceLock};
use std::thread::{self, Thread};

use gustnado_reactor::{ReactorWaker, TimerKey, Token, Wheel};

use crate::exec::error::SpawnError;
use crate::exec::schedule::{BoxTask, ShareScheduler};
use crate::exec::wakers::foreign::{self, ForeignWakers};
use crate::exec::wakers::task_id::TaskId;
use crate::exec::wakers::wake_target::WakeTarget;
use crate::exec::worker::arrival::Arrival;
use crate::exec::worker::dump_request::DumpRequest;
use crate::exec::worker::inbox::{WorkerMessage, WorkerQueue};
use crate::exec::worker::worker_handle::WorkerHandle;
use crate::sync::atomic::{AtomicU64, Ordering, fence};
use crate::sync::lock::Lock;
use crate::sync::roles::Roles;
use crate::sync::sleep_state::SleepState;

/// Most workers that one group can have: one bit each says who sleeps.
pub(crate) const WORKERS_MAX: usize = 64;

/// State that the workers of a group share.
pub(crate) struct WorkerGroup {
    pub(crate) schedule: Box<dyn ShareScheduler>,
    wake_target: OnceLock<u16>,
    wheel: Lock<Wheel>,
    foreign: Lock<ForeignWakers>,
    /// Until when the poller means to sleep; timers armed for earlier must wake it.
    poller_until_ms: AtomicU64,
    /// The poller sleeps in the kernel.
    sleep_state: SleepState,
    pub(crate) roles: Roles,
    threads: Box<[OnceLock<Thread>]>,
    /// Those of workers that come and go.
    extra_threads: Box<[Lock<Option<Thread>>]>,
    pub(crate) arrivals: WorkerQueue,
    /// Tasks that came from threads that are no workers of this group, or not as workers.
    tasks_taken: AtomicU64,
    waker: ReactorWaker,
}

impl WorkerGroup {
    pub(crate) fn new(
        schedule: Box<dyn ShareScheduler>,
        waker: ReactorWaker,
        workers: usize,
        extra_threads: usize,
    ) -> Self {
        Self {
            schedule,
            wake_target: OnceLock::new(),
            wheel: Lock::default(),
            foreign: Lock::default(),
            poller_until_ms: AtomicU64::new(0),
            sleep_state: SleepState::default(),
            roles: Roles::default(),
            threads: (0..workers).map(|_| OnceLock::new()).collect(),
            extra_threads: (0..extra_threads).map(|_| Lock::default()).collect(),
            arrivals: WorkerQueue::default(),
            tasks_taken: AtomicU64::new(0),
            waker,
        }
    }

    /// The group's tasks carry this wake target's number.
    pub(crate) fn set_wake_target(&self, wake_target: u16) {
        let own = self.wake_target.get_or_init(|| wake_target);
        debug_assert_eq!(*own, wake_target, "a group is one wake target");
    }

    /// The running thread is this worker of the group.
    pub(crate) fn join(&self, worker: usize) {
        let thread = thread::current();
        match self.threads.get(worker) {
            Some(own) => {
                let first = own.set(thread);
                debug_assert!(first.is_ok(), "a worker that stays joins once");
            }
            None => *self.extra(worker) = Some(thread),
        }
    }

    /// Returns the thread of a worker that comes and goes.
    fn extra(&self, worker: usize) -> MutexGuard<'_, Option<Thread>> {
        let extra = &self.extra_threads[worker - self.threads.len()];
        extra.lock()
    }

    /// Makes a worker leave the group.
    pub(crate) fn retire(&self, worker: usize) {
        self.roles.retire(worker);
        self.unpark(worker);
        // It may be the poller.
        self.waker.wake();
    }

    fn unpark(&self, worker: usize) {
        match self.threads.get(worker) {
            Some(own) => own.get().map_or((), Thread::unpark),
            None => self.extra(worker).as_ref().map_or((), Thread::unpark),
        }
    }

    /// Announces that the poller sleeps until `until_ms`. Returns whether it may.
    pub(crate) fn prepare_sleep(&self, until_ms: Option<u64>) -> bool {
        self.poller_until_ms.store(until_ms.unwrap_or(u64::MAX), Ordering::SeqCst);
        self.sleep_state.prepare_sleep();
        let next_ms = self.wheel.lock().next_ms();
        let due_earlier = next_ms.is_some_and(|next| until_ms.is_none_or(|until| next < until));
        if self.has_work() || due_earlier {
            self.cancel_sleep();
            return false;
        }
        true
    }

    pub(crate) fn cancel_sleep(&self) {
        self.poller_until_ms.store(0, Ordering::SeqCst);
        self.sleep_state.cancel_sleep();
    }

    /// Sleeps until someone wakes this worker, unless there is work or no worker polls.
    pub(crate) fn park(&self, worker: usize, mut leave: impl FnMut() -> bool) {
        self.roles.fall_asleep(worker);
        if self.has_work() || !self.roles.is_polled() || leave() {
            self.roles.wake_up(worker);
            return;
        }
        // The thread that wakes this worker clears its bit first; any other return is spurious.
        while self.roles.is_asleep(worker) {
            thread::park();
        }
    }

    /// Sees to it that a task that was just queued is run although others are busy: wakes a
    /// sleeping worker, or the poller.
    pub(crate) fn wake_worker(&self) {
        if !self.wake_sleeper() && self.sleep_state.notify() {
            self.waker.wake();
        }
    }

    /// For a worker that was woken and now runs something, which may hold it: wakes the next one if
    /// something is left to do. Of many events at once the poller wakes one worker only.
    pub(crate) fn pass_on(&self) {
        if self.has_work() {
            self.wake_worker();
        } else if !self.roles.is_polled() {
            self.wake_sleeper();
        }
    }

    /// Wakes a sleeping worker, if there is one.
    pub(crate) fn wake_sleeper(&self) -> bool {
        let Some(worker) = self.roles.pick_sleeper() else { return false };
        self.unpark(worker);
        true
    }

    pub(crate) fn arm(&self, at_ms: u64, token: Token) -> TimerKey {
        let key = self.wheel.lock().arm(at_ms, token);
        fence(Ordering::SeqCst);
        if at_ms < self.poller_until_ms.load(Ordering::SeqCst) && self.sleep_state.notify() {
            self.waker.wake();
        }
        key
    }

    pub(crate) fn first_timers(&self, after_ms: u64, count_max: usize) -> Vec<(u64, Token)> {
        self.wheel.lock().first(after_ms, count_max)
    }

    pub(crate) fn spread_timers(&self, count_max: usize) -> Vec<(u64, Token)> {
        self.wheel.lock().spread(count_max)
    }

    pub(crate) fn disarm(&self, key: TimerKey) -> bool {
        self.wheel.lock().cancel(key)
    }

    pub(crate) fn expire(&self, now_ms: u64) -> Option<u64> {
        let ready = |id: TaskId| self.schedule.ready(id.slot(), id.generation());
        foreign::expire(self.wheel.lock(), now_ms, |id| self.foreign().take(id), ready)
    }

    /// Returns the wakers kept for timers. Locked after the wheel, where both are.
    pub(crate) fn foreign(&self) -> MutexGuard<'_, ForeignWakers> {
        self.foreign.lock()
    }

    pub(crate) fn has_work(&self) -> bool {
        self.schedule.has_ready() || !self.arrivals.is_empty()
    }
}

impl WakeTarget for WorkerGroup {
    fn wake(&self, id: TaskId) {
        if self.schedule.ready(id.slot(), id.generation()) {
            self.wake_worker();
        }
    }
}

impl WorkerHandle for WorkerGroup {
    fn arrive(&self, arrival: Arrival) {
        self.arrivals.put(WorkerMessage::Arrival(arrival));
        self.wake_worker();
    }

    fn take_task(&self, task: BoxTask) -> Result<(), (BoxTask, SpawnError)> {
        self.schedule.insert(task).map_err(|task| (task, SpawnError::Full))?;
        self.tasks_taken.fetch_add(1, Ordering::Relaxed);
        self.wake_worker();
        Ok(())
    }

    fn tasks_taken(&self) -> u64 {
        self.tasks_taken.load(Ordering::Relaxed)
    }

    /// Any thread may look at what all workers share.
    fn reply(&self, look: &Arc<DumpRequest>) -> bool {
        let wake_target = self.wake_target.get();
        if let Some(wake_target) = wake_target {
            look.reply(*wake_target, None, &*self.schedule);
        }
        wake_target.is_some()
    }

    fn evict(&self) -> bool {
        let is_open = self.arrivals.put_eviction();
        self.wake_worker();
        is_open
    }

    fn wake_all(&self) {
        self.schedule.ready_all();
        while self.wake_sleeper() {}
        self.waker.wake();
    }
}
