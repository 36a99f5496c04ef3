//! Steps that end early, so that what was sent in them leaves before the rest of them runs.
//!
//! The engine sends what a handler answers once the handler's step has ended. An application that
//! computes, or blocks, behind its last `send` would so have its client wait. Sending from within
//! `send` is no way out: answers of one turn leave together, which saves much of their cost.

#![expect(clippy::unused_self, reason = "Python calls methods")]

use std::cell::RefCell;

use pyo3::exceptions::PyStopIteration;
use pyo3::prelude::*;

use super::habits::{Behind, Habits};
use super::{Catcher, Running, Step, Then, result, wait};
use crate::kept::Kept;

/// What `await send(…)` waits for in a step that the engine runs, where what was sent can leave:
/// the step ends, and goes on after the engine's turn. There is one for all, since such steps run
/// one at a time.
#[pyclass(frozen, module = "gustnado._gustnado")]
pub(crate) struct Pause {
    catcher: Py<Catcher>,
    state: Kept<PauseState>,
    habits: Kept<Habits>,
    /// What the running step does behind its answer.
    behind: Kept<Option<Behind>>,
}

/// How far the pause of the running step has come.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum PauseState {
    /// No step of the engine's runs.
    #[default]
    None,
    /// There is none.
    Running,
    /// `send` has given it away.
    Given,
    /// It is awaited: the loop is about to be asked for the next step.
    Awaited,
}

/// The step is the loop's: it can wait for a turn of that.
pub(crate) struct NotOurs;

impl Pause {
    pub(super) fn new(catcher: Py<Catcher>) -> Self {
        let (habits, behind) = (Kept::new(Habits::new()), Kept::default());
        Self { catcher, state: Kept::default(), habits, behind }
    }

    /// The same for `send` to return, if a step of the engine's runs.
    pub(crate) fn give<'py>(slf: &Bound<'py, Self>) -> Option<Bound<'py, PyAny>> {
        if slf.get().state.get() == PauseState::None {
            return None;
        }
        slf.get().state.set(PauseState::Given);
        Some(slf.clone().into_any())
    }

    /// The same where the answer is whole, and its application may have nothing more to do. `None`:
    /// it need not wait.
    ///
    /// - `path`: what the request asked for.
    pub(crate) fn give_last<'py>(
        slf: &Bound<'py, Self>,
        path: &[u8],
    ) -> Result<Option<Bound<'py, PyAny>>, NotOurs> {
        let pause = slf.get();
        if pause.state.get() == PauseState::None {
            return Err(NotOurs);
        }
        let (behind, pauses) = pause.habits.borrow_mut().look(path);
        pause.behind.set(Some(behind));
        Ok(if pauses { Self::give(slf) } else { None })
    }

    /// Runs a step. Returns the next one, if it pauses.
    pub(super) fn run(&self, py: Python<'_>, step: &Step) -> PyResult<Option<Step>> {
        self.behind.set(step.behind.map(Behind::again));
        self.state.set(PauseState::Running);
        let ran = step.run(py);
        let is_awaited = self.state.replace(PauseState::None) == PauseState::Awaited;
        let behind = self.behind.take();
        let next = if is_awaited {
            self.catcher.get().take().map(|next| Step { behind, ..next })
        } else {
            if let Some(behind) = behind {
                self.habits.borrow_mut().note(behind);
            }
            None
        };
        if is_awaited && next.is_none() {
            // Somebody in between has not handed the pause on.
            self.catcher.get().remove(py)?;
        }
        ran.map(|()| next)
    }
}

#[pymethods]
impl Pause {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        if self.state.get() != PauseState::Given {
            return Ok(None);
        }
        self.state.set(PauseState::Awaited);
        Catcher::put(self.catcher.bind(py))?;
        Ok(Some(py.None()))
    }

    fn send(&self, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.__next__(value.py())?.ok_or_else(|| PyStopIteration::new_err(()))
    }

    #[pyo3(signature = (kind, value = None, _trace = None))]
    fn throw(
        &self,
        kind: &Bound<'_, PyAny>,
        value: Option<&Bound<'_, PyAny>>,
        _trace: Option<&Bound<'_, PyAny>>,
    ) -> PyErr {
        thrown(kind, value)
    }

    fn close(&self) {}
}

/// What `await send(…)` waits for in a step that the loop runs: one turn of the loop.
#[pyclass(frozen, freelist = 64, module = "gustnado._gustnado")]
#[derive(Default)]
pub(crate) struct Turn(Kept<bool>);

#[pymethods]
impl Turn {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        (!self.0.replace(true)).then(|| py.None())
    }

    fn send(&self, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.__next__(value.py()).ok_or_else(|| PyStopIteration::new_err(()))
    }

    #[pyo3(signature = (kind, value = None, _trace = None))]
    fn throw(
        &self,
        kind: &Bound<'_, PyAny>,
        value: Option<&Bound<'_, PyAny>>,
        _trace: Option<&Bound<'_, PyAny>>,
    ) -> PyErr {
        thrown(kind, value)
    }

    fn close(&self) {}
}

/// What was thrown into something that has nothing to clean up.
pub(crate) fn thrown(kind: &Bound<'_, PyAny>, value: Option<&Bound<'_, PyAny>>) -> PyErr {
    PyErr::from_value(value.filter(|value| !value.is_none()).unwrap_or(kind).clone())
}

/// A task that goes on after this turn.
pub(super) struct PutOff {
    pub(super) next: Step,
    pub(super) task: Py<PyAny>,
    pub(super) pause: Py<Pause>,
    pub(super) running: Running,
    pub(super) then: Then,
}

thread_local! {
    static PUT_OFF: RefCell<Vec<PutOff>> = const { RefCell::new(Vec::new()) };
}

/// Whether a task is to go on after the next turn, which so is not to sleep.
pub(crate) fn has_paused() -> bool {
    PUT_OFF.with_borrow(|all| !all.is_empty())
}

pub(super) fn put_off(paused: PutOff) {
    PUT_OFF.with_borrow_mut(|all| all.push(paused));
}

/// Has the tasks go on that had paused before the engine's turn was over. They may pause again.
pub(crate) fn go_on(py: Python<'_>) {
    if !has_paused() {
        return;
    }
    let mut all = PUT_OFF.take();
    for PutOff { next, task, pause, running, then } in all.drain(..) {
        let bound = task.bind(py);
        let ended = match pause.get().run(py, &next) {
            Ok(Some(next)) => {
                put_off(PutOff { next, task, pause, running, then });
                continue;
            }
            Ok(None) => result(bound),
            Err(error) => Err(error),
        };
        let kept = match ended.transpose() {
            Some(ended) => {
                then(py, ended);
                Ok(())
            }
            None => wait(&running, bound, then),
        };
        if let Err(error) = kept {
            error.write_unraisable(py, Some(bound));
        }
    }
    // (Its memory is kept.)
    if !has_paused() {
        PUT_OFF.replace(all);
    }
}
