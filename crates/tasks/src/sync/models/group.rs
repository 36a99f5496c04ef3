//! [`Roles`] with the poller's [`SleepState`], as workers use them: work is always noticed.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;

use super::check;
use crate::sync::roles::Roles;
use crate::sync::sleep_state::SleepState;

/// How often a worker looks round before the model lets it be: it is awake then.
const LOOKS: usize = 3;

/// Two workers, a line of tasks that are only counted, and what the kernel would do.
#[derive(Default)]
struct Workers {
    roles: Roles,
    sleep_state: SleepState,
    line: AtomicUsize,
    polling: AtomicUsize,
    /// The poller was woken out of the kernel.
    alerted: AtomicBool,
}

/// Where a worker was when the model ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// It runs a task, which may hold it for ever.
    Runs,
    /// It has the poller's role and sleeps in the kernel.
    Polls,
    /// It is parked, or was about to be.
    Parked,
    /// It goes on looking.
    Awake,
    /// It was retired, and has left the group.
    Left,
}

impl Workers {
    fn has_work(&self) -> bool {
        self.line.load(Ordering::Relaxed) > 0
    }

    fn claim(&self) -> bool {
        let mut line = self.line.load(Ordering::Relaxed);
        while line > 0 {
            match self.line.compare_exchange(line, line - 1, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => line = now,
            }
        }
        false
    }

    /// A wake-up from outside.
    fn wake(&self) {
        self.line.fetch_add(1, Ordering::AcqRel);
        self.wake_worker();
    }

    /// Wakes another worker to run what is ready, or to poll.
    fn pass_on(&self) {
        if self.has_work() {
            self.wake_worker();
        } else if !self.roles.is_polled() {
            self.roles.pick_sleeper();
        }
    }

    fn wake_worker(&self) {
        if self.roles.pick_sleeper().is_none() && self.sleep_state.notify() {
            self.alerted.store(true, Ordering::Relaxed);
        }
    }

    fn take_poller(&self) -> bool {
        let took = self.roles.take_poller();
        if took {
            assert_eq!(self.polling.fetch_add(1, Ordering::Relaxed), 0, "two pollers");
        }
        took
    }

    fn give_poller_up(&self) {
        self.polling.fetch_sub(1, Ordering::Relaxed);
        self.roles.give_poller_up();
        self.roles.pick_sleeper();
    }

    fn prepare_sleep(&self) -> bool {
        self.sleep_state.prepare_sleep();
        if self.has_work() {
            self.sleep_state.cancel_sleep();
            return false;
        }
        true
    }

    /// Parks, unless there is work or no worker polls. Returns whether it is parked.
    fn park(&self, worker: usize) -> bool {
        self.roles.fall_asleep(worker);
        if self.has_work() || !self.roles.is_polled() || self.roles.is_leaving(worker) {
            self.roles.wake_up(worker);
            return false;
        }
        true
    }

    fn work(&self, worker: usize) -> End {
        for _ in 0..LOOKS {
            if self.roles.is_leaving(worker) {
                self.pass_on();
                return End::Left;
            }
            if self.claim() {
                return End::Runs;
            }
            if self.take_poller() {
                if self.prepare_sleep() {
                    return End::Polls;
                }
                self.give_poller_up();
            } else if !self.has_work() && self.park(worker) {
                return End::Parked;
            }
        }
        End::Awake
    }

    /// Whether a worker that ended like this will look round again by itself.
    fn is_up(&self, worker: usize, end: End) -> bool {
        match end {
            End::Awake => true,
            End::Runs | End::Left => false,
            End::Polls => self.alerted.load(Ordering::Relaxed),
            End::Parked => !self.roles.is_asleep(worker),
        }
    }

    /// Nothing may stay queued unnoticed, and if a worker sleeps, another one polls or will.
    fn check(&self, ends: [End; 2]) {
        let up = (0..2).any(|worker| self.is_up(worker, ends[worker]));
        // Where all are held, a worker is added.
        let held = ends.iter().all(|end| matches!(end, End::Runs | End::Left));
        assert!(up || !self.has_work() || held, "work unnoticed: {ends:?}");
        let polled = ends.contains(&End::Polls);
        assert!(up || polled || held, "nobody polls: {ends:?}");
    }
}

#[test]
fn a_task_put_in_line_while_workers_fall_asleep_is_noticed() {
    check(|| {
        let workers = Arc::new(Workers::default());
        let worker = thread::spawn({
            let workers = Arc::clone(&workers);
            move || workers.work(1)
        });
        let visitor = thread::spawn({
            let workers = Arc::clone(&workers);
            move || workers.wake()
        });
        let end = workers.work(0);
        visitor.join().expect("the visitor ends");
        workers.check([end, worker.join().expect("a worker ends")]);
    });
}

#[test]
fn a_sleeper_notices_that_the_poller_gave_its_role_up_to_run_something() {
    check(|| {
        let workers = Arc::new(Workers::default());
        assert!(workers.take_poller());
        let worker = thread::spawn({
            let workers = Arc::clone(&workers);
            move || workers.work(1)
        });
        // The kernel had an event: its task comes into the line, then the role is given up.
        workers.line.fetch_add(1, Ordering::AcqRel);
        workers.give_poller_up();
        let end = workers.work(0);
        workers.check([end, worker.join().expect("a worker ends")]);
    });
}

#[test]
fn a_poller_that_was_woken_for_nothing_leaves_no_sleeper_behind() {
    check(|| {
        let workers = Arc::new(Workers::default());
        assert!(workers.take_poller());
        assert!(workers.prepare_sleep());
        let worker = thread::spawn({
            let workers = Arc::clone(&workers);
            move || workers.work(1)
        });
        let visitor = thread::spawn({
            let workers = Arc::clone(&workers);
            move || workers.wake()
        });
        workers.sleep_state.cancel_sleep();
        workers.give_poller_up();
        let end = workers.work(0);
        visitor.join().expect("the visitor ends");
        workers.check([end, worker.join().expect("a worker ends")]);
    });
}

/// Worker 0 polls and sleeps in the kernel; worker 1 is retired wherever it is, and works on if
/// it was woken. Returns where it then is.
fn retire_while(workers: &Arc<Workers>, visit: impl FnOnce()) -> End {
    assert!(workers.take_poller());
    assert!(workers.prepare_sleep());
    let worker = thread::spawn({
        let workers = Arc::clone(workers);
        move || workers.work(1)
    });
    let autoscale = thread::spawn({
        let workers = Arc::clone(workers);
        move || workers.roles.retire(1)
    });
    visit();
    autoscale.join().expect("the watch ends");
    let end = worker.join().expect("a worker ends");
    let is_woken = end == End::Parked && !workers.roles.is_asleep(1);
    if is_woken { workers.work(1) } else { end }
}

#[test]
fn a_worker_that_leaves_hands_on_what_it_was_woken_for() {
    check(|| {
        let workers = Arc::new(Workers::default());
        let end = retire_while(&workers, || workers.wake());
        workers.check([End::Polls, end]);
    });
}

#[test]
fn a_worker_that_is_dismissed_while_it_falls_asleep_leaves() {
    check(|| {
        let workers = Arc::new(Workers::default());
        let end = retire_while(&workers, || ());
        assert!(matches!(end, End::Left | End::Awake), "retired, and {end:?}");
    });
}
