//! A request's body as an application reads it: in memory if it is short, else in a spool file,
//! which has no name and is freed with the object that reads it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use gustnado::{BodyError, Collected, Request, Spool, SpoolShare, Status};

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
    Memory(&'a Bytes),
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
struct PySpoolShare(#[expect(dead_code, reason = "held for its drop")] SpoolShare);

/// The file of an incomplete body.
struct TemporaryFile {
    python: Py<PyAny>,
    /// The same file. It is written by offset, so its position does not move.
    file: File,
    share: SpoolShare,
}

/// Reads the body of a request to its end. The connection orders when bytes go to the file.
pub(super) async fn read(request: &mut Request) -> Result<WsgiBody, BodyRefusal> {
    let body = request.body_mut();
    let length = body.length();
    if length.is_some_and(|length| length > FILE_BYTES_MAX) {
        return Err(BodyRefusal::TooLong);
    }
    let is_long = length.is_none_or(|length| length > MEMORY_BYTES_MAX as u64);
    let (mut memory, mut growing) = (Vec::new(), None);
    body.set_spooled();
    while let Some(collected) = body.collect_next().await {
        let spool = match collected.map_err(BodyRefusal::Broken)? {
            Collected::Bytes(piece) => {
                memory.extend_from_slice(&piece);
                continue;
            }
            Collected::Spill(spool) => spool,
        };
        match spill(&spool, &mut growing, &memory) {
            Ok(released) => {
                memory.clear();
                body.set_released(released);
            }
            // A short one stays in memory, as far as there is some.
            Err(BodyRefusal::Full(_)) if !is_long && growing.is_none() => body.set_collected(true),
            Err(refused) => {
                body.set_collected(true);
                return Err(refused);
            }
        }
    }
    match growing {
        Some(mut growing) => {
            growing.put(&memory)?;
            growing.end()
        }
        None => Ok(WsgiBody::Memory(memory.into())),
    }
}

/// Appends bytes to the file of a body, which is made if there is none. Returns the file's length.
fn spill(
    spool: &Arc<Spool>,
    growing: &mut Option<TemporaryFile>,
    memory: &[u8],
) -> Result<u64, BodyRefusal> {
    if let Some(growing) = growing {
        growing.put(memory)?;
        return Ok(growing.share.bytes());
    }
    let mut opened = TemporaryFile::open(spool)?;
    opened.put(memory)?;
    spool.count_body();
    Ok(growing.insert(opened).share.bytes())
}

impl TemporaryFile {
    fn open(spool: &Arc<Spool>) -> Result<Self, BodyRefusal> {
        let Some(share) = SpoolShare::open(spool) else {
            return Err(BodyRefusal::Full(spool.bytes_max()));
        };
        let folder = spool.folder();
        let opened = Python::attach(|py| {
            // It has no name from the start if the file system supports that.
            let temporary = py.import(intern!(py, "tempfile"))?;
            let named = PyDict::new(py);
            named.set_item(intern!(py, "dir"), folder)?;
            let python = temporary.call_method(intern!(py, "TemporaryFile"), (), Some(&named))?;
            let number: i32 = python.call_method0(intern!(py, "fileno"))?.extract()?;
            let file = duplicate(number).map_err(|error| errors::of_io(&error))?;
            Ok((python.unbind(), file))
        });
        let (python, file) = opened.map_err(|error| failed(spool, error))?;
        Ok(Self { python, file, share })
    }

    /// Appends bytes. They go into the page cache, which seldom takes long.
    fn put(&mut self, bytes: &[u8]) -> Result<(), BodyRefusal> {
        let at = self.share.bytes();
        if at + bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(BodyRefusal::TooLong);
        }
        if !self.share.take(bytes.len() as u64) {
            return Err(BodyRefusal::Full(self.share.spool().bytes_max()));
        }
        let written = self.file.write_all_at(bytes, at);
        written.map_err(|error| failed(self.share.spool(), errors::of_io(&error)))
    }

    fn end(self) -> Result<WsgiBody, BodyRefusal> {
        let (length, spool) = (self.share.bytes(), Arc::clone(self.share.spool()));
        let written = Python::attach(|py| {
            let share = Bound::new(py, PySpoolShare(self.share))?;
            self.python.bind(py).setattr(intern!(py, "_share_of_spool"), share)
        });
        written.map_err(|error| failed(&spool, error))?;
        Ok(WsgiBody::File(self.python, length))
    }
}

/// Counts a body that could not be written.
fn failed(spool: &Spool, error: PyErr) -> BodyRefusal {
    spool.count_failure();
    BodyRefusal::Disk(error)
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
                 --body-spool names another folder"
            )),
        }
    }
}

/// Duplicates a descriptor that Python has open.
fn duplicate(number: i32) -> io::Result<File> {
    File::options().read(true).write(true).open(format!("/proc/self/fd/{number}"))
}
