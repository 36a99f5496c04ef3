//! What one thread keeps for a folder: its cache and its view of the root.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::Folder;
use super::cache::Cache;
use super::error::Failure;
use super::path;
use super::resolve::{Identity, Located, Root};
use super::stored::Stored;
use crate::reply::Now;

/// How often the root's path is compared with the root that is held open, in milliseconds.
const ROOT_CHECK_MS: u64 = 1_000;

/// How often a file is looked up again that was replaced between looking and opening.
const ATTEMPTS_MAX: usize = 4;

/// What a directory is answered with.
const INDEX: &[u8] = b"index.html";

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

/// What stands at a path.
pub(super) enum Found {
    /// What the cache holds for it, which is still good.
    Held,
    /// A file, just loaded; `may_hold` when its path may be a key of the cache.
    Loaded { stored: Stored, may_hold: bool },
    /// A directory whose path did not end with a slash.
    Directory,
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
    /// Finds what `raw` names, a request path as it was sent.
    ///
    /// When no descriptor is free, what the cache holds is taken as still good for another second:
    /// a server full of connections goes on serving its pages.
    pub(super) fn find(&mut self, folder: &Folder, raw: &[u8], now: Now) -> Result<Found, Failure> {
        self.check_root(folder, now);
        let mut outcome = Err(Failure::Disk(Errno::AGAIN));
        for _ in 0..ATTEMPTS_MAX {
            outcome = self.look(folder, raw, now);
            if !matches!(outcome, Err(Failure::Disk(Errno::AGAIN | Errno::STALE))) {
                break;
            }
        }
        if let Err(failure) = outcome
            && failure.is_exhaustion()
            && self.cache.any_age(raw).is_some()
        {
            folder.count(failure);
            outcome = Ok(Found::Held);
        }
        match &outcome {
            Ok(Found::Held) => self.cache.renew(raw, now.mono_ms),
            Ok(Found::Loaded { .. }) => {} // is put in the old one's place
            Ok(Found::Directory) | Err(_) => self.cache.remove(raw),
        }
        outcome
    }

    fn look(&self, folder: &Folder, raw: &[u8], now: Now) -> Result<Found, Failure> {
        let path = path::decode(raw, folder.hidden)?;
        let mut relative = path.relative;
        let mut located = self.root.locate(&relative)?;
        if located.kind() == FileType::Directory {
            if !path.names_directory {
                return Ok(Found::Directory);
            }
            if !relative.is_empty() {
                relative.push(b'/');
            }
            relative.extend_from_slice(INDEX);
            located = self.root.locate(&relative)?;
        } else if path.names_directory {
            return Err(Failure::Disk(Errno::NOTDIR));
        }
        self.load(folder, (raw, path.is_canonical), &located, &relative, now)
    }

    fn load(
        &self,
        folder: &Folder,
        (raw, may_hold): (&[u8], bool),
        located: &Located,
        relative: &[u8],
        now: Now,
    ) -> Result<Found, Failure> {
        if self.cache.any_age(raw).is_some_and(|held| held.is_still(&located.stat)) {
            return Ok(Found::Held);
        }
        let stored = Stored::load(&self.root, located, relative, &folder.dressing, now)?;
        Ok(Found::Loaded { stored, may_hold })
    }

    /// Opens the root anew when its path leads to another directory by now. What was cached is
    /// dropped with the old one, so that no page is made of files from both.
    fn check_root(&mut self, folder: &Folder, now: Now) {
        let is_due = |checked_ms| now.mono_ms.saturating_sub(checked_ms) >= ROOT_CHECK_MS;
        if !self.root_checked_ms.is_none_or(is_due) {
            return;
        }
        self.root_checked_ms = Some(now.mono_ms);
        // A path that leads nowhere for a moment is a swap in the making: the old root stays.
        if Identity::at(&folder.path).is_ok_and(|found| found != self.root.identity())
            && let Ok(root) = self.root.opened_again(&folder.path)
        {
            self.root = Arc::new(root);
            self.cache.clear();
        }
    }
}
