//! Turns a canonical path into a path below the root: decoded and checked, or refused.
//!
//! Nothing here reads the disk. This is the first of two walls; the second is `resolve.rs`, where
//! the kernel refuses paths that leave the root.

use gustnado_http::path::decode_into;

/// The longest path that is looked up; Linux accepts no longer one in a single call.
const PATH_BYTES_MAX: usize = 4_095;

/// The beginning of the names of files that are being sent, where the file system has none without
/// a name. No request finds one, not even where hidden names are served.
pub(crate) const PART_NAME: &str = ".gustnado-upload-";

/// A checked path relative to the root.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FilePath {
    /// Decoded segments joined by single slashes, with none at either end; empty for the root.
    pub relative: Vec<u8>,
    /// The request path ends with a slash, so it names a directory.
    pub names_directory: bool,
}

/// Why a path is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilePathError {
    /// A `%` without two hexadecimal digits, a path that leads upwards, or no canonical form: not a
    /// path by RFC 3986 §2.1 and §3.3, hence 400.
    Malformed,
    /// A path that is hidden or could lead elsewhere: 404, as if nothing were there.
    Refused,
}

/// Decodes and checks a path.
///
/// - `path`: a canonical path, or the rest of one behind the mount point. Segments that would be
///   refused here were refused there too.
/// - `hidden`: whether names that start with a dot are served; `.well-known` always is.
pub(crate) fn decode(path: &[u8], hidden: bool) -> Result<FilePath, FilePathError> {
    let below = path.strip_prefix(b"/").ok_or(FilePathError::Malformed)?;
    let names_directory = path.ends_with(b"/");
    let mut relative = Vec::with_capacity(below.len());
    for segment in below.strip_suffix(b"/").unwrap_or(below).split(|byte| *byte == b'/') {
        if below.is_empty() {
            break; // the root itself
        }
        if !relative.is_empty() {
            relative.push(b'/');
        }
        let start = relative.len();
        decode_into(segment, &mut relative);
        check_segment(&relative[start..], hidden)?;
    }
    if relative.len() > PATH_BYTES_MAX {
        return Err(FilePathError::Refused);
    }
    Ok(FilePath { relative, names_directory })
}

/// Refuses a segment that is not the name of one visible entry of one directory.
pub(crate) fn check_segment(name: &[u8], hidden: bool) -> Result<(), FilePathError> {
    let leads_astray = name.is_empty()
        || name == b"."
        || name == b".."
        // A backslash is an ordinary byte on Linux, but a separator to some proxies in front.
        || name.iter().any(|byte| matches!(byte, 0 | b'/' | b'\\'));
    let is_hidden = name.starts_with(b".")
        && name != b".well-known"
        && (!hidden || name.starts_with(PART_NAME.as_bytes()));
    if leads_astray || is_hidden { Err(FilePathError::Refused) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
