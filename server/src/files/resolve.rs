//! Finds a file beneath the root and opens it, by descriptors only: the second wall, after
//! `path.rs`. Nothing that a path or a symlink says leads outside the root directory.
//!
//! Every lookup first opens with `O_PATH`, which touches nothing: a fifo's writer does not notice
//! and a device is not started. Only what is then seen to be a regular file is opened for reading.

mod walk;

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

/// How often a lookup is tried again that a rename somewhere in the system has disturbed.
const ATTEMPTS_MAX: usize = 8;

/// Flags for reading a regular file; `NONBLOCK` and `NOCTTY` are a belt beside the braces.
const READING: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Flags for looking at anything without touching it.
const LOOKING: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// How paths are kept beneath the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    /// `openat2` with `RESOLVE_BENEATH`: the kernel keeps them.
    Openat2,
    /// One `openat` with `O_NOFOLLOW` for each component, where the kernel is older than 5.6 or a
    /// seccomp profile refuses the call.
    Walk,
}

/// How a file that was looked at is opened for reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reopen {
    /// Through `/proc/self/fd`: exactly what was looked at, whatever its name means by now.
    Proc,
    /// By its path once more, compared with what was looked at: where `/proc` is not mounted.
    Again,
}

/// An open root directory.
#[derive(Debug)]
pub(crate) struct Root {
    directory: OwnedFd,
    identity: Identity,
    backend: Backend,
    reopen: Reopen,
}

/// What tells one file or directory from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    /// What stands at `path` now; symlinks are followed.
    pub(crate) fn at(path: &Path) -> Result<Identity, Errno> {
        rustix::fs::stat(path).map(|stat| Identity::of(&stat))
    }

    pub(crate) fn of(stat: &Stat) -> Identity {
        Identity { device: stat.st_dev, inode: stat.st_ino }
    }
}

/// Something beneath the root, looked at and not opened for reading.
#[derive(Debug)]
pub(crate) struct Located {
    descriptor: OwnedFd,
    pub(crate) stat: Stat,
}

impl Located {
    pub(crate) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }
}

impl Root {
    /// Opens the root directory and finds out by trying what the system offers.
    pub(crate) fn open(path: &Path) -> Result<Root, Errno> {
        let mut root = Root::open_with(path, Backend::Openat2, Reopen::Proc)?;
        let trial = root.open_beneath(b"", LOOKING);
        if matches!(trial, Err(Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::TOOBIG)) {
            root.backend = Backend::Walk;
        }
        if rustix::fs::stat(proc_path(&root.directory)).is_err() {
            root.reopen = Reopen::Again;
        }
        Ok(root)
    }

    /// Opens the root directory for the given way of working.
    pub(crate) fn open_with(path: &Path, backend: Backend, reopen: Reopen) -> Result<Root, Errno> {
        let directory = rustix::fs::open(path, LOOKING | OFlags::DIRECTORY, Mode::empty())?;
        let identity = Identity::of(&rustix::fs::fstat(&directory)?);
        Ok(Root { directory, identity, backend, reopen })
    }

    /// Opens what stands at `path` by now, to be used the way this root is.
    pub(crate) fn opened_again(&self, path: &Path) -> Result<Root, Errno> {
        Root::open_with(path, self.backend, self.reopen)
    }

    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }

    /// Looks at a decoded path relative to the root.
    pub(crate) fn locate(&self, relative: &[u8]) -> Result<Located, Errno> {
        let descriptor = self.open_beneath(relative, LOOKING)?;
        let stat = rustix::fs::fstat(&descriptor)?;
        Ok(Located { descriptor, stat })
    }

    /// Opens a regular file for reading. `relative` is the path that `located` was found at.
    ///
    /// # Errors
    /// `NOENT` for anything but a regular file, which is not opened; `AGAIN` when the name means
    /// another file by now.
    pub(crate) fn open_to_read(&self, located: &Located, relative: &[u8]) -> Result<File, Errno> {
        if located.kind() != FileType::RegularFile {
            return Err(Errno::NOENT);
        }
        let opened = match self.reopen {
            Reopen::Proc => {
                let path = proc_path(&located.descriptor);
                rustix::fs::openat(CWD, path, READING, Mode::empty())?
            }
            Reopen::Again => self.open_beneath(relative, READING)?,
        };
        let found = rustix::fs::fstat(&opened)?;
        if Identity::of(&found) == Identity::of(&located.stat) {
            Ok(File::from(opened))
        } else {
            Err(Errno::AGAIN)
        }
    }

    fn open_beneath(&self, relative: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = if relative.is_empty() { b"." } else { relative };
        match self.backend {
            Backend::Openat2 => open_by_kernel(&self.directory, path, flags),
            Backend::Walk => walk::open(&self.directory, path, flags),
        }
    }
}

fn open_by_kernel(root: &OwnedFd, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut outcome = Err(Errno::AGAIN);
    for _ in 0..ATTEMPTS_MAX {
        outcome = rustix::fs::openat2(root, path, flags, Mode::empty(), resolve);
        // The kernel could not be sure of a `..` in a symlink while something was renamed.
        if !matches!(outcome, Err(Errno::AGAIN | Errno::INTR)) {
            break;
        }
    }
    outcome
}

fn proc_path(descriptor: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd())
}

#[cfg(test)]
mod tests;
