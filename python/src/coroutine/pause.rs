//! Steps that end early, so that what was sent in them leaves before the rest of them runs.
//!
//! The engine sends a handler's response when the handler's step has ended. So the client of an
//! application that computes or blocks after its last `send` would wait. To send from within `send`
//! would not help: responses of one turn leave together, which saves much of their cost.

use std::cell::RefCell;

use pyo3::prelude::*;

use super::habits::{Behind, Habits};
use super::{CallSoonTrap, OnEnd, RunningTasks, TaskStep, result, wait};
use crate::awaitable::awaitable;
use crate::guarded::Guarded;
use crate::hang_watch;

/// Awaitable of `send(…)` in a step that the engine runs and whose output can leave: the step ends,
/// and resumes after the engine's turn. There is a single object, since such steps run one at a
/// time.
#[pyclass(frozen, module = "gustnado._gustnado")]
pub(crate) struct Pause {
    trap: Py<CallSoonTrap>,
    state: Guarded<PauseState>,
    habits: Guarded<Habits>,
    /// Actions of the running step after its response.
    behind: Guarded<Option<Behind>>,
}

/// State of the pause in the running step.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum PauseState {
    /// The engine runs no step.
    #[default]
    None,
    /// The step has no pause.
    Running,
    /// `send` has returned it.
    Given,
    /// It is awaited: the loop is about to get the next step.
    Awaited,
}

/// The loop runs this step, which can wait for one of its turns.
pub(crate) struct NotOurs;

impl Pause {
    pub(super) fn new(trap: Py<CallSoonTrap>) -> Self {
        let (habits, behind) = (Guarded::new(Habits::new()), Guarded::default());
        Self { trap, state: Guarded::default(), habits, behind }
    }

    /// Returns the pause for `send`, if the engine runs this step.
    pub(crate) fn give<'py>(slf: &Bound<'py, Self>) -> Option<Bound<'py, PyAny>> {
        if slf.get().state.get() == PauseState::None {
            return None;
        }
        slf.get().state.set(PauseState::Given);
        Some(slf.clone().into_any())
    }

    /// The same for a complete response, after which the application may have nothing to do.
    /// `None`: it need not wait.
    ///
    /// - `path`: the path of the request.
    pub(crate) fn give_last<'py>(
        slf: &Bound<'py, Self>,
        path: &[u8],
    ) -> Result<Option<Bound<'py, PyAny>>, NotOurs> {
        let pause = slf.get();
        if pause.state.get() == PauseState::None {
            return Err(NotOurs);
        }
        let (behind, pauses) = pause.habits.borrow_mut().note_response(path);
        pause.behind.set(Some(behind));
        Ok(if pauses { Self::give(slf) } else { None })
    }

    /// Runs a step. Returns the next one, if it pauses.
    pub(super) fn run(&self, py: Python<'_>, step: &TaskStep) -> PyResult<Option<TaskStep>> {
        hang_watch::note_call(py);
        self.behind.set(step.behind.map(Behind::again));
        self.state.set(PauseState::Running);
        let ran = step.run(py);
        let is_awaited = self.state.replace(PauseState::None) == PauseState::Awaited;
        let behind = self.behind.take();
        let next = if is_awaited {
            self.trap.get().take().map(|next| TaskStep { behind, ..next })
        } else {
            if let Some(behind) = behind {
                self.habits.borrow_mut().note(behind);
            }
            None
        };
        if is_awaited && next.is_none() {
            // A coroutine in between did not pass the pause on.
            self.trap.get().remove(py)?;
        }
        ran.map(|()| next)
    }
}

impl Pause {
    fn resume(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        if self.state.get() != PauseState::Given {
            return Ok(None);
        }
        self.state.set(PauseState::Awaited);
        CallSoonTrap::put(self.trap.bind(py))?;
        Ok(Some(py.None()))
    }
}

awaitable!(Pause);

/// Awaitable of `send(…)` in a step that the loop runs: one turn of the loop.
#[pyclass(frozen, freelist = 64, module = "gustnado._gustnado")]
#[derive(Default)]
pub(crate) struct LoopTurn(Guarded<bool>);

impl LoopTurn {
    #[expect(clippy::unnecessary_wraps, reason = "the others can fail")]
    fn resume(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        Ok((!self.0.replace(true)).then(|| py.None()))
    }
}

awaitable!(LoopTurn);

/// A task that resumes after this turn.
pub(super) struct DeferredTask {
    pub(super) next: TaskStep,
    pub(super) task: Py<PyAny>,
    pub(super) pause: Py<Pause>,
    pub(super) running: RunningTasks,
    pub(super) then: OnEnd,
}

thread_local! {
    static DEFERRED: RefCell<Vec<DeferredTask>> = const { RefCell::new(Vec::new()) };
}

/// Returns whether a task resumes after the next turn, which so must not sleep.
pub(crate) fn has_paused() -> bool {
    DEFERRED.with_borrow(|all| !all.is_empty())
}

pub(super) fn defer(paused: DeferredTask) {
    DEFERRED.with_borrow_mut(|all| all.push(paused));
}

/// Resumes the tasks that paused before the engine's turn. They may pause again.
pub(crate) fn go_on(py: Python<'_>) {
    if !has_paused() {
        return;
    }
    let mut all = DEFERRED.take();
    for DeferredTask { next, task, pause, running, then } in all.drain(..) {
        let bound = task.bind(py);
        let ended = match pause.get().run(py, &next) {
            Ok(Some(next)) => {
                defer(DeferredTask { next, task, pause, running, then });
                continue;
            }
            Ok(None) => result(bound),
            Err(error) => Err(error),
        };
        let waited = match ended.transpose() {
            Some(ended) => {
                then(py, ended);
                Ok(())
            }
            None => wait(&running, bound, then),
        };
        if let Err(error) = waited {
            error.write_unraisable(py, Some(bound));
        }
    }
    // Reuses its memory.
    if !has_paused() {
        DEFERRED.replace(all);
    }
}
