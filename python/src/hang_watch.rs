//! Calls into Python that are noted for `--timeout`: a turn of the engine may have many, and each
//! counts alone.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// Who is told of calls.
struct HangWatch {
    note: Py<PyAny>,
    interval: Duration,
    noted: Instant,
}

thread_local! {
    static IS_ON: Cell<bool> = const { Cell::new(false) };
    static WATCH: RefCell<Option<HangWatch>> = const { RefCell::new(None) };
}

/// Calls `note` before calls of this thread into the application, at most once in `interval`.
/// `None`: not any more.
pub(crate) fn set(note: Option<Py<PyAny>>, interval: Duration) {
    let watch = note.map(|note| HangWatch { note, interval, noted: Instant::now() });
    IS_ON.set(watch.is_some());
    let before = WATCH.replace(watch);
    drop(before);
}

/// Notes a call into the application, such as a step of its coroutine.
#[inline]
pub(crate) fn note_call(py: Python<'_>) {
    if IS_ON.get() {
        note_if_due(py);
    }
}

#[cold]
fn note_if_due(py: Python<'_>) {
    let due = WATCH.with_borrow_mut(|watch| {
        let watch = watch.as_mut()?;
        let now = Instant::now();
        if now - watch.noted < watch.interval {
            return None;
        }
        watch.noted = now;
        Some(watch.note.clone_ref(py))
    });
    // Nothing is borrowed while Python runs.
    if let Some(note) = due
        && let Err(error) = note.call0(py)
    {
        error.write_unraisable(py, None);
    }
}
