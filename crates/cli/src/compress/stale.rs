//! Removes what an earlier run has made of bytes that a file no longer has, and this one does not
//! make: it was asked for other codings, or for other types. Where a build gives all files the same
//! time, a server would take such a sibling for that of the file as it is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::manifest::{Manifest, ManifestEntry, OriginalState};
use super::sibling::digest;

/// Removes them, and returns how many there were, with those that failed.
pub(super) fn remove(
    folder: &Path,
    manifest: &mut Manifest,
    is_dry_run: bool,
) -> (u64, Vec<(PathBuf, io::Error)>) {
    let (mut removed, mut failed) = (0, Vec::new());
    manifest.retain(|relative, entry| {
        let sibling = folder.join(relative);
        let outcome = match is_stale(&sibling, entry) {
            Ok(true) if is_dry_run => Ok(true),
            Ok(true) => fs::remove_file(&sibling).map(|()| true),
            outcome => outcome,
        };
        match outcome {
            Ok(is_removed) => {
                removed += u64::from(is_removed);
                !is_removed
            }
            // It stays on the list: otherwise it would be taken for another program's.
            Err(error) => {
                failed.push((sibling, error));
                true
            }
        }
    });
    (removed, failed)
}

/// Returns whether a sibling is still as it was written, and its file is not.
fn is_stale(sibling: &Path, entry: &ManifestEntry) -> io::Result<bool> {
    // (What is gone, or another program's by now, is nothing to remove.)
    let is_own = fs::symlink_metadata(sibling).is_ok_and(|meta| entry.is_of(&meta));
    let original = sibling.with_extension("");
    let Some(meta) = fs::metadata(&original).ok().filter(|meta| is_own && meta.is_file()) else {
        return Ok(false);
    };
    if OriginalState::of(&meta) == entry.original {
        return Ok(false);
    }
    Ok(digest(&fs::read(original)?) != entry.digest)
}
