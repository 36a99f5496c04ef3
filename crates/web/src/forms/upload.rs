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

/// A file of a form. Dropping it deletes its temporary file; [`Upload::persist`] and
/// [`Upload::save`] keep it.
#[derive(Debug)]
pub struct Upload {
    pub(super) head: PartHead,
    pub(super) length: u64,
    pub(super) content: UploadContent,
}

#[derive(Debug)]
pub(super) enum UploadContent {
    Memory(Bytes),
    Disk(NamedTempFile),
}

impl Upload {
    /// Returns the name of the field in the form.
    pub fn name(&self) -> &str {
        self.head.name()
    }

    /// Returns the client's name of the file. The client may send any text: it must not be used as
    /// a path.
    pub fn file_name(&self) -> &str {
        self.head.file_name().unwrap_or_default()
    }

    /// Returns a name for the file in a folder of the program's own, made of the client's: without
    /// folders, without control characters, not hidden, and at most 100 characters. `None` if
    /// nothing is left.
    pub fn safe_file_name(&self) -> Option<String> {
        safe_file_name(self.file_name())
    }

    /// Returns the content type that the client sent.
    pub fn content_type(&self) -> Option<&str> {
        std::str::from_utf8(self.head.field("content-type")?).ok()
    }

    /// Returns the number of bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the bytes, if they are in memory.
    pub fn bytes(&self) -> Option<&Bytes> {
        match &self.content {
            UploadContent::Memory(bytes) => Some(bytes),
            UploadContent::Disk(_) => None,
        }
    }

    /// Returns the path of the temporary file, if there is one. It is deleted with this value.
    pub fn path(&self) -> Option<&Path> {
        match &self.content {
            UploadContent::Memory(_) => None,
            UploadContent::Disk(file) => Some(file.path()),
        }
    }

    /// Returns all bytes. It may wait for the disk, so a worker should not call it for a large
    /// file.
    ///
    /// # Errors
    /// The disk fails.
    pub fn read(&self) -> io::Result<Bytes> {
        match &self.content {
            UploadContent::Memory(bytes) => Ok(bytes.clone()),
            UploadContent::Disk(file) => Ok(fs::read(file.path())?.into()),
        }
    }

    /// Keeps the file at a path, in place of a file there. Only the owner may read and write it.
    ///
    /// It may wait for the disk, above all if the path is on another file system than the temporary
    /// file. Task handlers use [`Upload::save`].
    ///
    /// # Errors
    /// The file cannot be written there; a file in its place is unchanged.
    pub fn persist(self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        match self.content {
            UploadContent::Memory(bytes) => beside(path, |file| file.write_all(&bytes)),
            UploadContent::Disk(file) => match file.persist(path) {
                Ok(_) => Ok(()),
                Err(failed) if failed.error.kind() == io::ErrorKind::CrossesDevices => {
                    let mut source = fs::File::open(failed.file.path())?;
                    beside(path, |file| io::copy(&mut source, file).map(drop))
                }
                Err(failed) => Err(failed.error),
            },
        }
    }

    /// Does the same as [`Upload::persist`] on the server's thread pool, for task handlers.
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
