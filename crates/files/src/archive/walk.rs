//! The files below a folder, one after the other, in the order of the disk.
//!
//! What cannot be requested is not found: hidden and forbidden names, what links outside, what is
//! neither a file nor a folder. A link to a file is that file. A link to a folder is left out, as
//! it may lead to a folder that it lies in.

use std::fs::File;

use rustix::fs::{AtFlags, Dir, FileType, Stat};
use rustix::io::Errno;

use crate::open_folder::OpenFolder;
use crate::resolve::{Identity, Root};
use crate::shown::ShownEntries;

/// The most folders within each other. Each is open while what is in it is visited.
const DEPTH_MAX: usize = 64;
/// How often a file is looked for again that is being replaced.
const ATTEMPTS_MAX: usize = 4;

/// A walk through a folder. It holds as much as the folders hold that lie within each other.
pub(super) struct FolderWalk {
    root: Root,
    shown: ShownEntries,
    /// The open folders, the outermost first.
    folders: Vec<WalkedFolder>,
}

struct WalkedFolder {
    names: Dir,
    /// Its path below the root.
    relative: Vec<u8>,
}

/// One step of a walk.
pub(super) enum FolderWalkStep {
    /// A file or a folder.
    Entry(WalkEntry),
    /// A name that is left out.
    LeftOut,
    End,
}

/// A file or a folder that was found.
#[derive(Debug)]
pub(super) struct WalkEntry {
    /// Its path below the root.
    pub(super) relative: Vec<u8>,
    /// Its attributes; of a link, those of its target.
    pub(super) stat: Stat,
    pub(super) is_folder: bool,
}

impl WalkEntry {
    /// Returns how many bytes the file has.
    pub(super) fn bytes(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or(0)
    }
}

impl FolderWalk {
    /// Begins a walk at an open folder.
    pub(super) fn new(folder: &OpenFolder, shown: ShownEntries) -> Result<Self, Errno> {
        let root = folder.root().clone();
        let names = Dir::read_from(folder.directory())?;
        let top = WalkedFolder { names, relative: folder.relative().to_vec() };
        Ok(Self { root, shown, folders: vec![top] })
    }

    /// Visits the next name.
    ///
    /// # Errors
    /// A disk has failed, no descriptor is free, or there are too many folders within each other:
    /// what is left out without being told would look like a whole archive.
    pub(super) fn next(&mut self) -> Result<FolderWalkStep, Errno> {
        let Some(folder) = self.folders.last_mut() else { return Ok(FolderWalkStep::End) };
        let Some(found) = folder.names.read() else {
            self.folders.pop();
            return Ok(FolderWalkStep::LeftOut);
        };
        let found = found?;
        let name = found.file_name().to_bytes();
        if !self.shown.has_name(name) {
            return Ok(FolderWalkStep::LeftOut);
        }
        let slash: &[u8] = if folder.relative.is_empty() { b"" } else { b"/" };
        let relative = [&folder.relative, slash, name].concat();
        let directory = folder.names.fd()?;
        let stat = match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(errno) => return left_out(errno),
            Ok(stat) => stat,
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => self.enter(relative, stat),
            FileType::RegularFile => Ok(self.file(relative, stat)),
            FileType::Symlink => match self.root.locate(&relative) {
                Ok(located) if located.kind() == FileType::RegularFile => {
                    Ok(self.file(relative, located.stat))
                }
                Ok(_) => Ok(FolderWalkStep::LeftOut),
                Err(errno) => left_out(errno),
            },
            _ => Ok(FolderWalkStep::LeftOut),
        }
    }

    /// Opens the file of an entry; `None` if it cannot be requested, by now.
    ///
    /// # Errors
    /// As [`FolderWalk::next`].
    pub(super) fn open(&self, entry: &WalkEntry) -> Result<Option<(File, Stat)>, Errno> {
        for _ in 0..ATTEMPTS_MAX {
            let located = self.root.locate(&entry.relative);
            let opened =
                located.and_then(|located| self.root.open_to_read(&located, &entry.relative));
            match opened {
                Ok(opened) => return Ok(Some(opened)),
                // Another file has taken its place.
                Err(Errno::AGAIN | Errno::STALE) => {}
                Err(errno) => return left_out(errno).map(|_| None),
            }
        }
        Ok(None)
    }

    fn file(&self, relative: Vec<u8>, stat: Stat) -> FolderWalkStep {
        if self.shown.leaves_out(&relative, false) {
            return FolderWalkStep::LeftOut;
        }
        FolderWalkStep::Entry(WalkEntry { relative, stat, is_folder: false })
    }

    /// Opens a folder, whose names come next.
    fn enter(&mut self, relative: Vec<u8>, stat: Stat) -> Result<FolderWalkStep, Errno> {
        if self.shown.leaves_out(&relative, true) {
            return Ok(FolderWalkStep::LeftOut);
        }
        if self.folders.len() >= DEPTH_MAX {
            return Err(Errno::OVERFLOW);
        }
        let directory = match self.root.open_directory(&relative) {
            Ok(directory) => directory,
            Err(errno) => return left_out(errno),
        };
        // A link may have taken its place.
        if Identity::of(&rustix::fs::fstat(&directory)?) != Identity::of(&stat) {
            return Ok(FolderWalkStep::LeftOut);
        }
        self.folders.push(WalkedFolder { names: Dir::new(directory)?, relative: relative.clone() });
        Ok(FolderWalkStep::Entry(WalkEntry { relative, stat, is_folder: true }))
    }
}

/// Returns the step for what cannot be looked at, if a request for it would find nothing either, or
/// be refused.
///
/// # Errors
/// It is there, and the system fails.
fn left_out(errno: Errno) -> Result<FolderWalkStep, Errno> {
    match errno {
        Errno::NOENT
        | Errno::NOTDIR
        | Errno::ISDIR
        | Errno::LOOP
        | Errno::XDEV
        | Errno::NAMETOOLONG
        | Errno::ACCESS
        | Errno::PERM
        | Errno::NXIO
        | Errno::AGAIN
        | Errno::STALE => Ok(FolderWalkStep::LeftOut),
        errno => Err(errno),
    }
}
