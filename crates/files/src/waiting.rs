//! A request for a file that may have to wait for a disk: a thread of the folder's pool looks,
//! while the worker serves others.

use std::sync::Arc;
use std::time::Duration;

use gustnado_http::head::Head;
use gustnado_http::request::Request;
use gustnado_tasks::{Now, timeout};

use super::cached_file::Seen;
use super::error::Failure;
use super::lookup::{Found, look_again, new_root};
use super::resolve::{Identity, Root};
use super::response::FileResponse;
use super::{Files, Mounted, respond_with, worker};

/// How long a disk may take to say whether what is held is still good. After that it is taken to
/// be for another second: so a file that was hot stays so when its disk is frozen.
const HELD_WAIT: Duration = Duration::from_millis(250);
/// How often a file is looked up: once more where another worker's cache was compared.
const LOOKS_MAX: usize = 3;

/// A request for a file whose response is not known without waiting for the disk.
#[derive(Debug)]
pub struct Lookup {
    files: Files,
    head: Head,
    /// The head's bytes.
    bytes: Vec<u8>,
    place: Mounted<'static>,
}

/// What a thread of the pool has found.
struct Looked {
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

    /// Returns how long the disk may be waited for.
    pub fn wait(&self) -> Duration {
        self.files.folder.wait
    }

    /// Looks the file up, on a thread that may wait for the disk.
    pub async fn run(self) -> FileResponse {
        let mut looks = 0;
        loop {
            looks += 1;
            let looked = self.look().await.filter(|_| looks <= LOOKS_MAX);
            // (A handler at work may have held this thread for long.)
            if let Some(response) = self.response(looked, gustnado_tasks::now()) {
                return response;
            }
        }
    }

    /// Looks the file up on this thread.
    pub(super) fn wait_here(&self, now: Now) -> FileResponse {
        worker::with(&self.files.folder, |worker| {
            let found = worker.find(&self.files.folder, self.key(), now);
            let place = (&*self.files.folder, &self.place);
            respond_with(worker, place, found, self.request(), now)
        })
    }

    /// Returns what a thread of the pool has found; `None` if the disk has not answered in time,
    /// or too many requests wait for it.
    async fn look(&self) -> Option<Looked> {
        let pool = self.files.folder.pool()?;
        let wait = if self.is_held() { HELD_WAIT.min(self.wait()) } else { self.wait() };
        // (A job that panicked has said why.)
        timeout(wait, pool.run(self.job(gustnado_tasks::now()))).await?.ok().flatten()
    }

    fn request(&self) -> Request<'_> {
        self.head.on(&self.bytes)
    }

    /// Whether this worker has an older answer.
    fn is_held(&self) -> bool {
        worker::with(&self.files.folder, |worker| worker.cache.any_age(self.key()).is_some())
    }

    /// What a thread of the pool is to do.
    fn job(&self, now: Now) -> impl FnOnce() -> Looked + Send + 'static {
        let (folder, key) = (Arc::clone(&self.files.folder), self.key().to_vec());
        let (root, held, checks_root) = worker::with(&folder, |worker| {
            let held = worker.cache.any_age(&key).map(|file| file.seen());
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

    /// Makes the response, on whichever worker the connection is by now. `None`: that worker does
    /// not hold what was found to be still good; look once more.
    ///
    /// - `looked`: nothing if no thread has looked in time, or none was free.
    fn response(&self, looked: Option<Looked>, now: Now) -> Option<FileResponse> {
        let (folder, key) = (&self.files.folder, self.key());
        worker::with(folder, |worker| {
            let outcome = match looked {
                None => Err(Failure::WouldWait),
                Some(Looked { new_root, below, held, outcome }) => {
                    worker.note_root(new_root, now);
                    match outcome {
                        Ok(Found::Held)
                            if held != worker.cache.any_age(key).map(|file| file.seen()) =>
                        {
                            return None;
                        }
                        Ok(Found::Loaded { file, may_hold }) => {
                            // No page is made of files from two roots.
                            let may_hold = may_hold && below == worker.root().identity();
                            Ok(Found::Loaded { file, may_hold })
                        }
                        outcome => outcome,
                    }
                }
            };
            let found = worker.settle(folder, key, outcome, now);
            let place = (&**folder, &self.place);
            Some(respond_with(worker, place, found, self.request(), now))
        })
    }

    fn key(&self) -> &[u8] {
        self.place.below().as_bytes()
    }
}
