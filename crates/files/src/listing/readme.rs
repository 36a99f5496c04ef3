//! The file that describes a folder, below its listing.

use std::io::Read;

use super::text::escaped;
use crate::open_folder::OpenFolder;

/// The most bytes of it that are shown.
const README_BYTES_MAX: u64 = 256 << 10;

/// Returns the text of a file as a part of a page; `None` if it cannot be read.
pub(super) fn rendered(folder: &OpenFolder, name: &[u8]) -> Option<String> {
    let path = folder.path_of(name);
    let located = folder.root().locate(&path).ok()?;
    let file = folder.root().open_to_read(&located, &path).ok()?;
    let mut bytes = Vec::new();
    file.take(README_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<String> = text.lines().map(|line| escaped(line).into_owned()).collect();
    Some(format!("<article><pre>{}</pre></article>\n", lines.join("\n")))
}
