//! Files that are sent to a folder: written beside their place, and put there once they are whole.
//!
//! Nothing half-written ever has the name that was asked for, and what is not finished is removed.
//! All of it happens on the folder's threads; a worker passes the bytes on, piece by piece.

mod part_file;
mod quota;
mod shadow;

use std::sync::Arc;

use gustnado_config::is_forbidden;
use gustnado_http::fields::HeaderId;
use gustnado_http::head::Head;
use gustnado_http::request::RequestView;
use gustnado_http::status::Status;
use gustnado_tasks::timeout;
use rustix::io::Errno;

use super::error::Failure;
use super::lookup::new_root;
use super::path::{FilePathError, check_segment, decode};
use super::response::FileResponse;
use super::{Files, Folder, Mounted, worker};

use part_file::PartFile;
pub(super) use quota::UploadQuotas;

/// Why a file is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UploadFailure {
    /// The path is none of a file here.
    Path(FilePathError),
    /// There is no folder that it could lie in.
    NoFolder,
    /// There is a file, and none may be replaced.
    Exists,
    /// The file would be served in place of another one, which may not be replaced.
    Shadows,
    /// There is something else than a file.
    NoFile,
    /// A condition of the request does not hold.
    Condition,
    TooLarge,
    /// All files of the folder would be larger than they may be.
    Quota,
    Disk(Errno),
    /// Too many requests wait for the disk, or it does not respond.
    Busy,
}

impl UploadFailure {
    /// Returns the status of the response, and what its page says.
    fn status(self) -> (Status, Option<&'static str>) {
        match self {
            Self::Path(FilePathError::Malformed) | Self::Disk(Errno::NAMETOOLONG) => {
                (Status::BAD_REQUEST, None)
            }
            Self::Path(FilePathError::Refused) => (Status::NOT_FOUND, None),
            Self::NoFolder => {
                (Status::CONFLICT, Some("There is no folder at this path that a file could be in."))
            }
            Self::Exists => {
                (Status::CONFLICT, Some("A file with this name is there, and is not replaced."))
            }
            Self::Shadows => {
                (Status::CONFLICT, Some("This file would be served in place of one that is there."))
            }
            Self::NoFile => (Status::CONFLICT, Some("Something else than a file has this name.")),
            Self::Condition => (Status::PRECONDITION_FAILED, None),
            Self::TooLarge => (Status::CONTENT_TOO_LARGE, None),
            Self::Quota | Self::Disk(Errno::NOSPC | Errno::DQUOT) => {
                (Status::INSUFFICIENT_STORAGE, Some("There is no room for this file."))
            }
            Self::Disk(Errno::ACCESS | Errno::PERM | Errno::ROFS) => {
                (Status::FORBIDDEN, Some("The server may not write to this folder."))
            }
            Self::Busy | Self::Disk(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => {
                (Status::SERVICE_UNAVAILABLE, None)
            }
            Self::Disk(_) => (Status::INTERNAL_SERVER_ERROR, None),
        }
    }

    fn response(self, folder: &Folder) -> FileResponse {
        let (status, hint) = self.status();
        if let Self::Disk(errno) = self {
            folder.count(Failure::Disk(errno));
        }
        let mut response = FileResponse::new(status).with_headers(&folder.headers);
        if status == Status::SERVICE_UNAVAILABLE {
            response.put(HeaderId::RetryAfter, b"1");
        }
        response.hint = hint;
        response
    }
}

impl From<FilePathError> for UploadFailure {
    fn from(error: FilePathError) -> Self {
        Self::Path(error)
    }
}

impl From<Errno> for UploadFailure {
    fn from(errno: Errno) -> Self {
        Self::Disk(errno)
    }
}

/// A file that is being sent to a folder. Dropped before it is finished, it is removed.
#[derive(Debug)]
pub struct FileUpload {
    files: Files,
    key: String,
    /// `None` while a thread writes to it.
    part: Option<Box<PartFile>>,
}

/// What a request for an upload says, for another thread.
struct UploadRequest {
    head: Head,
    bytes: Vec<u8>,
    /// The path of the file below the root.
    relative: Vec<u8>,
    length: Option<u64>,
}

impl Files {
    /// Returns whether files may be sent to the folder.
    pub fn takes_uploads(&self) -> bool {
        self.folder.settings.upload
    }

    /// Begins to take a file.
    ///
    /// - `place`: the path of the request.
    /// - `name`: the file's name, if the path is that of its folder.
    /// - `length`: how many bytes are announced.
    ///
    /// # Errors
    /// The response: the file is not taken.
    pub async fn begin_upload(
        &self,
        place: &Mounted<'_>,
        name: Option<&[u8]>,
        request: RequestView<'_>,
        length: Option<u64>,
    ) -> Result<FileUpload, FileResponse> {
        let folder = &self.folder;
        let failed = |failure: UploadFailure| failure.response(folder);
        let relative = relative(folder, place, name).map_err(failed)?;
        let (head, bytes) = request.to_parts();
        let request = UploadRequest { head, bytes, relative, length };
        let (shared, root) = (Arc::clone(folder), worker::with(folder, |worker| worker.root()));
        let now = gustnado_tasks::now();
        let begun = on_thread(folder, move || {
            let new = new_root(&root, &shared);
            PartFile::begin(&shared, new.map_or(root, Arc::new), &request, now).map(Box::new)
        });
        let part = begun.await.and_then(|begun| begun).map_err(failed)?;
        let mut key = place.below().to_owned();
        if let Some(name) = name {
            key.push_str(&String::from_utf8_lossy(name));
        }
        Ok(FileUpload { files: self.clone(), key, part: Some(part) })
    }
}

impl FileUpload {
    /// Writes more of the file.
    ///
    /// # Errors
    /// The response: the file cannot be taken, and what was written is removed.
    pub async fn write(&mut self, piece: Vec<u8>) -> Result<(), FileResponse> {
        let folder = Arc::clone(&self.files.folder);
        let Some(mut part) = self.part.take() else {
            return Err(UploadFailure::Busy.response(&folder));
        };
        let written = on_thread(&folder, move || part.write(&piece).map(|()| part)).await;
        let written = written.and_then(|written| written);
        self.part = Some(written.map_err(|failure| failure.response(&folder))?);
        Ok(())
    }

    /// Puts the whole file in its place. Returns the response: 201, or 204 if it replaces one.
    ///
    /// # Errors
    /// The response: the file cannot be put there, and is removed.
    pub async fn finish(mut self) -> Result<FileResponse, FileResponse> {
        let folder = Arc::clone(&self.files.folder);
        let Some(part) = self.part.take() else {
            return Err(UploadFailure::Busy.response(&folder));
        };
        let now = gustnado_tasks::now();
        let finished = on_thread(&folder, move || part.finish(now)).await;
        let finished = finished.and_then(|finished| finished);
        let put = finished.map_err(|failure| failure.response(&folder))?;
        // Its own responses on this connection show the new file at once; other workers compare
        // theirs with the disk within a second.
        worker::with(&folder, |worker| worker.cache.remove(self.key.as_bytes()));
        let status = if put.is_new { Status::CREATED } else { Status::NO_CONTENT };
        let mut response = FileResponse::new(status).with_headers(&folder.headers);
        if let Some(tag) = put.tag {
            response.put(HeaderId::ETag, tag.as_bytes());
        }
        Ok(response)
    }
}

/// What is left of an upload is removed by a thread: the disk may have to be waited for.
impl Drop for FileUpload {
    fn drop(&mut self) {
        let Some(part) = self.part.take() else { return };
        if let Some(pool) = self.files.folder.pool() {
            // If the pool is full, it is removed here: nothing half-written stays.
            _ = pool.start(move || drop(part));
        }
    }
}

/// Returns the path of the file below the root.
fn relative(
    folder: &Folder,
    place: &Mounted<'_>,
    name: Option<&[u8]>,
) -> Result<Vec<u8>, UploadFailure> {
    if place.path.has_stray_percent() {
        return Err(FilePathError::Malformed.into());
    }
    let hidden = folder.settings.hidden;
    let path = decode(place.below().as_bytes(), hidden)?;
    let mut relative = path.relative;
    if let Some(name) = name {
        check_segment(name, hidden)?;
        if !relative.is_empty() {
            relative.push(b'/');
        }
        relative.extend_from_slice(name);
    }
    // Before anything that would tell what is there.
    if is_forbidden(&folder.settings.forbidden, &relative, false) {
        return Err(FilePathError::Refused.into());
    }
    match name {
        None if path.names_directory => Err(UploadFailure::NoFile),
        Some(_) if !path.names_directory => Err(UploadFailure::NoFolder),
        _ => Ok(relative),
    }
}

/// Runs a step on a thread of the folder, or here if it has none.
async fn on_thread<T: Send + 'static>(
    folder: &Folder,
    step: impl FnOnce() -> T + Send + 'static,
) -> Result<T, UploadFailure> {
    match folder.pool() {
        None => Ok(step()),
        Some(pool) => {
            let ran = timeout(folder.wait, pool.run(step)).await;
            ran.and_then(Result::ok).flatten().ok_or(UploadFailure::Busy)
        }
    }
}
