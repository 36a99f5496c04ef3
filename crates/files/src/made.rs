//! Representations of files that the server compresses itself.
//!
//! A file is compressed once, by the folder's blocking pool, for all workers. The request that
//! finds nothing waits for it; others get the file as it is until it is there. What was made is
//! kept within bounds, by what the file was when it was read. Other bytes could have the stamp of a
//! file that was just written: what was made of it counts for a second.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gustnado_compress::{COMPRESSIBLE, CompressionCounts, Level, WholeEncoder, compress};
use gustnado_config::{Compress, RouteSettings};
use gustnado_http::content_coding::{CodingSet, ContentCoding};
use gustnado_http::dictionary::DictionaryHash;
use gustnado_http::fields::Fields;
use gustnado_http::media_type::matches_any;
use gustnado_tasks::{Charge, MemoryKind, Now};

use super::Folder;
use super::cached_file::CachedFile;
use super::content_type::ContentType;
use super::open_file::read_whole;
use super::stamp::Stamp;

/// The largest file that is compressed. It is held in memory meanwhile.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// The part of the cache that representations may take which the server has made.
pub(super) const SHARE: u64 = 4;
/// The part of that which a single file may take.
const FILE_SHARE: u64 = 4;

/// What an entry takes without its content.
const ENTRY_BYTES: u64 = 1_024;

/// What is known of one representation.
#[derive(Clone, Debug)]
pub(super) enum Made {
    /// A thread compresses it.
    UnderWay,
    /// It would not be smaller, or could not be read.
    Nothing,
    /// It is ready.
    File(Arc<CachedFile>),
}

impl Made {
    /// Returns how many files it is.
    fn files(&self) -> u64 {
        u64::from(matches!(self, Self::File(_)))
    }
}

/// How a representation is made of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum MadeBy {
    Coding(ContentCoding),
    /// With this dictionary.
    Delta(DictionaryHash),
}

/// A file as it was, what it is for ([`purpose_of`]), and how.
pub(super) type MadeKey = (Stamp, u64, MadeBy);

/// What a folder has made, for all workers.
#[derive(Debug)]
pub(super) struct MadeVariants {
    bytes_max: u64,
    table: Mutex<MadeTable>,
}

#[derive(Debug)]
struct MadeTable {
    entries: HashMap<MadeKey, MadeEntry>,
    /// Whose turn it is to go, the oldest first.
    order: VecDeque<MadeKey>,
    bytes: u64,
    /// What is held while some are made.
    work_bytes: u64,
    /// It belongs to the ledger of the first worker that asked.
    charge: Option<Charge>,
    counts: Arc<CompressionCounts>,
}

#[derive(Debug)]
struct MadeEntry {
    made: Made,
    bytes: u64,
    /// It was asked for since it was last spared.
    is_used: bool,
}

impl MadeVariants {
    /// - `bytes_max`: what all of it may take; 0: nothing is made.
    pub(super) fn new(bytes_max: u64, counts: &Arc<CompressionCounts>) -> Self {
        let table = MadeTable {
            entries: HashMap::new(),
            order: VecDeque::new(),
            bytes: 0,
            work_bytes: 0,
            charge: None,
            counts: Arc::clone(counts),
        };
        Self { bytes_max, table: Mutex::new(table) }
    }

    fn table(&self) -> MutexGuard<'_, MadeTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what is known of a representation; `None`: it has to be made. To be called by
    /// workers.
    pub(super) fn get(&self, key: &MadeKey) -> Option<Made> {
        let mut table = self.table();
        if table.charge.is_none() {
            table.charge = Some(Charge::new(MemoryKind::Cache));
        }
        let entry = table.entries.get_mut(key)?;
        entry.is_used = true;
        Some(entry.made.clone())
    }

    /// Returns whether the calling thread is the one to make it.
    pub(super) fn begin(&self, key: MadeKey) -> bool {
        let mut table = self.table();
        if table.entries.contains_key(&key) {
            return false;
        }
        table.add(key, Made::UnderWay, ENTRY_BYTES, self.bytes_max);
        true
    }

    /// Notes that it is not made after all.
    pub(super) fn abandon(&self, key: &MadeKey) {
        self.table().remove(key);
    }

    /// Returns the most bytes that a single file may take.
    pub(super) fn entry_bytes_max(&self) -> u64 {
        self.bytes_max / FILE_SHARE
    }

    /// Charges what making one takes, until the result is dropped.
    pub(super) fn begin_work(&self, bytes: u64) -> WorkCharge<'_> {
        let mut table = self.table();
        table.work_bytes += bytes;
        table.recharge();
        WorkCharge { made: self, bytes }
    }

    pub(super) fn finish(&self, key: MadeKey, made: Made) {
        let content = match &made {
            Made::File(file) => file.heap_bytes() as u64,
            Made::UnderWay | Made::Nothing => 0,
        };
        let mut table = self.table();
        table.remove(&key);
        table.add(key, made, ENTRY_BYTES + content, self.bytes_max);
    }

    /// Returns the number of representations that are ready.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let table = self.table();
        table.entries.values().filter(|entry| matches!(entry.made, Made::File(_))).count()
    }
}

/// Bytes that are held while a representation is made.
pub(super) struct WorkCharge<'m> {
    made: &'m MadeVariants,
    bytes: u64,
}

impl Drop for WorkCharge<'_> {
    fn drop(&mut self) {
        let mut table = self.made.table();
        table.work_bytes -= self.bytes;
        table.recharge();
    }
}

impl Drop for MadeTable {
    fn drop(&mut self) {
        let files = self.entries.values().map(|entry| entry.made.files()).sum();
        self.counts.remove_variants(files, self.bytes);
    }
}

impl MadeTable {
    /// Adds an entry, and removes others until there is room. Ends: each one is spared once.
    fn add(&mut self, key: MadeKey, made: Made, bytes: u64, bytes_max: u64) {
        while self.bytes + bytes > bytes_max {
            let Some(oldest) = self.order.pop_front() else { break };
            match self.entries.get_mut(&oldest) {
                Some(entry) if entry.is_used => {
                    entry.is_used = false;
                    self.order.push_back(oldest);
                }
                Some(_) => self.remove(&oldest),
                None => {}
            }
        }
        self.bytes += bytes;
        self.counts.add_variants(made.files(), bytes);
        self.order.push_back(key);
        self.entries.insert(key, MadeEntry { made, bytes, is_used: false });
        self.recharge();
    }

    fn remove(&mut self, key: &MadeKey) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.bytes;
            self.counts.remove_variants(entry.made.files(), entry.bytes);
            self.order.retain(|other| other != key);
            self.recharge();
        }
    }

    fn recharge(&mut self) {
        if let Some(charge) = &mut self.charge {
            charge.set(usize::try_from(self.bytes + self.work_bytes).unwrap_or(usize::MAX));
        }
    }
}

/// Returns the codings that the server may compress a file with.
///
/// - `key`: what was looked for.
/// - `own`: the fields that it has beyond the folder's.
pub(super) fn possible(
    folder: &Folder,
    key: &[u8],
    (content_type, own): (&ContentType, &Fields),
    size: u64,
) -> CodingSet {
    let settings = &folder.settings;
    let codings: &[ContentCoding] = match settings.compress {
        Compress::Off => return CodingSet::default(),
        Compress::On => &[ContentCoding::Gzip, ContentCoding::Zstd],
        Compress::Gzip => &[ContentCoding::Gzip],
        Compress::Zstd => &[ContentCoding::Zstd],
    };
    let bytes_max = FILE_BYTES_MAX.min(folder.made.entry_bytes_max());
    let is_one = (settings.compress_bytes_min..=bytes_max).contains(&size)
        && is_of_types(settings, content_type)
        && !folder.headers.forbid_change(key, own);
    if is_one { codings.iter().copied().collect() } else { CodingSet::default() }
}

/// Returns whether a media type is one of those that are compressed.
pub(super) fn is_of_types(settings: &RouteSettings, content_type: &ContentType) -> bool {
    let essence = content_type.essence().as_bytes();
    match &*settings.compress_types {
        [] => matches_any(COMPRESSIBLE.split(','), essence),
        own => matches_any(own.iter().map(String::as_str), essence),
    }
}

/// Returns a number for what a file is sent as: one file may have several paths, with a type or
/// fields of its own by each, and may be the page of an application as well.
///
/// - `unsettled_secs`: when the file was loaded, if other bytes may have its stamp.
pub(super) fn purpose_of(
    content_type: &ContentType,
    own: &Fields,
    unsettled_secs: Option<u64>,
) -> u64 {
    let mut hasher = DefaultHasher::new();
    unsettled_secs.hash(&mut hasher);
    content_type.to_string().hash(&mut hasher);
    for (name, value) in own.iter() {
        (name.as_str(), value).hash(&mut hasher);
    }
    hasher.finish()
}

/// Compresses a file, unless that is done or under way. Waits for the disk.
pub(super) fn make(folder: &Folder, original: &CachedFile, key: MadeKey, now: Now) {
    let MadeBy::Coding(coding) = key.2 else { return };
    if !folder.made.begin(key) {
        return;
    }
    let settings = &folder.settings;
    let level = Level { gzip: settings.compress_gzip_level, zstd: settings.compress_zstd_level };
    // The file's bytes, those of the result and the encoder.
    let length = usize::try_from(original.size).unwrap_or(usize::MAX);
    let encoder_bytes = WholeEncoder::bytes_for(coding, level, length) as u64;
    let _work = folder.made.begin_work(original.size + encoder_bytes);
    let compressed = bytes_of(original).and_then(|bytes| {
        let compressed = compress(coding, level, &bytes).ok()?;
        folder.counts.add_compression(bytes.len() as u64, compressed.len() as u64);
        (compressed.len() < bytes.len()).then_some(compressed)
    });
    let made = compressed.map_or(Made::Nothing, |bytes| {
        let context = folder.load_context(&original.own);
        let stamp = original.seen.stamp.of_made(coding, bytes.len() as u64);
        Made::File(Arc::new(CachedFile::made(original, (coding, stamp), &bytes, context, now)))
    });
    folder.made.finish(key, made);
}

/// Returns the bytes of a file, unless it is another one by now.
pub(super) fn bytes_of(file: &CachedFile) -> Option<Vec<u8>> {
    match &file.file {
        Some(open) => read_whole(open, &file.seen.stamp),
        None => Some(file.body().to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_meanwhile_is_charged_with_what_is_kept() {
        let made = MadeVariants::new(1 << 20, &Arc::default());
        let key = (Stamp::with_inode(1), 0, MadeBy::Coding(ContentCoding::Gzip));
        assert!(made.get(&key).is_none() && made.begin(key));
        let charged = || made.table().charge.as_ref().map_or(0, Charge::bytes) as u64;
        {
            let _work = made.begin_work(5_000_000);
            let _other = made.begin_work(1_000);
            assert_eq!(charged(), ENTRY_BYTES + 5_001_000);
        }
        made.finish(key, Made::Nothing);
        assert_eq!(charged(), ENTRY_BYTES);
    }
}
