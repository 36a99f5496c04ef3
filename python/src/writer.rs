//! The Python object that writes a response piece by piece.

use std::sync::MutexGuard;

use pyo3::exceptions::{PyConnectionError, PyRuntimeError};
use pyo3::prelude::*;

use crate::bytes_like::bytes_of;
use crate::guarded::Guarded;
use crate::pipe::{PipeSpace, PipeWriter};

/// Writes an answer piece by piece. The answer is whole with [`ResponseBodyWriter::close`]; an object that goes
/// without it cuts the answer off.
#[pyclass(frozen, module = "gustnado", name = "Writer")]
pub(crate) struct ResponseBodyWriter(Guarded<WriterState>);

struct WriterState {
    writer: Option<PipeWriter>,
    /// What there is to wait for, once too much waits to be sent.
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
    /// Writes a piece. Returns whether more may be written at once; if not, it is better to wait
    /// for [`ResponseBodyWriter::when_room`].
    ///
    /// Raises `ConnectionError` if the client has gone.
    fn write(&self, piece: &Bound<'_, PyAny>) -> PyResult<bool> {
        let piece = bytes_of(piece, "a piece of an answer")?;
        let mut state = self.state();
        let Some(writer) = &state.writer else {
            return Err(PyRuntimeError::new_err("the answer was closed already"));
        };
        if writer.is_lost() {
            return Err(PyConnectionError::new_err("the client has gone"));
        }
        state.space = writer.push(piece);
        Ok(state.space.is_none())
    }

    /// Has `then` called once more may be written, or the client has gone: at once, if that is so.
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

    /// Has `then` called once the client has gone before the answer was closed: at once, if it
    /// has. The last one counts.
    fn when_lost(&self, then: Py<PyAny>) {
        let call = move || {
            Python::attach(|py| {
                if let Err(error) = then.call0(py) {
                    error.write_unraisable(py, None);
                }
            });
        };
        // (Not under the lock: it may be called at once.)
        let writer = self.state().writer.take();
        if let Some(writer) = writer {
            writer.on_lost(call);
            self.state().writer = Some(writer);
        }
    }

    /// Cuts the answer off, so that nobody takes it for whole.
    fn abort(&self) {
        let writer = self.state().writer.take();
        drop(writer);
    }

    /// The answer is whole.
    fn close(&self) {
        if let Some(writer) = self.state().writer.take() {
            writer.end();
        }
    }
}
