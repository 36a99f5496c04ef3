//! One file at a path that is trusted, outside of any folder that is served.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use gustnado_config::RouteSettings;
use gustnado_http::fields::Fields;
use gustnado_http::request::RequestView;
use gustnado_tasks::Now;
use rustix::fs::FileType;
use rustix::io::Errno;

use super::cached_file::{Access, CachedFile, LoadContext, Representation};
use super::content_type::ContentType;
use super::digest::{self, Hashing};
use super::error::Failure;
use super::headers::FolderHeaders;
use super::open_file::OpenFiles;
use super::resolve::Root;
use super::response::FileResponse;
use super::select::select_or_whole;

/// Responds with one file at any place: `path` is trusted. Waits for the disk.
pub fn respond_with_file(path: &Path, request: RequestView<'_>, now: Now) -> FileResponse {
    match load_file(path, now) {
        Ok(file) => select_or_whole(Arc::new(file), &FolderHeaders::default(), request, now),
        Err(failure) => FileResponse::new(failure.status()),
    }
}

/// Responds with all of such a file, whatever a request asks for; with its status alone if it
/// cannot be read.
pub fn respond_with_whole_file(path: &Path, now: Now) -> FileResponse {
    match load_file(path, now) {
        Ok(file) => FileResponse::whole(Arc::new(file)),
        Err(failure) => FileResponse::new(failure.status()),
    }
}

fn load_file(path: &Path, now: Now) -> Result<CachedFile, Failure> {
    let not_found = Failure::Disk(Errno::NOENT);
    let name = path.file_name().ok_or(not_found)?.as_bytes();
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let root = Root::open(parent).map_err(Failure::Disk)?;
    let located = root.locate(name)?;
    if located.kind() != FileType::RegularFile {
        return Err(Failure::Disk(Errno::NOENT));
    }
    let small_bytes_max = RouteSettings::default().small_file_bytes_max;
    // Without a folder that remembers digests, only a small file has one.
    let folder = LoadContext {
        headers: &FolderHeaders::default(),
        pool: None,
        open_files: &OpenFiles::default(),
        hashing: &Hashing::new(small_bytes_max, digest::source_date()),
        small_bytes_max,
        own: &Fields::new(),
    };
    let file = (&located, name, Representation::of_type(ContentType::of(name)));
    CachedFile::load((&root, Access::Waits), file, folder, now)
}
