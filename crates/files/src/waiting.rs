//! A request for a file that may have to wait for a disk: a thread of the folder's pool looks it up
//! while the worker serves other requests.

use std::sync::Arc;
use std::time::Duration;

use gustnado_http::head::Head;
use gustnado_tasks::{Now, timeout};

use super::error::Failure;
use super::file_request::FileRequest;
use super::lookup::{Followed, FoundEntry, find_following, is_missing};
use super::outcome::{failure, respond_with};
use super::response::{FileContent, FileResponse};
use super::variants::{MakeVariant, SeenVariants};
use super::{Files, Mounted, spa, worker};

/// How long the disk may take to confirm a cached file. After that the file counts as fresh for
/// another second, so a popular file stays available while its disk is frozen.
const REVALIDATE_WAIT_MAX: Duration = Duration::from_millis(250);
/// How often a file is looked up: again if the connection has moved to a worker whose cache
/// differs, and once for the page of an application.
const LOOKUPS_MAX: usize = 4;

/// A request whose response is unknown until the disk responds.
#[derive(Debug)]
pub struct Lookup {
    files: Files,
    head: Head,
    /// As [`FileRequest::is_secure`].
    is_secure: bool,
    /// The head's bytes.
    bytes: Vec<u8>,
    place: Mounted<'static>,
    /// What is to be made, if the file itself is known.
    make: Option<MakeVariant>,
    /// The page of an application is looked for, as what was asked for is not there.
    is_for_page: bool,
}

/// The result of a lookup on a thread of the pool.
struct LookupOutcome {
    followed: Followed,
    /// When it began.
    began: Now,
    cached: Option<SeenVariants>,
    /// How many files had been put there by then.
    written: u64,
}

impl Lookup {
    pub(super) fn new(files: &Files, request: FileRequest<'_>, place: &Mounted<'_>) -> Self {
        let (head, bytes) = request.view.to_parts();
        let place = Mounted { path: place.path.clone().into_owned(), at: place.at };
        let is_secure = request.is_secure;
        Self { files: files.clone(), head, is_secure, bytes, place, make: None, is_for_page: false }
    }

    /// Creates one that waits for a representation of a file that is known.
    pub(super) fn of_making(
        files: &Files,
        request: FileRequest<'_>,
        place: &Mounted<'_>,
        make: MakeVariant,
    ) -> Self {
        Self { make: Some(make), ..Self::new(files, request, place) }
    }

    /// Returns it for the page of an application.
    pub(super) fn for_page(self) -> Self {
        Self { is_for_page: true, ..self }
    }

    /// Returns how long the disk may be waited for.
    pub fn wait(&self) -> Duration {
        self.files.folder.wait
    }

    /// Looks the file up, on a thread that may wait for the disk.
    pub async fn run(mut self) -> FileResponse {
        let found = match self.make.take() {
            Some(make) => Err(make),
            None => self.look_up().await,
        };
        match found {
            Ok(response) => self.begun(response).await,
            Err(make) => self.made(make).await,
        }
    }

    /// Returns a response whose content can be made, as far as its first piece shows: a failure
    /// after the head could only end the connection.
    async fn begun(&self, mut response: FileResponse) -> FileResponse {
        if let FileContent::Pieces(pieces) = &mut response.content
            && let Err(failed) = pieces.begin().await
        {
            return failure((&self.files.folder, self.key()), failed);
        }
        response
    }

    /// Responds once a representation was made, or without it if that takes too long.
    async fn made(&self, make: MakeVariant) -> FileResponse {
        let folder = &self.files.folder;
        if let Some(pool) = folder.pool() {
            let (own, job) = (Arc::clone(folder), make.job());
            let now = gustnado_tasks::now();
            let outcome = timeout(self.wait(), pool.run(move || job.run(&own, now))).await;
            if matches!(outcome, Some(Err(_))) {
                folder.counts.add_refused();
            }
        }
        make.response(folder, self.request(), gustnado_tasks::now())
    }

    /// Responds from the disk.
    ///
    /// # Errors
    /// A representation has to be made first.
    async fn look_up(&mut self) -> Result<FileResponse, MakeVariant> {
        let mut lookups = 0;
        loop {
            lookups += 1;
            let looked_up = self.find().await.filter(|_| lookups <= LOOKUPS_MAX);
            // A fresh clock: another task may have run on this thread for long meanwhile.
            if let Some(response) = self.response(looked_up, gustnado_tasks::now()) {
                return response;
            }
        }
    }

    /// Looks the file up on this thread.
    pub(super) fn wait_here(mut self, now: Now) -> FileResponse {
        let folder = Arc::clone(&self.files.folder);
        worker::with(&folder, |worker| {
            let mut found = worker.find(&folder, self.key(), now);
            if self.turns_to_page(&found) {
                found = worker.find(&folder, self.key(), now);
            }
            let place = (&folder, &self.place, self.key());
            let responded = respond_with(worker, place, found, self.request(), now);
            responded.unwrap_or_else(|make| {
                make.run(&folder, now);
                make.response(&folder, self.request(), now)
            })
        })
    }

    /// Returns whether the page of an application is to be looked for from now on.
    fn turns_to_page(&mut self, found: &Result<FoundEntry, Failure>) -> bool {
        let has_page = || self.files.folder.has_page_for(self.request().view, self.key());
        let turns = !self.is_for_page && is_missing(found) && has_page();
        self.is_for_page |= turns;
        turns
    }

    /// Looks the file up on a thread of the pool; `None` if the disk did not respond in time, or
    /// too many requests wait for it.
    async fn find(&self) -> Option<LookupOutcome> {
        let pool = self.files.folder.pool()?;
        let wait =
            if self.is_cached() { REVALIDATE_WAIT_MAX.min(self.wait()) } else { self.wait() };
        // A job that panicked has already reported why.
        timeout(wait, pool.run(self.job(gustnado_tasks::now()))).await?.ok().flatten()
    }

    fn request(&self) -> FileRequest<'_> {
        FileRequest { view: self.head.on(&self.bytes), is_secure: self.is_secure }
    }

    /// Returns whether this worker has a cached file, of any age.
    fn is_cached(&self) -> bool {
        worker::with(&self.files.folder, |worker| worker.cache.seen(self.key()).is_some())
    }

    /// Returns the job for a thread of the pool. It takes copies: the worker's state is
    /// thread-local.
    fn job(&self, now: Now) -> impl FnOnce() -> LookupOutcome + Send + 'static {
        let (folder, key) = (Arc::clone(&self.files.folder), self.key().to_vec());
        let (root, cached, written) = worker::with(&folder, |worker| {
            let cached = worker.cache.seen(&key);
            ((worker.root(), worker.is_root_due(now)), cached, worker.written())
        });
        move || {
            let followed = find_following(root, &folder, &key, cached, now);
            LookupOutcome { followed, began: now, cached, written }
        }
    }

    /// Makes the response, on the worker that the connection runs on now. Returns `None` if that
    /// worker does not hold the file that was found unchanged, or if the page of an application is
    /// looked for next: the lookup has to be repeated.
    ///
    /// - `looked_up`: `None` if no thread was free, or none finished in time.
    fn response(
        &mut self,
        looked_up: Option<LookupOutcome>,
        now: Now,
    ) -> Option<Result<FileResponse, MakeVariant>> {
        let folder = Arc::clone(&self.files.folder);
        worker::with(&folder, |worker| {
            let key = self.key();
            let outcome = match looked_up {
                None => Err(Failure::WouldWait),
                Some(LookupOutcome { followed, began, cached, written }) => {
                    worker.looked_before(written);
                    if followed.is_current {
                        worker.note_root(&folder, &followed.root, began);
                    }
                    let below = followed.root.identity();
                    match followed.outcome {
                        Ok(FoundEntry::Unchanged) if cached != worker.cache.seen(key) => {
                            return None;
                        }
                        Ok(FoundEntry::Loaded { file, may_cache }) => {
                            // Loaded below a root that this worker does not use: served once, but
                            // not cached.
                            let may_cache = may_cache && below == worker.root().identity();
                            Ok(FoundEntry::Loaded { file, may_cache })
                        }
                        Ok(FoundEntry::Variants { set, may_cache }) => {
                            let may_cache = may_cache && below == worker.root().identity();
                            Ok(FoundEntry::Variants { set, may_cache })
                        }
                        outcome => outcome,
                    }
                }
            };
            let found = worker.update_cache(&folder, key, outcome, now);
            if self.turns_to_page(&found) {
                return None;
            }
            let place = (&folder, &self.place, self.key());
            Some(respond_with(worker, place, found, self.request(), now))
        })
    }

    fn key(&self) -> &[u8] {
        if self.is_for_page { spa::KEY } else { self.place.below().as_bytes() }
    }
}
