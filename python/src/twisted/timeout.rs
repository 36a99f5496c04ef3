//! The idle time-out of a connection, set and cancelled with each request.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::guarded::Guarded;

/// Replaces a channel's `callLater` and the call that it returns. Behind it is one call of the
/// reactor, which checks the time when it is due, and waits on if needed.
#[pyclass(frozen, module = "gustnado._gustnado")]
pub(crate) struct TwistedTimeout {
    reactor: Py<PyAny>,
    /// `twisted.internet.error.AlreadyCancelled`
    cancelled: Py<PyAny>,
    call: Guarded<Option<Py<PyAny>>>,
    /// When that call is due, and when the time-out is, in the reactor's seconds.
    call_due: Guarded<f64>,
    due: Guarded<f64>,
    then: Guarded<Option<Py<PyAny>>>,
    is_active: Guarded<bool>,
}

#[pymethods]
impl TwistedTimeout {
    #[new]
    fn new(reactor: Py<PyAny>, cancelled: Py<PyAny>) -> Self {
        Self {
            reactor,
            cancelled,
            call: Guarded::default(),
            call_due: Guarded::default(),
            due: Guarded::default(),
            then: Guarded::default(),
            is_active: Guarded::default(),
        }
    }

    /// Handles a single call without arguments; the reactor handles all others.
    #[pyo3(signature = (delay, then, *arguments, **named))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        delay: f64,
        then: Bound<'py, PyAny>,
        arguments: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        if this.is_active.get() || !arguments.is_empty() || named.is_some() {
            let mut all = vec![delay.into_pyobject(py)?.into_any(), then];
            all.extend(arguments.iter());
            let later = this.reactor.bind(py).getattr(intern!(py, "callLater"))?;
            return later.call(PyTuple::new(py, all)?, named);
        }
        this.then.replace(Some(then.unbind()));
        Self::start(slf, delay)?;
        Ok(slf.clone().into_any())
    }

    fn active(&self) -> bool {
        self.is_active.get()
    }

    fn reset(slf: &Bound<'_, Self>, delay: f64) -> PyResult<()> {
        Self::start(slf, delay)
    }

    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_active.replace(false) {
            return Ok(());
        }
        Err(PyErr::from_value(self.cancelled.bind(py).call0()?))
    }

    /// Ends all time-outs.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        self.is_active.set(false);
        self.then.take();
        match self.call.take() {
            Some(call) if is_active(call.bind(py))? => {
                call.call_method0(py, intern!(py, "cancel")).map(drop)
            }
            _ => Ok(()),
        }
    }

    fn fire(slf: &Bound<'_, Self>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        this.call.take();
        if !this.is_active.get() {
            return Ok(());
        }
        let left = this.due.get() - this.now(py)?;
        if left > 0.0 {
            return Self::call_later(slf, left);
        }
        this.is_active.set(false);
        let then = this.then.borrow_mut().as_ref().map(|then| then.clone_ref(py));
        then.map_or(Ok(()), |then| then.call0(py).map(drop))
    }
}

impl TwistedTimeout {
    /// Suspends the time-out.
    pub(super) fn stop(&self) {
        self.is_active.set(false);
    }

    /// Returns whether it has a callback.
    pub(super) fn has_begun(&self) -> bool {
        self.then.borrow_mut().is_some()
    }

    /// Restarts the time-out with the same callback.
    pub(super) fn start(slf: &Bound<'_, Self>, delay: f64) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let due = this.now(py)? + delay;
        this.due.set(due);
        this.is_active.set(true);
        let call = match &*this.call.borrow_mut() {
            // Usually it is due later than before, which it finds out when it fires.
            Some(_) if this.call_due.get() <= due => return Ok(()),
            Some(call) => Some(call.clone_ref(py)),
            None => None,
        };
        let Some(call) = call else { return Self::call_later(slf, delay) };
        if !is_active(call.bind(py))? {
            // It was cancelled through the reactor.
            return Self::call_later(slf, delay);
        }
        this.call_due.set(due);
        call.call_method1(py, intern!(py, "reset"), (delay,)).map(drop)
    }

    fn now(&self, py: Python<'_>) -> PyResult<f64> {
        self.reactor.bind(py).call_method0(intern!(py, "seconds"))?.extract()
    }

    fn call_later(slf: &Bound<'_, Self>, delay: f64) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let fire = slf.getattr(intern!(py, "fire"))?;
        let call = this.reactor.bind(py).call_method1(intern!(py, "callLater"), (delay, fire))?;
        this.call.replace(Some(call.unbind()));
        this.call_due.set(this.now(py)? + delay);
        Ok(())
    }
}

fn is_active(call: &Bound<'_, PyAny>) -> PyResult<bool> {
    call.call_method0(intern!(call.py(), "active"))?.is_truthy()
}
