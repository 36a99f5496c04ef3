//! What one thread keeps for a folder: its cache and its view of the root.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use gustnado_tasks::Now;
use rustix::io::Errno;

use super::Folder;
use super::cache::Cache;
use super::cached_file::{Access, CachedFile};
use super::error::Failure;
use super::lookup::{self, Found};
use super::resolve::{Identity, Root};

/// How often the root's path is compared with the root that is held open, in milliseconds.
const ROOT_CHECK_MS: u64 = 1_000;

thread_local! {
    /// One for each folder that this thread has answered for and that still exists: nearly always
    /// one. Found by the folder's address, which its `Weak` keeps from being given to another.
    static WORKERS: RefCell<Vec<Worker>> = const { RefCell::new(Vec::new()) };
}

/// The state of one thread for one folder.
pub(super) struct Worker {
    folder: Weak<Folder>,
    root: Arc<Root>,
    root_checked_ms: Option<u64>,
    pub(super) cache: Cache,
}

/// Runs `act` with this thread's state for `folder`.
#[inline]
pub(super) fn with<T>(folder: &Arc<Folder>, act: impl FnOnce(&mut Worker) -> T) -> T {
    WORKERS.with_borrow_mut(|workers| {
        let at = workers.iter().position(|worker| worker.folder.as_ptr() == Arc::as_ptr(folder));
        let at = at.unwrap_or_else(|| add(workers, folder));
        act(&mut workers[at])
    })
}

#[cold]
fn add(workers: &mut Vec<Worker>, folder: &Arc<Folder>) -> usize {
    workers.retain(|worker| worker.folder.strong_count() > 0);
    let worker = Worker {
        folder: Arc::downgrade(folder),
        root: Arc::clone(&folder.root),
        root_checked_ms: None,
        cache: Cache::new(folder.cache_bytes, folder.descriptors_max),
    };
    // At the front: after a reload, the one before it will not be asked for much longer.
    workers.insert(0, worker);
    0
}

impl Worker {
    /// Finds what `key` names, a canonical path, which is the file's only one: so the cache cannot
    /// be flushed by other spellings. Waits for the disk if need be.
    pub(super) fn find(&mut self, folder: &Folder, key: &[u8], now: Now) -> Result<Found, Failure> {
        if self.is_root_due(now) {
            let new_root = lookup::new_root(&self.root, folder);
            self.note_root(new_root, now);
        }
        let held = self.cache.any_age(key).map(|file| file.seen());
        let outcome = lookup::look_again(&self.root, folder, key, held, now);
        self.settle(folder, key, outcome, now)
    }

    /// The same where nothing has to be waited for; else `None`.
    pub(super) fn find_cached(
        &mut self,
        folder: &Folder,
        key: &[u8],
        now: Now,
    ) -> Option<Result<Found, Failure>> {
        if self.is_root_due(now) {
            if Identity::at_cached(&folder.path)? != self.root.identity() {
                return None;
            }
            self.note_root(None, now);
        }
        let held = self.cache.any_age(key).map(|file| file.seen());
        let outcome = lookup::look((&self.root, Access::Cached), folder, key, held, now);
        if matches!(outcome, Err(Failure::WouldWait | Failure::Disk(Errno::AGAIN | Errno::STALE))) {
            return None;
        }
        Some(self.settle(folder, key, outcome, now))
    }

    /// Has the cache follow what was found.
    ///
    /// When no descriptor is free, or the disk does not answer, what the cache holds is taken as
    /// still good for another second: a server full of connections goes on serving its pages.
    pub(super) fn settle(
        &mut self,
        folder: &Folder,
        key: &[u8],
        outcome: Result<Found, Failure>,
        now: Now,
    ) -> Result<Found, Failure> {
        let outcome = match outcome {
            Err(failure) if failure.is_exhaustion() && self.cache.any_age(key).is_some() => {
                folder.count(failure);
                Ok(Found::Held)
            }
            outcome => outcome,
        };
        match &outcome {
            Ok(Found::Held) => {
                let warm = |held: &CachedFile| held.note_warmth(&self.root);
                self.cache.renew(key, now.mono_ms, warm);
            }
            Ok(Found::Loaded { .. }) => {} // is put in the old one's place
            Ok(Found::Directory | Found::Listed(_)) | Err(_) => self.cache.remove(key),
        }
        outcome
    }

    pub(super) fn root(&self) -> Arc<Root> {
        Arc::clone(&self.root)
    }

    /// Whether the root's path is to be compared with the root that is held open.
    pub(super) fn is_root_due(&self, now: Now) -> bool {
        let is_due = |checked_ms| now.mono_ms.saturating_sub(checked_ms) >= ROOT_CHECK_MS;
        self.root_checked_ms.is_none_or(is_due)
    }

    /// Takes the root that the path leads to by now, if it is another one. What was cached is
    /// dropped with the old one, so that no page is made of files from both.
    pub(super) fn note_root(&mut self, new: Option<Root>, now: Now) {
        if let Some(root) = new.filter(|root| root.identity() != self.root.identity()) {
            self.root = Arc::new(root);
            self.cache.clear();
        }
        if self.is_root_due(now) {
            self.root_checked_ms = Some(now.mono_ms);
        }
    }
}
