//! Makes one sibling of one file.

use std::ffi::OsString;
use std::fs::{self, File, FileTimes, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use gustnado_compress::compress_in_advance;
use gustnado_http::content_coding::ContentCoding;

use super::arguments::{CompressOptions, ending};
use super::manifest::{Manifest, ManifestEntry};

/// What became of one sibling.
#[derive(Debug)]
pub(super) struct Sibling {
    pub(super) path: PathBuf,
    /// The same, relative to the folder.
    pub(super) relative: PathBuf,
    pub(super) coding: ContentCoding,
    pub(super) outcome: SiblingOutcome,
}

/// What was done, or would have been in a dry run.
#[derive(Debug)]
pub(super) enum SiblingOutcome {
    /// It was written: bytes of the file, and of the sibling.
    Written { from: u64, to: u64, entry: ManifestEntry },
    /// It is newer than the file's last change.
    Unchanged,
    /// It would not be smaller than the file.
    NotSmaller(ManifestEntry),
    /// Another program wrote it.
    Foreign,
    /// The file changed while it was read.
    ChangedMeanwhile,
    /// It could not be read, compressed or written.
    Failed(io::Error),
}

/// Makes the sibling of a file, if it is needed.
pub(super) fn process(
    options: &CompressOptions,
    file: &Path,
    coding: ContentCoding,
    known: &Manifest,
) -> Sibling {
    let mut path = OsString::from(file);
    path.push(format!(".{}", ending(coding)));
    let path = PathBuf::from(path);
    let relative = path.strip_prefix(&options.folder).unwrap_or(&path).to_path_buf();
    let outcome = made(options, file, (&path, coding), known.get(&relative));
    Sibling { outcome: outcome.unwrap_or_else(SiblingOutcome::Failed), path, relative, coding }
}

fn made(
    options: &CompressOptions,
    original: &Path,
    (sibling, coding): (&Path, ContentCoding),
    known: Option<&ManifestEntry>,
) -> io::Result<SiblingOutcome> {
    let mut file = File::open(original)?;
    let meta = file.metadata()?;
    let existing = match fs::symlink_metadata(sibling) {
        Ok(existing) => Some(existing),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    match &existing {
        // (Others carry the time over as well: gzip, zstd, brotli.)
        Some(existing) if existing.is_file() && times(existing) == times(&meta) => {
            return Ok(SiblingOutcome::Unchanged);
        }
        Some(existing) => {
            let is_own = known.is_some_and(|known| known.is_of(existing));
            if !existing.is_file() || !is_own && !options.overwrite {
                return Ok(SiblingOutcome::Foreign);
            }
        }
        None if known.is_some_and(|known| known.written.is_none() && known.is_from(&meta)) => {
            return Ok(SiblingOutcome::Unchanged);
        }
        None => {}
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0));
    file.read_to_end(&mut bytes)?;
    let after = file.metadata()?;
    if bytes.len() as u64 != meta.len() || times(&after) != times(&meta) {
        return Ok(SiblingOutcome::ChangedMeanwhile);
    }
    let compressed = compress_in_advance(coding, &bytes).map_err(io::Error::other)?;
    let (from, to) = (bytes.len() as u64, compressed.len() as u64);
    let original = (meta.len(), meta.mtime());
    if to >= from {
        if existing.is_some() && !options.dry_run {
            // What it was made of is gone.
            fs::remove_file(sibling)?;
        }
        return Ok(SiblingOutcome::NotSmaller(ManifestEntry { original, written: None }));
    }
    if !options.dry_run {
        replace(sibling, &compressed, &meta)?;
    }
    Ok(SiblingOutcome::Written { from, to, entry: ManifestEntry { original, written: Some(to) } })
}

fn times(meta: &Metadata) -> (i64, i64) {
    (meta.mtime(), meta.mtime_nsec())
}

/// Writes a sibling with the mode and the time of its file, in one step: a server sees the old one
/// or the new one.
fn replace(sibling: &Path, bytes: &[u8], original: &Metadata) -> io::Result<()> {
    let name = sibling.file_name().unwrap_or_default().to_string_lossy();
    let next = sibling.with_file_name(format!(".{name}.{}.new", std::process::id()));
    let written = write(&next, bytes, original).and_then(|()| fs::rename(&next, sibling));
    if written.is_err() {
        // A full disk keeps nothing half-written. (It may not have been made at all.)
        _ = fs::remove_file(&next);
    }
    written
}

fn write(next: &Path, bytes: &[u8], original: &Metadata) -> io::Result<()> {
    _ = fs::remove_file(next); // that of a process which was killed and had this number
    let mode = original.mode() & 0o777;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(next)?;
    file.write_all(bytes)?;
    // (Whatever the umask has taken.)
    file.set_permissions(original.permissions())?;
    file.set_times(FileTimes::new().set_modified(original.modified()?))
}
