//! What a task of asyncio waits for until there is a message: a future, as far as tasks use one.
//!
//! A message that has come runs the task's next step at once, in the turn that has received it. A
//! future of the loop would run it one turn later, and what it sends would leave later still.

use pyo3::exceptions::asyncio::CancelledError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::guarded::Guarded;
use crate::hang_watch;

/// A future without a value, for a single task.
#[pyclass(frozen, freelist = 64, module = "gustnado._gustnado")]
pub(crate) struct MessageWaiter {
    event_loop: Py<PyAny>,
    state: Guarded<WaiterState>,
}

#[derive(Default)]
struct WaiterState {
    phase: WaiterPhase,
    /// A protocol between awaitables and tasks: true once, when it is yielded.
    is_blocking: bool,
    /// The task's next step, and its context.
    step: Option<(Py<PyAny>, Option<Py<PyAny>>)>,
}

#[derive(Default)]
enum WaiterPhase {
    #[default]
    Waiting,
    Woken,
    /// With the canceller's message.
    Cancelled(Option<Py<PyAny>>),
}

/// Who runs the step of a task that is woken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Waking {
    /// The caller, which runs between tasks.
    Now,
    /// The loop, in its next turn.
    OnLoop,
}

impl MessageWaiter {
    pub(super) fn new(event_loop: Py<PyAny>) -> Self {
        let state = WaiterState { is_blocking: true, ..WaiterState::default() };
        Self { event_loop, state: Guarded::new(state) }
    }

    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.state.borrow_mut().phase, WaiterPhase::Waiting)
    }

    /// Returns whether it is the task at this address that waits.
    pub(super) fn is_of(&self, py: Python<'_>, task: usize) -> bool {
        let state = self.state.borrow_mut();
        let step = state.step.as_ref().map(|(step, _)| step.clone_ref(py));
        drop(state);
        let of = step.and_then(|step| step.getattr(py, intern!(py, "__self__")).ok());
        task != 0 && of.is_some_and(|of| of.as_ptr() as usize == task)
    }

    /// Makes it forget its task, which waits for something else.
    pub(super) fn abandon(&self) {
        let mut state = self.state.borrow_mut();
        state.phase = WaiterPhase::Woken;
        let step = state.step.take();
        drop(state);
        drop(step);
    }

    /// Wakes its task. Returns whether it has waited.
    pub(super) fn wake(slf: &Bound<'_, Self>, waking: Waking) -> PyResult<bool> {
        let mut state = slf.get().state.borrow_mut();
        if !matches!(state.phase, WaiterPhase::Waiting) {
            return Ok(false);
        }
        state.phase = WaiterPhase::Woken;
        let step = state.step.take();
        drop(state);
        Self::run(slf, step, waking).map(|()| true)
    }

    fn run(
        slf: &Bound<'_, Self>,
        step: Option<(Py<PyAny>, Option<Py<PyAny>>)>,
        waking: Waking,
    ) -> PyResult<()> {
        let py = slf.py();
        let Some((step, context)) = step else { return Ok(()) };
        hang_watch::note_call(py);
        match (waking, context) {
            (Waking::Now, Some(context)) => {
                context.call_method1(py, intern!(py, "run"), (step, slf)).map(drop)
            }
            (Waking::Now, None) => step.call1(py, (slf,)).map(drop),
            (Waking::OnLoop, context) => {
                let options = PyDict::new(py);
                options.set_item(intern!(py, "context"), context)?;
                let event_loop = slf.get().event_loop.bind(py);
                event_loop
                    .call_method(intern!(py, "call_soon"), (step, slf), Some(&options))
                    .map(drop)
            }
        }
    }
}

#[pymethods]
impl MessageWaiter {
    #[getter(_asyncio_future_blocking)]
    fn is_blocking(&self) -> bool {
        self.state.borrow_mut().is_blocking
    }

    #[setter(_asyncio_future_blocking)]
    fn set_blocking(&self, is_blocking: bool) {
        self.state.borrow_mut().is_blocking = is_blocking;
    }

    fn get_loop(&self, py: Python<'_>) -> Py<PyAny> {
        self.event_loop.clone_ref(py)
    }

    #[pyo3(signature = (step, *, context = None))]
    fn add_done_callback(
        slf: &Bound<'_, Self>,
        step: Py<PyAny>,
        context: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let mut state = slf.get().state.borrow_mut();
        if matches!(state.phase, WaiterPhase::Waiting) {
            let before = state.step.replace((step, context));
            drop(state);
            drop(before);
            return Ok(());
        }
        drop(state);
        Self::run(slf, Some((step, context)), Waking::OnLoop)
    }

    fn remove_done_callback(&self, _step: &Bound<'_, PyAny>) -> usize {
        let step = self.state.borrow_mut().step.take();
        usize::from(step.is_some())
    }

    #[pyo3(signature = (msg = None))]
    fn cancel(slf: &Bound<'_, Self>, msg: Option<Py<PyAny>>) -> PyResult<bool> {
        let mut state = slf.get().state.borrow_mut();
        if !matches!(state.phase, WaiterPhase::Waiting) {
            return Ok(false);
        }
        state.phase = WaiterPhase::Cancelled(msg);
        let step = state.step.take();
        drop(state);
        Self::run(slf, step, Waking::OnLoop).map(|()| true)
    }

    fn cancelled(&self) -> bool {
        matches!(self.state.borrow_mut().phase, WaiterPhase::Cancelled(_))
    }

    fn done(&self) -> bool {
        !self.is_waiting()
    }

    fn result(&self, py: Python<'_>) -> PyResult<()> {
        let state = self.state.borrow_mut();
        let WaiterPhase::Cancelled(text) = &state.phase else { return Ok(()) };
        let text = text.as_ref().map(|text| text.clone_ref(py));
        drop(state);
        Err(match text {
            Some(text) => CancelledError::new_err((text,)),
            None => CancelledError::new_err(PyTuple::empty(py).unbind()),
        })
    }
}
