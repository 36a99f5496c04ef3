//! Digests of files' bytes, from which their entity tags are made: the same bytes have the same tag
//! on every server and after every deployment, whatever their times are.
//!
//! A small file is digested when it is read, which costs less than a hundredth of a millisecond. A
//! larger one is digested by a thread of its own, at a bounded rate, while it is served with a tag
//! made of its attributes. No response waits for a digest.

use std::collections::HashMap;
use std::mem::take;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use gustnado_http::etag::EntityTag;
use gustnado_http::precondition::Validators;
use gustnado_tasks::{BlockingPool, Now};
use sha2::{Digest as _, Sha256};

use super::open_file::OpenFile;
use super::stamp::Stamp;

/// The first 96 bits of a file's SHA-256.
pub(super) type Digest = [u8; 12];

/// Files of a folder that may wait to be digested, each with an open descriptor. A further one is
/// asked for again by a later request.
const WAITING_MAX: usize = 64;

/// Bytes of one read.
const STEP_BYTES: usize = 256 << 10;

/// The pause after each byte: 128 MiB per second at most.
const PAUSE_NS: u64 = 1_000_000_000 / (128 << 20);

/// The pause before the first read. A thread that wakes takes the CPU from the worker where they
/// share one, and the response that asked for the digest goes first.
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// The most digests that are kept: about 1 MiB in all.
const KNOWN_MAX: usize = 16 * 1_024;

/// 1 January 1980, the oldest date in a ZIP archive, in seconds since 1970.
const DAY_OF_1980: std::ops::Range<i64> = 315_532_800..315_619_200;

/// Returns the digest of a whole file.
pub(super) fn digest_of(bytes: &[u8]) -> Digest {
    shortened(Sha256::new_with_prefix(bytes))
}

/// The digest of bytes that come piece by piece.
#[derive(Debug, Default)]
pub(super) struct GrowingDigest(Sha256);

impl GrowingDigest {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(super) fn finish(self) -> Digest {
        shortened(self.0)
    }
}

fn shortened(hash: Sha256) -> Digest {
    let whole = hash.finalize();
    *whole.first_chunk().expect("32 bytes are more than 12")
}

/// Digests of larger files, shared by all folders and workers of a server.
///
/// Workers take the lock when they look at the disk, so once a second for each file.
#[derive(Debug, Default)]
pub(super) struct Digests(Mutex<DigestTable>);

/// Two generations, so that the bound costs no search: when the younger one is full, the older one
/// is dropped.
#[derive(Debug, Default)]
struct DigestTable {
    young: HashMap<Stamp, DigestState>,
    old: HashMap<Stamp, DigestState>,
}

#[derive(Clone, Copy, Debug)]
enum DigestState {
    /// It waits to be digested, or is being digested.
    Requested,
    Known(Digest),
}

impl DigestTable {
    fn get(&mut self, stamp: &Stamp) -> Option<DigestState> {
        if let Some(known) = self.young.get(stamp) {
            return Some(*known);
        }
        let known = self.old.remove(stamp)?;
        self.set(*stamp, known);
        Some(known)
    }

    fn set(&mut self, stamp: Stamp, digest: DigestState) {
        if self.young.len() >= KNOWN_MAX / 2 {
            self.old = take(&mut self.young);
        }
        self.young.insert(stamp, digest);
    }
}

impl Digests {
    fn table(&self) -> MutexGuard<'_, DigestTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, stamp: &Stamp) -> Option<Digest> {
        match self.table().get(stamp)? {
            DigestState::Known(digest) => Some(digest),
            DigestState::Requested => None,
        }
    }

    /// Digests a file later, unless that is done or under way.
    fn request(self: &Arc<Self>, pool: &BlockingPool, file: Arc<OpenFile>, stamp: Stamp) {
        {
            let mut table = self.table();
            if table.get(&stamp).is_some() {
                return;
            }
            table.set(stamp, DigestState::Requested);
        }
        let digests = Arc::clone(self);
        let job = move || {
            let digest = digest_of_file(&file, &stamp);
            let mut table = digests.table();
            table.old.remove(&stamp);
            match digest {
                Some(digest) => table.set(stamp, DigestState::Known(digest)),
                None => drop(table.young.remove(&stamp)),
            }
        };
        if pool.start(job).is_err() {
            self.table().young.remove(&stamp);
        }
    }
}

/// Reads a file and returns its digest, unless it is not the file of `stamp` by then. Waits for the
/// disk, and between two reads.
fn digest_of_file(file: &OpenFile, stamp: &Stamp) -> Option<Digest> {
    let is_same = || rustix::fs::fstat(&**file).is_ok_and(|stat| Stamp::of(&stat) == *stamp);
    thread::sleep(FIRST_PAUSE);
    if !is_same() {
        return None;
    }
    let (mut hash, mut at, mut step) = (Sha256::new(), 0, vec![0; STEP_BYTES]);
    while at < stamp.size {
        let count = file.read_at(&mut step, at).ok().filter(|count| *count > 0)?;
        hash.update(&step[..count]);
        at += count as u64;
        thread::sleep(Duration::from_nanos(PAUSE_NS * count as u64));
    }
    // The stamp had settled when this was requested, so a write meanwhile has changed it.
    is_same().then(|| shortened(hash))
}

/// The validators of a folder's files.
#[derive(Debug)]
pub(super) struct Hashing {
    /// The largest file that is digested; 0 is none.
    pub(super) bytes_max: u64,
    /// `SOURCE_DATE_EPOCH`: the time that files of a reproducible build have, in seconds since
    /// 1970.
    source_date: Option<i64>,
    /// Those of all folders of a server.
    pub(super) digests: Arc<Digests>,
    /// One thread, which is started when a file is to be digested.
    pool: OnceLock<BlockingPool>,
}

impl Hashing {
    pub(super) fn new(bytes_max: u64, source_date: Option<i64>) -> Self {
        Self { bytes_max, source_date, digests: Arc::default(), pool: OnceLock::new() }
    }

    /// Returns whether files of this size get a tag from their bytes.
    fn includes(&self, stamp: &Stamp) -> bool {
        self.includes_size(stamp.size)
    }

    pub(super) fn includes_size(&self, bytes: u64) -> bool {
        bytes <= self.bytes_max && self.bytes_max > 0
    }

    /// Notes the digest of a file that was just written here, if its stamp stands for its bytes.
    /// Returns whether it does.
    pub(super) fn note(&self, stamp: Stamp, digest: Digest) -> bool {
        let stands = stamp.shows_later_writes();
        if stands {
            self.digests.table().set(stamp, DigestState::Known(digest));
        }
        stands
    }

    /// Returns the digest of a file, if it is known.
    ///
    /// - `bytes`: the whole file, if it was just read.
    pub(super) fn digest(&self, stamp: &Stamp, bytes: Option<&[u8]>) -> Option<Digest> {
        match bytes {
            _ if !self.includes(stamp) => None,
            Some(bytes) => Some(digest_of(bytes)),
            None => self.digests.known(stamp),
        }
    }

    /// Returns whether the file's tag will be another one once its bytes were digested.
    pub(super) fn is_awaited(&self, stamp: &Stamp, digest: Option<Digest>) -> bool {
        digest.is_none() && self.includes(stamp)
    }

    /// Digests a file later. The attributes of one that was just written prove nothing yet: it is
    /// asked for again.
    pub(super) fn request(&self, file: &Arc<OpenFile>, stamp: Stamp, now: Now) {
        if stamp.is_settled(now) {
            let pool = self.pool.get_or_init(|| BlockingPool::new(1, WAITING_MAX));
            self.digests.request(pool, Arc::clone(file), stamp);
        }
    }

    /// Returns the validators of a file.
    ///
    /// Once the bytes are known, the tag that the file had before stays valid. It holds the inode
    /// and the change time, so no other bytes can have had it.
    pub(super) fn validators(&self, stamp: &Stamp, digest: Option<Digest>, now: Now) -> Validators {
        let is_pinned = self.is_pinned(stamp);
        let of_attributes = Some(stamp.tag(now));
        let (tag, earlier) = match digest {
            Some(digest) => (Some(EntityTag::of_digest(&digest)), of_attributes),
            None if is_pinned && self.includes(stamp) => (None, None),
            None => (of_attributes, None),
        };
        let modified_secs = (!is_pinned).then(|| stamp.modified_secs(now));
        Validators { tag, earlier, modified_secs }
    }

    /// Returns whether the modification time is one that build tools set, so that it says nothing
    /// about the bytes.
    fn is_pinned(&self, stamp: &Stamp) -> bool {
        let secs = stamp.modified_at_secs();
        secs <= 1 || DAY_OF_1980.contains(&secs) || Some(secs) == self.source_date
    }
}

/// Returns the time that `SOURCE_DATE_EPOCH` says, in seconds since 1970.
pub(super) fn source_date() -> Option<i64> {
    std::env::var("SOURCE_DATE_EPOCH").ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_the_start_of_sha_256() {
        // FIPS 180-2, appendix B.1.
        let expected = [0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde];
        assert_eq!(digest_of(b"abc"), expected);
    }

    #[test]
    fn a_file_is_digested_whole_and_only_while_it_is_the_same() {
        let file = tempfile::tempfile().expect("a file");
        let bytes: Vec<u8> = (0..=250).cycle().take(3 * STEP_BYTES + 7).collect();
        file.write_all_at(&bytes, 0).expect("written");
        let stamp = Stamp::of(&rustix::fs::fstat(&file).expect("attributes"));
        let file = OpenFile::new(Arc::new(file), None);
        assert_eq!(digest_of_file(&file, &stamp), Some(digest_of(&bytes)));
        file.set_len(5).expect("cut");
        assert_eq!(digest_of_file(&file, &stamp), None);
    }

    #[test]
    fn a_digest_is_noted_for_a_stamp_that_no_later_write_has() {
        let hashing = Hashing::new(1 << 20, None);
        let file = tempfile::tempfile().expect("a file");
        file.write_all_at(b"abc", 0).expect("written");
        let stamp = Stamp::of(&rustix::fs::fstat(&file).expect("attributes"));
        assert!(!hashing.note(stamp, digest_of(b"abc")), "another write may have the same time");
        assert_eq!(hashing.digest(&stamp, None), None);
        let later = Stamp::with_inode(1);
        assert!(hashing.note(later, digest_of(b"abc")));
        assert_eq!(hashing.digest(&later, None), Some(digest_of(b"abc")));
    }

    #[test]
    fn digests_are_bounded_and_those_in_use_stay() {
        let digests = Digests::default();
        let stamp = |inode| Stamp::with_inode(inode);
        digests.table().set(stamp(0), DigestState::Known([7; 12]));
        for inode in 1..3 * KNOWN_MAX as u64 {
            digests.table().set(stamp(inode), DigestState::Known([1; 12]));
            assert_eq!(digests.known(&stamp(0)), Some([7; 12]), "{inode}");
        }
        assert_eq!(digests.known(&stamp(1)), None);
        let table = digests.table();
        assert!(table.young.len() + table.old.len() <= KNOWN_MAX);
    }
}
