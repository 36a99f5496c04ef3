//! What can go wrong with files: at the start for the operator, later for one answer.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

use gustnado_http::status::Status;
use rustix::io::Errno;

use super::path::PathError;

/// Why a folder cannot be served.
#[non_exhaustive]
pub enum FilesError {
    /// There is nothing at the path.
    Missing {
        /// The path as it was given.
        path: PathBuf,
    },
    /// There is something else than a folder.
    NotFolder {
        /// The path as it was given.
        path: PathBuf,
    },
    /// The folder must not be opened.
    Denied {
        /// The path as it was given.
        path: PathBuf,
    },
    /// The system failed otherwise.
    Failed {
        /// The path as it was given.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl FilesError {
    pub(super) fn new(path: &Path, errno: Errno) -> FilesError {
        let path = path.to_path_buf();
        match errno {
            Errno::NOENT => FilesError::Missing { path },
            Errno::NOTDIR => FilesError::NotFolder { path },
            Errno::ACCESS | Errno::PERM => FilesError::Denied { path },
            _ => FilesError::Failed { path, source: errno.into() },
        }
    }
}

impl fmt::Display for FilesError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilesError::Missing { path } => {
                write!(out, "no folder at {}: create it or name another one", path.display())
            }
            FilesError::NotFolder { path } => {
                write!(out, "{} is not a folder: name the folder around it", path.display())
            }
            FilesError::Denied { path } => {
                let path = path.display();
                write!(out, "no permission to open {path}: allow this user to read and enter it")
            }
            FilesError::Failed { path, .. } => write!(out, "cannot open {}", path.display()),
        }
    }
}

impl Error for FilesError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            FilesError::Failed { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Why one request gets no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The path itself is not looked up.
    Path(PathError),
    /// The system said no.
    Disk(Errno),
    /// It is a folder without an index, and folders are not listed.
    NoIndex,
    /// It cannot be said without waiting for the disk, which was not to be; or the disk has not
    /// answered in time.
    WouldWait,
}

impl Failure {
    /// The one place that turns a failure into a status.
    ///
    /// Whatever leads outside the root is as if it were not there. No permission is said as 403:
    /// the name lies beneath the root and is not hidden, so it is the operator's slip, which a 404
    /// would make hard to find.
    pub(super) fn status(self) -> Status {
        match self {
            Failure::Path(PathError::Malformed) => Status::BAD_REQUEST,
            Failure::Path(PathError::Refused) | Failure::NoIndex => Status::NOT_FOUND,
            Failure::Disk(errno) => status_of(errno),
            Failure::WouldWait => Status::SERVICE_UNAVAILABLE,
        }
    }

    /// Whether the system ran out of something and may have it again in a moment.
    pub(super) fn is_exhaustion(self) -> bool {
        use Failure::{Disk, WouldWait};
        matches!(self, Disk(Errno::MFILE | Errno::NFILE | Errno::NOMEM) | WouldWait)
    }
}

fn status_of(errno: Errno) -> Status {
    match errno {
        Errno::NOENT
        | Errno::NOTDIR
        | Errno::LOOP
        | Errno::XDEV
        | Errno::NAMETOOLONG
        | Errno::INVAL => Status::NOT_FOUND,
        Errno::ACCESS | Errno::PERM => Status::FORBIDDEN,
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN | Errno::STALE => {
            Status::SERVICE_UNAVAILABLE
        }
        _ => Status::INTERNAL_SERVER_ERROR,
    }
}

impl From<PathError> for Failure {
    fn from(error: PathError) -> Failure {
        Failure::Path(error)
    }
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Failure {
        Failure::Disk(errno)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_has_its_status() {
        for (errno, status) in [
            (Errno::NOENT, 404),
            (Errno::XDEV, 404),
            (Errno::LOOP, 404),
            (Errno::NAMETOOLONG, 404),
            (Errno::ACCESS, 403),
            (Errno::MFILE, 503),
            (Errno::NFILE, 503),
            (Errno::AGAIN, 503),
            (Errno::IO, 500),
        ] {
            assert_eq!(Failure::Disk(errno).status().code(), status, "{errno:?}");
        }
    }
}
