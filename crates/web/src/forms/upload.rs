//! One file of a form, in memory or on the disk.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use bytes::Bytes;
use gustnado_http::multipart::PartHead;
use tempfile::NamedTempFile;

use super::FormError;
use super::multipart::safe_file_name;
use super::spill::on_pool;

/// A file that a form brought. Dropping it deletes what is on the disk; [`Upload::persist`] and
/// [`Upload::save`] keep it.
#[derive(Debug)]
pub struct Upload {
    head: PartHead,
    length: u64,
    content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    Memory(Bytes),
    Disk(NamedTempFile),
}

impl Upload {
    pub(super) fn new(head: PartHead, length: u64, content: Content) -> Self {
        Self { head, length, content }
    }

    /// Returns the name of the field in the form.
    pub fn name(&self) -> &str {
        self.head.name()
    }

    /// Returns the client's name of the file. The client may send anything; it must not be used as
    /// a path.
    pub fn file_name(&self) -> &str {
        self.head.file_name().unwrap_or_default()
    }

    /// Returns the client's name of the file as a safe name in a folder: without the folders before
    /// it, without control characters, not hidden, and 100 characters at most. `None` if nothing is
    /// left of it.
    pub fn safe_file_name(&self) -> Option<String> {
        safe_file_name(self.file_name())
    }

    /// Returns the content type that the client sent.
    pub fn content_type(&self) -> Option<&str> {
        std::str::from_utf8(self.head.field("content-type")?).ok()
    }

    /// Returns its length in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the bytes, if they are in memory.
    pub fn bytes(&self) -> Option<&Bytes> {
        match &self.content {
            Content::Memory(bytes) => Some(bytes),
            Content::Disk(_) => None,
        }
    }

    /// Returns its path on the disk, if it is there, for as long as this lives.
    pub fn path(&self) -> Option<&Path> {
        match &self.content {
            Content::Memory(_) => None,
            Content::Disk(file) => Some(file.path()),
        }
    }

    /// Reads all bytes, from memory or the disk. It may wait for the disk: a worker must not call
    /// it for large files.
    ///
    /// # Errors
    /// The disk fails.
    pub fn read(&self) -> io::Result<Bytes> {
        match &self.content {
            Content::Memory(bytes) => Ok(bytes.clone()),
            Content::Disk(file) => Ok(fs::read(file.path())?.into()),
        }
    }

    /// Keeps it under a path, in place of what is there. Only its owner may read and write it.
    ///
    /// It may wait for the disk, above all where the path is on another file system than the
    /// temporary file: blocking handlers call it, task handlers rather [`Upload::save`].
    ///
    /// # Errors
    /// The file cannot be created; a file that had its name is unchanged.
    pub fn persist(self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        match self.content {
            Content::Memory(bytes) => beside(path, |file| file.write_all(&bytes)),
            Content::Disk(file) => match file.persist(path) {
                Ok(_) => Ok(()),
                Err(failed) if failed.error.kind() == io::ErrorKind::CrossesDevices => {
                    let mut source = fs::File::open(failed.file.path())?;
                    beside(path, |file| io::copy(&mut source, file).map(drop))
                }
                Err(failed) => Err(failed.error),
            },
        }
    }

    /// Keeps the file as [`Upload::persist`] does, on the server's thread pool: for task handlers.
    ///
    /// # Errors
    /// [`FormError::Disk`], and [`FormError::Busy`] if the pool had no room for a second.
    pub async fn save(self, path: impl AsRef<Path>) -> Result<(), FormError> {
        let path = path.as_ref().to_path_buf();
        Ok(on_pool(move || self.persist(path)).await??)
    }
}

/// Writes a temporary file in the same folder, and renames it once it is complete, so that a
/// failure leaves the old file intact.
fn beside(path: &Path, write: impl FnOnce(&mut NamedTempFile) -> io::Result<()>) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut file = tempfile::Builder::new()
        .prefix("upload-")
        .tempfile_in(folder.unwrap_or_else(|| Path::new(".")))?;
    write(&mut file)?;
    file.persist(path).map_err(|failed| failed.error)?;
    Ok(())
}
