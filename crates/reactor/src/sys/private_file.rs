//! Files without a name, and their bytes in memory without being read.

#![expect(unsafe_code, reason = "a map has no safe constructor; each block says why it is sound")]

use std::ffi::c_void;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::slice;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A file that has no name and no other owner: it is gone with this value. It is written from its
/// beginning to its end, and read as a [`MappedFile`].
#[derive(Debug)]
pub struct PrivateFile {
    file: File,
    bytes: usize,
}

impl PrivateFile {
    /// Creates an empty one on the disk of a folder. It may wait for the disk.
    ///
    /// # Errors
    /// The folder cannot be written to, or no descriptor is free.
    pub fn create(folder: &Path) -> io::Result<Self> {
        Ok(Self { file: tempfile::tempfile_in(folder)?, bytes: 0 })
    }

    /// Appends bytes. It may wait for the disk. After an error only the drop is left.
    ///
    /// # Errors
    /// The disk is full, or has failed.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.bytes += bytes.len();
        Ok(())
    }

    /// Maps all of it into memory, for reading. Its descriptor is closed.
    ///
    /// # Errors
    /// The process has too many maps.
    pub fn map(self) -> io::Result<MappedFile> {
        let Self { file, bytes } = self;
        if bytes == 0 {
            return Ok(MappedFile { start: NonNull::dangling(), bytes });
        }
        // SAFETY: the kernel chooses the place, so no other memory is replaced. The file is as long
        // as what was written to it. It has no name (it was made without one, or lost it in
        // `create`), its only descriptor is `file`, which this type gives to no one and which is
        // closed at the end of this function: so nothing shortens or writes it while it is mapped,
        // and a read cannot fail with SIGBUS unless the disk itself does.
        let start =
            unsafe { mmap(ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::PRIVATE, &file, 0) }?;
        let start = NonNull::new(start.cast::<u8>()).expect("the kernel maps nothing at 0");
        Ok(MappedFile { start, bytes })
    }
}

/// The bytes of a [`PrivateFile`]. The kernel reads them when they are used, and may take the
/// memory back meanwhile.
#[derive(Debug)]
pub struct MappedFile {
    start: NonNull<u8>,
    bytes: usize,
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `start` is the start of a map of `bytes` bytes that only the drop removes, and
        // that nothing writes: see `PrivateFile::map`. Without bytes it is dangling, as is allowed
        // then.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: the map is ours, of that length, and no reference into it outlives this.
            let result = unsafe { munmap(self.start.as_ptr().cast::<c_void>(), self.bytes) };
            debug_assert!(result.is_ok(), "a whole map can be removed");
        }
    }
}

// SAFETY: it is memory that nothing writes, and removing a map is the same on every thread.
unsafe impl Send for MappedFile {}
// SAFETY: as above.
unsafe impl Sync for MappedFile {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_is_written_is_what_is_mapped_and_no_name_is_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut file = PrivateFile::create(folder.path()).expect("it can be written");
        let noise: Vec<u8> = (0..300_000_u32).map(|at| (at * 7 % 251) as u8).collect();
        for piece in noise.chunks(70_001) {
            file.append(piece).expect("there is room");
        }
        assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 0);
        let map = file.map().expect("it is mapped");
        let elsewhere = std::thread::spawn(move || map.as_ref() == noise.as_slice());
        assert!(elsewhere.join().expect("no panic"));
    }

    #[test]
    fn an_empty_one_has_no_bytes() {
        let file = PrivateFile::create(&std::env::temp_dir()).expect("it can be written");
        assert_eq!(file.map().expect("nothing to map").as_ref(), b"");
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        assert!(PrivateFile::create(Path::new("/nowhere/at/all")).is_err());
    }
}
