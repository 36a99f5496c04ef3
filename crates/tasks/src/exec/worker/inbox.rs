//! The queues by which other threads reach one worker: wake-ups, connections, tasks, dump requests.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, MutexGuard, PoisonError, RwLock};

use gustnado_reactor::ReactorWaker;

use crate::exec::error::SpawnError;
use crate::exec::schedule::BoxTask;
use crate::exec::wakers::task_id::TaskId;
use crate::exec::wakers::wake_target::WakeTarget;
use crate::exec::worker::arrival::{Arrival, IncomingHandler};
use crate::exec::worker::dump_request::DumpRequest;
use crate::exec::worker::worker_handle::WorkerHandle;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::lock::Lock;
use crate::sync::queue::TokenQueue;
use crate::sync::sleep_state::{Ping, SleepState};

/// Wake-ups that are kept one by one; with more, all tasks are woken, which is as good.
const WAKES_MAX: usize = 1024;
/// Messages that may be queued when a task or a dump request is added.
const MESSAGES_MAX: usize = 1024;

/// A worker's queue of messages. It is bounded: connections by their slots, wake-ups by
/// [`WAKES_MAX`], the rest by [`MESSAGES_MAX`].
pub(crate) struct Inbox {
    wakes: TokenQueue,
    all: AtomicBool,
    pub(crate) arrivals: WorkerQueue,
    sleep_state: SleepState,
    /// What wakes the worker; another one when another thread has taken its place.
    waker: RwLock<Option<ReactorWaker>>,
}

impl Default for Inbox {
    fn default() -> Self {
        Self {
            wakes: TokenQueue::new(WAKES_MAX),
            all: AtomicBool::new(false),
            arrivals: WorkerQueue::default(),
            sleep_state: SleepState::default(),
            waker: RwLock::default(),
        }
    }
}

impl Inbox {
    /// The worker has a reactor now, which `waker` wakes.
    pub(crate) fn open(&self, waker: ReactorWaker) {
        *self.waker.write().unwrap_or_else(PoisonError::into_inner) = Some(waker);
    }

    /// Takes all wake-ups. Returns whether every task is to be woken.
    pub(crate) fn take_wakes(&self, mut wake: impl FnMut(TaskId)) -> bool {
        while let Some(token) = self.wakes.pop() {
            wake(TaskId::of_token(token));
        }
        self.all.load(Ordering::Relaxed) && self.all.swap(false, Ordering::SeqCst)
    }

    /// Asks the worker to come round; `None`: it sleeps, so nothing holds it.
    pub(crate) fn ping(&self) -> Option<Arc<Ping>> {
        if self.sleep_state.is_asleep() {
            return None;
        }
        let ping = Arc::new(Ping::default());
        self.arrivals.put(WorkerMessage::Ping(Arc::clone(&ping)));
        self.notify();
        Some(ping)
    }

    /// Announces that the worker sleeps. Returns whether it may: nothing has come meanwhile.
    pub(crate) fn prepare_sleep(&self) -> bool {
        self.sleep_state.prepare_sleep();
        if self.is_empty() {
            return true;
        }
        self.sleep_state.cancel_sleep();
        false
    }

    pub(crate) fn cancel_sleep(&self) {
        self.sleep_state.cancel_sleep();
    }

    fn is_empty(&self) -> bool {
        self.wakes.is_empty() && !self.all.load(Ordering::SeqCst) && self.arrivals.is_empty()
    }

    fn notify(&self) {
        if self.sleep_state.notify()
            && let Some(waker) = &*self.waker.read().unwrap_or_else(PoisonError::into_inner)
        {
            waker.wake();
        }
    }
}

impl WakeTarget for Inbox {
    fn wake(&self, id: TaskId) {
        if self.wakes.push(id.token()).is_err() {
            self.all.store(true, Ordering::SeqCst);
        }
        self.notify();
    }
}

impl WorkerHandle for Inbox {
    fn arrive(&self, arrival: Arrival) {
        self.arrivals.put(WorkerMessage::Arrival(arrival));
        self.notify();
    }

    fn take_task(&self, task: BoxTask) -> Result<(), (BoxTask, SpawnError)> {
        self.arrivals.put_task(task)?;
        self.notify();
        Ok(())
    }

    fn tasks_taken(&self) -> u64 {
        // They come by message, and the worker counts them.
        0
    }

    fn reply(&self, look: &Arc<DumpRequest>) -> bool {
        let asked = self.arrivals.put_dump(look);
        self.notify();
        asked
    }

    fn evict(&self) -> bool {
        let is_open = self.arrivals.put_eviction();
        self.notify();
        is_open
    }

    fn wake_all(&self) {
        self.all.store(true, Ordering::SeqCst);
        self.notify();
    }
}

/// A message to a worker from another thread. Wake-ups have a queue of their own.
pub(crate) enum WorkerMessage {
    /// A connection or a listener.
    Arrival(Arrival),
    /// A task that is to run here.
    Task(BoxTask),
    /// Write the tasks of this worker into a dump.
    Dump(Arc<DumpRequest>),
    /// Ask idle connections to give way.
    Evict,
    /// Answer that the worker comes round.
    Ping(Arc<Ping>),
}

/// Messages on their way to a worker.
#[derive(Default)]
pub(crate) struct WorkerQueue {
    any: AtomicBool,
    queued: Lock<QueuedMessages>,
}

#[derive(Default)]
struct QueuedMessages {
    messages: VecDeque<WorkerMessage>,
    /// The worker reads none any more.
    closed: bool,
}

impl WorkerQueue {
    pub(crate) fn put(&self, message: WorkerMessage) {
        let refused = self.add(self.queued.lock(), message);
        drop(refused);
    }

    /// Puts a task in if there is room.
    fn put_task(&self, task: BoxTask) -> Result<(), (BoxTask, SpawnError)> {
        let queued = self.queued.lock();
        if queued.closed {
            return Err((task, SpawnError::Stopped));
        }
        if queued.messages.len() >= MESSAGES_MAX {
            return Err((task, SpawnError::Full));
        }
        self.add(queued, WorkerMessage::Task(task));
        Ok(())
    }

    /// Queues a dump request. One for which there is no room is not answered. Returns whether the
    /// worker still reads messages.
    fn put_dump(&self, look: &Arc<DumpRequest>) -> bool {
        let queued = self.queued.lock();
        let is_open = !queued.closed;
        if queued.messages.len() < MESSAGES_MAX {
            self.add(queued, WorkerMessage::Dump(Arc::clone(look)));
        }
        is_open
    }

    /// Queues a request that idle connections give way. Returns whether the worker still reads
    /// messages.
    pub(crate) fn put_eviction(&self) -> bool {
        self.add(self.queued.lock(), WorkerMessage::Evict).is_none()
    }

    /// Takes in nothing more, unless something lies here. Returns whether that was done.
    pub(crate) fn close_if_empty(&self) -> bool {
        let mut queued = self.queued.lock();
        queued.closed = queued.messages.is_empty();
        queued.closed
    }

    /// Accepts messages again.
    pub(crate) fn reopen(&self) {
        self.queued.lock().closed = false;
    }

    /// Takes out the connections that the worker has not fetched.
    pub(crate) fn take_connections(&self) -> Vec<(OwnedFd, Arc<dyn IncomingHandler>)> {
        let mut queued = self.queued.lock();
        let mut connections = Vec::new();
        for message in std::mem::take(&mut queued.messages) {
            match message {
                WorkerMessage::Arrival(Arrival::Connection(connection, incoming)) => {
                    connections.push((connection, incoming));
                }
                other => queued.messages.push_back(other),
            }
        }
        self.any.store(!queued.messages.is_empty(), Ordering::SeqCst);
        connections
    }

    /// Returns whether a connection lies here.
    pub(crate) fn has_connection(&self) -> bool {
        let is_connection = |message: &WorkerMessage| {
            matches!(message, WorkerMessage::Arrival(Arrival::Connection(..)))
        };
        !self.is_empty() && self.queued.lock().messages.iter().any(is_connection)
    }

    /// Adds a message, unless no worker will read it: then it is returned, to be dropped where
    /// nothing is locked.
    fn add(
        &self,
        mut queued: MutexGuard<'_, QueuedMessages>,
        message: WorkerMessage,
    ) -> Option<WorkerMessage> {
        if queued.closed {
            return Some(message);
        }
        queued.messages.push_back(message);
        self.any.store(true, Ordering::SeqCst);
        None
    }

    /// Takes the next one. Costs a load while there is none.
    pub(crate) fn take(&self) -> Option<WorkerMessage> {
        if self.is_empty() {
            return None;
        }
        let mut queued = self.queued.lock();
        let next = queued.messages.pop_front();
        self.any.store(!queued.messages.is_empty(), Ordering::SeqCst);
        next
    }

    /// Drops what lies here and takes in nothing more: the worker has ended.
    pub(crate) fn close(&self) {
        let messages = {
            let mut queued = self.queued.lock();
            queued.closed = true;
            self.any.store(false, Ordering::SeqCst);
            std::mem::take(&mut queued.messages)
        };
        drop(messages);
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::SeqCst)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A task that holds on to `count` as long as it lives.
    fn task(count: &Arc<()>) -> BoxTask {
        let count = Arc::clone(count);
        Box::pin(async move { drop(count) })
    }

    #[test]
    fn tasks_are_taken_in_until_the_box_is_full() {
        let (arrivals, count) = (WorkerQueue::default(), Arc::new(()));
        for _ in 0..MESSAGES_MAX {
            assert!(arrivals.put_task(task(&count)).is_ok());
        }
        assert!(matches!(arrivals.put_task(task(&count)), Err((_, SpawnError::Full))));
        assert!(!arrivals.is_empty() && arrivals.take().is_some());
        assert!(arrivals.put_task(task(&count)).is_ok());
        while arrivals.take().is_some() {}
        assert!(arrivals.is_empty());
        assert_eq!(Arc::strong_count(&count), 1);
    }

    #[test]
    fn a_box_that_nobody_opens_any_more_keeps_nothing() {
        let (arrivals, count) = (WorkerQueue::default(), Arc::new(()));
        assert!(arrivals.put_task(task(&count)).is_ok());
        arrivals.close();
        assert!(matches!(arrivals.put_task(task(&count)), Err((_, SpawnError::Stopped))));
        arrivals.put(WorkerMessage::Task(task(&count)));
        assert!(arrivals.is_empty() && arrivals.take().is_none());
        assert_eq!(Arc::strong_count(&count), 1);
    }
}
