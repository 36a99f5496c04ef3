//! A request's body as an application reads it: in memory if it is short, else in a spool file,
//! which has no name and is freed with the object that reads it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use pyo3::intern;
use pyo3::prelude::*;

use gustnado::{BodyError, Request, Status};

use crate::errors;

/// Longest body that is kept in memory.
pub(super) const MEMORY_BYTES_MAX: usize = 1 << 20;
/// Longest spooled body, independent of the limit of bodies.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// A complete body.
pub(super) enum WsgiBody {
    Memory(Bytes),
    /// A Python file object at its beginning, and its length.
    File(Py<PyAny>, u64),
}

/// A borrowed body.
#[derive(Clone, Copy)]
pub(super) enum Input<'a> {
    Memory(&'a [u8]),
    File(&'a Py<PyAny>, u64),
}

impl WsgiBody {
    pub(super) fn input(&self) -> Input<'_> {
        match self {
            Self::Memory(bytes) => Input::Memory(bytes),
            Self::File(file, length) => Input::File(file, *length),
        }
    }
}

/// The limit on all spool files together, and their state.
pub(super) struct Spool {
    bytes_max: u64,
    used: AtomicU64,
}

/// The reason why a body was refused.
pub(super) enum BodyRefusal {
    Broken(BodyError),
    TooLong,
    /// Other bodies use all of the spool.
    Full(u64),
    /// The folder for temporary files is not writable.
    Disk(PyErr),
}

/// The share of one body's file in the spool, released when dropped.
#[pyclass(frozen, module = "gustnado._gustnado")]
struct SpoolShare {
    spool: Arc<Spool>,
    bytes: AtomicU64,
}

/// The file of an incomplete body.
struct SpoolFile {
    python: Py<PyAny>,
    /// The same file. It is written by offset, so its position does not move.
    file: File,
    share: SpoolShare,
}

impl Spool {
    pub(super) fn new(bytes_max: u64) -> Arc<Self> {
        Arc::new(Self { bytes_max, used: AtomicU64::new(0) })
    }

    /// Reads the body of a request to its end.
    pub(super) async fn read(
        self: &Arc<Self>,
        request: &mut Request,
    ) -> Result<WsgiBody, BodyRefusal> {
        let body = request.body_mut();
        let length = body.length().unwrap_or(0);
        if length > FILE_BYTES_MAX {
            return Err(BodyRefusal::TooLong);
        }
        let mut memory = Vec::new();
        let mut growing = None;
        if length > MEMORY_BYTES_MAX as u64 {
            growing = Some(SpoolFile::open(self)?);
        }
        while let Some(piece) = body.next().await {
            let piece = piece.map_err(BodyRefusal::Broken)?;
            if growing.is_none() && memory.len() + piece.len() > MEMORY_BYTES_MAX {
                let opened = SpoolFile::open(self)?;
                opened.put(&std::mem::take(&mut memory))?;
                growing = Some(opened);
            }
            match &growing {
                Some(growing) => growing.put(&piece)?,
                None => memory.extend_from_slice(&piece),
            }
        }
        match growing {
            Some(growing) => growing.end(),
            None => Ok(WsgiBody::Memory(memory.into())),
        }
    }
}

impl SpoolFile {
    fn open(spool: &Arc<Spool>) -> Result<Self, BodyRefusal> {
        let share = SpoolShare { spool: Arc::clone(spool), bytes: AtomicU64::new(0) };
        let opened = Python::attach(|py| {
            // It has no name from the start if the file system supports that.
            let temporary = py.import(intern!(py, "tempfile"))?;
            let python = temporary.call_method0(intern!(py, "TemporaryFile"))?;
            let number: i32 = python.call_method0(intern!(py, "fileno"))?.extract()?;
            let file = duplicate(number).map_err(|error| errors::of_io(&error))?;
            Ok((python.unbind(), file))
        });
        let (python, file) = opened.map_err(BodyRefusal::Disk)?;
        Ok(Self { python, file, share })
    }

    /// Appends bytes. They go into the page cache, which seldom takes long.
    fn put(&self, piece: &[u8]) -> Result<(), BodyRefusal> {
        let at = self.share.bytes.load(Ordering::Relaxed);
        self.share.take(piece.len() as u64)?;
        self.file.write_all_at(piece, at).map_err(|error| BodyRefusal::Disk(errors::of_io(&error)))
    }

    fn end(self) -> Result<WsgiBody, BodyRefusal> {
        let length = self.share.bytes.load(Ordering::Relaxed);
        let written = Python::attach(|py| {
            let share = Bound::new(py, self.share)?;
            self.python.bind(py).setattr(intern!(py, "_share_of_spool"), share)
        });
        written.map_err(BodyRefusal::Disk)?;
        Ok(WsgiBody::File(self.python, length))
    }
}

impl SpoolShare {
    fn take(&self, bytes: u64) -> Result<(), BodyRefusal> {
        let spool = &self.spool;
        let length = self.bytes.load(Ordering::Relaxed) + bytes;
        if length > FILE_BYTES_MAX {
            return Err(BodyRefusal::TooLong);
        }
        let before = spool.used.fetch_add(bytes, Ordering::Relaxed);
        self.bytes.store(length, Ordering::Relaxed);
        if before + bytes > spool.bytes_max {
            return Err(BodyRefusal::Full(spool.bytes_max));
        }
        Ok(())
    }
}

impl Drop for SpoolShare {
    fn drop(&mut self) {
        self.spool.used.fetch_sub(self.bytes.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl BodyRefusal {
    pub(super) fn status(&self) -> Status {
        match self {
            Self::Broken(error) => error.status(),
            Self::TooLong => Status::CONTENT_TOO_LARGE,
            Self::Full(_) | Self::Disk(_) => Status::SERVICE_UNAVAILABLE,
        }
    }

    /// A line for the log, if an operator can do something about it.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            // A limit that was set is logged where it is hit.
            Self::Broken(_) => None,
            Self::TooLong => Some(format!(
                "refused with 413: its body is longer than {FILE_BYTES_MAX} bytes, the most \
                 that is kept for a WSGI application"
            )),
            Self::Full(max) => Some(format!(
                "refused with 503: the bodies of all requests take more than \
                 --body-spool-bytes {max}"
            )),
            Self::Disk(error) => Some(format!(
                "refused with 503: its body could not be kept in a temporary file ({error}); \
                 TMPDIR names another folder"
            )),
        }
    }
}

/// Duplicates a descriptor that Python has open.
fn duplicate(number: i32) -> io::Result<File> {
    File::options().read(true).write(true).open(format!("/proc/self/fd/{number}"))
}
