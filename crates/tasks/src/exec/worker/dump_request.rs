//! Dumps of tasks: a request to all workers, and the tasks with their waits.
//!
//! The question goes into each worker's queue of messages, and the worker writes its tasks down
//! between two of them. Where workers share their tasks, the asking thread looks for itself. No
//! worker waits: one that a task holds does not answer in time, and then its metrics still says
//! which task that is.

mod table;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::exec::schedule::{Scheduler, TaskSnapshot};
use crate::exec::waits::{Waits, WaitsOn};
use crate::exec::wakers::task_id::TaskId;
use crate::exec::worker::worker_metrics::WorkerMetrics;
use crate::sync::claim::TaskActivity;
use crate::sync::lock::Lock;

/// Tasks that one worker writes down; the rest it counts. With a million tasks it is held for some
/// milliseconds.
const TASKS_MAX: usize = 100_000;

/// The tasks of a server at one moment, or nearly. `Display` makes a table of it.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Dump {
    /// The tasks, in the order of workers and slots; at most 100,000 of each worker (of all workers
    /// together, where they share their tasks).
    pub tasks: Vec<TaskInfo>,
    /// The number of tasks that were left out.
    pub left_out: usize,
    /// Workers that did not respond in time. What is known of them is the task that holds each.
    pub silent: Vec<usize>,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskInfo {
    /// Its number: no other task of this process has the same at the same time.
    pub id: u64,
    /// Its name, if it has one ([`crate::spawn_named`]).
    pub name: Option<Cow<'static, str>>,
    /// The worker that it lives on or that runs it; `None` where workers share their tasks and none
    /// runs this one.
    pub worker: Option<usize>,
    /// Its state.
    pub state: TaskState,
    /// Time since it last ran, to within 16 ms (and 198 days at most); of one that runs, how long
    /// ago its worker last looked at the clock. `None` if it has never run.
    pub since: Option<Duration>,
}

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskState {
    /// It runs, or blocks its worker.
    Running,
    /// It is queued.
    Ready,
    /// It waits.
    Waiting {
        /// For what.
        on: WaitsOn,
    },
}

/// Names of the tasks that have one, shared by all workers.
pub(crate) type TaskNames = Lock<NamesById>;

type NamesById = HashMap<TaskId, Cow<'static, str>>;

/// A question to all workers, and their answers.
pub(crate) struct DumpRequest {
    now_ms: u64,
    names: Arc<TaskNames>,
    replies: Lock<Replies>,
}

#[derive(Default)]
struct Replies {
    tasks: Vec<TaskInfo>,
    left_out: usize,
    /// Whose they are.
    wake_targets: HashSet<u16>,
    /// How many there will be, once all have been asked.
    wanted: Option<usize>,
    waiter: Option<Waker>,
}

impl DumpRequest {
    /// A question that no worker was asked yet.
    pub(crate) fn new(now_ms: u64, names: Arc<TaskNames>) -> Self {
        Self { now_ms, names, replies: Lock::default() }
    }

    /// So many were asked.
    pub(crate) fn expect_replies(&self, wanted: usize) {
        self.replies.lock().wanted = Some(wanted);
    }

    /// Writes down the tasks of a wake target.
    ///
    /// - `worker`: the only one that runs them, if they are not shared.
    pub(crate) fn reply(&self, wake_target: u16, worker: Option<usize>, schedule: &dyn Scheduler) {
        let mut seen = Vec::new();
        let mut left_out = 0;
        schedule.look(&mut |task| {
            if seen.len() < TASKS_MAX {
                seen.push(task);
            } else {
                left_out += 1;
            }
        });
        let tasks: Vec<_> = {
            let names = self.names.lock();
            seen.into_iter().map(|task| self.info(task, wake_target, worker, &names)).collect()
        };
        let waiter = {
            let mut replies = self.replies.lock();
            replies.tasks.extend(tasks);
            replies.left_out += left_out;
            replies.wake_targets.insert(wake_target);
            replies.waiter.take()
        };
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }

    fn info(
        &self,
        task: TaskSnapshot,
        wake_target: u16,
        worker: Option<usize>,
        names: &NamesById,
    ) -> TaskInfo {
        let TaskSnapshot { slot, generation, doing, waits } = task;
        let id = TaskId::new(wake_target, slot, generation);
        let state = match doing {
            TaskActivity::Runs => TaskState::Running,
            TaskActivity::Queued => TaskState::Ready,
            TaskActivity::Waits => TaskState::Waiting { on: waits.what() },
        };
        let (name, since) = (names.get(&id).cloned(), self.since(waits));
        TaskInfo { id: id.token(), name, worker, state, since }
    }

    fn since(&self, waits: Waits) -> Option<Duration> {
        waits.waited_ms(self.now_ms).map(Duration::from_millis)
    }

    /// Returns whether all have answered.
    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut replies = self.replies.lock();
        if replies.wanted.is_some_and(|wanted| replies.wake_targets.len() >= wanted) {
            return Poll::Ready(());
        }
        let outdated = replies.waiter.replace(context.waker().clone());
        drop(replies);
        drop(outdated);
        Poll::Pending
    }

    /// Takes the answers there are, and adds what the desks say.
    ///
    /// - `worker_metrics`: of all workers that are there.
    pub(crate) fn finish<'d>(
        &self,
        worker_metrics: impl Iterator<Item = &'d WorkerMetrics>,
    ) -> Dump {
        let Replies { mut tasks, left_out, wake_targets, .. } =
            std::mem::take(&mut *self.replies.lock());
        let mut silent = Vec::new();
        let names = self.names.lock();
        for metrics in worker_metrics {
            let (id, since) = (metrics.task(), self.since(metrics.since()));
            if wake_targets.contains(&metrics.wake_target) {
                let running = |task: &&mut TaskInfo| task.state == TaskState::Running;
                let own = tasks.iter_mut().filter(running).find(|task| task.id == id.token());
                if let Some(task) = own {
                    (task.worker, task.since) = (Some(metrics.worker), since);
                }
                continue;
            }
            silent.push(metrics.worker);
            if id != TaskId::NONE {
                let (name, worker) = (names.get(&id).cloned(), Some(metrics.worker));
                let state = TaskState::Running;
                tasks.push(TaskInfo { id: id.token(), name, worker, state, since });
            }
        }
        tasks.sort_by_key(|task| task.worker);
        silent.sort_unstable();
        Dump { tasks, left_out, silent }
    }
}
