//! Serves a folder: GET and HEAD of its files, below its root and nowhere else.
//!
//! What lives here: the path from a request to a [`FileResponse`], through `cache` (is it fresh?),
//! `path` (check each segment), `resolve` (find and open below the root), `cached_file` (read,
//! prepare) and `select` (conditions and ranges). This file is the hub that they all return to.
//! What does not: writing a response, which a protocol does.
//!
//! A part of `gustnado`, without a stable API of its own.
#![forbid(unsafe_code)]

mod archive;
mod cache;
mod cache_rules;
mod cached_file;
mod content_type;
mod deltas;
mod deploys;
mod dictionaries;
mod digest;
mod error;
mod file_request;
mod folders;
mod hashed_name;
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
mod outcome;
mod path;
mod pieces;
mod release_folders;
mod releases;
mod resolve;
mod response;
mod segment;
mod select;
mod shown;
mod slow;
mod spa;
mod stamp;
mod target;
#[cfg(test)]
mod tests;
mod trace;
mod upload;
mod variants;
mod waiting;
pub mod warmth;
mod worker;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use gustnado_compress::CompressionCounts;
use gustnado_config::{Compress, Precompressed, RouteSettings};
use gustnado_http::content_coding::ContentCoding;
use gustnado_http::fields::{Fields, HeaderId};
use gustnado_http::method::Method;
use gustnado_http::path::{CanonicalPath, PathError};
use gustnado_http::request::RequestView;
use gustnado_http::status::Status;
use gustnado_tasks::{BlockingPool, Now};
use rustix::process::{Resource, getrlimit};

use deltas::DeltaThread;
use dictionaries::KnownDictionaries;
use digest::Hashing;
use error::Failure;
use made::MadeVariants;
use mime_table::MimeTable;
use open_file::OpenFiles;
use releases::Releases;
use resolve::Root;
use select::select;
use slow::respond_slowly;
use target::PathRules;
use upload::UploadQuotas;

pub use cache_rules::{AppliedRule, cache_rule};
pub use cached_file::{CachedFile, HeldFile};
pub use content_type::ContentType;
pub use error::FilesError;
pub use folders::{FolderCounts, Folders};
pub use headers::FolderHeaders;
pub use lone_file::{respond_with_file, respond_with_whole_file};
pub use mime_table::check_mime_types;
pub use open_file::OpenFile;
pub use options::FileOptions;
pub use pieces::{Pieces, PiecesFailed};
pub use response::{FileContent, FileResponse};
pub use segment::Segment;
pub use trace::{LookedUpFile, LookupReason, LookupStep, LookupTrace, TriedEntry};
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
    /// The counts of all folders of a server.
    in_all: Arc<FolderCounts>,
    denied: AtomicU64,
    failed: AtomicU64,
    threads: usize,
    wait: Duration,
    /// What no archive and no listing has and no other path leads to, as other routes respond to
    /// its paths.
    elsewhere: Vec<String>,
    archives_max: u64,
    /// Where an archive keeps what it cannot hold in memory.
    spool: PathBuf,
    /// One pool per folder, so that a frozen disk delays no other folder.
    pool: OnceLock<BlockingPool>,
    /// Another one for uploads: storing a file takes longer than finding one.
    upload_pool: OnceLock<BlockingPool>,
    /// Those of all workers.
    open_files: OpenFiles,
    /// Those of all folders of a server.
    uploads: Arc<UploadQuotas>,
    /// How often clients have put files here.
    written: AtomicU64,
    hashing: Hashing,
    /// Representations that were made of files.
    made: MadeVariants,
    /// Hashed files are dictionaries for their next version.
    uses_dictionaries: bool,
    dictionaries: KnownDictionaries,
    /// That of all folders of a server.
    deltas: Arc<DeltaThread>,
    releases: Releases,
    counts: Arc<CompressionCounts>,
    trace: Option<LookupTrace>,
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
        let opened = Arc::new(opened);
        let releases = Releases::new(options.settings.keep_old_assets, &opened);
        releases.find_former(&path, &opened);
        let hashing = Hashing::new(options.settings.hash_bytes_max, digest::source_date());
        let lists = options.lists();
        let types = MimeTable::new(&options.settings)?;
        let uses_dictionaries = options.settings.uses_dictionaries();
        let makes = options.settings.compress != Compress::Off || uses_dictionaries;
        let made_bytes = if makes { options.cache_bytes / made::SHARE } else { 0 };
        let folder = Folder {
            made: MadeVariants::new(made_bytes, &options.counts),
            counts: options.counts,
            // Without a cache, a delta would be made for each request anew.
            uses_dictionaries: uses_dictionaries && made_bytes > 0,
            dictionaries: KnownDictionaries::default(),
            deltas: Arc::default(),
            path,
            rules: PathRules::new(&options.settings, lists),
            settings: options.settings,
            cache_bytes: (options.cache_bytes - made_bytes) / workers,
            descriptors_max: DESCRIPTORS_MAX.min(descriptors / DESCRIPTOR_SHARE / workers),
            headers: FolderHeaders { types, ..FolderHeaders::default() },
            root: opened,
            exhausted: AtomicU64::new(0),
            in_all: Arc::default(),
            denied: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            threads: options.threads,
            wait: options.wait,
            elsewhere: options.elsewhere,
            archives_max: options.archives_max,
            spool: options.spool,
            pool: OnceLock::new(),
            upload_pool: OnceLock::new(),
            open_files: OpenFiles::default(),
            uploads: Arc::default(),
            written: AtomicU64::new(0),
            hashing,
            releases,
            trace: options.trace,
        };
        Ok(Files { folder: Arc::new(folder) })
    }

    /// Returns the status of the response to one request. It may wait for the disk, but never for a
    /// peer of a fifo, a device or a lock.
    #[doc(hidden)]
    pub fn status(&self, request: &RequestView<'_>, now: Now) -> Status {
        match self.respond(None, request, || false, now) {
            FolderResponse::Ready(response) => response.status,
            FolderResponse::Wait(lookup) => lookup.wait_here(now).status,
        }
    }

    /// Responds to one request.
    ///
    /// - `place`: the path as the router split it; `None` if the folder is the root, and the path
    ///   is still as it was sent.
    /// - `is_secure`: whether the request came by https, here or at a trusted proxy. It is only
    ///   called where it matters.
    #[doc(hidden)]
    pub fn respond(
        &self,
        place: Option<&Mounted<'_>>,
        request: &RequestView<'_>,
        is_secure: impl Fn() -> bool + Copy,
        now: Now,
    ) -> FolderResponse {
        match self.respond_whole(place, request, is_secure, now, Arc::clone) {
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
        is_secure: impl Fn() -> bool + Copy,
        now: Now,
        whole: impl FnOnce(&Arc<CachedFile>) -> T,
    ) -> Result<T, FolderResponse> {
        if !matches!(request.method(), Method::Get | Method::Head) {
            return Err(self.respond_to_other(request));
        }
        worker::with(&self.folder, |worker| {
            worker.follow_uploads(&self.folder);
            // Keys of the cache are canonical, so a path as sent that equals one is canonical too,
            // and needs no decoding.
            let key = place.map_or(request.path(), |place| place.below().as_bytes());
            let cached = if let Some(file) = worker.cache.fresh(key, now.mono_ms) {
                Some(file)
            } else {
                let variant = worker.cache.fresh_variant(key, *request, is_secure, now.mono_ms);
                self.folder.counted(variant)
            };
            if let Some(file) = cached {
                return match select(file, &self.folder.headers, *request, now) {
                    None => Ok(whole(file)),
                    Some(response) => Err(FolderResponse::Ready(Box::new(response))),
                };
            }
            Err(respond_slowly(worker, self, place, *request, is_secure, now))
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

    /// Returns whether it matters if a request came by https.
    #[doc(hidden)]
    #[inline]
    pub fn uses_dictionaries(&self) -> bool {
        self.folder.uses_dictionaries
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
        let is_same = self.archives_max == other.archives_max && self.spool == other.spool;
        let is_same = is_same && self.elsewhere == other.elsewhere;
        let is_same = is_same && self.settings == other.settings && self.rules == other.rules;
        is_same && self.path == other.path && of(self) == of(other) && self.headers == other.headers
    }

    /// Returns the threads that wait for the disk, unless the workers wait themselves.
    fn pool(&self) -> Option<&BlockingPool> {
        let new = || BlockingPool::new(self.threads, JOBS_MAX);
        (self.threads > 0).then(|| self.pool.get_or_init(new))
    }

    /// Returns as many other ones, for files that are sent to the folder.
    fn upload_pool(&self) -> Option<&BlockingPool> {
        let new = || BlockingPool::new(self.threads, JOBS_MAX);
        (self.threads > 0).then(|| self.upload_pool.get_or_init(new))
    }

    /// Notes that a client has put a file here: all workers compare theirs with the disk.
    fn note_written(&self) {
        self.written.fetch_add(1, Ordering::Release);
    }

    /// Has a loaded file digested, if its tag awaits that.
    fn request_digest(&self, file: &CachedFile, now: Now) {
        if let (true, Some(open)) = (file.seen.awaits_digest, &file.file) {
            self.hashing.request(open, file.seen.stamp, now);
        }
    }

    /// Returns a representation, whose response is counted.
    fn counted<'c>(&self, variant: Option<&'c Arc<CachedFile>>) -> Option<&'c Arc<CachedFile>> {
        variant.inspect(|file| self.count_coding(file))
    }

    /// Counts a response with a representation that was chosen among several.
    fn count_coding(&self, file: &CachedFile) {
        if file.coding() != ContentCoding::Identity {
            let worker = gustnado_tasks::worker().unwrap_or_default();
            self.counts.add_response(file.coding(), worker);
        }
    }

    /// Returns whether files may have several representations.
    fn has_variants(&self) -> bool {
        let settings = &self.settings;
        settings.precompressed != Precompressed::Off
            || settings.compress != Compress::Off
            || self.uses_dictionaries
    }

    fn count(&self, failure: Failure) {
        let counter = match failure.status() {
            Status::SERVICE_UNAVAILABLE => {
                self.in_all.exhausted.fetch_add(1, Ordering::Relaxed);
                if failure != Failure::TooMany {
                    // Idle connections have some.
                    gustnado_tasks::request_descriptors();
                }
                &self.exhausted
            }
            Status::FORBIDDEN if failure != Failure::TooLarge => &self.denied,
            Status::INTERNAL_SERVER_ERROR => &self.failed,
            _ => return, // the client's fault, not a failure of the system
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
