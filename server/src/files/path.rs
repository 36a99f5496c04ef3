//! From a request path to a path beneath the root: decoded once, checked, or refused.
//!
//! Pure: nothing here asks the disk. It is the first of two walls; the second is `resolve.rs`,
//! which lets the kernel refuse what leaves the root.

/// The longest path that is looked up; Linux takes no longer one in a single call.
const PATH_BYTES_MAX: usize = 4_095;

/// A checked path relative to the root.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FilePath {
    /// Decoded segments joined by single slashes, with none at either end; empty for the root.
    pub(crate) relative: Vec<u8>,
    /// The request path ended with a slash, so it names a directory.
    pub(crate) names_directory: bool,
    /// Written the only way that needs no decoding and no merging: one spelling per file, so that
    /// a cache which holds canonical paths only cannot be flushed by other spellings.
    pub(crate) is_canonical: bool,
}

/// Why a path is not looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathError {
    /// A `%` without two hexadecimal digits, or no leading slash: not a path by RFC 3986 §2.1 and
    /// §3.3, hence 400.
    Malformed,
    /// A path that could lead astray or is hidden: 404, as if nothing were there.
    Refused,
}

/// Decodes and checks the path of a request.
///
/// - `raw`: the path as sent, without the query.
/// - `hidden`: whether names that start with a dot are served; `.well-known` always is.
///
/// Escapes are decoded once and segment by segment, so `%252e` stays a literal `%2e` and `%2f` can
/// never become a separator. Empty segments are merged, as the kernel would.
pub(crate) fn decode(raw: &[u8], hidden: bool) -> Result<FilePath, PathError> {
    let path = raw.strip_prefix(b"/").ok_or(PathError::Malformed)?;
    let mut relative = Vec::with_capacity(path.len());
    let mut is_canonical = true;
    let mut segments = path.split(|byte| *byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        if segment.is_empty() {
            // The last one is what follows the closing slash.
            is_canonical &= segments.peek().is_none();
            continue;
        }
        if !relative.is_empty() {
            relative.push(b'/');
        }
        let start = relative.len();
        is_canonical &= decode_segment(segment, &mut relative)?;
        check_segment(&relative[start..], hidden)?;
    }
    if relative.len() > PATH_BYTES_MAX {
        return Err(PathError::Refused);
    }
    let names_directory = raw.ends_with(b"/");
    Ok(FilePath { relative, names_directory, is_canonical })
}

/// Appends the decoded segment; the answer is whether it held no escape.
fn decode_segment(segment: &[u8], into: &mut Vec<u8>) -> Result<bool, PathError> {
    let mut rest = segment;
    while let Some(at) = memchr::memchr(b'%', rest) {
        let digits = rest.get(at + 1..at + 3).ok_or(PathError::Malformed)?;
        let (high, low) = (hex_value(digits[0])?, hex_value(digits[1])?);
        into.extend_from_slice(&rest[..at]);
        into.push(high << 4 | low);
        rest = &rest[at + 3..];
    }
    into.extend_from_slice(rest);
    Ok(rest.len() == segment.len())
}

fn hex_value(digit: u8) -> Result<u8, PathError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        b'A'..=b'F' => Ok(digit - b'A' + 10),
        _ => Err(PathError::Malformed),
    }
}

/// Refuses what is not the name of one visible thing in one directory.
fn check_segment(name: &[u8], hidden: bool) -> Result<(), PathError> {
    let leads_astray = name == b"."
        || name == b".."
        // A backslash is an ordinary byte here, but a separator to what may stand in front of us.
        || name.iter().any(|byte| matches!(byte, 0 | b'/' | b'\\'));
    let is_hidden = name.starts_with(b".") && name != b".well-known" && !hidden;
    if leads_astray || is_hidden { Err(PathError::Refused) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
