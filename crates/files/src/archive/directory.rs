//! The directory at the end of a zip file: an entry for each file that stands before it.
//!
//! It can be written only once all files are known. So that an archive of any number of files holds
//! a bounded part of memory, what is beyond that goes to a file without a name.

use std::path::PathBuf;

use gustnado_tasks::{MappedFile, PrivateFile};
use rustix::io::Errno;

/// The bytes of it that are held in memory, some ten thousand files.
const MEMORY_BYTES_MAX: usize = 1 << 20;

/// A directory while it grows.
pub(super) struct DirectoryFile {
    /// The folder on whose disk the rest is kept.
    folder: PathBuf,
    file: Option<PrivateFile>,
    memory: Vec<u8>,
    /// Of both.
    bytes: u64,
}

/// A directory while it is read, from its beginning.
pub(super) struct DirectoryReader {
    file: Option<MappedFile>,
    memory: Vec<u8>,
    at: usize,
}

impl DirectoryFile {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, file: None, memory: Vec::new(), bytes: 0 }
    }

    /// Appends an entry.
    ///
    /// # Errors
    /// It is too large for the memory, and the disk does not take it.
    pub(super) fn push(&mut self, entry: &[u8]) -> Result<(), Errno> {
        if self.memory.len() + entry.len() > MEMORY_BYTES_MAX {
            let failed = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
            let file = match &mut self.file {
                Some(file) => file,
                None => self.file.insert(PrivateFile::create(&self.folder).map_err(failed)?),
            };
            file.append(&self.memory).map_err(failed)?;
            self.memory.clear();
        }
        self.memory.extend_from_slice(entry);
        self.bytes += entry.len() as u64;
        Ok(())
    }

    /// Returns its length in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns it for reading, with what stands behind it.
    ///
    /// # Errors
    /// The process has too many maps.
    pub(super) fn finish(mut self, end: &[u8]) -> Result<DirectoryReader, Errno> {
        self.memory.extend_from_slice(end);
        let file = self.file.map(PrivateFile::map).transpose();
        let file = file.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        Ok(DirectoryReader { file, memory: self.memory, at: 0 })
    }
}

impl DirectoryReader {
    /// Appends so many bytes of it at most. Returns whether there may be more.
    pub(super) fn read(&mut self, bytes_max: usize, out: &mut Vec<u8>) -> bool {
        let file = self.file.as_ref().map_or(&[][..], AsRef::as_ref);
        let part = match self.at.checked_sub(file.len()) {
            None => &file[self.at..],
            Some(at) => &self.memory[at..],
        };
        let part = &part[..part.len().min(bytes_max)];
        out.extend_from_slice(part);
        self.at += part.len();
        !part.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_memory_does_not_hold_comes_from_the_disk() {
        let place = tempfile::TempDir::new().expect("a temporary folder");
        for entries in [0, 3, 10_000, 40_000] {
            let mut directory = DirectoryFile::new(place.path().to_owned());
            let mut expected = Vec::new();
            for number in 0..entries {
                let entry = format!("{number:0100}\n");
                directory.push(entry.as_bytes()).expect("the disk takes it");
                expected.extend_from_slice(entry.as_bytes());
                assert!(directory.memory.len() <= MEMORY_BYTES_MAX);
            }
            assert_eq!(directory.bytes(), expected.len() as u64);
            assert_eq!(directory.file.is_some(), entries > 10_200);
            let (mut reader, mut out) = (directory.finish(b"end").expect("a map"), Vec::new());
            while reader.read(60_000, &mut out) {}
            expected.extend_from_slice(b"end");
            assert!(out == expected, "{entries}");
        }
        assert_eq!(std::fs::read_dir(place.path()).expect("there").count(), 0, "without a name");
    }

    #[test]
    fn a_disk_that_cannot_be_written_to_is_told() {
        let mut directory = DirectoryFile::new("/nowhere/at/all".into());
        let outcome = (0..20_000).try_for_each(|_| directory.push(&[b'x'; 100]));
        assert_eq!(outcome, Err(Errno::NOENT));
    }
}
