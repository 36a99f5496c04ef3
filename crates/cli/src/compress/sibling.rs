//! Makes one sibling of one file.

use std::ffi::OsString;
use std::fs::{self, File, FileTimes, Metadata, OpenOptions};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use gustnado_compress::compress_in_advance;
use gustnado_http::content_coding::ContentCoding;

use super::arguments::{CompressOptions, ending};
use super::manifest::{Manifest, ManifestEntry, OriginalState};

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
    /// It is that of the file as it is; with an entry, if the list has another one.
    Unchanged(Option<ManifestEntry>),
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
    let original = OriginalState::of(&meta);
    // What may be that of the file as it is: build tools give other bytes the same time.
    let current = match &existing {
        Some(existing) => {
            let own = known.filter(|known| known.is_of(existing));
            let is_dated = existing.is_file() && times(existing) == times(&meta);
            if is_dated && own.is_none() {
                // (Others carry the time over as well: gzip, zstd, brotli.)
                return Ok(SiblingOutcome::Unchanged(None));
            }
            if !existing.is_file() || own.is_none() && !options.overwrite {
                return Ok(SiblingOutcome::Foreign);
            }
            own.filter(|_| is_dated)
        }
        None => known.filter(|known| known.written.is_none()),
    };
    if current.is_some_and(|current| current.original == original) {
        return Ok(SiblingOutcome::Unchanged(None));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0));
    file.read_to_end(&mut bytes)?;
    let after = file.metadata()?;
    if bytes.len() as u64 != meta.len() || OriginalState::of(&after) != original {
        return Ok(SiblingOutcome::ChangedMeanwhile);
    }
    let digest = digest(&bytes);
    if let Some(current) = current.filter(|current| current.digest == digest) {
        return Ok(SiblingOutcome::Unchanged(Some(ManifestEntry { original, ..*current })));
    }
    let compressed = compress_in_advance(coding, &bytes).map_err(io::Error::other)?;
    let (from, to) = (bytes.len() as u64, compressed.len() as u64);
    if to >= from {
        if existing.is_some() && !options.dry_run {
            // What it was made of is gone.
            fs::remove_file(sibling)?;
        }
        let entry = ManifestEntry { original, digest, written: None };
        return Ok(SiblingOutcome::NotSmaller(entry));
    }
    if !options.dry_run {
        replace(sibling, &compressed, &meta)?;
    }
    let entry = ManifestEntry { original, digest, written: Some(to) };
    Ok(SiblingOutcome::Written { from, to, entry })
}

/// Returns a hash that tells one build of a file from the next one. Another release of the compiler
/// may hash otherwise: then the file is compressed again.
pub(super) fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
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
