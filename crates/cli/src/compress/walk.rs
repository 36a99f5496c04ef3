//! Finds the files of a folder that may become smaller.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gustnado_files::ContentType;
use gustnado_http::media_type::matches_any;

/// The deepest folder that is looked into. Deeper ones are a loop of mounts, or an attack.
const DEPTH_MAX: usize = 64;

/// The smallest file that is compressed: a response's head is longer.
const BYTES_MIN: u64 = 128;
/// The largest one: it is held in memory together with what becomes of it.
const BYTES_MAX: u64 = 512 << 20;

/// The files of a folder.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The largest first, so that no thread begins with it when the others end.
    pub(super) files: Vec<FoundFile>,
    /// What could not be read, and why.
    pub(super) unread: Vec<(PathBuf, io::Error)>,
}

/// A file that may become smaller.
#[derive(Debug)]
pub(super) struct FoundFile {
    pub(super) path: PathBuf,
    bytes: u64,
}

/// Finds files of the given media types. Hidden ones are not served, and links lead elsewhere: both
/// are left out.
///
/// # Errors
/// The folder itself cannot be read.
pub(super) fn find(folder: &Path, types: &[String]) -> io::Result<Found> {
    let mut found = Found::default();
    let mut open = vec![(folder.to_path_buf(), 0)];
    while let Some((path, depth)) = open.pop() {
        let entries = match fs::read_dir(&path) {
            Err(error) if depth == 0 => return Err(error),
            Err(error) => {
                found.unread.push((path, error));
                continue;
            }
            Ok(entries) => entries,
        };
        for entry in entries {
            match entry.and_then(|entry| Ok((entry.path(), entry.metadata()?))) {
                Err(error) => found.unread.push((path.clone(), error)),
                Ok((path, _)) if is_hidden(&path) => {}
                Ok((path, meta)) if meta.is_dir() && depth < DEPTH_MAX => {
                    open.push((path, depth + 1));
                }
                Ok((path, meta)) if meta.is_file() => {
                    let bytes = meta.len();
                    if (BYTES_MIN..=BYTES_MAX).contains(&bytes) && is_one_of(&path, types) {
                        found.files.push(FoundFile { path, bytes });
                    }
                }
                Ok(_) => {}
            }
        }
    }
    found.files.sort_by(|one, other| (other.bytes, &one.path).cmp(&(one.bytes, &other.path)));
    Ok(found)
}

fn is_hidden(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    name.starts_with(b".") && name != b".well-known"
}

fn is_one_of(path: &Path, types: &[String]) -> bool {
    let name = path.file_name().map(OsStr::as_bytes).unwrap_or_default();
    let content_type = ContentType::of(name).to_string();
    matches_any(types.iter().map(String::as_str), content_type.as_bytes())
}
