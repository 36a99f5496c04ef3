//! The folders that are served at a time: one that is named twice, or again by a reload, keeps its
//! caches.

use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::headers::FolderHeaders;
use super::{FileOptions, Files, FilesError, Folder};

/// Folders that are served, as long as somebody does.
#[derive(Debug, Default, Clone)]
pub struct Folders {
    known: Arc<Mutex<Vec<Weak<Folder>>>>,
    /// What all of them have counted, also those that are gone.
    exhausted: Arc<AtomicU64>,
}

impl Folders {
    /// How often no descriptor or memory was free for a file, in all folders together.
    pub fn exhausted(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.exhausted)
    }

    /// Opens a folder, or goes on with one that is served in the same way.
    ///
    /// # Errors
    /// [`FilesError`] when there is no folder that can be opened, also if there once was.
    pub fn open(
        &self,
        root: &Path,
        options: FileOptions,
        headers: FolderHeaders,
    ) -> Result<Files, FilesError> {
        let mut new = Files::open(root, options)?;
        let folder = Arc::get_mut(&mut new.folder).expect("nobody else has seen it");
        folder.headers = headers;
        folder.exhausted_in_all = self.exhausted();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|folder| folder.strong_count() > 0);
        let same = known.iter().filter_map(Weak::upgrade).find(|old| old.serves_as(&new.folder));
        if let Some(folder) = same {
            return Ok(Files { folder });
        }
        known.push(Arc::downgrade(&new.folder));
        Ok(new)
    }
}
