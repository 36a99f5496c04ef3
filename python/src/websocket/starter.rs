//! Starts the tasks of handlers of `WebSocket`s.

use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::held::StepTrap;
use super::link::{LinkContext, SocketLink};
use super::run::SocketRun;
use crate::awaitables::ReadyNone;
use crate::coroutine::{StartedTask, Starter, is_done};

/// Starts the tasks of handlers of `WebSocket`s on one loop.
pub(crate) struct SocketStarter {
    /// `gustnado._socket_task.SocketTask`.
    task_type: Py<PyAny>,
    context: Arc<LinkContext>,
    /// `context=` the one in which all their done callbacks run. Each would be given a copy.
    on_done: Py<PyDict>,
}

impl SocketStarter {
    /// - `event_loop`: one whose object has its own attributes.
    pub(crate) fn new(event_loop: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = event_loop.py();
        let context = LinkContext {
            event_loop: event_loop.clone().unbind(),
            done: Py::new(py, ReadyNone)?,
            trap: StepTrap::new(event_loop)?,
        };
        let on_done = PyDict::new(py);
        on_done.set_item("context", py.import("contextvars")?.call_method0("copy_context")?)?;
        Ok(Self {
            task_type: py.import("gustnado._socket_task")?.getattr("SocketTask")?.unbind(),
            context: Arc::new(context),
            on_done: on_done.unbind(),
        })
    }

    /// Makes a link.
    pub(crate) fn link(&self) -> Arc<SocketLink> {
        SocketLink::new(&self.context)
    }

    /// Creates the task of a handler and runs its first step. Only between tasks of the running
    /// loop. Also returns what the task calls.
    pub(crate) fn start<'py>(
        &self,
        starter: &Starter,
        coroutine: &Bound<'py, PyAny>,
        link: &Arc<SocketLink>,
    ) -> PyResult<(StartedTask<'py>, Bound<'py, SocketRun>)> {
        let py = coroutine.py();
        let run = Bound::new(py, SocketRun::new(link))?;
        let task = starter.start_as(self.task_type.bind(py), coroutine, |task, step| {
            task.setattr(intern!(py, "_run"), &run)?;
            link.set_task(Some(task.clone().unbind()));
            let stepped = link.run_step(py, step);
            if stepped.is_err() || is_done(task)? {
                link.set_task(None);
            }
            stepped
        })?;
        Ok((task, run))
    }

    /// Calls `then` with what a task returns or raises.
    pub(crate) fn when_done<'py, F>(
        &self,
        starter: &Starter,
        (task, run): (StartedTask<'py>, Bound<'py, SocketRun>),
        then: F,
    ) -> PyResult<()>
    where
        F: FnOnce(Python<'_>, PyResult<Bound<'_, PyAny>>) + Send + 'static,
    {
        if task.is_paused() {
            let link = Arc::clone(run.get().link());
            return starter.when_done(task, move |py, ended| {
                link.set_task(None);
                then(py, ended);
            });
        }
        run.get().set_then(Box::new(then));
        let (task, py) = (&task.task, run.py());
        let options = self.on_done.bind(py);
        task.call_method(intern!(py, "add_done_callback"), (run,), Some(options)).map(drop)
    }
}
