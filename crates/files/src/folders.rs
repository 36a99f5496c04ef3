//! The open folders: one that is configured twice, or again by a reload, keeps its caches.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::deltas::DeltaThread;
use super::digest::Digests;
use super::headers::FolderHeaders;
use super::upload::UploadQuotas;
use super::{FileOptions, Files, FilesError, Folder};

/// The open folders, held weakly: each lives as long as a route uses it.
#[derive(Debug, Default, Clone)]
pub struct Folders {
    known: Arc<Mutex<Vec<Weak<Folder>>>>,
    counts: Arc<FolderCounts>,
    /// Outlive every folder, so that a reload changes no tag.
    digests: Arc<Digests>,
    deltas: Arc<DeltaThread>,
    /// Shared by folders with the same root.
    uploads: Arc<UploadQuotas>,
}

/// What is counted of all folders of a server together.
#[derive(Debug, Default)]
pub struct FolderCounts {
    /// How often no descriptor or memory was free for a file.
    pub exhausted: AtomicU64,
    /// How many files were compressed with a dictionary.
    pub deltas_made: AtomicU64,
    /// How many responses had such a file as their content.
    pub deltas_sent: AtomicU64,
    /// Listings of which more is to come than was sent.
    pub(super) listings_open: AtomicU64,
    /// Archives that are made now.
    pub archives_open: AtomicU64,
    /// Archives that were begun.
    pub archives_begun: AtomicU64,
    /// Requests for archives that got none, as too many were made.
    pub archives_refused: AtomicU64,
    /// Archives that could not be completed.
    pub archives_failed: AtomicU64,
}

/// Takes one more of what there may be at once. Returns whether there was one.
pub(super) fn take_one(open: &AtomicU64, most: u64) -> bool {
    let next = |open: u64| (open < most).then_some(open + 1);
    open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
}

impl Folders {
    /// Returns what is counted of all folders together, closed ones included.
    pub fn counts(&self) -> Arc<FolderCounts> {
        Arc::clone(&self.counts)
    }

    /// Opens a folder, or returns one that is already served with the same options.
    ///
    /// # Errors
    /// [`FilesError`] if there is no folder that can be opened, even if it was open before.
    pub fn open(
        &self,
        root: &Path,
        options: FileOptions,
        headers: FolderHeaders,
    ) -> Result<Files, FilesError> {
        let mut new = Files::open(root, options)?;
        let folder = Arc::get_mut(&mut new.folder).expect("it is not shared yet");
        let types = std::mem::take(&mut folder.headers.types);
        folder.headers = FolderHeaders { types, ..headers };
        folder.in_all = self.counts();
        folder.hashing.digests = Arc::clone(&self.digests);
        folder.deltas = Arc::clone(&self.deltas);
        folder.uploads = Arc::clone(&self.uploads);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|folder| folder.strong_count() > 0);
        let mut same_path = known.iter().filter_map(Weak::upgrade);
        let same_path = same_path.by_ref().filter(|old| old.path == new.folder.path);
        for old in same_path {
            if old.serves_as(&new.folder) {
                return Ok(Files { folder: old });
            }
            // With other settings after a reload: former releases are known still.
            new.folder.releases.learn_from(&old.releases);
        }
        known.push(Arc::downgrade(&new.folder));
        Ok(new)
    }
}
