//! A file that is not whole yet, beside the place where it will be.

use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::mem::take;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use gustnado_http::etag::EntityTag;
use gustnado_http::precondition::{Verdict, judge};
use gustnado_http::status::Status;
use gustnado_tasks::Now;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use super::quota::QuotaShare;
use super::shadow::would_shadow;
use super::{UploadFailure, UploadRequest};
use crate::Folder;
use crate::cached_file::{Access, CachedFile, Representation};
use crate::digest::GrowingDigest;
use crate::path::PART_NAME;
use crate::resolve::Root;
use crate::select::conditions_of;
use crate::stamp::Stamp;
use crate::target::parted;

/// Bytes that are written before they have to be on the disk: so no step waits for many, however
/// large a file is.
const UNSYNCED_BYTES_MAX: u64 = 32 << 20;
/// The longest tick of a clock of file systems. What gets its name a tick after it was written has
/// attributes that stand for its bytes.
const TICK_MAX: Duration = Duration::from_millis(10);
/// How often another name is tried.
const ATTEMPTS_MAX: usize = 4;

/// A file that is not whole yet. Dropping it removes it.
#[derive(Debug)]
pub(super) struct PartFile {
    folder: Arc<Folder>,
    root: Arc<Root>,
    /// The folder that it lies in, and will lie in.
    parent: OwnedFd,
    file: File,
    name: PartName,
    relative: Vec<u8>,
    /// The file in its place when the request came.
    replaces: Option<Stat>,
    /// A condition of the request names that file.
    is_conditional: bool,
    written: u64,
    /// Of what is written, as long as the file is short enough.
    digest: GrowingDigest,
    /// Those of them that may not be on the disk yet.
    unsynced: u64,
    share: QuotaShare,
}

/// The name of a file that is not whole.
#[derive(Debug)]
enum PartName {
    /// It has none, and is gone with the process that writes it.
    Unnamed,
    Hidden(String),
    /// It is in its place.
    Own,
}

/// A file in its place.
pub(super) struct PutFile {
    /// No file was there.
    pub(super) is_new: bool,
    pub(super) tag: Option<EntityTag>,
}

impl PartFile {
    /// Checks whether a file may be put in its place, and begins it.
    pub(super) fn begin(
        folder: &Arc<Folder>,
        root: Arc<Root>,
        request: &UploadRequest,
        now: Now,
    ) -> Result<Self, UploadFailure> {
        let relative = request.relative.clone();
        let (above, name) = parted(&relative);
        let parent = root.open_directory(above).map_err(|errno| match errno {
            Errno::NOENT | Errno::NOTDIR | Errno::XDEV | Errno::LOOP => UploadFailure::NoFolder,
            errno => UploadFailure::Disk(errno),
        })?;
        let found = rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW);
        let replaces = match found {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                Some(stat)
            }
            Ok(_) => return Err(UploadFailure::NoFile),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(errno.into()),
        };
        let is_conditional = request.head.is_conditional();
        if is_conditional {
            check_conditions((folder, &root), request, replaces.is_some(), now)?;
        }
        let settings = &folder.settings;
        if !settings.upload_overwrite {
            if replaces.is_some() {
                return Err(UploadFailure::Exists);
            }
            if would_shadow(folder, &root, &relative, now) {
                return Err(UploadFailure::Shadows);
            }
        }
        let length = request.length.unwrap_or(0);
        if length > settings.upload_bytes_max {
            return Err(UploadFailure::TooLarge);
        }
        let quota = folder.uploads.of(root.identity(), now);
        let share = quota.begin(&root, settings.upload_quota, now)?;
        if !share.has_room(length) {
            return Err(UploadFailure::Quota);
        }
        let (name, file) = create(&parent)?;
        let (folder, written) = (Arc::clone(folder), 0);
        Ok(Self {
            folder,
            root,
            parent,
            file,
            name,
            relative,
            replaces,
            is_conditional,
            written,
            digest: GrowingDigest::default(),
            unsynced: 0,
            share,
        })
    }

    /// Writes more of it.
    pub(super) fn write(&mut self, piece: &[u8]) -> Result<(), UploadFailure> {
        let bytes = piece.len() as u64;
        self.written += bytes;
        if self.written > self.folder.settings.upload_bytes_max {
            return Err(UploadFailure::TooLarge);
        }
        if !self.share.take(bytes) {
            return Err(UploadFailure::Quota);
        }
        self.file.write_all(piece).map_err(|error| failure(&error))?;
        if self.is_digested() {
            self.digest.add(piece);
        }
        self.unsynced += bytes;
        if self.unsynced >= UNSYNCED_BYTES_MAX {
            self.file.sync_data().map_err(|error| failure(&error))?;
            self.unsynced = 0;
        }
        Ok(())
    }

    /// Returns the status of the response, if it is put in its place as things are now.
    pub(super) fn status(&self) -> Status {
        if self.replaces.is_none() { Status::CREATED } else { Status::NO_CONTENT }
    }

    /// Waits until it is on the disk. Before it has its name: after a crash, a file with that name
    /// is whole.
    pub(super) fn sync(&self) -> Result<(), UploadFailure> {
        self.file.sync_all().map_err(|error| failure(&error))?;
        if self.is_digested() && !self.is_small() {
            thread::sleep(TICK_MAX);
        }
        Ok(())
    }

    /// Puts it in its place.
    pub(super) fn finish(mut self: Box<Self>, now: Now) -> Result<PutFile, UploadFailure> {
        let replaced = {
            let quota = self.share.quota();
            let _commit = quota.commits.lock().unwrap_or_else(PoisonError::into_inner);
            self.put(now)?
        };
        self.folder.note_written();
        self.share.keep(replaced.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0)));
        // The name itself has to last, too, before the client is told that it does.
        rustix::fs::fsync(&self.parent)?;
        let put = PutFile { is_new: replaced.is_none(), tag: self.tag() };
        // Whoever has looked meanwhile has not seen that tag.
        self.folder.note_written();
        Ok(put)
    }

    /// Returns the tag that responses with these very bytes have from now on; `None` if they will
    /// have another one once the file's attributes have settled (RFC 9110 §9.3.4).
    fn tag(&mut self) -> Option<EntityTag> {
        if !self.is_digested() {
            return None;
        }
        let digest = take(&mut self.digest).finish();
        // A small file is digested whenever it is read.
        let stands = self.is_small() || {
            let stamp = Stamp::of(&rustix::fs::fstat(&self.file).ok()?);
            // (Others may show other attributes later.)
            self.root.is_local_device(stamp.device) && self.folder.hashing.note(stamp, digest)
        };
        stands.then(|| EntityTag::of_digest(&digest))
    }

    /// Returns whether it is as short as files are that get their tag from their bytes.
    fn is_digested(&self) -> bool {
        self.folder.hashing.includes_size(self.written)
    }

    fn is_small(&self) -> bool {
        self.written <= self.folder.settings.small_file_bytes_max
    }

    /// Gives it its name. Returns the file that was there.
    fn put(&mut self, now: Now) -> Result<Option<Stat>, UploadFailure> {
        let (parent, (_, name)) = (&self.parent, parted(&self.relative));
        if !self.folder.settings.upload_overwrite {
            // Another upload may have put that file there meanwhile.
            if would_shadow(&self.folder, &self.root, &self.relative, now) {
                return Err(UploadFailure::Shadows);
            }
            match &self.name {
                PartName::Unnamed => link(&self.file, parent, name).map_err(taken)?,
                PartName::Hidden(part_name) => put_new(parent, part_name.as_bytes(), name)?,
                PartName::Own => {}
            }
            self.name = PartName::Own;
            return Ok(None);
        }
        let found = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).ok();
        if self.is_conditional && !is_same(self.replaces.as_ref(), found.as_ref()) {
            return Err(UploadFailure::Condition);
        }
        // Only a file with a name can take the place of another one.
        if let PartName::Unnamed = self.name {
            self.name = PartName::Hidden(new_name(|name| link(&self.file, parent, name))?.0);
        }
        let PartName::Hidden(part_name) = &self.name else { return Ok(None) };
        rustix::fs::renameat(parent, &**part_name, parent, name).map_err(|errno| match errno {
            Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST => UploadFailure::NoFile,
            errno => UploadFailure::Disk(errno),
        })?;
        self.name = PartName::Own;
        Ok(found)
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if let PartName::Hidden(name) = &self.name {
            // There is nothing else to be done about a disk that refuses even that.
            _ = rustix::fs::unlinkat(&self.parent, &**name, AtFlags::empty());
        }
    }
}

/// Makes a file without a name, or with one that none has.
fn create(parent: &OwnedFd) -> Result<(PartName, File), Errno> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    // What the umask leaves of it, as for any file of the process.
    let mode = Mode::from_raw_mode(0o666);
    match rustix::fs::openat(parent, ".", flags | OFlags::TMPFILE, mode).map(File::from) {
        // It gets its name by the link that stands for it there.
        Ok(file) if rustix::fs::stat(link_of(&file)).is_ok() => Ok((PartName::Unnamed, file)),
        // The file system has no such files, or `/proc` is not there.
        Ok(_) | Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {
            create_named(parent, mode)
        }
        Err(errno) => Err(errno),
    }
}

fn create_named(parent: &OwnedFd, mode: Mode) -> Result<(PartName, File), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let (name, file) = new_name(|name| rustix::fs::openat(parent, name, flags, mode))?;
    Ok((PartName::Hidden(name), file.into()))
}

/// Does something with a name that none has. Returns the name as well.
fn new_name<T>(act: impl Fn(&[u8]) -> Result<T, Errno>) -> Result<(String, T), Errno> {
    let mut outcome = Err(Errno::EXIST);
    for _ in 0..ATTEMPTS_MAX {
        let name = format!("{PART_NAME}{:016x}", RandomState::new().build_hasher().finish());
        outcome = act(name.as_bytes()).map(|done| (name, done));
        if !matches!(outcome, Err(Errno::EXIST | Errno::INTR)) {
            break;
        }
    }
    outcome
}

/// Gives a file without a name one that none has.
fn link(file: &File, parent: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
    rustix::fs::linkat(CWD, link_of(file), parent, name, AtFlags::SYMLINK_FOLLOW)
}

fn link_of(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

fn taken(errno: Errno) -> UploadFailure {
    match errno {
        Errno::EXIST => UploadFailure::Exists,
        errno => UploadFailure::Disk(errno),
    }
}

/// Gives a file its name unless another one has it.
fn put_new(parent: &OwnedFd, from: &[u8], name: &[u8]) -> Result<(), UploadFailure> {
    match rustix::fs::renameat_with(parent, from, parent, name, RenameFlags::NOREPLACE) {
        // A file system, or a kernel, without that: a second name, which replaces none either.
        Err(Errno::INVAL | Errno::NOSYS | Errno::PERM) => {
            rustix::fs::linkat(parent, from, parent, name, AtFlags::empty()).map_err(taken)?;
            Ok(rustix::fs::unlinkat(parent, from, AtFlags::empty())?)
        }
        outcome => outcome.map_err(taken),
    }
}

/// Returns the file in its place, as a response would have it; `None` if there is none.
fn load(
    folder: &Folder,
    root: &Root,
    relative: &[u8],
    now: Now,
) -> Result<Option<CachedFile>, UploadFailure> {
    let failed = |failure| match failure {
        crate::error::Failure::Disk(errno) => UploadFailure::Disk(errno),
        _ => UploadFailure::Busy,
    };
    let located = match root.locate(relative) {
        Err(Errno::NOENT) => return Ok(None),
        located => located?,
    };
    let access = (root, Access::Waits);
    let representation = Representation::of_type(folder.headers.types.of(parted(relative).1));
    let file = (&located, relative, representation);
    let file = CachedFile::load(
        access,
        file,
        folder.load_context(&gustnado_http::fields::Fields::new()),
        now,
    );
    file.map(Some).map_err(failed)
}

/// Checks whether the conditions of a request hold for the file in its place.
fn check_conditions(
    (folder, root): (&Folder, &Root),
    request: &UploadRequest,
    is_there: bool,
    now: Now,
) -> Result<(), UploadFailure> {
    let current = if is_there { load(folder, root, &request.relative, now)? } else { None };
    let hold = conditions_of(request.head.on(&request.bytes), |conditions| match &current {
        Some(file) => judge(conditions, false, &file.validators) == Verdict::Perform,
        // Without a file, no tag is that of the file (RFC 9110 §13.1.1).
        None => conditions.if_match.is_none(),
    });
    if hold { Ok(()) } else { Err(UploadFailure::Condition) }
}

fn is_same(one: Option<&Stat>, other: Option<&Stat>) -> bool {
    let of = |stat: &Stat| {
        let changed = (stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec);
        (stat.st_dev, stat.st_ino, stat.st_size, changed)
    };
    one.map(of) == other.map(of)
}

fn failure(error: &io::Error) -> UploadFailure {
    UploadFailure::Disk(Errno::from_io_error(error).unwrap_or(Errno::IO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_gets_its_name_at_the_end_and_replaces_none() {
        let place = tempfile::TempDir::new().expect("a temporary folder");
        let parent = OwnedFd::from(File::open(place.path()).expect("there"));
        let mode = Mode::from_raw_mode(0o666);
        fs::write(place.path().join("taken"), "old").expect("a file");
        for (at, made) in [create(&parent), create_named(&parent, mode)].into_iter().enumerate() {
            let (name, mut file) = made.expect("a file");
            file.write_all(b"new").expect("written");
            let put = |to: &[u8]| match &name {
                PartName::Unnamed => link(&file, &parent, to).map_err(taken),
                PartName::Hidden(hidden) => put_new(&parent, hidden.as_bytes(), to),
                PartName::Own => unreachable!("it is new"),
            };
            let own = format!("own-{at}");
            assert_eq!(put(b"taken"), Err(UploadFailure::Exists));
            assert_eq!(put(own.as_bytes()), Ok(()));
            let path = place.path().join(own);
            assert_eq!(fs::read(&path).expect("there"), b"new");
            let mode = fs::metadata(&path).expect("there").permissions().mode();
            assert_eq!(mode & 0o133, 0, "what the umask leaves of 666: {mode:o}");
        }
        assert_eq!(fs::read(place.path().join("taken")).expect("there"), b"old");
        let names = fs::read_dir(place.path()).expect("there").count();
        assert_eq!(names, 3, "no hidden name is left");
    }
}
