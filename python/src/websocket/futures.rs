//! Futures of the loop that wait until a WebSocket is open, or until more may be sent.

use pyo3::intern;
use pyo3::prelude::*;

use crate::errors::client_disconnected;

/// Futures are looked through beyond this number: those whose task was cancelled need not be kept.
const USUAL: usize = 64;

/// Futures that wait. Most sockets have none.
#[derive(Default)]
pub(super) struct Futures {
    all: Vec<Py<PyAny>>,
    /// At so many they are looked through.
    looked_at: usize,
}

impl Futures {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Adds one. Returns all of them, if they are to be looked through.
    pub(super) fn push(&mut self, future: Py<PyAny>) -> Option<Vec<Py<PyAny>>> {
        self.all.push(future);
        (self.all.len() > self.looked_at.max(USUAL)).then(|| std::mem::take(&mut self.all))
    }

    /// Puts those back that still wait.
    pub(super) fn put_back(&mut self, kept: Vec<Py<PyAny>>) {
        let since = std::mem::replace(&mut self.all, kept);
        self.all.extend(since);
        self.looked_at = 2 * self.all.len();
    }

    /// Completes those that are not done: with nothing, or with `ClientDisconnected`.
    pub(super) fn settle(self, loss: Option<&str>) {
        if self.all.is_empty() {
            return;
        }
        Python::attach(|py| {
            for future in &self.all {
                if let Err(error) = settle(future.bind(py), loss) {
                    error.write_unraisable(py, None);
                }
            }
        });
    }
}

/// Returns those that are neither done nor cancelled, and the others.
pub(super) fn sorted(py: Python<'_>, futures: Vec<Py<PyAny>>) -> (Vec<Py<PyAny>>, Vec<Py<PyAny>>) {
    let is_pending = |future: &Py<PyAny>| {
        let done = future.bind(py).call_method0(intern!(py, "done"));
        !done.and_then(|is_done| is_done.is_truthy()).unwrap_or(true)
    };
    futures.into_iter().partition(is_pending)
}

fn settle(future: &Bound<'_, PyAny>, loss: Option<&str>) -> PyResult<()> {
    let py = future.py();
    if future.call_method0(intern!(py, "done"))?.is_truthy()? {
        return Ok(());
    }
    match loss {
        None => future.call_method1(intern!(py, "set_result"), (py.None(),)),
        Some(text) => {
            let error = client_disconnected(text).into_value(py);
            future.call_method1(intern!(py, "set_exception"), (error,))
        }
    }
    .map(drop)
}
