//! Files that are sent to a folder: written beside their place, and put there once they are whole.
//!
//! Nothing half-written ever has the name that was asked for, and what is not finished is removed.
//! All of it happens on threads of the folder, other ones than those that read: a disk that takes
//! long to store a file holds up other uploads alone. A worker passes the bytes on, piece by piece.

mod part_file;
mod quota;
mod shadow;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gustnado_config::is_forbidden;
use gustnado_http::fields::HeaderId;
use gustnado_http::head::Head;
use gustnado_http::request::RequestView;
use gustnado_http::status::Status;
use gustnado_tasks::{Now, timeout};
use rustix::io::Errno;

use super::error::Failure;
use super::lookup::new_root;
use super::path::{FilePathError, check_segment, decode};
use super::response::FileResponse;
use super::shown::is_elsewhere;
use super::{Files, Folder, Mounted, worker};

use part_file::{PartFile, PutFile};
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
        Ok(FileUpload { files: self.clone(), part: Some(part) })
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
        if folder.trace.is_some() {
            // It is asked what would become of it. The part is removed as one that is given up.
            let status = part.status();
            self.part = Some(part);
            return Ok(FileResponse::new(status).with_headers(&folder.headers));
        }
        // A step of its own, as it takes longest: what is given up during it has no name yet.
        let synced = on_thread(&folder, move || part.sync().map(|()| part)).await;
        let finished = match synced.and_then(|synced| synced) {
            Ok(part) => put(&folder, part, gustnado_tasks::now()).await,
            Err(failure) => Err(failure),
        };
        let put = finished.map_err(|failure| failure.response(&folder))?;
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
        if let Some(pool) = self.files.folder.upload_pool() {
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
    // (The path of a request was found to be none of another route; that of a name was not.)
    if is_forbidden(&folder.settings.forbidden, &relative, false)
        || name.is_some() && is_elsewhere(&folder.elsewhere, &relative, false)
    {
        return Err(FilePathError::Refused.into());
    }
    match name {
        None if path.names_directory => Err(UploadFailure::NoFile),
        Some(_) if !path.names_directory => Err(UploadFailure::NoFolder),
        _ => Ok(relative),
    }
}

/// Puts a file in its place, or gives it up: a request that was told of a failure leaves nothing.
///
/// Once a thread has begun, its outcome is awaited for as long as that takes: only it knows whether
/// the file is there.
async fn put(folder: &Folder, part: Box<PartFile>, now: Now) -> Result<PutFile, UploadFailure> {
    let Some(pool) = folder.upload_pool() else { return part.finish(now) };
    let claim = PutClaim::default();
    let of_thread = claim.clone();
    let job = pool.run(move || {
        // (What is given up is removed here.)
        if of_thread.take() { part.finish(now) } else { Err(UploadFailure::Busy) }
    });
    let mut job = pin!(job);
    let of_request = GivenUp(claim);
    let outcome = match timeout(folder.wait, job.as_mut()).await {
        None if of_request.0.take() => return Err(UploadFailure::Busy),
        None => job.await,
        Some(outcome) => outcome,
    };
    outcome.ok().flatten().unwrap_or(Err(UploadFailure::Busy))
}

/// Whoever takes it first decides: the thread, and the file is put in its place; or the request,
/// and it never is.
#[derive(Clone, Default)]
struct PutClaim(Arc<AtomicBool>);

impl PutClaim {
    fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

/// The claim of a request, which gives up when it is dropped: its time is over, or its client gone.
struct GivenUp(PutClaim);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.take();
    }
}

/// Runs a step on a thread for uploads, or here if the folder has none.
async fn on_thread<T: Send + 'static>(
    folder: &Folder,
    step: impl FnOnce() -> T + Send + 'static,
) -> Result<T, UploadFailure> {
    match folder.upload_pool() {
        None => Ok(step()),
        Some(pool) => {
            let ran = timeout(folder.wait, pool.run(step)).await;
            ran.and_then(Result::ok).flatten().ok_or(UploadFailure::Busy)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileOptions;
    use gustnado_config::RouteSettings;
    use gustnado_http::head::Decoded;
    use gustnado_http::limits::Limits;
    use gustnado_http::path::CanonicalPath;
    use gustnado_tasks::block_on;
    use std::sync::mpsc::{Sender, channel};
    use std::time::Duration;
    use tempfile::TempDir;

    const WAIT: Duration = Duration::from_millis(50);

    fn folder() -> (TempDir, Files) {
        let place = TempDir::new().expect("a temporary folder");
        let settings = RouteSettings { upload: true, ..RouteSettings::default() };
        let options = FileOptions { settings, threads: 1, wait: WAIT, ..FileOptions::default() };
        let files = Files::open(place.path(), options).expect("it is there");
        (place, files)
    }

    /// Sends a file, but for the end of it.
    async fn send(files: &Files, path: &str) -> FileUpload {
        let input = format!("PUT {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n");
        let decoded = Head::decode(input.as_bytes(), &mut 0, &Limits::default());
        let Ok(Decoded::Done(head)) = decoded else { panic!("{decoded:?}") };
        let place = Mounted { path: CanonicalPath::of(path.as_bytes()).expect("a path"), at: 0 };
        let begun = files.begin_upload(&place, None, head.on(input.as_bytes()), Some(3)).await;
        let mut upload = begun.expect("it is taken");
        upload.write(b"new".to_vec()).await.expect("there is room");
        upload
    }

    /// Holds the only thread for uploads, as a disk does that is waited for.
    fn hold(files: &Files) -> Sender<()> {
        let (release, held) = channel();
        let job = move || _ = held.recv();
        files.folder.upload_pool().expect("it has threads").start(job).expect("it is idle");
        release
    }

    /// Waits until the thread for uploads has done all.
    async fn settle(files: &Files) {
        let pool = files.folder.upload_pool().expect("it has threads");
        pool.run(|| ()).await.expect("it is not full");
    }

    fn names(place: &TempDir) -> usize {
        std::fs::read_dir(place.path()).expect("there").count()
    }

    #[test]
    fn a_file_that_is_told_to_have_failed_is_never_put_in_its_place() {
        let (place, files) = folder();
        let all = async {
            let upload = send(&files, "/slow-to-sync").await;
            let release = hold(&files);
            let refused = upload.finish().await.expect_err("the disk does not respond");
            assert_eq!(refused.status, Status::SERVICE_UNAVAILABLE);
            drop(release);
            settle(&files).await;
            // The next step has a time of its own.
            let mut upload = send(&files, "/slow-to-put").await;
            let part = upload.part.take().expect("it is idle");
            part.sync().expect("the disk takes it");
            let release = hold(&files);
            let given_up = put(&files.folder, part, gustnado_tasks::now()).await;
            assert_eq!(given_up.err(), Some(UploadFailure::Busy));
            drop(release);
            settle(&files).await;
            // A request whose client has left, or whose route has no more time for it.
            let mut upload = send(&files, "/dropped").await;
            let part = upload.part.take().expect("it is idle");
            let release = hold(&files);
            let putting = put(&files.folder, part, gustnado_tasks::now());
            assert!(timeout(WAIT / 5, putting).await.is_none());
            drop(release);
            settle(&files).await;
        };
        block_on(all).expect("a reactor");
        assert_eq!(names(&place), 0);
    }

    #[test]
    fn a_file_that_is_being_put_in_its_place_is_waited_for() {
        let (place, files) = folder();
        let all = async {
            let upload = send(&files, "/a").await;
            let root = worker::with(&files.folder, |worker| worker.root());
            let quota = files.folder.uploads.of(root.identity(), gustnado_tasks::now());
            let (release, held) = channel::<()>();
            let (locked, is_locked) = channel();
            let other = std::thread::spawn(move || {
                let _commit = quota.commits.lock().expect("no test has failed");
                locked.send(()).expect("it is waited for");
                _ = held.recv_timeout(4 * WAIT);
            });
            is_locked.recv().expect("the thread runs");
            let put = upload.finish().await.expect("it is put there in the end");
            assert_eq!(put.status, Status::CREATED);
            drop(release);
            other.join().expect("it ends");
        };
        block_on(all).expect("a reactor");
        assert_eq!(names(&place), 1);
    }

    #[test]
    fn files_are_found_while_uploads_wait_for_the_disk() {
        let (_place, files) = folder();
        let all = async {
            let _release = hold(&files);
            let pool = files.folder.pool().expect("it has threads");
            timeout(100 * WAIT, pool.run(|| 7)).await.expect("in time").expect("it is idle")
        };
        assert_eq!(block_on(all).expect("a reactor"), Some(7));
    }
}
