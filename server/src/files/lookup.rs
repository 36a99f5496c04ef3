//! Finding a file where that may have to wait for a disk: on a thread of the folder's pool, while
//! the worker serves others.
//!
//! What is in memory is found on the worker at once ([`Access::Cached`]): the kernel is asked not
//! to wait, and says so when it would have to. Then the request becomes a [`Lookup`]: its
//! connection waits for a thread that does the same and may wait, and answers with what that found.

use std::sync::Arc;

use gustnado_http::head::Head;
use gustnado_http::request::Request;
use gustnado_tasks::BlockingPool;
use rustix::fs::FileType;
use rustix::io::Errno;

use super::error::Failure;
use super::listing::Listed;
use super::path;
use super::resolve::{Identity, Located, Root};
use super::stored::{Seen, Stored};
use super::{Files, Folder, Mounted, answer_found, worker};
use crate::reply::{Now, Rest, Turn};

/// How often a file is looked up again that was replaced between looking and opening.
const ATTEMPTS_MAX: usize = 4;

/// What a directory is answered with.
const INDEX: &[u8] = b"index.html";

/// Whether a lookup may wait for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Waits,
    /// Only what is in memory counts; the rest is [`Failure::WouldWait`].
    Cached,
}

/// What stands at a path.
pub(super) enum Found {
    /// What the cache holds for it, which is still good.
    Held,
    /// A file, just loaded; `may_hold` when it is of the root that the worker's cache is for.
    Loaded { stored: Stored, may_hold: bool },
    /// A directory whose path did not end with a slash.
    Directory,
    /// A directory without an index.
    Listed(Listed),
}

/// Finds what `key` names, a canonical path.
///
/// - `held`: what the asking worker's cache has for it.
pub(super) fn look(
    (root, access): (&Root, Access),
    folder: &Folder,
    key: &[u8],
    held: Option<Seen>,
    now: Now,
) -> Result<Found, Failure> {
    let locate = |relative: &[u8]| match access {
        Access::Waits => root.locate(relative).map_err(Failure::Disk),
        Access::Cached => match root.locate_cached(relative) {
            Some(located) => located.map_err(Failure::Disk),
            None => Err(Failure::WouldWait),
        },
    };
    let path = path::decode(key, folder.hidden)?;
    let mut relative = path.relative;
    let mut located = locate(&relative)?;
    if located.kind() == FileType::Directory {
        if !path.names_directory {
            return Ok(Found::Directory);
        }
        let (above, folder_bytes) = (located, relative.len());
        if !relative.is_empty() {
            relative.push(b'/');
        }
        relative.extend_from_slice(INDEX);
        located = match locate(&relative) {
            Err(Failure::Disk(Errno::NOENT)) => {
                let place = (&above, &relative[..folder_bytes]);
                return without_index((root, access), folder, place);
            }
            located => located?,
        };
    } else if path.names_directory {
        return Err(Failure::Disk(Errno::NOTDIR));
    }
    if held.is_some_and(|held| held.is_still(&located.stat)) {
        return Ok(Found::Held);
    }
    let with = (&folder.dressing, folder.pool());
    let stored = Stored::load((root, access), &located, &relative, with, now)?;
    Ok(Found::Loaded { stored, may_hold: true })
}

/// What a directory is answered with that has no index.
fn without_index(
    (root, access): (&Root, Access),
    folder: &Folder,
    (located, relative): (&Located, &[u8]),
) -> Result<Found, Failure> {
    match access {
        _ if !folder.listing => Err(Failure::NoIndex),
        // (Reading a directory has no way of not waiting.)
        Access::Cached => Err(Failure::WouldWait),
        Access::Waits => Ok(Found::Listed(Listed::read((root, folder), located, relative)?)),
    }
}

/// The same as often as it takes: a file may be replaced between looking and opening.
pub(super) fn look_again(
    root: &Root,
    folder: &Folder,
    key: &[u8],
    held: Option<Seen>,
    now: Now,
) -> Result<Found, Failure> {
    let mut outcome = Err(Failure::Disk(Errno::AGAIN));
    for _ in 0..ATTEMPTS_MAX {
        outcome = look((root, Access::Waits), folder, key, held, now);
        if !matches!(outcome, Err(Failure::Disk(Errno::AGAIN | Errno::STALE))) {
            break;
        }
    }
    outcome
}

/// The root that a folder's path leads to by now, if it is another one. A path that leads nowhere
/// for a moment is a swap in the making: the old root stays.
pub(super) fn new_root(root: &Root, folder: &Folder) -> Option<Root> {
    let found = Identity::at(&folder.path).ok()?;
    if found == root.identity() { None } else { root.opened_again(&folder.path).ok() }
}

/// A request for a file that cannot be answered without waiting for the disk.
#[derive(Debug)]
pub struct Lookup {
    files: Files,
    head: Head,
    /// The head's bytes.
    bytes: Vec<u8>,
    place: Mounted<'static>,
}

/// What a thread of the pool has found.
pub(crate) struct Looked {
    /// The root that was looked below, if the worker's was not the right one any more.
    new_root: Option<Root>,
    below: Identity,
    held: Option<Seen>,
    outcome: Result<Found, Failure>,
}

impl Lookup {
    pub(super) fn new(files: &Files, request: Request<'_>, place: &Mounted<'_>) -> Self {
        let (head, bytes) = request.to_parts();
        let place = Mounted { path: place.path.clone().into_owned(), at: place.at };
        Self { files: files.clone(), head, bytes, place }
    }

    /// The request that waits.
    pub(crate) fn request(&self) -> Request<'_> {
        self.head.on(&self.bytes)
    }

    /// The threads that look; there are some where there is a lookup.
    pub(crate) fn pool(&self) -> Option<BlockingPool> {
        self.files.folder.pool().cloned()
    }

    /// Whether this worker has an older answer.
    pub(crate) fn is_held(&self) -> bool {
        worker::with(&self.files.folder, |worker| worker.cache.any_age(self.key()).is_some())
    }

    /// What a thread of the pool is to do.
    pub(crate) fn job(&self, now: Now) -> impl FnOnce() -> Looked + Send + 'static {
        let (folder, key) = (Arc::clone(&self.files.folder), self.key().to_vec());
        let (root, held, checks_root) = worker::with(&folder, |worker| {
            let held = worker.cache.any_age(&key).map(Stored::seen);
            (worker.root(), held, worker.is_root_due(now))
        });
        move || {
            let new_root = if checks_root { new_root(&root, &folder) } else { None };
            let root = new_root.as_ref().unwrap_or(&root);
            let held = held.filter(|_| new_root.is_none());
            let outcome = look_again(root, &folder, &key, held, now);
            Looked { below: root.identity(), new_root, held, outcome }
        }
    }

    /// Writes the answer, on whichever worker the connection is by now. `None`: that worker does
    /// not hold what was found to be still good; look once more.
    ///
    /// - `looked`: nothing if no thread has answered in time, or none was free.
    pub(crate) fn answer(
        &self,
        looked: Option<Looked>,
        now: Now,
        turn: &Turn<'_>,
        out: &mut Vec<u8>,
    ) -> Option<Rest> {
        let (folder, key) = (&self.files.folder, self.key());
        worker::with(folder, |worker| {
            let outcome = match looked {
                None => Err(Failure::WouldWait),
                Some(Looked { new_root, below, held, outcome }) => {
                    worker.note_root(new_root, now);
                    match outcome {
                        Ok(Found::Held) if held != worker.cache.any_age(key).map(Stored::seen) => {
                            return None;
                        }
                        Ok(Found::Loaded { stored, may_hold }) => {
                            // No page is made of files from two roots.
                            let may_hold = may_hold && below == worker.root().identity();
                            Ok(Found::Loaded { stored, may_hold })
                        }
                        outcome => outcome,
                    }
                }
            };
            let found = worker.settle(folder, key, outcome, now);
            let place = (&**folder, &self.place);
            Some(answer_found(worker, place, found, self.request(), now, turn, out))
        })
    }

    fn key(&self) -> &[u8] {
        self.place.below().as_bytes()
    }
}
