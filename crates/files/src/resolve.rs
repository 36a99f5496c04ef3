//! Finds a file beneath the root and opens it, by descriptors only: the second wall, after
//! `path.rs`. Nothing that a path or a symlink says leads outside the root directory.
//!
//! Every lookup first opens with `O_PATH`, which touches nothing: a fifo's writer does not notice
//! and a device is not started. Only what is then seen to be a regular file is opened for reading.

mod walk;

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, StatxFlags};
use rustix::io::Errno;

/// How often a lookup is tried again that a rename somewhere in the system has disturbed.
const ATTEMPTS_MAX: usize = 8;

/// Flags for reading a regular file; `NONBLOCK` and `NOCTTY` are a belt beside the braces.
const READING: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Flags for looking at anything without touching it.
const LOOKING: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// How the kernel keeps a lookup beneath the root.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

/// The file systems of which it is known that what is in memory can be had without a wait, by the
/// numbers of `statfs(2)`: bcachefs, Btrfs, EROFS, exFAT, ext2 to ext4, F2FS, ISO 9660, overlayfs,
/// ramfs, `SquashFS`, tmpfs, VFAT, XFS, ZFS.
const LOCAL: [u32; 14] = [
    0xca45_1a4e,
    0x9123_683e,
    0xe0f5_e1e2,
    0x2011_bab0,
    0xef53,
    0xf2f5_2010,
    0x9660,
    0x794c_7630,
    0x8584_58f6,
    0x7371_7368,
    0x0102_1994,
    0x4d44,
    0x5846_5342,
    0x2fc1_2fc1,
];

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
    /// It lies on a file system of this machine: what is in memory of it can be asked for without
    /// a wait. Others (NFS, FUSE) may ask their server even then.
    is_local: bool,
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

    /// The same without waiting for a disk; `None` where that cannot be.
    pub(crate) fn at_cached(path: &Path) -> Option<Identity> {
        let cached = ResolveFlags::CACHED;
        let found = rustix::fs::openat2(CWD, path, LOOKING, Mode::empty(), cached).ok()?;
        // What a directory is never changes, so no server has to be asked.
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let stat = rustix::fs::statx(&found, "", flags, StatxFlags::INO).ok()?;
        let device = rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor);
        Some(Identity { device, inode: stat.stx_ino })
    }

    pub(crate) fn of(stat: &Stat) -> Identity {
        Identity { device: stat.st_dev, inode: stat.st_ino }
    }
}

/// Something beneath the root, looked at and not opened for reading.
#[derive(Debug)]
pub(crate) struct Located {
    descriptor: OwnedFd,
    pub stat: Stat,
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
        let is_local = is_local(&directory);
        Ok(Root { directory, identity, backend, reopen, is_local })
    }

    /// Opens what stands at `path` by now, to be used the way this root is.
    pub(crate) fn opened_again(&self, path: &Path) -> Result<Root, Errno> {
        Root::open_with(path, self.backend, self.reopen)
    }

    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }

    /// Whether a file on that device lies on the root's file system, and that on this machine.
    pub(crate) fn is_local_device(&self, device: u64) -> bool {
        self.is_local && self.identity.device == device
    }

    /// Looks at a decoded path relative to the root.
    pub(crate) fn locate(&self, relative: &[u8]) -> Result<Located, Errno> {
        let descriptor = self.open_beneath(relative, LOOKING)?;
        let stat = rustix::fs::fstat(&descriptor)?;
        Ok(Located { descriptor, stat })
    }

    /// The same without waiting for a disk or a server: `None` where that cannot be, because the
    /// path or a part of it is not in memory, or lies on another file system than the root.
    pub(crate) fn locate_cached(&self, relative: &[u8]) -> Option<Result<Located, Errno>> {
        if !self.is_local || self.backend != Backend::Openat2 {
            return None;
        }
        let path = if relative.is_empty() { b"." } else { relative };
        let resolve = BENEATH | ResolveFlags::CACHED | ResolveFlags::NO_XDEV;
        match rustix::fs::openat2(&self.directory, path, LOOKING, Mode::empty(), resolve) {
            Ok(descriptor) => {
                let stat = rustix::fs::fstat(&descriptor);
                Some(stat.map(|stat| Located { descriptor, stat }))
            }
            // Not in memory; behind a mount point, or outside; a kernel before Linux 5.12.
            Err(Errno::AGAIN | Errno::XDEV | Errno::INVAL | Errno::INTR) => None,
            Err(error) => Some(Err(error)),
        }
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

    /// Opens a directory for reading its names. `relative` is the path that `located` was found at.
    pub(crate) fn open_folder(&self, located: &Located, relative: &[u8]) -> Result<OwnedFd, Errno> {
        let flags = READING | OFlags::DIRECTORY;
        match self.reopen {
            Reopen::Proc => {
                let path = proc_path(&located.descriptor);
                rustix::fs::openat(CWD, path, flags, Mode::empty())
            }
            Reopen::Again => self.open_beneath(relative, flags),
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
    let mut outcome = Err(Errno::AGAIN);
    for _ in 0..ATTEMPTS_MAX {
        outcome = rustix::fs::openat2(root, path, flags, Mode::empty(), BENEATH);
        // The kernel could not be sure of a `..` in a symlink while something was renamed.
        if !matches!(outcome, Err(Errno::AGAIN | Errno::INTR)) {
            break;
        }
    }
    outcome
}

fn is_local(directory: &OwnedFd) -> bool {
    let number = rustix::fs::fstatfs(directory).map(|found| u32::try_from(found.f_type));
    matches!(number, Ok(Ok(number)) if LOCAL.contains(&number))
}

fn proc_path(descriptor: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd())
}

#[cfg(test)]
mod tests;
