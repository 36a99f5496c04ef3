//! What tells that a file was replaced: by another one, by a link to another one, or in place.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The state of some files.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileStamps(Vec<Option<FileStamp>>);

/// The state of one; links are followed, as some tools replace the folder that they lead to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl FileStamps {
    /// Looks at some files.
    pub(crate) fn of<'a>(files: impl Iterator<Item = &'a Path>) -> Self {
        Self(files.map(stamp).collect())
    }
}

pub(crate) fn stamp(path: &Path) -> Option<FileStamp> {
    let meta = fs::metadata(path).ok()?;
    let (device, inode, bytes) = (meta.dev(), meta.ino(), meta.len());
    Some(FileStamp { device, inode, bytes, changed: (meta.mtime(), meta.mtime_nsec()) })
}
