//! What the task of a WebSocket's handler calls.

use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;

use super::link::SocketLink;
use crate::coroutine::OnEnd;
use crate::guarded::Guarded;

/// The done callback of a handler's task. The task calls it when it is cancelled, too.
#[pyclass(frozen, module = "gustnado._gustnado")]
pub(crate) struct SocketRun {
    link: Arc<SocketLink>,
    then: Guarded<Option<OnEnd>>,
}

impl SocketRun {
    pub(crate) fn new(link: &Arc<SocketLink>) -> Self {
        Self { link: Arc::clone(link), then: Guarded::default() }
    }

    pub(crate) fn link(&self) -> &Arc<SocketLink> {
        &self.link
    }

    /// Sets what is called with the result of the task.
    pub(crate) fn set_then(&self, then: OnEnd) {
        *self.then.borrow_mut() = Some(then);
    }
}

#[pymethods]
impl SocketRun {
    fn __call__(&self, task: &Bound<'_, PyAny>) {
        self.link.set_task(None);
        let then = self.then.borrow_mut().take();
        if let Some(then) = then {
            then(task.py(), task.call_method0(intern!(task.py(), "result")));
        }
    }

    /// Leaves the task's next step to the loop, if the WebSocket keeps it.
    fn resume(&self, py: Python<'_>) -> PyResult<()> {
        self.link.release_step(py)
    }
}
