//! A temporary folder to serve, and what lies outside of it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

/// The date of every file made by [`Folder::dated`], as HTTP writes it. RFC 9110 §5.6.7's example.
pub(crate) const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const DATE_UNIX_SECS: u64 = 784_111_777;

/// A root to serve, inside a temporary folder that also holds things that must never be served.
pub(crate) struct Folder {
    holder: TempDir,
}

impl Folder {
    /// An empty root.
    pub(crate) fn new() -> Self {
        let holder = TempDir::new().expect("a temporary folder");
        fs::create_dir(holder.path().join("root")).expect("the root in it");
        Self { holder }
    }

    /// The folder that is served.
    pub(crate) fn root(&self) -> PathBuf {
        self.outside().join("root")
    }

    /// The folder around the root.
    pub(crate) fn outside(&self) -> &Path {
        self.holder.path()
    }

    /// The path of something in the root.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// Writes a file in the root, with the folders it needs.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("its folders");
        fs::write(&path, content).expect("a file in the root");
        path
    }

    /// The same, last modified on [`DATE`].
    pub(crate) fn dated(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        self.timed(name, content, DATE_UNIX_SECS)
    }

    /// The same, last modified at a time in seconds since 1970.
    pub(crate) fn timed(&self, name: &str, content: impl AsRef<[u8]>, unix_secs: u64) -> PathBuf {
        let path = self.file(name, content);
        let file = File::options().append(true).open(&path).expect("the file just written");
        let date = SystemTime::UNIX_EPOCH + Duration::from_secs(unix_secs);
        file.set_modified(date).expect("a date that a file can have");
        path
    }

    /// A file of nothing but holes: `bytes` long, no room on the disk.
    pub(crate) fn hollow(&self, name: &str, bytes: u64) -> PathBuf {
        let path = self.file(name, b"");
        let file = File::options().write(true).open(&path).expect("the file just written");
        file.set_len(bytes).expect("a long file of holes");
        path
    }

    /// Puts new content in a file's place at once, as a careful writer does.
    pub(crate) fn replace(&self, name: &str, content: &[u8]) {
        let fresh = self.outside().join("fresh");
        fs::write(&fresh, content).expect("the new content");
        fs::rename(&fresh, self.path(name)).expect("the new file in the old one's place");
    }
}

/// Bytes without a pattern, the same on every run: a wrong order or a gap cannot go unseen.
pub(crate) fn noise(seed: u64, count: usize) -> Vec<u8> {
    let mut dice = Dice::new(seed);
    let mut bytes = Vec::with_capacity(count + 8);
    while bytes.len() < count {
        bytes.extend_from_slice(&dice.roll().to_le_bytes());
    }
    bytes.truncate(count);
    bytes
}

/// Numbers that look like chance and are the same on every run (xorshift, Marsaglia 2003).
pub(crate) struct Dice(u64);

impl Dice {
    /// Dice that begin at `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next number.
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number in `0..end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let rolled = self.roll() >> 16;
        usize::try_from(rolled).expect("48 bits fit") % end
    }
}
