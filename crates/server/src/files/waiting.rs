//! A request for a file that may have to wait for a disk: a thread of the folder's pool looks,
//! while the worker serves others.

use std::sync::Arc;

use gustnado_http::head::Head;
use gustnado_http::request::Request;
use gustnado_tasks::{BlockingPool, Now};

use super::error::Failure;
use super::lookup::{Found, look_again, new_root};
use super::resolve::{Identity, Root};
use super::stored::{Seen, Stored};
use super::{Files, Mounted, Replied, answer_found, worker};
use crate::status_page::Turn;

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
    ) -> Option<Replied> {
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
