//! A folder that is open for reading its names.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Errno;

use super::resolve::{Located, Root};

/// A folder below the root, open for reading its names.
#[derive(Debug)]
pub(super) struct OpenFolder {
    root: Root,
    directory: OwnedFd,
    /// Its path below the root.
    relative: Vec<u8>,
}

impl OpenFolder {
    /// - `relative`: its path below the root, which `located` was found at.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn open(root: &Root, located: &Located, relative: &[u8]) -> Result<Self, Errno> {
        let directory = root.open_folder(located, relative)?;
        Ok(Self { root: root.clone(), directory, relative: relative.to_vec() })
    }

    /// Returns its descriptor.
    pub(super) fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    /// Returns its path below the root.
    pub(super) fn relative(&self) -> &[u8] {
        &self.relative
    }

    /// Returns the root that it lies below.
    pub(super) fn root(&self) -> &Root {
        &self.root
    }

    /// Returns the path of an entry below the root.
    pub(super) fn path_of(&self, name: &[u8]) -> Vec<u8> {
        match &*self.relative {
            [] => name.to_vec(),
            relative => [relative, b"/", name].concat(),
        }
    }

    /// Returns the attributes of an entry, or those of its target if it is a link that leads to
    /// something below the root; `None` if there is nothing, by now.
    pub(super) fn stat(&self, name: &[u8]) -> Option<Stat> {
        let stat = rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            return Some(stat);
        }
        self.root.locate(&self.path_of(name)).ok().map(|located| located.stat)
    }
}
