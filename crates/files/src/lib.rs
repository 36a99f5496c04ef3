//! Serves a folder: GET and HEAD of its files, below its root and nowhere else.
//!
//! What lives here: the path from a request to a [`FileResponse`], through `cache` (is it fresh?),
//! `path` (check each segment), `resolve` (find and open below the root), `cached_file` (read,
//! prepare) and `select` (conditions and ranges). This file is the hub that they all return to.
//! What does not: writing a response, which a protocol does.
//!
//! A part of `gustnado`, without a stable API of its own.
#![forbid(unsafe_code)]

mod cache;
mod cached_file;
mod content_type;
mod digest;
mod error;
mod folders;
mod headers;
mod listing;
mod location;
mod lone_file;
mod lookup;
mod made;
mod mime_table;
mod multipart;
mod open_file;
mod open_folder;
mod options;
mod path;
mod pieces;
mod resolve;
mod response;
mod segment;
mod select;
mod stamp;
mod target;
#[cfg(test)]
mod tests;
mod upload;
mod variants;
mod waiting;
pub mod warmth;
mod worker;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use gustnado_config::{Compress, Listing, Precompressed, RouteSettings};
use gustnado_http::fields::{Fields, HeaderId};
use gustnado_http::method::Method;
use gustnado_http::path::{CanonicalPath, PathError};
use gustnado_http::request::RequestView;
use gustnado_http::status::Status;
use gustnado_tasks::{BlockingPool, Now};
use rustix::process::{Resource, getrlimit};

use cached_file::LoadContext;
use digest::Hashing;
use error::Failure;
use lookup::FoundEntry;
use made::MadeVariants;
use mime_table::MimeTable;
use open_file::OpenFiles;
use path::FilePathError;
use resolve::Root;
use select::{select, select_or_whole};
use stamp::Seen;
use target::{Moved, PathRules};
use upload::UploadQuota;
use variants::{ChosenVariant, MakeVariant, VariantSet};
use worker::Worker;

pub use cached_file::{CachedFile, HeldFile};
pub use content_type::ContentType;
pub use error::FilesError;
pub use folders::Folders;
pub use headers::FolderHeaders;
pub use lone_file::respond_with_file;
pub use open_file::OpenFile;
pub use options::FileOptions;
pub use pieces::{Pieces, PiecesFailed};
pub use response::{FileContent, FileResponse};
pub use segment::Segment;
pub use upload::FileUpload;
pub use waiting::Lookup;

gustnado_tasks::debug_as_display!(FilesError);

/// The methods that a file supports.
const ALLOW: &[u8] = b"GET, HEAD, OPTIONS";
/// The same where files may be sent.
const ALLOW_UPLOAD: &[u8] = b"GET, HEAD, OPTIONS, PUT, POST";

/// The most files that one worker keeps open between requests.
const DESCRIPTORS_MAX: u64 = 256;

/// The file caches of all workers together take at most this part of the descriptor limit.
const DESCRIPTOR_SHARE: u64 = 8;

/// The text of the 404 page for a folder without an index.
const NO_INDEX: &str = "This folder has no index.html. The server lists what is in a folder if it \
    is started with --listing.";

/// The same where the index has another name.
const NO_OWN_INDEX: &str = "This folder has no index. The server lists what is in a folder if it \
    is started with --listing.";

/// The most requests that wait for a folder's disk. Further ones get 503 with `Retry-After`.
const JOBS_MAX: usize = 1_024;

/// The path of a request in a folder that is mounted at a path.
#[derive(Debug)]
pub struct Mounted<'p> {
    /// The canonical path.
    pub path: CanonicalPath<'p>,
    /// How many bytes of it are the mount point, without the final slash; 0 for the root.
    pub at: usize,
}

impl Mounted<'_> {
    /// Returns the path below the mount point: empty, or beginning with a slash.
    fn below(&self) -> &str {
        self.path.as_str().get(self.at..).unwrap_or("")
    }
}

/// The response of a folder, unless it is a whole file from the worker's cache.
pub enum FolderResponse {
    /// The response.
    Ready(Box<FileResponse>),
    /// A lookup that has to wait for the disk.
    Wait(Box<Lookup>),
}

/// A served folder, shared by all workers.
///
/// Each thread keeps its own cache and its own view of the root: nothing is locked, and a response
/// from the cache reads no memory that another thread writes.
#[derive(Debug, Clone)]
pub struct Files {
    folder: Arc<Folder>,
}

/// The state that workers share; read-only but for the counters of failures.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    settings: RouteSettings,
    rules: PathRules,
    /// Per worker, as the next one.
    cache_bytes: u64,
    descriptors_max: u64,
    pub headers: FolderHeaders,
    /// The root at the start; a worker that finds another one in its place opens its own.
    root: Arc<Root>,
    exhausted: AtomicU64,
    /// The sum of all folders of a server.
    exhausted_in_all: Arc<AtomicU64>,
    denied: AtomicU64,
    failed: AtomicU64,
    threads: usize,
    wait: Duration,
    /// One pool per folder, so that a frozen disk delays no other folder.
    pool: OnceLock<BlockingPool>,
    /// Those of all workers.
    open_files: OpenFiles,
    uploads: Arc<UploadQuota>,
    hashing: Hashing,
    /// Representations that were made of files.
    made: MadeVariants,
}

/// Counts of errors of the system that kept files from being served, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileFailures {
    /// No descriptor or memory was free, or the file changed during every read: 503, or an older
    /// cached file.
    pub exhausted: u64,
    /// No permission: 403.
    pub denied: u64,
    /// The disk failed: 500.
    pub failed: u64,
}

impl Files {
    /// Opens the folder at `root`.
    ///
    /// The path stays in use: if a symlink in it is swapped, the new folder is served within two
    /// seconds. A relative path starts at the current directory of this moment.
    ///
    /// # Errors
    /// [`FilesError`] if there is no folder at `root` that can be opened.
    pub fn open(root: &Path, options: FileOptions) -> Result<Files, FilesError> {
        Files::open_with(root, options, Root::open)
    }

    fn open_with(
        root: &Path,
        options: FileOptions,
        open: impl FnOnce(&Path) -> Result<Root, rustix::io::Errno>,
    ) -> Result<Files, FilesError> {
        let error = |errno| FilesError::new(root, errno);
        let path = std::path::absolute(root).map_err(|_| error(rustix::io::Errno::NOENT))?;
        let opened = open(&path).map_err(error)?;
        let workers = options.workers.max(1) as u64;
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let hashing = Hashing::new(options.settings.hash_bytes_max, digest::source_date());
        let lists = match options.settings.listing {
            Listing::Auto => options.lists_on_auto,
            listing => listing == Listing::On,
        };
        let types = MimeTable::new(&options.settings)?;
        let makes = options.settings.compress != Compress::Off;
        let made_bytes = if makes { options.cache_bytes / made::SHARE } else { 0 };
        let folder = Folder {
            made: MadeVariants::new(made_bytes),
            path,
            rules: PathRules::new(&options.settings, lists),
            settings: options.settings,
            cache_bytes: (options.cache_bytes - made_bytes) / workers,
            descriptors_max: DESCRIPTORS_MAX.min(descriptors / DESCRIPTOR_SHARE / workers),
            headers: FolderHeaders { types, ..FolderHeaders::default() },
            root: Arc::new(opened),
            exhausted: AtomicU64::new(0),
            exhausted_in_all: Arc::default(),
            denied: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            threads: options.threads,
            wait: options.wait,
            pool: OnceLock::new(),
            open_files: OpenFiles::default(),
            uploads: Arc::default(),
            hashing,
        };
        Ok(Files { folder: Arc::new(folder) })
    }

    /// Returns the status of the response to one request. It may wait for the disk, but never for a
    /// peer of a fifo, a device or a lock.
    #[doc(hidden)]
    pub fn status(&self, request: &RequestView<'_>, now: Now) -> Status {
        match self.respond(None, request, now) {
            FolderResponse::Ready(response) => response.status,
            FolderResponse::Wait(lookup) => lookup.wait_here(now).status,
        }
    }

    /// Responds to one request.
    ///
    /// - `place`: the path as the router split it; `None` if the folder is the root, and the path
    ///   is still as it was sent.
    #[doc(hidden)]
    pub fn respond(
        &self,
        place: Option<&Mounted<'_>>,
        request: &RequestView<'_>,
        now: Now,
    ) -> FolderResponse {
        match self.respond_whole(place, request, now, Arc::clone) {
            Ok(file) => FolderResponse::Ready(Box::new(FileResponse::whole(file))),
            Err(response) => response,
        }
    }

    /// Responds with the usual response, 200 with a whole file from this worker's cache: `whole`
    /// borrows the file, so no reference count is written and nothing is copied.
    ///
    /// # Errors
    /// The response is another one.
    #[doc(hidden)]
    #[inline]
    pub fn respond_whole<T>(
        &self,
        place: Option<&Mounted<'_>>,
        request: &RequestView<'_>,
        now: Now,
        whole: impl FnOnce(&Arc<CachedFile>) -> T,
    ) -> Result<T, FolderResponse> {
        if !matches!(request.method(), Method::Get | Method::Head) {
            return Err(self.respond_to_other(request));
        }
        worker::with(&self.folder, |worker| {
            // Keys of the cache are canonical, so a path as sent that equals one is canonical too,
            // and needs no decoding.
            let key = place.map_or(request.path(), |place| place.below().as_bytes());
            let cached = match worker.cache.fresh(key, now.mono_ms) {
                Some(file) => Some(file),
                None => worker.cache.fresh_variant(key, *request, now.mono_ms),
            };
            if let Some(file) = cached {
                return match select(file, &self.folder.headers, *request, now) {
                    None => Ok(whole(file)),
                    Some(response) => Err(FolderResponse::Ready(Box::new(response))),
                };
            }
            Err(respond_slowly(worker, self, place, *request, now))
        })
    }

    /// Responds to methods other than GET and HEAD.
    #[cold]
    fn respond_to_other(&self, request: &RequestView<'_>) -> FolderResponse {
        let allow = if self.takes_uploads() { ALLOW_UPLOAD } else { ALLOW };
        let response = match request.method() {
            _ if CanonicalPath::of(request.path()) == Err(PathError::Parent) => {
                FileResponse::new(Status::BAD_REQUEST)
            }
            Method::Options => FileResponse::new(Status::NO_CONTENT).with(HeaderId::Allow, allow),
            _ => FileResponse::new(Status::METHOD_NOT_ALLOWED).with(HeaderId::Allow, allow),
        };
        FolderResponse::Ready(Box::new(response.with_headers(&self.folder.headers)))
    }

    /// Returns the `Link` fields of the page that a request is for, going by its path.
    #[doc(hidden)]
    pub fn hints(&self, request: RequestView<'_>) -> Option<&Fields> {
        let links = &self.folder.headers.links;
        let path = request.path();
        let is_page = || path.ends_with(b"/") || self.folder.headers.types.of(path).is_html();
        let is_wanted = !links.is_empty() && request.method() == Method::Get && is_page();
        is_wanted.then_some(links)
    }

    /// Returns the failures since the start.
    pub fn failures(&self) -> FileFailures {
        FileFailures {
            exhausted: self.folder.exhausted.load(Ordering::Relaxed),
            denied: self.folder.denied.load(Ordering::Relaxed),
            failed: self.folder.failed.load(Ordering::Relaxed),
        }
    }
}

impl Folder {
    /// Returns whether the responses would be the same. The path may lead to another directory by
    /// now, which the workers detect.
    fn serves_as(&self, other: &Self) -> bool {
        let of = |folder: &Self| {
            (folder.cache_bytes, folder.descriptors_max, folder.threads, folder.wait)
        };
        let is_same = self.settings == other.settings && self.rules == other.rules;
        is_same && self.path == other.path && of(self) == of(other) && self.headers == other.headers
    }

    /// Returns the threads that wait for the disk, unless the workers wait themselves.
    fn pool(&self) -> Option<&BlockingPool> {
        let new = || BlockingPool::new(self.threads, JOBS_MAX);
        (self.threads > 0).then(|| self.pool.get_or_init(new))
    }

    /// Has a loaded file digested, if its tag awaits that.
    fn request_digest(&self, file: &CachedFile, now: Now) {
        if let (true, Some(open)) = (file.seen.awaits_digest, &file.file) {
            self.hashing.request(open, file.seen.stamp, now);
        }
    }

    /// Returns whether files may have several representations.
    fn has_variants(&self) -> bool {
        let settings = &self.settings;
        settings.precompressed != Precompressed::Off || settings.compress != Compress::Off
    }

    fn load_context(&self) -> LoadContext<'_> {
        LoadContext {
            headers: &self.headers,
            pool: self.pool(),
            open_files: &self.open_files,
            hashing: &self.hashing,
        }
    }

    /// Returns whether the digest is known now that a cached file awaits. If it was not asked for,
    /// as too many files waited, it is asked for again.
    fn has_new_digest(&self, cached: Seen, now: Now) -> bool {
        if !cached.awaits_digest {
            return false;
        }
        let is_known = self.hashing.digest(&cached.stamp, None).is_some();
        if !is_known && let Some(file) = self.open_files.get(&cached.stamp) {
            self.hashing.request(&file, cached.stamp, now);
        }
        is_known
    }

    fn count(&self, failure: Failure) {
        let counter = match failure.status() {
            Status::SERVICE_UNAVAILABLE => {
                self.exhausted_in_all.fetch_add(1, Ordering::Relaxed);
                // Idle connections have some.
                gustnado_tasks::request_descriptors();
                &self.exhausted
            }
            Status::FORBIDDEN => &self.denied,
            Status::INTERNAL_SERVER_ERROR => &self.failed,
            _ => return, // the client's fault, not a failure of the system
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Responds to a path that has no fresh cache entry as it was sent.
#[cold]
fn respond_slowly(
    worker: &mut Worker,
    files: &Files,
    place: Option<&Mounted<'_>>,
    request: RequestView<'_>,
    now: Now,
) -> FolderResponse {
    let folder = &*files.folder;
    let ready = |response| FolderResponse::Ready(Box::new(response));
    let whole = match place {
        Some(_) => None,
        None => CanonicalPath::of(request.path()).ok().map(|path| Mounted { path, at: 0 }),
    };
    let place = place.or(whole.as_ref()).filter(|place| !place.path.has_stray_percent());
    let Some(place) = place else {
        return ready(failure(folder, FilePathError::Malformed.into()));
    };
    let key = place.below().as_bytes();
    // Another spelling of a cached path: found under its canonical key, without a look at the disk.
    if !place.path.is_as_sent()
        && let Some(file) = worker.cache.fresh_by_call(key, now.mono_ms)
    {
        return ready(select_or_whole(Arc::clone(file), &folder.headers, request, now));
    }
    if let Some(set) = worker.cache.fresh_set(key, now.mono_ms) {
        let responded = respond_by_coding(folder, &Arc::clone(set), request, now);
        return responded.map_or_else(|make| variant(files, place, request, make, now), ready);
    }
    let found = match key {
        // Without the slash, relative links in the page would resolve one level too high.
        [] => Some(Ok(FoundEntry::Moved(Moved::WithSlash))),
        key => worker.find_cached(folder, key, now),
    };
    let found = match found {
        Some(found) => found,
        None if folder.threads == 0 => worker.find(folder, key, now),
        None => return FolderResponse::Wait(Box::new(Lookup::new(files, request, place))),
    };
    let responded = respond_with(worker, (folder, place), found, request, now);
    responded.map_or_else(|make| variant(files, place, request, make, now), ready)
}

/// Responds with a representation that has to be made first.
fn variant(
    files: &Files,
    place: &Mounted<'_>,
    request: RequestView<'_>,
    make: MakeVariant,
    now: Now,
) -> FolderResponse {
    if files.folder.threads > 0 {
        return FolderResponse::Wait(Box::new(Lookup::of_making(files, request, place, make)));
    }
    make.run(&files.folder, now);
    FolderResponse::Ready(Box::new(make.response(&files.folder, request, now)))
}

/// Responds with the outcome of a lookup, and caches a loaded file.
///
/// # Errors
/// A representation has to be made first.
fn respond_with(
    worker: &mut Worker,
    (folder, place): (&Folder, &Mounted<'_>),
    found: Result<FoundEntry, Failure>,
    request: RequestView<'_>,
    now: Now,
) -> Result<FileResponse, MakeVariant> {
    let key = place.below().as_bytes();
    match found {
        Ok(FoundEntry::Unchanged) => {
            if let Some(set) = worker.cache.any_set(key) {
                return respond_by_coding(folder, &Arc::clone(set), request, now);
            }
            let file = worker.cache.any_age(key).expect("what was just found in the cache");
            Ok(select_or_whole(Arc::clone(file), &folder.headers, request, now))
        }
        Ok(FoundEntry::Variants { set, may_cache }) => {
            if may_cache {
                worker.cache.insert_set(key, Arc::clone(&set), now.mono_ms);
            }
            respond_by_coding(folder, &set, request, now)
        }
        Ok(FoundEntry::Loaded { file, may_cache }) => {
            if may_cache {
                worker.cache.insert(key, Arc::clone(&file), now.mono_ms);
            }
            Ok(select_or_whole(file, &folder.headers, request, now))
        }
        Ok(FoundEntry::Moved(moved)) => {
            let location = location::of(&place.path, request.query(), moved);
            let response = FileResponse::new(Status::MOVED_PERMANENTLY);
            Ok(response.with(HeaderId::Location, &location).with_headers(&folder.headers))
        }
        Ok(FoundEntry::Listed(opened)) => Ok(listing::respond(opened, folder, place, request)),
        Err(error) => Ok(failure(folder, error)),
    }
}

/// Responds with the representation of a file that the client wants most.
///
/// # Errors
/// It has to be made first.
fn respond_by_coding(
    folder: &Folder,
    set: &Arc<VariantSet>,
    request: RequestView<'_>,
    now: Now,
) -> Result<FileResponse, MakeVariant> {
    match set.choose(request) {
        ChosenVariant::Make(coding) => MakeVariant::new(set, coding).known(folder, request, now),
        ChosenVariant::File(file) => {
            Ok(select_or_whole(Arc::clone(file), &folder.headers, request, now))
        }
        ChosenVariant::Nothing => Ok(variants::not_acceptable(&folder.headers)),
    }
}

fn failure(folder: &Folder, failure: Failure) -> FileResponse {
    folder.count(failure);
    let mut response = FileResponse::new(failure.status()).with_headers(&folder.headers);
    if response.status == Status::SERVICE_UNAVAILABLE {
        response.put(HeaderId::RetryAfter, b"1");
    }
    if failure == Failure::NoIndex {
        let is_usual = folder.settings.index == ["index.html"];
        response.hint = Some(if is_usual { NO_INDEX } else { NO_OWN_INDEX });
    }
    response
}
