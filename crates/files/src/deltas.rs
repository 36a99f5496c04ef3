//! Files as the difference to a version that the client has (RFC 9842 §5).
//!
//! A delta is made once for each pair of files, by one thread for all folders, and kept with the
//! other representations that the server makes. Nobody waits for it: until it is there, clients get
//! the next best representation.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use gustnado_compress::compress_with;
use gustnado_http::content_coding::ContentCoding;
use gustnado_http::dictionary::{DictionaryHash, available_dictionary, is_asked_by_own_page};
use gustnado_http::fields::HeaderId;
use gustnado_http::method::Method;
use gustnado_http::status::Status;
use gustnado_tasks::{BlockingPool, Now};
use rustix::process::setpriority_process;
use sha2::{Digest as _, Sha256};

use super::Folder;
use super::cached_file::CachedFile;
use super::dictionaries::{KnownDictionary, NamePattern};
use super::file_request::FileRequest;
use super::made::{Made, MadeBy, MadeKey, bytes_of};
use super::open_file::read_whole;
use super::resolve::Root;
use super::response::FileResponse;
use super::select::select_or_whole;
use super::stamp::Stamp;
use super::variants::VariantSet;

/// Deltas that may wait to be made. A further one is asked for again by a later request.
const WAITING_MAX: usize = 64;

/// The priority of the thread that makes them: a tenth of a worker's share of a busy processor.
const NICENESS: i32 = 10;

/// What a delta takes while it is made.
const WORK_BYTES: u64 = 80 << 20;

/// The thread that makes the deltas of all folders of a server. One, because of [`WORK_BYTES`]. It
/// is started for the first one.
#[derive(Debug, Default)]
pub(super) struct DeltaThread(OnceLock<BlockingPool>);

impl DeltaThread {
    /// Keeps the thread from the jobs that are started from now on, until the result is dropped.
    #[cfg(test)]
    pub(super) fn hold(&self) -> std::sync::mpsc::Sender<()> {
        let (held, wait) = std::sync::mpsc::channel();
        self.pool().start(move || _ = wait.recv()).expect("few jobs wait");
        held
    }

    /// Waits until the jobs are done that were started before.
    #[cfg(test)]
    pub(super) fn settle(&self) {
        let (done, wait) = std::sync::mpsc::channel();
        self.pool().start(move || _ = done.send(())).expect("few jobs wait");
        wait.recv().expect("the thread runs");
    }

    fn pool(&self) -> &BlockingPool {
        self.0.get_or_init(|| BlockingPool::new(1, WAITING_MAX))
    }
}

/// Responds with a delta, if the client wants one and it is there. If not, it is made for later
/// requests.
///
/// - `root`: the one that the calling worker uses.
pub(super) fn respond(
    (folder, root): (&Arc<Folder>, &Arc<Root>),
    set: &VariantSet,
    request: FileRequest<'_>,
    now: Now,
) -> Option<FileResponse> {
    let hash = wanted(set, request)?;
    let delta = find((folder, root), set, hash, now)?;
    let response = select_or_whole(delta, &folder.headers, request.view, now);
    if response.status == Status::OK && request.view.method() == Method::Get {
        folder.in_all.deltas_sent.fetch_add(1, Ordering::Relaxed);
    }
    Some(response)
}

/// Returns the dictionary of the delta that a client wants.
fn wanted(set: &VariantSet, request: FileRequest<'_>) -> Option<DictionaryHash> {
    let view = request.view;
    if set.dictionary().is_none() || !request.is_secure || !set.is_settled() {
        return None;
    }
    let hash = available_dictionary(view)?;
    // A part of a delta is of no use to a client that does not have the rest.
    let is_whole = view.known(HeaderId::Range).is_none();
    let is_one = is_whole && is_asked_by_own_page(view) && set.is_delta_best(request);
    is_one.then_some(hash)
}

/// Returns a delta. If it is not there, it is made.
fn find(
    (folder, root): (&Arc<Folder>, &Arc<Root>),
    set: &VariantSet,
    hash: DictionaryHash,
    now: Now,
) -> Option<Arc<CachedFile>> {
    let pattern = &set.dictionary()?.pattern;
    let found = folder.dictionaries.find(pattern, &hash, root.identity(), now);
    let key = set.key_of(MadeBy::Delta(hash));
    let known = found.dictionary.as_ref().map(|_| folder.made.get(&key));
    let is_new = matches!(known, Some(None)) && folder.made.begin(key);
    if is_new || found.is_due {
        let job = DeltaJob {
            folder: Arc::clone(folder),
            roots: roots(folder, root, now),
            pattern: Arc::clone(pattern),
            key,
            hash,
            original: Arc::clone(set.original()),
            bytes_max: set.bytes_min(),
            reads: found.is_due,
            dictionary: found.dictionary.filter(|_| is_new),
            now,
        };
        if folder.deltas.pool().start(move || job.run()).is_err() {
            if is_new {
                folder.made.abandon(&key);
            }
            if found.is_due {
                folder.dictionaries.abandon(pattern);
            }
        }
    }
    match known {
        Some(Some(Made::File(delta))) => Some(delta),
        _ => None,
    }
}

/// Returns the roots in which dictionaries are: the one that is served, and those before it.
fn roots(folder: &Folder, root: &Arc<Root>, now: Now) -> Vec<Arc<Root>> {
    let mut roots = vec![Arc::clone(root)];
    if folder.releases.is_on() {
        roots.extend(folder.releases.others(root.identity(), now));
    }
    roots
}

/// A delta to be made.
struct DeltaJob {
    folder: Arc<Folder>,
    roots: Vec<Arc<Root>>,
    pattern: Arc<NamePattern>,
    key: MadeKey,
    hash: DictionaryHash,
    /// The file itself.
    original: Arc<CachedFile>,
    /// It has to be smaller than this.
    bytes_max: u64,
    /// The files of the pattern are read first.
    reads: bool,
    dictionary: Option<KnownDictionary>,
    now: Now,
}

impl DeltaJob {
    /// Waits for the disk, and takes up to some seconds.
    fn run(self) {
        // Of this thread alone, which does nothing else: workers come first. If it is refused, the
        // delta is made all the same.
        _ = setpriority_process(None, NICENESS);
        let folder = &*self.folder;
        let key = self.key;
        let mut dictionary = self.dictionary.clone();
        if self.reads {
            let read = folder.dictionaries.read(&self.pattern, &self.roots, folder, self.now);
            if dictionary.is_none() {
                let named = read.iter().find(|known| known.hash == self.hash);
                dictionary = named.filter(|_| folder.made.begin(key)).cloned();
            }
        }
        let Some(dictionary) = dictionary else { return };
        match self.made(&dictionary) {
            Some(made) => folder.made.finish(key, made),
            None => folder.made.abandon(&key),
        }
    }

    /// Returns what has become of it; `None` if a file could not be read.
    fn made(&self, dictionary: &KnownDictionary) -> Option<Made> {
        let folder = &*self.folder;
        let _work = folder.made.begin_work(WORK_BYTES);
        let base = self.bytes_of(dictionary)?;
        let bytes = bytes_of(&self.original)?;
        let delta = compress_with((&base, self.hash), &bytes).ok();
        let bytes_max = self.bytes_max.min(folder.made.entry_bytes_max());
        let Some(delta) = delta.filter(|delta| (delta.len() as u64) < bytes_max) else {
            return Some(Made::Nothing);
        };
        folder.in_all.deltas_made.fetch_add(1, Ordering::Relaxed);
        folder.counts.add_compression(bytes.len() as u64, delta.len() as u64);
        let stamp = self.original.seen.stamp.of_delta(&self.hash, delta.len() as u64);
        let context = folder.load_context(&self.original.own);
        let of = (ContentCoding::DictionaryZstd, stamp);
        let file = CachedFile::made(&self.original, of, &delta, context, self.now);
        Some(Made::File(Arc::new(file)))
    }

    /// Reads a dictionary, unless it is another file by now.
    fn bytes_of(&self, dictionary: &KnownDictionary) -> Option<Vec<u8>> {
        let root = self.roots.iter().find(|root| root.identity() == dictionary.root)?;
        let located = root.locate(&dictionary.relative).ok()?;
        let stamp = Stamp::of(&located.stat);
        if stamp != dictionary.stamp {
            return None;
        }
        let (file, _) = root.open_to_read(&located, &dictionary.relative).ok()?;
        let bytes = read_whole(&file, &stamp)?;
        (Sha256::digest(&bytes)[..] == self.hash).then_some(bytes)
    }
}
