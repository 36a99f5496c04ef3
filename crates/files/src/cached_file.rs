//! A file ready to be served: opened, read if it is small, its head prepared.

use std::io::Write;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use gustnado_http::content_coding::ContentCoding;
use gustnado_http::date;
use gustnado_http::etag::EntityTag;
use gustnado_http::fields::{Fields, HeaderId};
use gustnado_http::h2::hpack::write_unindexed;
use gustnado_http::precondition::Validators;
use gustnado_http::response_writer::write_fields;
use gustnado_tasks::{BlockingPool, Now};
use rustix::io::Errno;

use super::content_type::ContentType;
use super::digest::Hashing;
use super::error::Failure;
use super::headers::FolderHeaders;
use super::open_file::{OpenFile, OpenFiles};
use super::resolve::{Located, Root};
use super::segment::Segment;
use super::stamp::{Seen, Stamp};
use super::warmth;

/// The largest file in memory that is copied behind its head for each response.
const COPIED_BYTES_MAX: u64 = 8 * 1024 - 1;

/// How often a small file is read again if it changed during the read.
const ATTEMPTS_MAX: usize = 4;

/// Whether a lookup may wait for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Waits,
    /// Only bytes in memory are used; else [`Failure::WouldWait`].
    Cached,
}

/// A folder, as far as its files are made by it.
#[derive(Clone, Copy)]
pub(super) struct LoadContext<'f> {
    pub(super) headers: &'f FolderHeaders,
    /// Reads a larger file before it is sent, if it is not in memory.
    pub(super) pool: Option<&'f BlockingPool>,
    /// A larger one that is open already is not opened again.
    pub(super) open_files: &'f OpenFiles,
    pub(super) hashing: &'f Hashing,
    /// The largest file that is kept in memory with its head.
    pub(super) small_bytes_max: u64,
    /// The fields that the file has beyond the folder's.
    pub(super) own: &'f Fields,
}

/// How the bytes of a file are to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Representation {
    pub(super) content_type: ContentType,
    pub(super) coding: ContentCoding,
    /// Which representation a client gets depends on its `Accept-Encoding`.
    pub(super) varies: bool,
}

impl Representation {
    /// Returns that of a file that exists in one form.
    pub(super) fn of_type(content_type: ContentType) -> Self {
        Self { content_type, coding: ContentCoding::Identity, varies: false }
    }

    /// Adds what caches have to know of it.
    pub(super) fn put_vary(&self, fields: &mut Fields) {
        if self.varies {
            fields.add_trusted(HeaderId::Vary, HeaderId::AcceptEncoding.name().as_bytes());
        }
    }

    /// Adds the coding of content that is sent.
    pub(super) fn put_coding(&self, fields: &mut Fields) {
        if self.coding != ContentCoding::Identity {
            fields.add_trusted(HeaderId::ContentEncoding, self.coding.name().as_bytes());
        }
    }
}

/// A regular file, ready to be sent any number of times.
#[derive(Debug)]
pub struct CachedFile {
    /// The fields of a 200, but for `Content-Length`.
    fields: Arc<Fields>,
    /// The same as HTTP/1 sends them: field lines and the blank line, followed by the bytes of a
    /// small file. One copy then writes a whole response.
    prepared: Box<[u8]>,
    /// How many of those bytes are the head.
    head_bytes: usize,
    /// Those of the fields that a response without content has, too, beyond the folder's.
    pub(super) own: Fields,
    /// The fields as HTTP/2 sends them, `Content-Length` among them, once they were sent so.
    block: OnceLock<Box<[u8]>>,
    /// A file that is not small, open for reading.
    pub(super) file: Option<Arc<OpenFile>>,
    /// Bytes of the whole file.
    pub size: u64,
    pub(super) validators: Validators,
    pub(super) representation: Representation,
    pub(super) seen: Seen,
    /// Reads the file before it is sent, if it is not all in memory.
    pool: Option<BlockingPool>,
    /// Not all of it is in memory. Atomic, because responses on other workers may still use this
    /// file while its worker checks the disk again. Relaxed loads and stores suffice: nothing is
    /// ordered by it, and a stale value only costs a needless read or one wait for the disk.
    is_cold: AtomicBool,
}

impl CachedFile {
    /// Opens the file found at `relative`, and reads it if it is small.
    ///
    /// - `access`: whether it may wait for the disk.
    ///
    /// # Errors
    /// `AGAIN` if the file changed during every read: a response must not mix old and new bytes.
    /// `WouldWait` if reading it would wait and `access` forbids that.
    pub(super) fn load(
        (root, access): (&Root, Access),
        (located, relative, representation): (&Located, &[u8], Representation),
        folder: LoadContext<'_>,
        now: Now,
    ) -> Result<CachedFile, Failure> {
        let LoadContext { pool, open_files, small_bytes_max, .. } = folder;
        let sent_from = |stamp: Stamp, file| {
            let file = CachedFile {
                pool: pool.cloned(),
                ..CachedFile::new(stamp, representation.clone(), Ok(file), folder, now)
            };
            // Before the first response, which would otherwise take a cold file for a warm one.
            file.note_warmth(root);
            file
        };
        let stamp = Stamp::of(&located.stat);
        if stamp.size > small_bytes_max
            && let Some(file) = open_files.get(&stamp)
        {
            return Ok(sent_from(stamp, file));
        }
        let (file, mut stat) = match access {
            Access::Waits => root.open_to_read(located, relative)?,
            Access::Cached => root.open_to_read_cached(located, relative)?,
        };
        // A larger file is sent from its descriptor; a small one is copied here, and must be copied
        // whole.
        for _ in 0..ATTEMPTS_MAX {
            // From the open descriptor, not from `located`: it may have changed since.
            let stamp = Stamp::of(&stat);
            if stamp.size > small_bytes_max {
                let is_local = root.is_local_device(stamp.device);
                // A remote file system may wait for its server in `close`, too.
                let closed_by = pool.filter(|_| !is_local).cloned();
                let file = Arc::new(OpenFile::new(Arc::new(file), closed_by));
                open_files.add(stamp, &file);
                return Ok(sent_from(stamp, file));
            }
            let bytes = match access {
                Access::Waits => read_from_start(&file, stamp.size)?,
                Access::Cached => {
                    warmth::read_cached(&file, stamp.size).ok_or(Failure::WouldWait)?
                }
            };
            let is_whole = bytes.len() as u64 == stamp.size;
            // Compared after the read too, or a write in the middle of it would be cached as a
            // whole file.
            stat = rustix::fs::fstat(&file)?;
            if is_whole && Stamp::of(&stat) == stamp {
                return Ok(CachedFile::new(stamp, representation, Err(&bytes), folder, now));
            }
        }
        Err(Failure::Disk(Errno::AGAIN))
    }

    /// Creates a representation that the server has made of a file's bytes: all of it is in memory.
    ///
    /// - `stamp`: one that no file has.
    pub(super) fn made(
        original: &CachedFile,
        (coding, stamp): (ContentCoding, Stamp),
        bytes: &[u8],
        folder: LoadContext<'_>,
        now: Now,
    ) -> CachedFile {
        let representation = Representation { coding, ..original.representation.clone() };
        CachedFile::new(stamp, representation, Err(bytes), folder, now)
    }

    /// Checks whether a larger file can be sent without waiting for the disk. The result holds
    /// until the file is compared with the disk again.
    ///
    /// Without a pool to read it, the file is sent as it is.
    pub(super) fn note_warmth(&self, root: &Root) {
        let (Some(file), Some(_)) = (&self.file, &self.pool) else { return };
        let is_local = root.is_local_device(self.seen.stamp.device);
        self.is_cold.store(!warmth::is_warm(file, self.size, is_local), Ordering::Relaxed);
    }

    /// Returns the pool that reads the file before it is sent, if not all of it is in memory.
    pub(super) fn cold(&self) -> Option<&BlockingPool> {
        self.pool.as_ref().filter(|_| self.is_cold.load(Ordering::Relaxed))
    }

    /// - `content`: the open file, or the bytes of a small one.
    fn new(
        stamp: Stamp,
        representation: Representation,
        content: Result<Arc<OpenFile>, &[u8]>,
        folder: LoadContext<'_>,
        now: Now,
    ) -> CachedFile {
        let body = content.as_ref().err().copied();
        let digest = folder.hashing.digest(&stamp, body);
        let awaits_digest = folder.hashing.is_awaited(&stamp, digest);
        let validators = folder.hashing.validators(&stamp, digest, now);
        let body = body.unwrap_or_default();
        let fields = fields(&representation, &validators, folder);
        let mut prepared = Vec::with_capacity(256 + body.len());
        write_fields(&mut prepared, &fields);
        write!(prepared, "Content-Length: {}\r\n\r\n", stamp.size).expect("a vector takes all");
        let head_bytes = prepared.len();
        prepared.extend_from_slice(body);
        CachedFile {
            prepared: prepared.into_boxed_slice(),
            fields: Arc::new(fields),
            head_bytes,
            own: folder.own.clone(),
            block: OnceLock::new(),
            file: content.ok(),
            size: stamp.size,
            validators,
            representation,
            seen: Seen::new(stamp, awaits_digest, now),
            pool: None,
            is_cold: AtomicBool::new(false),
        }
    }

    /// Returns the prepared field lines and blank line, followed by the bytes of a small file
    /// unless `head_only`.
    #[inline]
    pub fn ready(&self, head_only: bool) -> &[u8] {
        if head_only { &self.prepared[..self.head_bytes] } else { &self.prepared }
    }

    /// Returns the coding of its bytes.
    pub(super) fn coding(&self) -> ContentCoding {
        self.representation.coding
    }

    /// Returns the fields of a 200, but for `Content-Length`.
    pub fn fields(&self) -> &Arc<Fields> {
        &self.fields
    }

    /// Returns how many of the prepared bytes are the head.
    #[inline]
    pub fn head_bytes(&self) -> usize {
        self.head_bytes
    }

    /// Returns the fields as HTTP/2 sends them: a part of a block that no table knows.
    #[inline]
    pub fn block(&self) -> &[u8] {
        self.block.get_or_init(|| {
            let mut block = Vec::new();
            for (name, value) in self.fields.iter() {
                write_unindexed(name, value, &mut block);
            }
            let size = self.size.to_string();
            write_unindexed(HeaderId::ContentLength.into(), size.as_bytes(), &mut block);
            block.into_boxed_slice()
        })
    }

    /// Returns the bytes of a small file; empty for a larger one.
    pub fn body(&self) -> &[u8] {
        &self.prepared[self.head_bytes..]
    }

    /// Returns the bytes of a file that is not small and not open, to be sent as they are.
    pub fn held(self: &Arc<Self>) -> Option<HeldFile> {
        let is_held = self.file.is_none() && self.size > COPIED_BYTES_MAX;
        is_held.then(|| HeldFile(Arc::clone(self)))
    }

    /// Returns the whole of a larger file as content.
    pub fn segment(&self) -> Option<Segment> {
        let file = Arc::clone(self.file.as_ref()?);
        Some(Segment::File { file, offset: 0, len: self.size, cold: self.cold().cloned() })
    }

    /// Returns the heap memory of this value in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        // (The fields of HTTP/2 are shorter than they are here.)
        self.prepared.len() + 2 * self.fields.heap_bytes() + self.own.heap_bytes()
    }
}

/// The bytes of a file that are held in memory.
pub struct HeldFile(Arc<CachedFile>);

impl AsRef<[u8]> for HeldFile {
    fn as_ref(&self) -> &[u8] {
        self.0.body()
    }
}

/// Builds the fields of a 200, but for `Content-Length`, which the protocol writes.
fn fields(of: &Representation, validators: &Validators, folder: LoadContext<'_>) -> Fields {
    let headers = folder.headers;
    let mut fields = Fields::new();
    fields.add_trusted(HeaderId::ContentType, of.content_type.to_string().as_bytes());
    of.put_coding(&mut fields);
    of.put_vary(&mut fields);
    put_validators(&mut fields, validators.tag, validators);
    // A part of a delta would be of no use without the rest.
    if of.coding != ContentCoding::DictionaryZstd {
        fields.add_trusted(HeaderId::AcceptRanges, b"bytes");
    }
    if !headers.has_nosniff {
        fields.add_trusted(HeaderId::XContentTypeOptions, b"nosniff");
    }
    headers.add_to(&mut fields, folder.own);
    if of.content_type.is_html() {
        fields.extend(&headers.links);
    }
    fields
}

/// Adds the date, and the tag that the response is to have.
pub(super) fn put_validators(fields: &mut Fields, tag: Option<EntityTag>, of: &Validators) {
    if let Some(modified_secs) = of.modified_secs {
        fields.add_trusted(HeaderId::LastModified, &date::imf_fixdate(modified_secs));
    }
    if let Some(tag) = tag {
        fields.add_trusted(HeaderId::ETag, tag.as_bytes());
    }
}

/// Reads up to `size` bytes; fewer only if the file ends earlier.
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
