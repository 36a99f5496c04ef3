//! How many bytes the files of a folder may have together, if there is a bound.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gustnado_tasks::Now;
use rustix::fs::{AtFlags, Dir, FileType};
use rustix::io::Errno;

use crate::resolve::Root;

/// After how long the files are counted again: others may write to the folder, and delete there.
const RECOUNT_MS: u64 = 60_000;
/// The most entries that are counted. A folder with more is as good as full.
const ENTRIES_MAX: usize = 1_000_000;
/// The most folders within each other.
const DEPTH_MAX: usize = 256;

/// The bytes of a folder's files, as far as they were counted.
#[derive(Debug, Default)]
pub(crate) struct UploadQuota {
    used: AtomicU64,
    counted_ms: Mutex<Option<u64>>,
    /// Held while a file is put in its place, so that a condition is not overtaken by another
    /// upload.
    pub(super) commits: Mutex<()>,
}

/// What one upload takes of the quota. Dropping it gives that back.
#[derive(Debug)]
pub(super) struct QuotaShare {
    quota: Arc<UploadQuota>,
    bytes_max: u64,
    taken: u64,
}

impl UploadQuota {
    /// Begins an upload. Counts the files of the folder if that was not done lately.
    ///
    /// - `bytes_max`: the bound; 0 is none, and nothing is counted.
    pub(super) fn begin(
        self: &Arc<Self>,
        root: &Root,
        bytes_max: u64,
        now: Now,
    ) -> Result<QuotaShare, Errno> {
        let share = QuotaShare { quota: Arc::clone(self), bytes_max, taken: 0 };
        if bytes_max == 0 {
            return Ok(share);
        }
        let mut counted_ms = self.counted_ms.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = |at: u64| now.mono_ms.saturating_sub(at) >= RECOUNT_MS;
        if counted_ms.is_none_or(is_due) {
            self.used.store(used_bytes(root)?, Ordering::Relaxed);
            *counted_ms = Some(now.mono_ms);
        }
        Ok(share)
    }
}

impl QuotaShare {
    /// Takes more bytes. Returns whether there was room for them.
    pub(super) fn take(&mut self, bytes: u64) -> bool {
        if self.bytes_max == 0 {
            return true;
        }
        let before = self.quota.used.fetch_add(bytes, Ordering::Relaxed);
        self.taken += bytes;
        before.saturating_add(bytes) <= self.bytes_max
    }

    /// Returns whether there is room for so many bytes now.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        let used = self.quota.used.load(Ordering::Relaxed);
        self.bytes_max == 0 || used.saturating_add(bytes) <= self.bytes_max
    }

    /// Keeps what was taken, but for the bytes of a file that was replaced.
    pub(super) fn keep(&mut self, replaced: u64) {
        self.taken = if self.bytes_max == 0 { 0 } else { replaced };
    }
}

impl Drop for QuotaShare {
    fn drop(&mut self) {
        let less = |used: u64| Some(used.saturating_sub(self.taken));
        _ = self.quota.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

/// Returns the bytes of all files below a root. Symlinks are not followed.
fn used_bytes(root: &Root) -> Result<u64, Errno> {
    let (mut folders, mut entries, mut bytes) = (vec![Vec::new()], 0, 0_u64);
    while let Some(relative) = folders.pop() {
        let Ok(directory) = root.open_directory(&relative) else { continue };
        let mut dir = Dir::read_from(&directory)?;
        while let Some(found) = dir.read() {
            let found = found?;
            let name = found.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            entries += 1;
            if entries > ENTRIES_MAX {
                return Err(Errno::NOSPC);
            }
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            let Ok(stat) = rustix::fs::statat(&directory, name, flags) else { continue };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => {
                    bytes = bytes.saturating_add(u64::try_from(stat.st_size).unwrap_or(0));
                }
                FileType::Directory if is_shallow(&relative) => {
                    let slash: &[u8] = if relative.is_empty() { b"" } else { b"/" };
                    folders.push([&relative, slash, name].concat());
                }
                _ => {}
            }
        }
    }
    Ok(bytes)
}

fn is_shallow(relative: &[u8]) -> bool {
    memchr::memchr_iter(b'/', relative).count() < DEPTH_MAX
}
