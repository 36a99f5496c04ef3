//! What the running thread is: a worker with its door to the kernel, its tasks and its timers.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use gustnado_reactor::{Reactor, TimerKey, Token, Wheel};

use crate::crew::{Crew, Phase};
use crate::group::Group;
use crate::schedule::{BoxTask, Schedule};
use crate::wake::TaskId;

/// One worker, as its own thread sees it.
pub(crate) struct Here {
    pub(crate) reactor: RefCell<Reactor>,
    pub(crate) schedule: Box<dyn Schedule>,
    timers: Timers,
    /// The task that is being polled.
    current: Cell<u64>,
    /// Where wake-ups of this worker's tasks go.
    pub(crate) station: u16,
    /// This worker's number, from 0; also its place in all tables kept per worker.
    pub(crate) worker: usize,
    pub(crate) crew: Arc<Crew>,
}

/// Timers of this worker, or of the group that shares its tasks.
pub(crate) enum Timers {
    Own(Box<RefCell<Wheel>>),
    Shared(Arc<Group>),
}

thread_local! {
    /// Set once: a thread is one worker for its life. Its tasks are dropped before it ends.
    static HERE: OnceCell<Rc<Here>> = const { OnceCell::new() };
}

impl Here {
    pub(crate) fn new(
        reactor: Reactor,
        schedule: Box<dyn Schedule>,
        group: Option<Arc<Group>>,
        station: u16,
        worker: usize,
        crew: Arc<Crew>,
    ) -> Rc<Self> {
        let timers = group.map_or_else(|| Timers::Own(Box::default()), Timers::Shared);
        let (reactor, current) = (RefCell::new(reactor), Cell::new(0));
        Rc::new(Self { reactor, schedule, timers, current, station, worker, crew })
    }

    /// Makes this the running thread's worker, for good.
    pub(crate) fn enter(self: &Rc<Self>) {
        let entered = HERE.with(|here| here.set(Rc::clone(self)));
        debug_assert!(entered.is_ok(), "a thread becomes a worker once");
    }

    /// The running task, as the reactor and the timers name it.
    pub(crate) fn token(&self) -> Token {
        self.current.get()
    }

    pub(crate) fn set_current(&self, id: Option<TaskId>) {
        self.current.set(id.map_or(0, TaskId::token));
    }

    /// Milliseconds of the crew's clock, as of this worker's last turn.
    pub(crate) fn now_ms(&self) -> u64 {
        self.reactor.borrow().clock().now_ms()
    }

    pub(crate) fn phase(&self) -> Phase {
        self.crew.phase()
    }

    /// Keeps a task and puts it in line.
    pub(crate) fn insert(&self, task: BoxTask) -> Result<TaskId, BoxTask> {
        let (slot, generation) = self.schedule.insert(task)?;
        if let Timers::Shared(group) = &self.timers {
            // The running task may hold this thread for long.
            group.rouse();
        }
        Ok(TaskId::new(self.station, slot, generation))
    }

    pub(crate) fn arm(&self, at_ms: u64) -> TimerKey {
        match &self.timers {
            Timers::Own(wheel) => wheel.borrow_mut().arm(at_ms, self.token()),
            Timers::Shared(group) => group.arm(at_ms, self.token()),
        }
    }

    pub(crate) fn disarm(&self, key: TimerKey) {
        match &self.timers {
            Timers::Own(wheel) => wheel.borrow_mut().cancel(key),
            Timers::Shared(group) => group.disarm(key),
        };
    }

    /// Makes ready what is due, and says when to look again.
    pub(crate) fn expire(&self) -> Option<u64> {
        let now_ms = self.now_ms();
        match &self.timers {
            Timers::Own(wheel) => {
                let mut wheel = wheel.borrow_mut();
                wheel.expire(now_ms, |token| {
                    self.ready(TaskId::of_token(token));
                });
                wheel.next_ms()
            }
            Timers::Shared(group) => group.expire(now_ms),
        }
    }

    /// Puts a task in line. Returns whether it has just come into the line.
    pub(crate) fn ready(&self, id: TaskId) -> bool {
        self.schedule.ready(id.slot(), id.generation())
    }
}

/// Runs `f` with the running thread's worker; `None` on any other thread.
pub(crate) fn try_with<T>(f: impl FnOnce(&Here) -> T) -> Option<T> {
    HERE.try_with(|here| here.get().map(|here| f(here))).ok().flatten()
}

/// Runs `f` with the running thread's worker.
///
/// # Panics
/// On a thread that is no worker: the operations of this room belong into tasks.
pub(crate) fn with<T>(f: impl FnOnce(&Here) -> T) -> T {
    HERE.with(|here| {
        f(here.get().expect("sockets, timers and spawning belong into a worker's tasks"))
    })
}

/// Makes a task ready if it is one of the running thread's own. Returns whether that was done.
pub(crate) fn wake_here(id: TaskId) -> bool {
    try_with(|here| {
        let own = here.station == id.station() && matches!(here.timers, Timers::Own(_));
        if own {
            here.ready(id);
        }
        own
    })
    .unwrap_or(false)
}

/// A deadline of the running task: it is woken when that comes, once, and looks at the clock
/// itself.
///
/// Moving a deadline a little later costs nothing: the timer that is armed fires early, and is
/// armed anew.
#[derive(Debug)]
pub(crate) struct Alarm {
    at_ms: u64,
    armed_ms: u64,
    key: TimerKey,
}

impl Alarm {
    const NEVER: u64 = u64::MAX;

    pub(crate) const fn unset() -> Self {
        Self { at_ms: Self::NEVER, armed_ms: Self::NEVER, key: TimerKey::NONE }
    }

    pub(crate) fn set(&mut self, at_ms: u64) {
        self.at_ms = at_ms;
    }

    /// Whether the deadline has come; if not, sees to it that the task is woken then.
    pub(crate) fn poll(&mut self, here: &Here) -> Poll<()> {
        self.poll_at(here.now_ms(), here)
    }

    /// [`Alarm::poll`] for callers who know the time already.
    pub(crate) fn poll_at(&mut self, now_ms: u64, here: &Here) -> Poll<()> {
        if now_ms >= self.at_ms {
            return Poll::Ready(());
        }
        // Armed for a time that is over, it has fired; armed for a later one, it would be late;
        // armed for a much earlier one, it would wake a task that has nothing to do yet.
        let wait_ms = self.armed_ms.saturating_sub(now_ms);
        if self.at_ms < self.armed_ms || wait_ms <= (self.at_ms - now_ms) / 4 {
            self.rearm(here);
        }
        Poll::Pending
    }

    #[cold]
    fn rearm(&mut self, here: &Here) {
        self.disarm(here);
        if self.at_ms < Self::NEVER {
            self.key = here.arm(self.at_ms);
            self.armed_ms = self.at_ms;
        }
    }

    pub(crate) fn disarm(&mut self, here: &Here) {
        if self.key != TimerKey::NONE {
            here.disarm(self.key);
            self.key = TimerKey::NONE;
            self.armed_ms = Self::NEVER;
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if self.key != TimerKey::NONE {
            try_with(|here| here.disarm(self.key));
        }
    }
}
