//! What writes an answer over time.

use std::sync::MutexGuard;

use pyo3::exceptions::{PyConnectionError, PyRuntimeError};
use pyo3::prelude::*;

use crate::bytes_like::bytes_of;
use crate::kept::Kept;
use crate::pipe::{Feed, Room};

/// Writes an answer piece by piece. The answer is whole with [`Writer::close`]; an object that goes
/// without it cuts the answer off.
#[pyclass(frozen, module = "gustnado")]
pub(crate) struct Writer(Kept<State>);

struct State {
    feed: Option<Feed>,
    /// What there is to wait for, once too much waits to be sent.
    room: Option<Room>,
}

impl Writer {
    pub(crate) fn new(feed: Feed) -> Self {
        Self(Kept::new(State { feed: Some(feed), room: None }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.borrow_mut()
    }
}

#[pymethods]
impl Writer {
    /// Writes a piece. Returns whether more may be written at once; if not, it is better to wait
    /// for [`Writer::when_room`].
    ///
    /// Raises `ConnectionError` if the client has gone.
    fn write(&self, piece: &Bound<'_, PyAny>) -> PyResult<bool> {
        let piece = bytes_of(piece, "a piece of an answer")?;
        let mut state = self.state();
        let Some(feed) = &state.feed else {
            return Err(PyRuntimeError::new_err("the answer was closed already"));
        };
        if feed.is_lost() {
            return Err(PyConnectionError::new_err("the client has gone"));
        }
        state.room = feed.push(piece);
        Ok(state.room.is_none())
    }

    /// Has `then` called once more may be written, or the client has gone: at once, if that is so.
    fn when_room(&self, py: Python<'_>, then: Py<PyAny>) -> PyResult<()> {
        let room = self.state().room.take();
        match room {
            None => then.call0(py).map(drop),
            Some(room) => {
                room.call(move || {
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
        let feed = self.state().feed.take();
        if let Some(feed) = feed {
            feed.on_lost(call);
            self.state().feed = Some(feed);
        }
    }

    /// Cuts the answer off, so that nobody takes it for whole.
    fn abort(&self) {
        let feed = self.state().feed.take();
        drop(feed);
    }

    /// The answer is whole.
    fn close(&self) {
        if let Some(feed) = self.state().feed.take() {
            feed.end();
        }
    }
}
