//! What tells that a file was replaced: by another one, by a link to another one, or in place; or
//! given to another owner, so that it can be read.

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
    modified: (i64, i64),
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
    let modified = (meta.mtime(), meta.mtime_nsec());
    let changed = (meta.ctime(), meta.ctime_nsec());
    Some(FileStamp { device, inode, bytes, modified, changed })
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn other_permissions_are_a_change() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "content").expect("a file");
        let before = stamp(&file);
        assert!(before.is_some() && before == stamp(&file));
        // The kernel's clock may stand still for some milliseconds.
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("its owner may");
        assert_ne!(before, stamp(&file));
    }
}
