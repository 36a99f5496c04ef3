//! Stays below the root without the kernel's help: one component at a time. Symlinks are read and
//! resolved here, never by the kernel.
//!
//! A `..` in a symlink goes back to the descriptor from the way down, not to the current parent: a
//! directory that is moved meanwhile cannot lead outside.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

/// The most symlinks in one path, as in the kernel.
const LINKS_MAX: usize = 40;

/// The most directories in one path; each holds a descriptor for a moment.
pub(super) const DEPTH_MAX: usize = 64;

const DIRECTORY: OFlags =
    OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens `path` beneath `root` with `flags`, as `openat2` with `RESOLVE_BENEATH` would.
///
/// # Errors
/// As `openat2`: `XDEV` where a symlink points outside or is absolute, `LOOP` for too many.
pub(super) fn open(root: &OwnedFd, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut walk = Walk { root: root.as_fd(), below: Vec::new(), ahead: Vec::new() };
    walk.put_ahead(path);
    let mut links = 0;
    while let Some(name) = walk.ahead.pop() {
        match name.as_slice() {
            b"" | b"." => {}
            b".." => walk.go_up()?,
            name => match walk.step(name, flags)? {
                WalkStep::Down => {}
                WalkStep::Opened(descriptor) => return Ok(descriptor),
                WalkStep::Link(target) => {
                    links += 1;
                    if links > LINKS_MAX {
                        return Err(Errno::LOOP);
                    }
                    walk.put_ahead(&target);
                }
            },
        }
    }
    rustix::fs::openat(walk.here(), ".", flags, Mode::empty())
}

struct Walk<'a> {
    root: BorrowedFd<'a>,
    /// The directories on the way down, the current one last; empty at the root.
    below: Vec<OwnedFd>,
    /// Components still to go, the next one last.
    ahead: Vec<Vec<u8>>,
}

enum WalkStep {
    Down,
    Opened(OwnedFd),
    Link(Vec<u8>),
}

impl Walk<'_> {
    fn here(&self) -> BorrowedFd<'_> {
        self.below.last().map_or(self.root, AsFd::as_fd)
    }

    fn put_ahead(&mut self, path: &[u8]) {
        self.ahead.extend(path.split(|byte| *byte == b'/').rev().map(<[u8]>::to_vec));
    }

    fn go_up(&mut self) -> Result<(), Errno> {
        self.below.pop().map(drop).ok_or(Errno::XDEV)
    }

    fn step(&mut self, name: &[u8], flags: OFlags) -> Result<WalkStep, Errno> {
        let stat = rustix::fs::statat(self.here(), name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => self.read_link(name),
            FileType::Directory => self.go_down(name),
            _ if self.ahead.is_empty() => {
                let flags = flags | OFlags::NOFOLLOW;
                rustix::fs::openat(self.here(), name, flags, Mode::empty()).map(WalkStep::Opened)
            }
            _ => Err(Errno::NOTDIR),
        }
    }

    fn go_down(&mut self, name: &[u8]) -> Result<WalkStep, Errno> {
        if self.below.len() == DEPTH_MAX {
            return Err(Errno::NAMETOOLONG);
        }
        let directory = rustix::fs::openat(self.here(), name, DIRECTORY, Mode::empty())?;
        self.below.push(directory);
        Ok(WalkStep::Down)
    }

    fn read_link(&self, name: &[u8]) -> Result<WalkStep, Errno> {
        let target = rustix::fs::readlinkat(self.here(), name, Vec::new())?.into_bytes();
        if target.starts_with(b"/") {
            return Err(Errno::XDEV);
        }
        Ok(WalkStep::Link(target))
    }
}
