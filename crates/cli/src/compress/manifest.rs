//! The list of what earlier runs have written in a folder. Files beside it that are not listed, or
//! have changed since, are other people's.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Its name. It is hidden, so it is not served.
const NAME: &str = ".gustnado-compress";
/// What it begins with.
const HEAD: &[u8] = b"gustnado compress 1\0";
/// The largest one that is read: a million siblings.
const BYTES_MAX: u64 = 256 << 20;

/// What was written beside a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ManifestEntry {
    /// The file as it was compressed.
    pub(super) original: OriginalState,
    /// A hash of the file's bytes.
    pub(super) digest: u64,
    /// Bytes of the sibling; `None`: it would not have been smaller, and there is none.
    pub(super) written: Option<u64>,
}

/// What the system says of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OriginalState {
    pub(super) bytes: u64,
    /// When it was modified, in seconds. Build tools set it to the same time for all builds.
    pub(super) modified: i64,
    /// When it was last changed, in seconds and nanoseconds. No program sets that.
    pub(super) changed: (i64, i64),
}

impl OriginalState {
    pub(super) fn of(meta: &Metadata) -> Self {
        let changed = (meta.ctime(), meta.ctime_nsec());
        Self { bytes: meta.len(), modified: meta.mtime(), changed }
    }
}

impl ManifestEntry {
    /// Returns whether the sibling is still as it was written: in its bytes and its time, which is
    /// the file's.
    pub(super) fn is_of(&self, sibling: &Metadata) -> bool {
        self.written == Some(sibling.len()) && self.original.modified == sibling.mtime()
    }
}

/// What was written in a folder, by the path of each sibling in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Manifest {
    entries: BTreeMap<PathBuf, ManifestEntry>,
}

impl Manifest {
    /// Returns the path of the list.
    pub(super) fn path(folder: &Path) -> PathBuf {
        folder.join(NAME)
    }

    /// Reads the list; a missing one is empty.
    ///
    /// # Errors
    /// It cannot be read, or another program wrote it.
    pub(super) fn read(folder: &Path) -> io::Result<Self> {
        let path = Self::path(folder);
        let bytes = match fs::metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Ok(meta) if meta.len() > BYTES_MAX => Vec::new(),
            _ => fs::read(path)?,
        };
        let other = || io::Error::other("this is no list of `gustnado compress`; move it away");
        let mut parts = bytes.strip_prefix(HEAD).ok_or_else(other)?.split(|byte| *byte == 0);
        let mut entries = BTreeMap::new();
        while let Some(numbers) = parts.next().filter(|numbers| !numbers.is_empty()) {
            let entry = std::str::from_utf8(numbers).ok().and_then(entry_of).ok_or_else(other)?;
            let name = parts.next().ok_or_else(other)?;
            entries.insert(PathBuf::from(OsStr::from_bytes(name)), entry);
        }
        Ok(Self { entries })
    }

    /// Returns what was written at a path, which is relative to the folder.
    pub(super) fn get(&self, relative: &Path) -> Option<&ManifestEntry> {
        self.entries.get(relative)
    }

    /// Adds what was written.
    pub(super) fn insert(&mut self, relative: PathBuf, entry: ManifestEntry) {
        self.entries.insert(relative, entry);
    }

    /// Keeps those that `is_kept` is true of.
    pub(super) fn retain(&mut self, mut is_kept: impl FnMut(&Path, &ManifestEntry) -> bool) {
        self.entries.retain(|path, entry| is_kept(path, entry));
    }

    /// Replaces the list in one step, or leaves the old one. Nothing is written if nothing is
    /// listed.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        if self.entries.is_empty() {
            return Ok(());
        }
        let mut bytes = HEAD.to_vec();
        for (path, ManifestEntry { original, digest, written }) in &self.entries {
            let written = written.map_or("-".to_owned(), |bytes| bytes.to_string());
            let OriginalState { bytes: size, modified, changed: (secs, nanos) } = original;
            let line = format!("{size} {modified} {written} {secs} {nanos} {digest}\0");
            bytes.extend_from_slice(line.as_bytes());
            bytes.extend_from_slice(&path.clone().into_os_string().into_vec());
            bytes.push(0);
        }
        let next = folder.join(format!("{NAME}.new"));
        fs::write(&next, bytes)?;
        fs::rename(next, Self::path(folder))
    }
}

fn entry_of(text: &str) -> Option<ManifestEntry> {
    let mut numbers = text.split(' ');
    let (bytes, modified) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    let written = match numbers.next()? {
        "-" => None,
        bytes => Some(bytes.parse().ok()?),
    };
    let (mut changed, mut digest) = ((0, 0), 0);
    // Lists of before end here: their files are compressed again.
    if let Some(secs) = numbers.next() {
        changed = (secs.parse().ok()?, numbers.next()?.parse().ok()?);
        digest = numbers.next()?.parse().ok()?;
    }
    let original = OriginalState { bytes, modified, changed };
    numbers.next().is_none().then_some(ManifestEntry { original, digest, written })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut manifest = Manifest::read(folder.path()).expect("there is none");
        assert!(manifest.entries.is_empty());
        let names = ["a.js.br", "b/c d\n.css.gz", "none.zst"];
        for (at, name) in names.iter().enumerate() {
            let written = (at != 2).then_some(at as u64);
            let bytes = at as u64 + 9;
            let original = OriginalState { bytes, modified: -1, changed: (-2, 3) };
            let entry = ManifestEntry { original, digest: u64::MAX, written };
            manifest.insert(PathBuf::from(name), entry);
        }
        manifest.write(folder.path()).expect("it is written");
        assert_eq!(Manifest::read(folder.path()).expect("a list").entries, manifest.entries);
        fs::write(Manifest::path(folder.path()), b"gustnado compress 1\x009 -1 5\0a.gz\0")
            .expect("a file");
        let of_before = Manifest::read(folder.path()).expect("a list");
        let entry = of_before.get(Path::new("a.gz")).expect("an entry");
        let original = OriginalState { bytes: 9, modified: -1, changed: (0, 0) };
        assert_eq!(*entry, ManifestEntry { original, digest: 0, written: Some(5) });
    }

    #[test]
    fn a_file_of_another_program_is_not_taken_for_one() {
        let folder = tempfile::tempdir().expect("a folder");
        for text in ["", "something", "gustnado compress 1\0x\0y\0", "gustnado compress 1\x001 2\0"]
        {
            fs::write(Manifest::path(folder.path()), text).expect("a file");
            assert!(Manifest::read(folder.path()).is_err(), "{text:?}");
        }
    }
}
