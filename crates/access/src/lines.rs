//! Small files of one entry a line: users, keys.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::AccessError;

/// The largest such file, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Reads a file whole.
pub(crate) fn read(setting: &'static str, path: &Path) -> Result<String, AccessError> {
    let failed = |error| AccessError::Unreadable { setting, path: path.to_owned(), error };
    let mut text = String::new();
    let file = File::open(path).map_err(failed)?;
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    if read as u64 > FILE_BYTES_MAX {
        return Err(failed(io::Error::other("it has more than 4 MiB")));
    }
    Ok(text)
}

/// Returns the entries of a text, each with its line. Empty lines and those that begin with `#` are
/// none.
pub(crate) fn entries(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().map(str::trim_end).enumerate();
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(at, line)| (at + 1, line))
}
