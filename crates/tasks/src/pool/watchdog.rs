//! The watchdog: notices workers that a task holds for too long.
//!
//! A thread of its own looks at all workers each second while they work, and sleeps while all of
//! them do. It only reads what each worker writes about itself. A driven worker is left to its
//! caller, whose thread may be held between two turns as well.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use gustnado_reactor::Clock;

use crate::exec::executor::context;
use crate::exec::waits::Waits;
use crate::exec::wakers::task_id::TaskId;
use crate::exec::worker::worker_metrics::WorkerMetrics;
use crate::exec::worker::workers_shared::{Phase, WorkersShared};

/// Interval between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Looks without work after which the watchdog sleeps.
const QUIET_LOOKS: u32 = 2;

/// A worker that is held: it does not come round to its other tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldWorker {
    /// Its number.
    pub worker: usize,
    /// The kernel's number of its thread, as in `/proc/self/task`.
    pub thread: u32,
    /// Time for which it has been held, to within 16 ms; once it is free again, for which it was,
    /// to within a second.
    pub held: Duration,
    /// What the task has said that it does ([`crate::note_step`]); 0: nothing.
    pub step: u32,
    /// The task's name, if it has one ([`crate::spawn_named`]).
    pub task: Option<Cow<'static, str>>,
    /// It was reported as held before.
    pub is_known: bool,
    /// It has come round: nothing holds it any more.
    pub is_free: bool,
}

/// What is reported of held workers.
pub(crate) type HeldReport = Box<dyn Fn(&HeldWorker) + Send>;

/// The watchdog of one server.
pub(crate) struct Watchdog {
    shared: Arc<WorkersShared>,
    clock: Clock,
    /// Worker 0 runs on its caller's thread.
    is_driven: bool,
    after: Duration,
    report: HeldReport,
    seen: HashMap<usize, SeenWorker>,
}

/// A worker as it was at the last look.
#[derive(Default)]
struct SeenWorker {
    task: Option<TaskId>,
    since: Waits,
    /// Looks since then at which nothing had moved.
    looks: u64,
    /// What was last reported of it, while it is held.
    reported: Option<HeldWorker>,
}

/// Notes what the running task is about to do, for the [watchdog](crate::Workers::watch).
///
/// - `step`: a number that the caller can turn into words; 0: nothing. It holds until the task's
///   run ends.
#[inline]
pub fn note_step(step: u32) {
    context::try_with(|ctx| ctx.metrics().set_step(step));
}

impl Watchdog {
    pub(crate) fn new(
        shared: Arc<WorkersShared>,
        clock: Clock,
        is_driven: bool,
        after: Duration,
        report: HeldReport,
    ) -> Self {
        Self { shared, clock, is_driven, after, report, seen: HashMap::new() }
    }

    /// Starts its thread, which ends with the workers.
    pub(crate) fn start(mut self) -> io::Result<JoinHandle<()>> {
        thread::Builder::new().name("gust-watch".to_owned()).spawn(move || self.run())
    }

    fn run(&mut self) {
        let shared = Arc::clone(&self.shared);
        let waker = &shared.watchdog;
        waker.enter();
        let mut quiet = 0;
        while shared.phase() != Phase::Stopping {
            quiet = if self.look() { 0 } else { quiet + 1 };
            if quiet <= QUIET_LOOKS {
                if quiet == QUIET_LOOKS {
                    waker.prepare_park();
                }
                thread::park_timeout(LOOK_EVERY);
            } else {
                thread::park();
            }
            if quiet >= QUIET_LOOKS && !waker.is_parked() {
                quiet = 0;
            }
        }
    }

    /// Looks at every worker once. Returns whether any has worked since the last look, or is held.
    fn look(&mut self) -> bool {
        let all: Vec<Arc<WorkerMetrics>> = self.shared.worker_metrics.lock().clone();
        let now_ms = self.clock.read_ms();
        let mut is_busy = false;
        for metrics in &all {
            let is_callers = self.is_driven && metrics.worker == 0;
            if !is_callers && self.shared.elastic.is_present(metrics.worker) {
                is_busy |= self.look_at(metrics, now_ms);
            }
        }
        is_busy
    }

    fn look_at(&mut self, metrics: &WorkerMetrics, now_ms: u64) -> bool {
        let (task, since) = (metrics.task(), metrics.since());
        let task = (task != TaskId::NONE).then_some(task);
        let seen = self.seen.entry(metrics.worker).or_default();
        let has_moved = (seen.task, seen.since) != (task, since);
        (seen.task, seen.since) = (task, since);
        seen.looks = if has_moved { 0 } else { seen.looks + 1 };
        let held_ms = task.and_then(|_| since.waited_ms(now_ms));
        // The looks count too: while the whole process was stopped, time went on without any.
        let (after, looks_min) = (self.after, self.after.as_secs().saturating_sub(1).max(1));
        let looks = seen.looks;
        let is_long = |held: &Duration| *held >= after && looks >= looks_min;
        let held = held_ms.map(Duration::from_millis).filter(is_long);
        match (held, seen.reported.take()) {
            (Some(held), before) => {
                let found = HeldWorker {
                    worker: metrics.worker,
                    thread: metrics.workload().thread,
                    held,
                    step: metrics.step(),
                    task: task.and_then(|task| self.shared.names.lock().get(&task).cloned()),
                    is_known: before.is_some(),
                    is_free: false,
                };
                (self.report)(&found);
                seen.reported = Some(found);
            }
            (None, Some(before)) => (self.report)(&HeldWorker { is_free: true, ..before }),
            (None, None) => {}
        }
        has_moved || task.is_some()
    }
}
