//! Paths below the root path, which is not the application's.

/// Returns the part of a path below another one, by whole segments.
pub(crate) fn below<'a>(path: &'a [u8], root: &[u8]) -> Option<&'a [u8]> {
    path.strip_prefix(root).filter(|rest| matches!(rest, [] | [b'/', ..]))
}
