//! The Python object that writes a response piece by piece.

use std::sync::MutexGuard;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::bytes_like::bytes_of;
use crate::errors::client_disconnected;
use crate::guarded::Guarded;
use crate::pipe::{PipeSpace, PipeWriter};

/// Writes a response piece by piece. `close` completes it; an object that is dropped without it
/// cuts the response off.
#[pyclass(frozen, module = "gustnado", name = "Writer")]
pub(crate) struct ResponseBodyWriter(Guarded<WriterState>);

struct WriterState {
    writer: Option<PipeWriter>,
    /// The event to wait for, if the queue is full.
    space: Option<PipeSpace>,
}

impl ResponseBodyWriter {
    pub(crate) fn new(writer: PipeWriter) -> Self {
        Self(Guarded::new(WriterState { writer: Some(writer), space: None }))
    }

    fn state(&self) -> MutexGuard<'_, WriterState> {
        self.0.borrow_mut()
    }
}

#[pymethods]
impl ResponseBodyWriter {
    /// Writes a piece. Returns whether more may be written at once; if not, wait for `when_room`.
    ///
    /// Raises `ClientDisconnected` if the client has disconnected.
    fn write(&self, piece: &Bound<'_, PyAny>) -> PyResult<bool> {
        let piece = bytes_of(piece, "a piece of a response")?;
        let mut state = self.state();
        let Some(writer) = &state.writer else {
            return Err(PyRuntimeError::new_err("the response was closed already"));
        };
        if writer.is_lost() {
            return Err(client_disconnected("the client has disconnected"));
        }
        state.space = writer.push(piece);
        Ok(state.space.is_none())
    }

    /// Calls `then` once more may be written or the client has disconnected, which may be at once.
    fn when_room(&self, py: Python<'_>, then: Py<PyAny>) -> PyResult<()> {
        let space = self.state().space.take();
        match space {
            None => then.call0(py).map(drop),
            Some(space) => {
                space.call(move || {
                    Python::attach(|py| {
                        if let Err(error) = then.call0(py) {
                            error.write_unraisable(py, None);
                        }
                    });
                });
                Ok(())
            }
        }
    }

    /// Calls `then` once the client has disconnected before `close`, or at once if it has. It
    /// replaces an earlier one.
    fn when_lost(&self, then: Py<PyAny>) {
        let call = move || {
            Python::attach(|py| {
                if let Err(error) = then.call0(py) {
                    error.write_unraisable(py, None);
                }
            });
        };
        // Without the lock: it may be called at once.
        let writer = self.state().writer.take();
        if let Some(writer) = writer {
            writer.on_lost(call);
            self.state().writer = Some(writer);
        }
    }

    /// Cuts the response off, so that it does not pass for complete.
    fn abort(&self) {
        let writer = self.state().writer.take();
        drop(writer);
    }

    /// Completes the response.
    fn close(&self) {
        if let Some(writer) = self.state().writer.take() {
            writer.end();
        }
    }
}
