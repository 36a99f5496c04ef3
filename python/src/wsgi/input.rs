//! `wsgi.input` of a body in memory.

use bytes::Bytes;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PySlice};

use super::WsgiApp;
use crate::guarded::Guarded;

/// From so many bytes a body is read where it lies. To copy a shorter one costs less than the
/// objects that this takes.
const IN_PLACE_BYTES_MIN: usize = 64 << 10;

/// Returns the file object of a body: an `io.BytesIO`, or an `io.BufferedReader` if it is long.
pub(super) fn open<'py>(
    py: Python<'py>,
    app: &WsgiApp,
    body: &Bytes,
) -> PyResult<Bound<'py, PyAny>> {
    if body.len() < IN_PLACE_BYTES_MIN {
        return app.bytes_io.bind(py).call1((PyBytes::new(py, body),));
    }
    let raw = RawBody(Guarded::new(BodyCursor { bytes: Some(body.clone()), at: 0 }));
    app.buffered_reader.bind(py).call1((raw,))
}

/// The raw stream beneath an `io.BufferedReader`: what that needs of `io.RawIOBase`.
#[pyclass(frozen, module = "gustnado._gustnado")]
struct RawBody(Guarded<BodyCursor>);

struct BodyCursor {
    /// `None` once it is closed.
    bytes: Option<Bytes>,
    at: usize,
}

impl BodyCursor {
    fn bytes(&self) -> PyResult<&Bytes> {
        self.bytes.as_ref().ok_or_else(|| PyValueError::new_err("I/O operation on closed file."))
    }

    /// Takes up to `bytes_max` bytes.
    fn take(&mut self, bytes_max: usize) -> PyResult<Bytes> {
        let bytes = self.bytes()?;
        let from = self.at.min(bytes.len());
        let taken = bytes.slice(from..bytes.len().min(from.saturating_add(bytes_max)));
        self.at = from + taken.len();
        Ok(taken)
    }
}

#[pymethods]
impl RawBody {
    fn readinto(&self, into: &Bound<'_, PyAny>) -> PyResult<usize> {
        let (py, room) = (into.py(), PyBuffer::<u8>::get(into)?);
        let taken = self.0.borrow_mut().take(room.item_count())?;
        if taken.len() == room.item_count() {
            room.copy_from_slice(py, &taken)?;
        } else {
            let used = PySlice::new(py, 0, isize::try_from(taken.len())?, 1);
            let used = PyMemoryView::from(into)?.get_item(used)?;
            PyBuffer::<u8>::get(&used)?.copy_from_slice(py, &taken)?;
        }
        Ok(taken.len())
    }

    fn readall<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let taken = self.0.borrow_mut().take(usize::MAX)?;
        Ok(PyBytes::new(py, &taken))
    }

    #[pyo3(signature = (offset, whence = 0))]
    fn seek(&self, offset: i64, whence: u8) -> PyResult<u64> {
        let mut cursor = self.0.borrow_mut();
        let from = match whence {
            0 => 0,
            1 => cursor.at,
            2 => cursor.bytes()?.len(),
            other => {
                let text = format!("expected 0, 1 or 2 as whence, found {other}");
                return Err(PyValueError::new_err(text));
            }
        };
        let at = (from as u64).checked_add_signed(offset);
        let at = at.ok_or_else(|| PyValueError::new_err("expected a place behind the start"))?;
        cursor.at = usize::try_from(at)?;
        Ok(at)
    }

    fn tell(&self) -> u64 {
        self.0.borrow_mut().at as u64
    }

    fn close(&self) {
        let bytes = self.0.borrow_mut().bytes.take();
        drop(bytes);
    }

    #[getter]
    fn closed(&self) -> bool {
        self.0.borrow_mut().bytes.is_none()
    }

    #[staticmethod]
    fn readable() -> bool {
        true
    }

    #[staticmethod]
    fn writable() -> bool {
        false
    }

    #[staticmethod]
    fn seekable() -> bool {
        true
    }

    #[staticmethod]
    fn flush() {}
}
