//! Serves a folder: GET and HEAD of its files, beneath its root and nowhere else.
//!
//! A request goes through `cache` (answered in the last second?), `path` (check each segment),
//! `resolve` (find and open beneath the root), `stored` (read, make ready) and `respond`
//! (conditions and ranges). This file is the hub that they all return to.

mod cache;
mod content_type;
mod dressing;
mod error;
mod folders;
mod listing;
mod location;
mod lookup;
mod multipart;
mod open_file;
mod path;
mod resolve;
mod respond;
mod stored;
#[cfg(test)]
mod tests;
mod waiting;
pub(crate) mod warmth;
mod worker;

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use gustnado_http::method::Method;
use gustnado_http::path::{CanonicalPath, PathError as NoPath};
use gustnado_http::request::Request;
use gustnado_http::response_writer::WrittenHead;
use gustnado_http::status::Status;
use gustnado_tasks::{BlockingPool, Now};
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::status_page::{Turn, status_page};

use error::Failure;
use lookup::Found;
use path::PathError;
use resolve::Root;
use stored::{Access, Stored};
use worker::Worker;

pub(crate) use content_type::ContentType;
pub(crate) use dressing::{Dressing, StaticPage};
pub use error::FilesError;
pub(crate) use folders::Folders;
pub use open_file::OpenFile;
pub(crate) use waiting::{Looked, Lookup};

/// What is still to be sent after the bytes that were written at once.
#[derive(Debug)]
pub enum Rest {
    /// The answer is complete.
    Nothing,
    /// These, in order. Boxed: most answers have none.
    Segments(Box<VecDeque<Segment>>),
}

/// What was written of an answer, and what is still to be sent behind it.
#[derive(Debug)]
pub(crate) struct Replied {
    pub(crate) written: WrittenHead,
    pub(crate) rest: Rest,
}

impl Replied {
    /// The answer is to be looked up first: nothing has been written.
    pub(crate) fn lookup(lookup: Lookup) -> Self {
        let lookup = Segment::Lookup(Box::new(lookup));
        let rest = Rest::Segments(Box::new(VecDeque::from([lookup])));
        Self { written: WrittenHead::default(), rest }
    }
}

impl From<WrittenHead> for Replied {
    /// The answer is complete.
    #[inline]
    fn from(written: WrittenHead) -> Self {
        Self { written, rest: Rest::Nothing }
    }
}

/// What stands in for an answer that is to be looked up first, if it is one.
pub(crate) fn is_lookup(segments: &VecDeque<Segment>) -> bool {
    matches!(segments.front(), Some(Segment::Lookup(_)))
}

/// One piece of an answer's body.
#[derive(Debug)]
pub enum Segment {
    /// Bytes made for this answer.
    Bytes(Vec<u8>),
    /// A part of a regular file, to be sent without reading it into memory. A file that is shorter
    /// by now must cut the connection: the promised length cannot be kept.
    File {
        /// Open for reading, perhaps shared with other answers: its position is not to be used.
        file: Arc<OpenFile>,
        /// First byte to send.
        offset: u64,
        /// Bytes to send, at least 1.
        len: u64,
        /// Where it is read into memory before it is sent: it may lie on a disk that is slow.
        cold: Option<BlockingPool>,
    },
    /// The answer is still to be found, and nothing of it has been written. There is no other
    /// segment then.
    Lookup(Box<Lookup>),
}

impl Segment {
    /// A part of a file that a handler has opened: it is sent as it is.
    pub(crate) fn part_of(file: Arc<File>, offset: u64, len: u64) -> Self {
        Self::File { file: Arc::new(OpenFile::new(file, None)), offset, len, cold: None }
    }
}

/// The methods that a file takes.
const ALLOW: (&str, &[u8]) = ("Allow", b"GET, HEAD, OPTIONS");

/// The most files that one worker holds open between requests.
const DESCRIPTORS_MAX: u64 = 256;

/// The file caches of all workers together take at most this part of the descriptor limit.
const DESCRIPTOR_SHARE: u64 = 8;

/// Requests that may wait for a folder's disk. More than that are told to come again.
const JOBS_MAX: usize = 1_024;

/// The path of a request in a folder that is served beneath a path.
#[derive(Debug)]
pub(crate) struct Mounted<'p> {
    pub(crate) path: CanonicalPath<'p>,
    /// So many bytes of it are the folder's own, without its last slash; 0 for the root.
    pub(crate) at: usize,
}

impl Mounted<'_> {
    /// What the folder is asked for: empty, or beginning with a slash.
    fn below(&self) -> &str {
        self.path.as_str().get(self.at..).unwrap_or("")
    }
}

/// How a folder is served.
#[derive(Clone, Copy, Debug)]
pub struct FileOptions {
    /// Serve names that start with a dot. `.well-known` (RFC 8615) is always served.
    pub hidden: bool,
    /// Answer a folder without an index with the list of what is in it.
    pub listing: bool,
    /// Bytes of memory for ready answers, of all workers together; 0 for none.
    pub cache_bytes: u64,
    /// How many threads call [`Files::answer`], at least 1: each has its share of the bounds.
    pub workers: usize,
    /// Threads that wait for the folder's disk, at most, so that no worker does; 0 to have the
    /// workers wait themselves. They are started when a file is not in memory, and end when idle.
    pub threads: usize,
}

/// A served folder, to be shared by all workers.
///
/// Each thread that answers keeps its own cache and its own view of the root: nothing is locked,
/// and an answer from the cache touches no memory that another thread writes.
#[derive(Debug, Clone)]
pub struct Files {
    folder: Arc<Folder>,
}

/// What the workers share; read only but for the counters of failures.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    hidden: bool,
    pub(crate) listing: bool,
    /// Per worker.
    cache_bytes: u64,
    /// Per worker.
    descriptors_max: u64,
    pub(crate) dressing: Dressing,
    /// As it was at the start; a worker that finds another one in its place opens its own.
    root: Arc<Root>,
    exhausted: AtomicU64,
    denied: AtomicU64,
    failed: AtomicU64,
    threads: usize,
    /// The folder's own: a disk that is frozen holds up no other folder.
    pool: OnceLock<BlockingPool>,
}

/// How often the system would not let a file be answered, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileFailures {
    /// No descriptor or memory was free, or the file never stood still: 503, or an older answer.
    pub exhausted: u64,
    /// No permission: 403.
    pub denied: u64,
    /// The disk failed: 500.
    pub failed: u64,
}

impl Files {
    /// Opens the folder at `root`.
    ///
    /// The path stays the folder's name: when a symlink in it is swapped, the new folder is served
    /// within two seconds. A relative path is taken from the current directory of this moment.
    ///
    /// # Errors
    /// [`FilesError`] when there is no folder at `root` that can be opened.
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
        let folder = Folder {
            path,
            hidden: options.hidden,
            listing: options.listing,
            cache_bytes: options.cache_bytes / workers,
            descriptors_max: DESCRIPTORS_MAX.min(descriptors / DESCRIPTOR_SHARE / workers),
            dressing: Dressing::default(),
            root: Arc::new(opened),
            exhausted: AtomicU64::new(0),
            denied: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            threads: options.threads,
            pool: OnceLock::new(),
        };
        Ok(Files { folder: Arc::new(folder) })
    }

    /// Answers one request: writes the head and any small body to the end of `out`.
    ///
    /// - `turn`: what all answers of this turn have in common.
    /// - The caller sends what is returned after `out`, and takes care of the request's body.
    ///
    /// It may wait for the disk, never for a peer of a fifo, a device or a lock.
    pub fn answer(
        &self,
        request: &Request<'_>,
        now: Now,
        turn: &Turn<'_>,
        out: &mut Vec<u8>,
    ) -> Rest {
        match self.answer_at(None, request, now, turn, out).rest {
            Rest::Segments(segments) if is_lookup(&segments) => {
                let path = CanonicalPath::of(request.path()).expect("a lookup has a path");
                let place = Mounted { path, at: 0 };
                worker::with(&self.folder, |worker| {
                    let found = worker.find(&self.folder, place.below().as_bytes(), now);
                    let folder = (&*self.folder, &place);
                    answer_found(worker, folder, found, *request, now, turn, out).rest
                })
            }
            rest => rest,
        }
    }

    /// Answers one request for a folder that is served beneath a path, or returns a lookup where
    /// the disk would have to be waited for.
    ///
    /// - `place`: what the router made of the path; if there is none, the folder is the root, and
    ///   the path is still as it was sent.
    #[inline(never)] // Called from two places, it is best in one.
    pub(crate) fn answer_at(
        &self,
        place: Option<&Mounted<'_>>,
        request: &Request<'_>,
        now: Now,
        turn: &Turn<'_>,
        out: &mut Vec<u8>,
    ) -> Replied {
        if !matches!(request.method(), Method::Get | Method::Head) {
            return self.answer_other(request, turn, out);
        }
        worker::with(&self.folder, |worker| {
            // Keys of the cache are canonical, so a path as sent that is one of them is, too.
            let key = place.map_or(request.path(), |place| place.below().as_bytes());
            if let Some(stored) = worker.cache.fresh(key, now.mono_ms) {
                return respond::respond(stored, &self.folder.dressing, *request, now, turn, out);
            }
            answer_slowly(worker, self, place, *request, now, turn, out)
        })
    }

    /// Answers what asks for no content.
    #[cold]
    fn answer_other(&self, request: &Request<'_>, turn: &Turn<'_>, out: &mut Vec<u8>) -> Replied {
        let dressing = &self.folder.dressing;
        let (status, fields): (Status, &[(&str, &[u8])]) = match request.method() {
            _ if CanonicalPath::of(request.path()) == Err(NoPath::Parent) => {
                (Status::BAD_REQUEST, &[])
            }
            Method::Options => (Status::NO_CONTENT, &[ALLOW]),
            _ => (Status::METHOD_NOT_ALLOWED, &[ALLOW]),
        };
        dressing.status_page(out, status, turn, false, fields).into()
    }

    /// Whether this is the same folder with the same caches.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.folder, &other.folder)
    }

    /// How often the system would not let a file be answered, since the start.
    pub fn failures(&self) -> FileFailures {
        FileFailures {
            exhausted: self.folder.exhausted.load(Ordering::Relaxed),
            denied: self.folder.denied.load(Ordering::Relaxed),
            failed: self.folder.failed.load(Ordering::Relaxed),
        }
    }
}

impl Folder {
    /// Whether answers would be the same. (The path may lead to another directory by now; workers
    /// see to that.)
    fn serves_as(&self, other: &Self) -> bool {
        let of = |folder: &Self| {
            let bounds = (folder.cache_bytes, folder.descriptors_max, folder.threads);
            (folder.hidden, folder.listing, bounds)
        };
        self.path == other.path && of(self) == of(other) && self.dressing == other.dressing
    }

    /// The threads that wait for the disk, unless workers do that themselves.
    fn pool(&self) -> Option<&BlockingPool> {
        let new = || BlockingPool::new(self.threads, JOBS_MAX);
        (self.threads > 0).then(|| self.pool.get_or_init(new))
    }

    fn count(&self, failure: Failure) {
        let counter = match failure.status() {
            Status::SERVICE_UNAVAILABLE => &self.exhausted,
            Status::FORBIDDEN => &self.denied,
            Status::INTERNAL_SERVER_ERROR => &self.failed,
            _ => return, // the client's doing, and no failure of the system
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Answers what the cache does not hold under the path as it was sent, or holds for longer than a
/// second.
#[cold]
fn answer_slowly(
    worker: &mut Worker,
    files: &Files,
    place: Option<&Mounted<'_>>,
    request: Request<'_>,
    now: Now,
    turn: &Turn<'_>,
    out: &mut Vec<u8>,
) -> Replied {
    let folder = &*files.folder;
    let whole = match place {
        Some(_) => None,
        None => CanonicalPath::of(request.path()).ok().map(|path| Mounted { path, at: 0 }),
    };
    let place = place.or(whole.as_ref()).filter(|place| !place.path.has_stray_percent());
    let Some(place) = place else {
        return answer_failure(folder, PathError::Malformed.into(), request, turn, out);
    };
    let key = place.below().as_bytes();
    if !place.path.is_as_sent()
        && let Some(stored) = worker.cache.fresh_by_call(key, now.mono_ms)
    {
        return respond::respond(stored, &folder.dressing, request, now, turn, out);
    }
    let cached = |worker: &mut Worker| match key {
        [] => Some(Ok(Found::Directory)),
        key => worker.find_cached(folder, key, now),
    };
    let found = match cached(worker) {
        Some(found) => found,
        None if folder.threads == 0 => worker.find(folder, key, now),
        None => return Replied::lookup(Lookup::new(files, request, place)),
    };
    answer_found(worker, (folder, place), found, request, now, turn, out)
}

/// Answers with what was found, and holds it for the next request.
fn answer_found(
    worker: &mut Worker,
    (folder, place): (&Folder, &Mounted<'_>),
    found: Result<Found, Failure>,
    request: Request<'_>,
    now: Now,
    turn: &Turn<'_>,
    out: &mut Vec<u8>,
) -> Replied {
    let key = place.below().as_bytes();
    match found {
        Ok(Found::Held) => {
            let stored = worker.cache.any_age(key).expect("what was just found in the cache");
            respond::respond(stored, &folder.dressing, request, now, turn, out)
        }
        Ok(Found::Loaded { stored, may_hold }) => {
            let replied = respond::respond(&stored, &folder.dressing, request, now, turn, out);
            if may_hold {
                worker.cache.insert(key, stored, now.mono_ms);
            }
            replied
        }
        Ok(Found::Directory) => {
            redirect_to_folder(&folder.dressing, &place.path, request, turn, out).into()
        }
        Ok(Found::Listed(listed)) => listed.respond(place, &folder.dressing, request, turn, out),
        Err(failure) => answer_failure(folder, failure, request, turn, out),
    }
}

fn answer_failure(
    folder: &Folder,
    failure: Failure,
    request: Request<'_>,
    turn: &Turn<'_>,
    out: &mut Vec<u8>,
) -> Replied {
    folder.count(failure);
    let status = failure.status();
    let soon: &[(&str, &[u8])] = &[("Retry-After", b"1")];
    let fields = if status == Status::SERVICE_UNAVAILABLE { soon } else { &[] };
    let head_only = request.method() == Method::Head;
    let written = match failure {
        Failure::NoIndex => folder.dressing.no_index(out, turn, head_only),
        _ => folder.dressing.status_page(out, status, turn, head_only, fields),
    };
    written.into()
}

/// A folder's name without its slash leads to the one with it, so that relative links work.
fn redirect_to_folder(
    dressing: &Dressing,
    path: &CanonicalPath<'_>,
    request: Request<'_>,
    turn: &Turn<'_>,
    out: &mut Vec<u8>,
) -> WrittenHead {
    let location = location::with_slash(path, request.query());
    let fields = [("Location", location.as_slice())];
    let head_only = request.method() == Method::Head;
    dressing.status_page(out, Status::MOVED_PERMANENTLY, turn, head_only, &fields)
}

/// Answers with one file, wherever it is: `path` is trusted.
pub(crate) fn answer_file(
    path: &Path,
    request: Request<'_>,
    now: Now,
    turn: &Turn<'_>,
    out: &mut Vec<u8>,
) -> Replied {
    match load_file(path, now) {
        Ok(stored) => respond::respond(&stored, &Dressing::default(), request, now, turn, out),
        Err(failure) => {
            let head_only = request.method() == Method::Head;
            status_page(out, failure.status(), turn, head_only, &[]).into()
        }
    }
}

fn load_file(path: &Path, now: Now) -> Result<Stored, Failure> {
    let not_found = Failure::Disk(Errno::NOENT);
    let name = path.file_name().ok_or(not_found)?.as_bytes();
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let root = Root::open(parent).map_err(Failure::Disk)?;
    let located = root.locate(name)?;
    if located.kind() != FileType::RegularFile {
        return Err(Failure::Disk(Errno::NOENT));
    }
    let with = (&Dressing::default(), None);
    Stored::load((&root, Access::Waits), &located, name, with, now)
}
