//! Finds and opens files below the root, by descriptors only: the second wall after `path.rs`. No
//! path and no symlink leads outside the root directory.
//!
//! Every lookup first opens with `O_PATH`, which has no effect on the file: a fifo's writer does
//! not notice and a device does not start. Only a regular file is then opened for reading.

mod walk;

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, StatxFlags};
use rustix::io::Errno;

/// How often a lookup is retried that a rename elsewhere in the file system has disturbed.
const ATTEMPTS_MAX: usize = 8;

/// Flags for reading a regular file. `NONBLOCK` and `NOCTTY` matter only if it is none after all.
const READING: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Flags for opening an entry without any effect on it.
const LOOKING: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// Keeps a lookup below the root, in the kernel.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

/// The same, and on the root's file system, without waiting for a disk.
const IN_MEMORY: ResolveFlags = BENEATH.union(ResolveFlags::CACHED).union(ResolveFlags::NO_XDEV);

/// The file systems that are known to return bytes in memory without waiting, by their numbers in
/// `statfs(2)`: bcachefs, Btrfs, EROFS, exFAT, ext2 to ext4, F2FS, ISO 9660, overlayfs, ramfs,
/// `SquashFS`, tmpfs, VFAT, XFS, ZFS.
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

/// The method that keeps paths below the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolver {
    /// `openat2` with `RESOLVE_BENEATH`: the kernel checks them.
    Openat2,
    /// One `openat` with `O_NOFOLLOW` per component, if the kernel is older than 5.6 or a seccomp
    /// profile refuses the call.
    Walk,
}

/// The method that opens a located file for reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reopen {
    /// Through `/proc/self/fd`: exactly the located file, whatever its name means by now.
    Proc,
    /// By its path again, compared with the located file: if `/proc` is not mounted.
    Again,
}

/// An open root directory. Copies share its descriptor.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    directory: Arc<OwnedFd>,
    identity: Identity,
    resolver: Resolver,
    reopen: Reopen,
    /// It lies on a local file system, which returns bytes in memory without waiting.
    /// Others, such as NFS and FUSE, may query their server even then.
    is_local: bool,
}

/// The identity of a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    /// Returns the identity of the entry at `path`; symlinks are followed.
    pub(crate) fn at(path: &Path) -> Result<Identity, Errno> {
        rustix::fs::stat(path).map(|stat| Identity::of(&stat))
    }

    /// Returns the same without waiting for a disk; `None` if that is impossible.
    pub(crate) fn at_cached(path: &Path) -> Option<Identity> {
        let cached = ResolveFlags::CACHED;
        let found = rustix::fs::openat2(CWD, path, LOOKING, Mode::empty(), cached).ok()?;
        // An identity never changes, so no server has to be queried.
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let stat = rustix::fs::statx(&found, "", flags, StatxFlags::INO).ok()?;
        let device = rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor);
        Some(Identity { device, inode: stat.stx_ino })
    }

    pub(crate) fn new(device: u64, inode: u64) -> Identity {
        Identity { device, inode }
    }

    pub(crate) fn of(stat: &Stat) -> Identity {
        Identity { device: stat.st_dev, inode: stat.st_ino }
    }
}

/// An entry below the root, located and not open for reading.
#[derive(Debug)]
pub(crate) struct Located {
    descriptor: OwnedFd,
    pub stat: Stat,
}

impl Located {
    pub(crate) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    /// Returns where it is now, without symlinks; `None` if the system does not say.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        path_of(&self.descriptor)
    }
}

impl Root {
    /// Opens the root directory, and tests what the system supports.
    pub(crate) fn open(path: &Path) -> Result<Root, Errno> {
        let mut root = Root::open_with(path, Resolver::Openat2, Reopen::Proc)?;
        let trial = root.open_beneath(b"", LOOKING);
        if matches!(trial, Err(Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::TOOBIG)) {
            root.resolver = Resolver::Walk;
        }
        if rustix::fs::stat(proc_path(&root.directory)).is_err() {
            root.reopen = Reopen::Again;
        }
        Ok(root)
    }

    /// Opens the root directory with the given methods.
    pub(crate) fn open_with(
        path: &Path,
        resolver: Resolver,
        reopen: Reopen,
    ) -> Result<Root, Errno> {
        let directory = rustix::fs::open(path, LOOKING | OFlags::DIRECTORY, Mode::empty())?;
        let identity = Identity::of(&rustix::fs::fstat(&directory)?);
        let is_local = is_local(&directory);
        Ok(Root { directory: Arc::new(directory), identity, resolver, reopen, is_local })
    }

    /// Opens the directory at `path` with this root's methods.
    pub(crate) fn opened_again(&self, path: &Path) -> Result<Root, Errno> {
        Root::open_with(path, self.resolver, self.reopen)
    }

    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }

    /// Returns where it is now, without symlinks; `None` if the system does not say.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        path_of(&self.directory)
    }

    /// Returns whether a device is that of the root, and local.
    pub(crate) fn is_local_device(&self, device: u64) -> bool {
        self.is_local && self.identity.device == device
    }

    /// Locates a decoded path relative to the root.
    pub(crate) fn locate(&self, relative: &[u8]) -> Result<Located, Errno> {
        let descriptor = self.open_beneath(relative, LOOKING)?;
        let stat = rustix::fs::fstat(&descriptor)?;
        Ok(Located { descriptor, stat })
    }

    /// Locates a path without waiting for a disk or a server. Returns `None` if that is impossible:
    /// a part of the path is not in memory, or lies on another file system than the root.
    pub(crate) fn locate_cached(&self, relative: &[u8]) -> Option<Result<Located, Errno>> {
        if !self.is_local || self.resolver != Resolver::Openat2 {
            return None;
        }
        let path = if relative.is_empty() { b"." } else { relative };
        match rustix::fs::openat2(&self.directory, path, LOOKING, Mode::empty(), IN_MEMORY) {
            Ok(descriptor) => {
                let stat = rustix::fs::fstat(&descriptor);
                Some(stat.map(|stat| Located { descriptor, stat }))
            }
            // Not in memory; behind a mount point, or outside; a kernel before Linux 5.12.
            Err(Errno::AGAIN | Errno::XDEV | Errno::INVAL | Errno::INTR) => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// Opens a regular file for reading, and returns its state. `relative` is the path that
    /// `located` was found at.
    ///
    /// # Errors
    /// `NOENT` for anything but a regular file, which is not opened; `AGAIN` if the name means
    /// another file by now.
    pub(crate) fn open_to_read(
        &self,
        located: &Located,
        relative: &[u8],
    ) -> Result<(File, Stat), Errno> {
        if located.kind() != FileType::RegularFile {
            return Err(Errno::NOENT);
        }
        same_file(self.reopen(located, relative, READING)?, located)
    }

    /// Does the same with a file that [`Root::locate_cached`] has found: by its path, which is in
    /// memory and costs half of what the way through `/proc` does.
    ///
    /// # Errors
    /// As [`Root::open_to_read`].
    pub(crate) fn open_to_read_cached(
        &self,
        located: &Located,
        relative: &[u8],
    ) -> Result<(File, Stat), Errno> {
        // Whatever is wrong with it is found by the other way.
        if located.kind() == FileType::RegularFile
            && let Ok(opened) =
                rustix::fs::openat2(&self.directory, relative, READING, Mode::empty(), IN_MEMORY)
        {
            return same_file(opened, located);
        }
        self.open_to_read(located, relative)
    }

    /// Opens a directory for reading its names. `relative` is the path that `located` was found at.
    pub(crate) fn open_folder(&self, located: &Located, relative: &[u8]) -> Result<OwnedFd, Errno> {
        self.reopen(located, relative, READING | OFlags::DIRECTORY)
    }

    /// Opens what was located, with other flags.
    fn reopen(&self, located: &Located, relative: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        match self.reopen {
            Reopen::Proc => {
                let path = proc_path(&located.descriptor);
                rustix::fs::openat(CWD, path, flags, Mode::empty())
            }
            Reopen::Again => self.open_beneath(relative, flags),
        }
    }

    /// Opens a directory by its path below the root, for reading its names and for what is done in
    /// it.
    pub(crate) fn open_directory(&self, relative: &[u8]) -> Result<OwnedFd, Errno> {
        self.open_beneath(relative, READING | OFlags::DIRECTORY)
    }

    fn open_beneath(&self, relative: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = if relative.is_empty() { b"." } else { relative };
        match self.resolver {
            Resolver::Openat2 => open_by_kernel(&self.directory, path, flags),
            Resolver::Walk => walk::open(&self.directory, path, flags),
        }
    }
}

/// Returns an opened file with its state, if it is the one that was located.
fn same_file(opened: OwnedFd, located: &Located) -> Result<(File, Stat), Errno> {
    let found = rustix::fs::fstat(&opened)?;
    if Identity::of(&found) == Identity::of(&located.stat) {
        Ok((File::from(opened), found))
    } else {
        Err(Errno::AGAIN)
    }
}

fn open_by_kernel(root: &OwnedFd, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut outcome = Err(Errno::AGAIN);
    for _ in 0..ATTEMPTS_MAX {
        outcome = rustix::fs::openat2(root, path, flags, Mode::empty(), BENEATH);
        // A rename elsewhere kept the kernel from verifying a `..` in a symlink.
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

fn path_of(descriptor: &OwnedFd) -> Option<PathBuf> {
    std::fs::read_link(proc_path(descriptor)).ok().filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests;
