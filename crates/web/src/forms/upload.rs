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
    content: UploadContent,
}

#[derive(Debug)]
pub(super) enum UploadContent {
    Memory(Bytes),
    Disk(NamedTempFile),
}

impl Upload {
    pub(super) fn new(head: PartHead, length: u64, content: UploadContent) -> Self {
        Self { head, length, content }
    }

    /// The name of the field in the form.
    pub fn name(&self) -> &str {
        self.head.name()
    }

    /// What the client calls it. It is made up by the client, and must not be taken for a path.
    pub fn file_name(&self) -> &str {
        self.head.file_name().unwrap_or_default()
    }

    /// The client's name for it, made fit to be a file's name in a folder of one's own: without the
    /// folders before it, without control characters, not hidden, and 100 characters at most.
    /// `None` if nothing is left of it.
    pub fn safe_file_name(&self) -> Option<String> {
        safe_file_name(self.file_name())
    }

    /// What the client says that it is.
    pub fn content_type(&self) -> Option<&str> {
        std::str::from_utf8(self.head.field("content-type")?).ok()
    }

    /// How many bytes it has.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The bytes, if they are in memory.
    pub fn bytes(&self) -> Option<&Bytes> {
        match &self.content {
            UploadContent::Memory(bytes) => Some(bytes),
            UploadContent::Disk(_) => None,
        }
    }

    /// Where it is on the disk, if it is, for as long as this lives.
    pub fn path(&self) -> Option<&Path> {
        match &self.content {
            UploadContent::Memory(_) => None,
            UploadContent::Disk(file) => Some(file.path()),
        }
    }

    /// All bytes, wherever they are. It may wait for the disk: not for workers, if the file may be
    /// large.
    ///
    /// # Errors
    /// The disk fails.
    pub fn read(&self) -> io::Result<Bytes> {
        match &self.content {
            UploadContent::Memory(bytes) => Ok(bytes.clone()),
            UploadContent::Disk(file) => Ok(fs::read(file.path())?.into()),
        }
    }

    /// Keeps it under a path, in place of what is there. Only its owner may read and write it.
    ///
    /// It may wait for the disk, above all where the path is on another file system than the
    /// temporary file: blocking handlers call it, task handlers rather [`Upload::save`].
    ///
    /// # Errors
    /// The file cannot be made there; what was in its place is as it was.
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

    /// [`Upload::persist`] on the server's thread pool, for task handlers.
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
