//! A file as it is answered: opened, read if it is small, and its head made ready.

use std::io::Write;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gustnado_http::date;
use gustnado_http::etag::EntityTag;
use gustnado_http::fields::{Fields, HeaderId};
use gustnado_http::precondition::Validators;
use gustnado_http::response_writer::write_fields;
use gustnado_tasks::{BlockingPool, Now};
use rustix::fs::Stat;
use rustix::io::Errno;

use super::content_type::ContentType;
use super::error::Failure;
use super::headers::FolderHeaders;
use super::open_file::OpenFile;
use super::resolve::{Located, Root};
use super::segment::Segment;
use super::warmth;

/// The largest file that is held in memory with its head. From 8 KiB on, sending straight from the
/// file is cheaper than copying.
pub(super) const SMALL_BYTES_MAX: u64 = 8 * 1024 - 1;

/// How often a small file is read again that changed while it was read.
const ATTEMPTS_MAX: usize = 4;

/// Seconds for which equal times do not prove equal bytes: two writes within one tick of the disk's
/// clock look the same from outside.
const SETTLING_SECS: u64 = 2;

/// Whether a lookup may wait for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Waits,
    /// Only what is in memory counts; the rest is [`Failure::WouldWait`].
    Cached,
}

/// A regular file, ready to be answered any number of times.
#[derive(Debug)]
pub struct CachedFile {
    /// The fields of a 200, but for `Content-Length`.
    fields: Arc<Fields>,
    /// The same as HTTP/1 sends them: field lines and blank line, and behind them the bytes of a
    /// small file.
    prepared: Box<[u8]>,
    /// How many bytes of it are the head.
    head_bytes: usize,
    /// A file that is not small, open for reading.
    file: Option<Arc<OpenFile>>,
    /// Bytes of the whole file.
    pub size: u64,
    pub(super) validators: Validators,
    pub(super) content_type: ContentType,
    seen: Seen,
    /// Reads the file before it is sent, where it is not all in memory.
    pool: Option<BlockingPool>,
    /// Not all of it is in memory. (Atomic, for responses on other workers may still hold this file
    /// while its worker looks at the disk again; it is stored and loaded, and nothing is ordered by
    /// it.)
    is_cold: AtomicBool,
}

/// What is known of a file that is held, to be compared with the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    stamp: Stamp,
    is_settled: bool,
}

impl Seen {
    /// Whether what is found on the disk now is surely still this.
    pub(super) fn is_still(&self, stat: &Stat) -> bool {
        self.is_settled && self.stamp == Stamp::of(stat)
    }
}

/// What changes when a file's bytes change. The change time is in it because it cannot be set: a
/// file copied with its old modification time and the same size must not look unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, u64),
    changed: (i64, u64),
}

impl Stamp {
    pub(super) fn of(stat: &Stat) -> Stamp {
        Stamp {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    /// The device is left out: its number may be another one after a restart.
    fn tag(&self) -> EntityTag {
        let (modified, changed) = (self.modified, self.changed);
        EntityTag::strong(&[
            self.inode,
            self.size,
            modified.0.cast_unsigned(),
            modified.1,
            changed.0.cast_unsigned(),
            changed.1,
        ])
    }

    /// The date of `Last-Modified`, which RFC 9110 §8.8.2.1 does not let lie in the future.
    fn modified_secs(&self, now: Now) -> u64 {
        u64::try_from(self.modified.0).unwrap_or(0).min(now.unix_secs)
    }

    fn is_settled(&self, now: Now) -> bool {
        let latest = u64::try_from(self.modified.0.max(self.changed.0)).unwrap_or(0);
        latest.saturating_add(SETTLING_SECS) <= now.unix_secs
    }
}

impl CachedFile {
    /// Opens and, if it is small, reads what was found at `relative`.
    ///
    /// - `access`: whether it may wait for the disk.
    /// - `pool`: reads a file that is not small before it is sent, where it is not in memory.
    ///
    /// # Errors
    /// `AGAIN` when the file never stood still while it was read: half an old and half a new file
    /// is not an answer. `WouldWait` when it has to be read and may not be waited for.
    pub(super) fn load(
        (root, access): (&Root, Access),
        located: &Located,
        relative: &[u8],
        (headers, pool): (&FolderHeaders, Option<&BlockingPool>),
        now: Now,
    ) -> Result<CachedFile, Failure> {
        let file = root.open_to_read(located, relative)?;
        let name = memchr::memrchr(b'/', relative).map_or(relative, |at| &relative[at + 1..]);
        let content_type = ContentType::of(name);
        for _ in 0..ATTEMPTS_MAX {
            let stamp = Stamp::of(&rustix::fs::fstat(&file)?);
            if stamp.size > SMALL_BYTES_MAX {
                let is_local = root.is_local_device(stamp.device);
                let closed_by = pool.filter(|_| !is_local).cloned();
                let file = Some(Arc::new(OpenFile::new(Arc::new(file), closed_by)));
                let file = CachedFile {
                    pool: pool.cloned(),
                    ..CachedFile::new(stamp, content_type, file, &[], headers, now)
                };
                file.note_warmth(root);
                return Ok(file);
            }
            let bytes = match access {
                Access::Waits => read_from_start(&file, stamp.size)?,
                Access::Cached => {
                    warmth::read_cached(&file, stamp.size).ok_or(Failure::WouldWait)?
                }
            };
            let is_whole = bytes.len() as u64 == stamp.size;
            if is_whole && Stamp::of(&rustix::fs::fstat(&file)?) == stamp {
                return Ok(CachedFile::new(stamp, content_type, None, &bytes, headers, now));
            }
        }
        Err(Failure::Disk(Errno::AGAIN))
    }

    /// Finds out whether a file that is not small can be sent without waiting for the disk. That
    /// holds until it is compared with the disk again.
    ///
    /// Without threads that could read it, it is sent as it is.
    pub(super) fn note_warmth(&self, root: &Root) {
        let (Some(file), Some(_)) = (&self.file, &self.pool) else { return };
        let is_local = root.is_local_device(self.seen.stamp.device);
        self.is_cold.store(!warmth::is_warm(file, self.size, is_local), Ordering::Relaxed);
    }

    /// Reads the file before it is sent, where it is not all in memory.
    pub(super) fn cold(&self) -> Option<&BlockingPool> {
        self.pool.as_ref().filter(|_| self.is_cold.load(Ordering::Relaxed))
    }

    fn new(
        stamp: Stamp,
        content_type: ContentType,
        file: Option<Arc<OpenFile>>,
        body: &[u8],
        headers: &FolderHeaders,
        now: Now,
    ) -> CachedFile {
        let validators = Validators { tag: stamp.tag(), modified_secs: stamp.modified_secs(now) };
        let fields = fields(content_type, &validators, headers);
        let mut prepared = Vec::with_capacity(256 + body.len());
        write_fields(&mut prepared, &fields);
        write!(prepared, "Content-Length: {}\r\n\r\n", stamp.size).expect("a vector takes all");
        let head_bytes = prepared.len();
        prepared.extend_from_slice(body);
        CachedFile {
            prepared: prepared.into_boxed_slice(),
            fields: Arc::new(fields),
            head_bytes,
            file,
            size: stamp.size,
            validators,
            content_type,
            seen: Seen { stamp, is_settled: stamp.is_settled(now) },
            pool: None,
            is_cold: AtomicBool::new(false),
        }
    }

    /// The ready field lines and blank line, and the bytes of a small file unless `head_only`.
    #[inline]
    pub fn ready(&self, head_only: bool) -> &[u8] {
        if head_only { &self.prepared[..self.head_bytes] } else { &self.prepared }
    }

    /// The fields of a 200, but for `Content-Length`.
    pub fn fields(&self) -> &Arc<Fields> {
        &self.fields
    }

    /// How many bytes of what is ready are the head.
    #[inline]
    pub fn head_bytes(&self) -> usize {
        self.head_bytes
    }

    /// The bytes of a small file; nothing of any other.
    pub fn body(&self) -> &[u8] {
        &self.prepared[self.head_bytes..]
    }

    /// The descriptor of a file that is not small.
    #[inline]
    pub(super) fn file(&self) -> Option<&Arc<OpenFile>> {
        self.file.as_ref()
    }

    /// All of a file that is not small, as it is sent.
    pub fn segment(&self) -> Option<Segment> {
        let file = Arc::clone(self.file.as_ref()?);
        Some(Segment::File { file, offset: 0, len: self.size, cold: self.cold().cloned() })
    }

    /// What it is compared with the disk by.
    pub(super) fn seen(&self) -> Seen {
        self.seen
    }

    /// Bytes of memory behind this value.
    pub(super) fn heap_bytes(&self) -> usize {
        self.prepared.len() + self.fields.heap_bytes()
    }
}

/// The fields of a 200, but for `Content-Length`, which is for the protocol to write.
fn fields(content_type: ContentType, validators: &Validators, headers: &FolderHeaders) -> Fields {
    let mut fields = Fields::new();
    fields.add_trusted(HeaderId::ContentType, content_type.to_string().as_bytes());
    fields.add_trusted(HeaderId::LastModified, &date::imf_fixdate(validators.modified_secs));
    fields.add_trusted(HeaderId::ETag, validators.tag.as_bytes());
    fields.add_trusted(HeaderId::AcceptRanges, b"bytes");
    if !headers.has_nosniff {
        fields.add_trusted(HeaderId::XContentTypeOptions, b"nosniff");
    }
    fields.extend(&headers.fields);
    fields
}

/// Reads up to `size` bytes; fewer only where the file ends before.
fn read_from_start(file: &impl AsFd, size: u64) -> Result<Vec<u8>, Errno> {
    let size = usize::try_from(size).map_err(|_| Errno::FBIG)?;
    let mut bytes = vec![0; size];
    let mut filled = 0;
    while filled < size {
        match rustix::io::pread(file, &mut bytes[filled..], filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
