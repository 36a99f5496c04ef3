//! Downloads of a folder with all that is in it, as one file that is made while it is sent.
//!
//! What is held does not grow with the number of files, nor with their size: names come in the
//! order of the disk, and bytes in steps. A step begins when the client has taken what the one
//! before it has made.

mod attachment;
mod directory;
mod member;
mod permit;
mod tar;
mod walk;
mod zip;

use std::fs::File;
use std::mem;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use gustnado_compress::Level;
use gustnado_http::fields::{Fields, HeaderId};
use gustnado_http::request::RequestView;
use gustnado_http::status::Status;
use gustnado_tasks::{Charge, MemoryKind};
use rustix::io::Errno;

use super::error::Failure;
use super::listing::query::value;
use super::open_folder::OpenFolder;
use super::pieces::{Pieces, Produce};
use super::response::{FileContent, FileResponse};
use super::shown::ShownEntries;
use super::{Folder, Mounted};

use directory::DirectoryReader;
use member::Member;
use permit::ArchivePermit;
use tar::TarWriter;
use walk::{FolderWalk, FolderWalkStep, WalkEntry};
use zip::ZipWriter;

/// Bytes of a file that are read at once.
const CHUNK_BYTES: usize = 128 << 10;
/// Bytes of an archive that are sent at once, about.
const PIECE_BYTES: usize = 64 << 10;
/// When a step ends although it has made little: after so many bytes that were read, where a name
/// counts as some.
const STEP_BYTES: usize = 512 << 10;
const NAME_COST_BYTES: usize = 2 << 10;

/// What an archive holds beside its encoder.
const HELD_BYTES: usize = 2 * CHUNK_BYTES + 2 * PIECE_BYTES;
/// What zip's encoders and directory hold at most.
const ZIP_BYTES: usize = 3 << 19;

/// The form of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArchiveForm {
    TarZst,
    Zip,
}

impl ArchiveForm {
    /// Returns the form that a request asks for, if the folder offers it.
    pub(super) fn wanted(folder: &Folder, request: RequestView<'_>) -> Option<Self> {
        let offered = folder.settings.archives.names();
        let name = value(request.query()?, b"archive")?;
        let name = offered.iter().find(|offered| offered.as_bytes() == name)?;
        Some(if *name == "zip" { Self::Zip } else { Self::TarZst })
    }

    /// Returns the ending of its name.
    fn ending(self) -> &'static str {
        match self {
            Self::TarZst => ".tar.zst",
            Self::Zip => ".zip",
        }
    }

    fn content_type(self) -> &'static [u8] {
        match self {
            Self::TarZst => b"application/zstd",
            Self::Zip => b"application/zip",
        }
    }
}

/// Returns the response with an archive of a folder.
pub(super) fn respond(
    form: ArchiveForm,
    opened: OpenFolder,
    folder: &Folder,
    place: &Mounted<'_>,
) -> FileResponse {
    let Some(permit) = ArchivePermit::take(&folder.in_all, folder.archives_max) else {
        let mut response = FileResponse::new(Status::SERVICE_UNAVAILABLE)
            .with(HeaderId::RetryAfter, b"10")
            .with_headers(&folder.headers);
        response.hint = Some("The server makes as many archives as it may. Please try again soon.");
        return response;
    };
    let name = attachment::name_of(place);
    let disposition = attachment::disposition(&name, form.ending());
    let settings = &folder.settings;
    let archive = ArchivePieces {
        form,
        level: Level { gzip: settings.compress_gzip_level, zstd: settings.compress_zstd_level },
        spool: folder.spool.clone(),
        below: opened.relative().len(),
        name,
        shown: ShownEntries::of(folder),
        bytes_max: settings.archive_bytes_max,
        bytes: 0,
        chunk: Vec::new(),
        state: ArchiveState::Start(opened),
        charge: Charge::new(MemoryKind::Sends),
        permit,
    };
    let response = FileResponse::new(Status::OK)
        .with(HeaderId::ContentType, form.content_type())
        .with(HeaderId::ContentDisposition, &disposition)
        .with(HeaderId::CacheControl, b"no-cache");
    let content = Pieces::new(archive, folder.pool().cloned(), folder.wait);
    let content = FileContent::Pieces(Box::new(content));
    FileResponse { content, ..response.with_headers_of_content(&folder.headers, &Fields::new()) }
}

/// An archive that is being sent.
struct ArchivePieces {
    form: ArchiveForm,
    level: Level,
    spool: PathBuf,
    /// The name of the folder in the archive, and how many bytes its own path has below the root.
    name: Vec<u8>,
    below: usize,
    shown: ShownEntries,
    /// The most bytes that all files may have together; 0 is no bound.
    bytes_max: u64,
    bytes: u64,
    /// Bytes of a file.
    chunk: Vec<u8>,
    state: ArchiveState,
    charge: Charge,
    permit: ArchivePermit,
}

enum ArchiveState {
    Start(OpenFolder),
    /// The bytes are counted before the first of them is sent, if there is a bound.
    Counting(OpenFolder, FolderWalk),
    Names(FolderWalk, ArchiveWriter),
    /// In the middle of a file.
    Bytes(FolderWalk, ArchiveWriter, OpenMember),
    /// The directory of a zip file.
    Directory(DirectoryReader),
    End,
}

enum ArchiveWriter {
    Tar(Box<TarWriter>),
    Zip(Box<ZipWriter>),
}

/// A file whose bytes are being read.
struct OpenMember {
    file: File,
    at: u64,
    size: u64,
}

impl Produce for ArchivePieces {
    fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let mut out = Vec::new();
        let mut cost = 0;
        while out.len() < PIECE_BYTES && cost < STEP_BYTES {
            match self.advance(&mut out) {
                Ok(Some(more)) => cost += more,
                Ok(None) if out.is_empty() => return Ok(None),
                Ok(None) => break,
                Err(failure) => {
                    if failure != Failure::TooLarge {
                        self.permit.note_failed();
                    }
                    return Err(failure);
                }
            }
        }
        Ok(Some(out))
    }
}

impl ArchivePieces {
    /// Makes a little more. Returns how much work that was; `None` at the end.
    fn advance(&mut self, out: &mut Vec<u8>) -> Result<Option<usize>, Failure> {
        let (state, cost) = match mem::replace(&mut self.state, ArchiveState::End) {
            ArchiveState::Start(opened) => {
                let walk = FolderWalk::new(&opened, self.shown.clone())?;
                if self.bytes_max > 0 {
                    (ArchiveState::Counting(opened, walk), NAME_COST_BYTES)
                } else {
                    (self.begin(&opened, walk, out)?, NAME_COST_BYTES)
                }
            }
            ArchiveState::Counting(opened, mut walk) => {
                let state = match walk.next()? {
                    FolderWalkStep::End => {
                        self.bytes = 0;
                        let walk = FolderWalk::new(&opened, self.shown.clone())?;
                        self.begin(&opened, walk, out)?
                    }
                    FolderWalkStep::LeftOut => ArchiveState::Counting(opened, walk),
                    FolderWalkStep::Entry(entry) => {
                        if !entry.is_folder {
                            self.count(entry.bytes())?;
                        }
                        ArchiveState::Counting(opened, walk)
                    }
                };
                (state, NAME_COST_BYTES)
            }
            ArchiveState::Names(mut walk, writer) => match walk.next()? {
                FolderWalkStep::LeftOut => (ArchiveState::Names(walk, writer), NAME_COST_BYTES),
                FolderWalkStep::Entry(entry) => self.add(&entry, walk, writer, out)?,
                FolderWalkStep::End => match writer {
                    ArchiveWriter::Tar(mut tar) => {
                        tar.finish(out).map_err(|_| Errno::NOMEM)?;
                        (ArchiveState::End, 0)
                    }
                    ArchiveWriter::Zip(zip) => (ArchiveState::Directory(zip.finish()?), 0),
                },
            },
            ArchiveState::Bytes(walk, writer, member) => self.go_on(walk, writer, member, out)?,
            ArchiveState::Directory(mut directory) => {
                if directory.read(PIECE_BYTES, out) {
                    (ArchiveState::Directory(directory), PIECE_BYTES)
                } else {
                    (ArchiveState::End, 0)
                }
            }
            ArchiveState::End => return Ok(None),
        };
        self.state = state;
        Ok(Some(cost))
    }

    /// Begins the archive with the folder itself.
    fn begin(
        &mut self,
        opened: &OpenFolder,
        walk: FolderWalk,
        out: &mut Vec<u8>,
    ) -> Result<ArchiveState, Failure> {
        let stat = rustix::fs::fstat(opened.directory())?;
        let member = Member::new(self.name.clone(), &stat, true);
        let mut writer = match self.form {
            ArchiveForm::TarZst => {
                let tar = TarWriter::new(self.level).map_err(|_| Errno::NOMEM)?;
                ArchiveWriter::Tar(Box::new(tar))
            }
            ArchiveForm::Zip => {
                let zip = ZipWriter::new(self.level.gzip, self.spool.clone());
                ArchiveWriter::Zip(Box::new(zip))
            }
        };
        writer.folder(member, out)?;
        self.charge.set(HELD_BYTES + writer.heap_bytes());
        Ok(ArchiveState::Names(walk, writer))
    }

    /// Adds a file or a folder. Of a file that is longer than a chunk, the rest comes later.
    fn add(
        &mut self,
        entry: &WalkEntry,
        walk: FolderWalk,
        mut writer: ArchiveWriter,
        out: &mut Vec<u8>,
    ) -> Result<(ArchiveState, usize), Failure> {
        let mut path = self.name.clone();
        if self.below == 0 {
            path.push(b'/');
        }
        path.extend_from_slice(&entry.relative[self.below..]);
        if entry.is_folder {
            writer.folder(Member::new(path, &entry.stat, true), out)?;
            return Ok((ArchiveState::Names(walk, writer), NAME_COST_BYTES));
        }
        let Some((file, stat)) = walk.open(entry)? else {
            return Ok((ArchiveState::Names(walk, writer), NAME_COST_BYTES));
        };
        let mut size = u64::try_from(stat.st_size).unwrap_or(0);
        let first = usize::try_from(size).map_or(CHUNK_BYTES, |size| size.min(CHUNK_BYTES));
        let read = read_chunk(&file, 0, first, &mut self.chunk)?;
        if read < first {
            // It has become shorter since, and its header is not written yet.
            size = read as u64;
        }
        self.count(size)?;
        writer.begin(Member::new(path, &stat, false), size, out)?;
        writer.write(&self.chunk, out)?;
        let cost = NAME_COST_BYTES + read;
        let member = OpenMember { file, at: read as u64, size };
        if member.at < size {
            return Ok((ArchiveState::Bytes(walk, writer, member), cost));
        }
        writer.end(out)?;
        Ok((ArchiveState::Names(walk, writer), cost))
    }

    /// Adds more bytes of a file. What it has become longer by is left out.
    fn go_on(
        &mut self,
        walk: FolderWalk,
        mut writer: ArchiveWriter,
        mut member: OpenMember,
        out: &mut Vec<u8>,
    ) -> Result<(ArchiveState, usize), Failure> {
        let left = member.size - member.at;
        let wanted = usize::try_from(left).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
        let read = read_chunk(&member.file, member.at, wanted, &mut self.chunk)?;
        if read < wanted {
            // It has become shorter. As tar itself does, what its header promises is filled up.
            match &writer {
                ArchiveWriter::Tar(_) => self.chunk.resize(wanted, 0),
                ArchiveWriter::Zip(_) => member.size = member.at + read as u64,
            }
        }
        writer.write(&self.chunk, out)?;
        member.at += self.chunk.len() as u64;
        let cost = self.chunk.len();
        if member.at < member.size {
            return Ok((ArchiveState::Bytes(walk, writer, member), cost));
        }
        writer.end(out)?;
        self.charge.set(HELD_BYTES + writer.heap_bytes());
        Ok((ArchiveState::Names(walk, writer), cost))
    }

    /// Counts the bytes of a file.
    fn count(&mut self, size: u64) -> Result<(), Failure> {
        self.bytes = self.bytes.saturating_add(size);
        let is_too_much = self.bytes_max > 0 && self.bytes > self.bytes_max;
        if is_too_much { Err(Failure::TooLarge) } else { Ok(()) }
    }
}

impl ArchiveWriter {
    fn folder(&mut self, member: Member, out: &mut Vec<u8>) -> Result<(), Errno> {
        match self {
            Self::Tar(tar) => tar.begin(&member, 0, out).map_err(|_| Errno::NOMEM),
            Self::Zip(zip) => zip.folder(member, out),
        }
    }

    fn begin(&mut self, member: Member, size: u64, out: &mut Vec<u8>) -> Result<(), Errno> {
        match self {
            Self::Tar(tar) => tar.begin(&member, size, out).map_err(|_| Errno::NOMEM),
            Self::Zip(zip) => {
                zip.begin(member, size, out);
                Ok(())
            }
        }
    }

    fn write(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Errno> {
        let written = match self {
            Self::Tar(tar) => tar.write(bytes, out),
            Self::Zip(zip) => zip.write(bytes, out),
        };
        written.map_err(|_| Errno::NOMEM)
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), Errno> {
        match self {
            Self::Tar(tar) => tar.end(out).map_err(|_| Errno::NOMEM),
            Self::Zip(zip) => zip.end(out),
        }
    }

    fn heap_bytes(&self) -> usize {
        match self {
            Self::Tar(tar) => tar.heap_bytes(),
            Self::Zip(_) => ZIP_BYTES,
        }
    }
}

/// Reads so many bytes of a file, or all up to its end. Returns how many there were.
fn read_chunk(file: &File, at: u64, bytes: usize, chunk: &mut Vec<u8>) -> Result<usize, Errno> {
    chunk.clear();
    chunk.resize(bytes, 0);
    let mut read = 0;
    while read < bytes {
        match file.read_at(&mut chunk[read..], at + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::INTR) => {}
                errno => return Err(errno.unwrap_or(Errno::IO)),
            },
        }
    }
    chunk.truncate(read);
    Ok(read)
}
