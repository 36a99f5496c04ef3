//! The state of one thread for a folder: its cache and its view of the root.

use std::cell::RefCell;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use gustnado_tasks::Now;
use rustix::io::Errno;

use super::Folder;
use super::cache::Cache;
use super::cached_file::{Access, CachedFile};
use super::error::Failure;
use super::lookup::{self, FoundEntry};
use super::resolve::{Identity, Root};

/// How often the root's path is compared with the root that is open, in milliseconds. With
/// [`FRESH_MS`](super::cache::FRESH_MS), a swapped symlink is followed within two seconds.
const ROOT_CHECK_MS: u64 = 1_000;

thread_local! {
    /// One entry for each folder that this thread has served from and that still exists, nearly
    /// always one. It is found by the folder's address: the `Weak` keeps the allocation, so that no
    /// other folder can get the same address.
    static WORKERS: RefCell<Vec<Worker>> = const { RefCell::new(Vec::new()) };
}

/// The state of one thread for one folder.
pub(super) struct Worker {
    folder: Weak<Folder>,
    root: Arc<Root>,
    root_checked_ms: Option<u64>,
    /// The folder's count of written files up to which the cache was compared with the disk.
    written: u64,
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
        written: folder.written.load(Ordering::Acquire),
        cache: Cache::new(folder.cache_bytes, folder.descriptors_max, folder.has_variants()),
    };
    // At the front: after a reload, the folder before it will soon get no more requests.
    workers.insert(0, worker);
    0
}

impl Worker {
    /// Has the cache compared with the disk if the server itself has written files since: whoever
    /// is told that an upload is there gets it, whatever worker responds.
    #[inline]
    pub(super) fn follow_uploads(&mut self, folder: &Folder) {
        let written = folder.written.load(Ordering::Acquire);
        if self.written != written {
            self.written = written;
            self.cache.expire();
        }
    }

    /// Returns the count that [`Worker::looked_before`] takes.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Notes that a lookup began when the count was `written`: what was written since, it may not
    /// have seen.
    pub(super) fn looked_before(&mut self, written: u64) {
        self.written = self.written.min(written);
    }

    /// Finds the file of `key`, a canonical path. A file has only one such path, so other spellings
    /// cannot flush the cache. Waits for the disk if necessary.
    pub(super) fn find(
        &mut self,
        folder: &Folder,
        key: &[u8],
        now: Now,
    ) -> Result<FoundEntry, Failure> {
        let cached = self.cache.seen(key);
        let root = (self.root(), self.is_root_due(now));
        let followed = lookup::find_following(root, folder, key, cached, now);
        if followed.is_current {
            self.note_root(folder, &followed.root, now);
        }
        let outcome = followed.outcome;
        self.update_cache(folder, key, outcome, now)
    }

    /// Finds the file of `key` without waiting for the disk; `None` if that is impossible.
    pub(super) fn find_cached(
        &mut self,
        folder: &Folder,
        key: &[u8],
        now: Now,
    ) -> Option<Result<FoundEntry, Failure>> {
        let is_due = self.is_root_due(now);
        if is_due {
            self.check_root(folder, now)?;
        }
        let cached = self.cache.seen(key);
        let outcome = lookup::find((&self.root, Access::Cached), folder, key, cached, now);
        if matches!(outcome, Err(Failure::WouldWait | Failure::Disk(Errno::AGAIN | Errno::STALE))) {
            return None;
        }
        if !is_due && lookup::is_missing(&outcome) {
            self.check_root(folder, now)?;
        }
        Some(self.update_cache(folder, key, outcome, now))
    }

    /// Updates the cache by the outcome of a lookup.
    ///
    /// If no descriptor is free or the disk does not respond, a cached file counts as fresh for
    /// another second: a server at its limits goes on serving its pages.
    pub(super) fn update_cache(
        &mut self,
        folder: &Folder,
        key: &[u8],
        outcome: Result<FoundEntry, Failure>,
        now: Now,
    ) -> Result<FoundEntry, Failure> {
        let outcome = match outcome {
            Err(failure) if failure.is_exhaustion() && self.cache.seen(key).is_some() => {
                folder.count(failure);
                Ok(FoundEntry::Unchanged)
            }
            outcome => outcome,
        };
        match &outcome {
            Ok(FoundEntry::Unchanged) => {
                let warm = |cached: &CachedFile| cached.note_warmth(&self.root);
                self.cache.mark_fresh(key, now.mono_ms, warm);
            }
            // They replace the entry when they are inserted.
            Ok(FoundEntry::Loaded { .. } | FoundEntry::Variants { .. }) => {}
            Ok(FoundEntry::Moved(_) | FoundEntry::Listed(_)) | Err(_) => self.cache.remove(key),
        }
        outcome
    }

    /// Returns `None` if the folder's path leads to another root, which has to be opened and may
    /// wait, or if finding that out would wait.
    fn check_root(&mut self, folder: &Folder, now: Now) -> Option<()> {
        if Identity::at_cached(&folder.path)? != self.root.identity() {
            return None;
        }
        self.root_checked_ms = Some(now.mono_ms);
        Some(())
    }

    pub(super) fn root(&self) -> Arc<Root> {
        Arc::clone(&self.root)
    }

    /// Returns whether the root's path is due to be compared with the open root.
    pub(super) fn is_root_due(&self, now: Now) -> bool {
        let is_due = |checked_ms| now.mono_ms.saturating_sub(checked_ms) >= ROOT_CHECK_MS;
        self.root_checked_ms.is_none_or(is_due)
    }

    /// Uses the root that the folder's path led to. The cache is cleared with another one: a page
    /// must not be combined from files of both.
    ///
    /// - `checked`: when the path was looked at, perhaps for another worker. What this one has seen
    ///   since then counts more.
    pub(super) fn note_root(&mut self, folder: &Folder, root: &Arc<Root>, checked: Now) {
        if self.root_checked_ms.is_some_and(|at_ms| at_ms > checked.mono_ms) {
            return;
        }
        self.root_checked_ms = Some(checked.mono_ms);
        if root.identity() != self.root.identity() {
            self.root = Arc::clone(root);
            folder.releases.adopt(root, checked);
            self.cache.clear();
        }
    }
}
