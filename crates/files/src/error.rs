//! Errors of files: at the start for the operator, later for one response.

use std::path::{Path, PathBuf};

use gustnado_http::status::Status;
use rustix::io::Errno;
use thiserror::Error;

use super::path::FilePathError;

/// Why a folder cannot be served.
#[derive(Error)]
#[non_exhaustive]
pub enum FilesError {
    /// There is nothing at the path.
    #[error("no folder at {}: create it or name another one", .path.display())]
    Missing {
        /// The path as it was given.
        path: PathBuf,
    },
    /// The path is not a folder.
    #[error("{} is not a folder: name the folder around it", .path.display())]
    NotFolder {
        /// The path as it was given.
        path: PathBuf,
    },
    /// No permission to open the folder.
    #[error("no permission to open {}: allow this user to read and enter it", .path.display())]
    Denied {
        /// The path as it was given.
        path: PathBuf,
    },
    /// The file with types by extension cannot be used.
    #[error("mime-types: {}: {reason}; name a file with lines such as: text/html html htm",
        .path.display())]
    MimeTypes {
        /// The path as it was given.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Another error of the system.
    #[error("cannot open {}", .path.display())]
    Failed {
        /// The path as it was given.
        path: PathBuf,
        /// The system's error.
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

/// Why one request gets no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The path itself is rejected.
    Path(FilePathError),
    /// The system returned an error.
    Disk(Errno),
    /// A folder without an index, and listings are off.
    NoIndex,
    /// A folder has more bytes than an archive may have.
    TooLarge,
    /// As much is being sent to slow clients as may be.
    TooMany,
    /// The response is unknown without waiting for the disk, which was not allowed; or the disk did
    /// not respond in time.
    WouldWait,
}

impl Failure {
    /// Returns the status of the response. No other place turns a failure into one.
    ///
    /// A path that leads outside the root is 404, as if nothing were there. A missing permission is
    /// 403: the name lies below the root and is not hidden, so it is the operator's mistake, which
    /// a 404 would conceal.
    pub(super) fn status(self) -> Status {
        match self {
            Failure::Path(FilePathError::Malformed) => Status::BAD_REQUEST,
            Failure::Path(FilePathError::Refused) | Failure::NoIndex => Status::NOT_FOUND,
            Failure::Disk(errno) => status_of(errno),
            Failure::TooLarge => Status::FORBIDDEN,
            Failure::TooMany | Failure::WouldWait => Status::SERVICE_UNAVAILABLE,
        }
    }

    /// Returns whether nothing that is served is there.
    pub(super) fn is_missing(self) -> bool {
        self.status() == Status::NOT_FOUND
    }

    /// Returns whether the server may not see what is there.
    pub(super) fn is_denied(self) -> bool {
        self.status() == Status::FORBIDDEN
    }

    /// Returns whether a further attempt may succeed: something ran out, or changed meanwhile.
    pub(super) fn is_passing(self) -> bool {
        self.status() == Status::SERVICE_UNAVAILABLE
    }

    /// Returns whether a resource ran out that may be free again in a moment.
    pub(super) fn is_exhaustion(self) -> bool {
        use Failure::{Disk, TooMany, WouldWait};
        matches!(self, Disk(Errno::MFILE | Errno::NFILE | Errno::NOMEM) | TooMany | WouldWait)
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

impl From<FilePathError> for Failure {
    fn from(error: FilePathError) -> Failure {
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
