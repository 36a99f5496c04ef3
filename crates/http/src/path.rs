//! The one canonical form of a request's path: what routes, guards, folders and caches compare.
//!
//! The path as sent is split at literal slashes, and each segment is decoded once. Segments that
//! are empty or `.` are dropped; a slash at the end stays. Each byte of the others is written in
//! one normal form: what RFC 3986 §3.3 lets stand in a segment stands as it is, everything else is
//! `%XX` in upper case. So a `/`, `\` or NUL that was escaped stays inside its segment, whatever
//! reads the text, and two spellings of one path give the same text.
//!
//! Pure: no allocation where the path was sent in this form, and one where it was not.

#[doc(hidden)]
pub mod pattern;

use std::borrow::Cow;
use std::fmt;
use std::iter;
use std::ops::Range;

use crate::syntax::{SEGMENT, is, skip};

/// A path in its canonical form. Nothing but [`CanonicalPath::of`] makes one.
///
/// The form is a fixed point: the canonical form of its text is that text. So a path as sent that
/// equals the text of any canonical path is canonical itself, and may be compared unread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CanonicalPath<'a> {
    text: Cow<'a, str>,
    has_stray_percent: bool,
}

/// Why a path has no canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathError {
    /// A segment is `..` after decoding. It is not resolved: a proxy before us may have
    /// resolved it otherwise. 400.
    Parent,
    /// It does not begin with a slash. 400.
    NotRooted,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Parent => "a segment of the path is `..`",
            Self::NotRooted => "the path does not begin with a slash",
        })
    }
}

impl std::error::Error for PathError {}

impl<'a> CanonicalPath<'a> {
    /// The canonical form of a path as it was sent, without the query. Any bytes will do.
    ///
    /// # Errors
    /// [`PathError`]; the answer is 400.
    pub fn of(raw: &'a [u8]) -> Result<Self, PathError> {
        match std::str::from_utf8(raw) {
            Ok(text) if is_canonical(raw) => {
                Ok(Self { text: Cow::Borrowed(text), has_stray_percent: false })
            }
            _ => Self::made(raw),
        }
    }

    #[cold]
    fn made(raw: &'a [u8]) -> Result<Self, PathError> {
        let below = raw.strip_prefix(b"/").ok_or(PathError::NotRooted)?;
        let mut text = String::with_capacity(raw.len());
        let (mut has_stray_percent, mut ends_with_slash) = (false, false);
        for segment in below.split(|byte| *byte == b'/') {
            ends_with_slash = match SegmentKind::of(segment) {
                SegmentKind::Parent => return Err(PathError::Parent),
                SegmentKind::Dropped => true,
                SegmentKind::Name => {
                    text.push('/');
                    for unit in path_bytes(segment) {
                        has_stray_percent |= unit.is_stray();
                        push_byte(&mut text, unit.byte);
                    }
                    false
                }
            };
        }
        if ends_with_slash {
            text.push('/');
        }
        let text = match std::str::from_utf8(raw) {
            Ok(raw) if raw == text => Cow::Borrowed(raw),
            _ => Cow::Owned(text),
        };
        Ok(Self { text, has_stray_percent })
    }

    /// Returns the text: ASCII, beginning with `/`, without an empty segment but at the end.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether it is a slice of the path as sent, and so is equal to it.
    pub fn is_as_sent(&self) -> bool {
        matches!(self.text, Cow::Borrowed(_))
    }

    /// Returns whether a `%` of the path as sent began no escape (RFC 3986 §2.1). It was taken for
    /// itself, as if it had been `%25`.
    pub fn has_stray_percent(&self) -> bool {
        self.has_stray_percent
    }

    /// The same path, borrowed.
    pub fn reborrow(&self) -> CanonicalPath<'_> {
        let has_stray_percent = self.has_stray_percent;
        CanonicalPath { text: Cow::Borrowed(&self.text), has_stray_percent }
    }

    /// The same path on its own.
    pub fn into_owned(self) -> CanonicalPath<'static> {
        let has_stray_percent = self.has_stray_percent;
        CanonicalPath { text: Cow::Owned(self.text.into_owned()), has_stray_percent }
    }

    /// The same path on its own, if it is not as it was sent.
    pub fn into_changed(self) -> Option<CanonicalPath<'static>> {
        let has_stray_percent = self.has_stray_percent;
        match self.text {
            Cow::Borrowed(_) => None,
            Cow::Owned(text) => Some(CanonicalPath { text: Cow::Owned(text), has_stray_percent }),
        }
    }

    /// Returns whether it is `other` or beneath it, segment by segment: `/a` and `/a/b` are beneath
    /// `/a` and `/a/`, while `/ab` and `/a%2Fb` are not.
    pub fn is_under(&self, other: &CanonicalPath<'_>) -> bool {
        let base = other.text.strip_suffix('/').unwrap_or(&other.text);
        let below = self.text.strip_prefix(base);
        below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    }

    /// Returns the text decoded, for reading and for comparing as text. What is no separator does
    /// not become one: NUL, `/` and `\` inside a segment stay `%00`, `%2F` and `%5C`. Bytes that
    /// are no UTF-8 become U+FFFD.
    pub fn into_decoded(self) -> Cow<'a, str> {
        if !self.text.contains('%') {
            return self.text;
        }
        let mut decoded = Vec::with_capacity(self.text.len());
        for unit in path_bytes(self.text.as_bytes()) {
            match unit.byte {
                0 | b'\\' => decoded.extend_from_slice(unit.spelling),
                b'/' if unit.spelling.len() > 1 => decoded.extend_from_slice(unit.spelling),
                byte => decoded.push(byte),
            }
        }
        Cow::Owned(String::from_utf8_lossy(&decoded).into_owned())
    }
}

/// How a part of a path was sent.
///
/// - `raw`: the path as sent.
/// - `part`: where the part is in the text of its canonical form.
/// - `keeps_empty`: whether empty segments within the part are kept, those it begins with too.
///
/// Segments that are `.` are always dropped.
pub fn as_sent(raw: &[u8], part: Range<usize>, keeps_empty: bool) -> String {
    let below = raw.strip_prefix(b"/").unwrap_or(raw);
    let mut sent = Vec::with_capacity(part.len());
    let mut at = 0; // in the canonical text
    let mut segments = below.split(|byte| *byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        let is_name = SegmentKind::of(segment) == SegmentKind::Name;
        if is_name || segments.peek().is_none() {
            if part.contains(&at) {
                sent.push(b'/');
            }
            at += 1;
        } else if segment.is_empty() && keeps_empty && at + 1 >= part.start && at <= part.end {
            sent.push(b'/');
        }
        for unit in path_bytes(segment).take_while(|_| is_name) {
            if part.contains(&at) {
                sent.extend_from_slice(unit.spelling);
            }
            at += width(unit.byte);
        }
    }
    String::from_utf8_lossy(&sent).into_owned()
}

/// Appends what a segment stands for: each escape decoded, once.
pub fn decode_into(segment: &[u8], out: &mut Vec<u8>) {
    out.extend(path_bytes(segment).map(|unit| unit.byte));
}

/// Appends text to a canonical text: its escapes decoded, all of it in the normal form.
///
/// - `text`: a part of one segment, without a slash.
pub fn push_normal(canonical: &mut String, text: &[u8]) {
    for unit in path_bytes(text) {
        push_byte(canonical, unit.byte);
    }
}

/// Returns whether a path is in its canonical form without an escape. (One with escapes may be,
/// too.)
fn is_canonical(path: &[u8]) -> bool {
    let Some(mut rest) = path.strip_prefix(b"/") else { return false };
    loop {
        let behind = skip(rest, SEGMENT);
        let segment = &rest[..rest.len() - behind.len()];
        let is_dots = matches!(segment, b"." | b"..");
        match behind {
            [] => return !is_dots,
            [b'/', next @ ..] if !is_dots && !segment.is_empty() => rest = next,
            _ => return false,
        }
    }
}

/// Appends one byte of a segment in the normal form.
fn push_byte(text: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    if is(byte, SEGMENT) {
        text.push(char::from(byte));
    } else {
        text.push('%');
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

/// Returns how many bytes [`push_byte`] appends.
fn width(byte: u8) -> usize {
    if is(byte, SEGMENT) { 1 } else { 3 }
}

/// What becomes of a segment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SegmentKind {
    /// Empty, or `.`.
    Dropped,
    /// `..`
    Parent,
    Name,
}

impl SegmentKind {
    fn of(segment: &[u8]) -> Self {
        let mut bytes = path_bytes(segment).map(|unit| unit.byte);
        match [bytes.next(), bytes.next(), bytes.next()] {
            [None, ..] | [Some(b'.'), None, _] => Self::Dropped,
            [Some(b'.'), Some(b'.'), None] => Self::Parent,
            _ => Self::Name,
        }
    }
}

/// Returns the decoded bytes of a segment, in order.
fn path_bytes(segment: &[u8]) -> impl Iterator<Item = PathByte<'_>> {
    let mut rest = segment;
    iter::from_fn(move || {
        let (byte, behind) = PathByte::first(rest)?;
        rest = behind;
        Some(byte)
    })
}

/// One decoded byte, and how it was written: as itself, or as three bytes.
struct PathByte<'a> {
    byte: u8,
    spelling: &'a [u8],
}

impl<'a> PathByte<'a> {
    fn first(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        if let [b'%', high, low, rest @ ..] = bytes
            && let (Some(high), Some(low)) = (hex_value(*high), hex_value(*low))
        {
            return Some((Self { byte: high << 4 | low, spelling: &bytes[..3] }, rest));
        }
        let (byte, rest) = bytes.split_first()?;
        Some((Self { byte: *byte, spelling: &bytes[..1] }, rest))
    }

    fn is_stray(&self) -> bool {
        self.spelling == b"%"
    }
}

fn hex_value(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(raw: &str) -> String {
        let path = CanonicalPath::of(raw.as_bytes()).expect("a path with a canonical form");
        assert_eq!(path.is_as_sent(), raw == path.as_str(), "{raw}");
        path.as_str().to_owned()
    }

    #[test]
    fn each_path_has_one_form() {
        for (raw, text) in [
            ("/", "/"),
            ("//", "/"),
            ("/.", "/"),
            ("/%2e/", "/"),
            ("/a", "/a"),
            ("///a///b", "/a/b"),
            ("/a/", "/a/"),
            ("/a//", "/a/"),
            ("/a/.", "/a/"),
            ("/a/./", "/a/"),
            ("/a/%2E", "/a/"),
            ("/./a/./b", "/a/b"),
            ("/%61%2d%7e", "/a-~"),
            ("/a%2Bb%3a%40/", "/a+b:@/"),
            ("/!$&'()*+,;=:@", "/!$&'()*+,;=:@"),
            ("/%c3%a9", "/%C3%A9"),
            ("/\u{e9}", "/%C3%A9"),
            ("/a%2fb%5c%00", "/a%2Fb%5C%00"),
            ("/a\\[b]{c}", "/a%5C%5Bb%5D%7Bc%7D"),
            ("/%252e%252E/x", "/%252e%252E/x"),
            ("/...", "/..."),
            ("/..a/a..", "/..a/a.."),
            ("/..%2f", "/..%2F"),
            ("/..;/x", "/..;/x"),
            ("/a?b", "/a%3Fb"),
        ] {
            assert_eq!(canonical(raw), text, "{raw}");
            assert_eq!(canonical(text), text);
        }
    }

    #[test]
    fn a_percent_that_begins_no_escape_is_itself_and_is_decoded_no_further() {
        for (raw, text) in [
            ("/100%", "/100%25"),
            ("/%zz%41", "/%25zzA"),
            ("/%%37%30x", "/%2570x"),
            ("/%+1", "/%25+1"),
        ] {
            let path = CanonicalPath::of(raw.as_bytes()).expect("a path with a canonical form");
            assert_eq!((path.as_str(), path.has_stray_percent()), (text, true), "{raw}");
        }
        assert!(!CanonicalPath::of(b"/100%25").expect("it has one").has_stray_percent());
    }

    #[test]
    fn what_leads_upwards_or_has_no_root_has_no_form() {
        for raw in ["/..", "/../", "/a/../b", "/%2e%2E", "/.%2e/a", "//..//", "/a/.."] {
            assert_eq!(CanonicalPath::of(raw.as_bytes()), Err(PathError::Parent), "{raw}");
        }
        for raw in ["", "*", "a/b", "%2fa"] {
            assert_eq!(CanonicalPath::of(raw.as_bytes()), Err(PathError::NotRooted), "{raw}");
        }
    }

    #[test]
    fn what_was_escaped_becomes_no_separator_when_it_is_decoded() {
        let decoded = |raw: &'static str| {
            CanonicalPath::of(raw.as_bytes()).expect("it has one").into_decoded()
        };
        assert_eq!(decoded("//a%20b/%C3%A9/%ff"), "/a b/\u{e9}/\u{fffd}");
        assert_eq!(decoded("/a%2fb%5cc%00/%252f"), "/a%2Fb%5Cc%00/%2f");
        assert!(matches!(decoded("/plain"), Cow::Borrowed("/plain")));
    }

    #[test]
    fn what_is_beneath_is_so_by_segments() {
        let of = |raw: &'static str| CanonicalPath::of(raw.as_bytes()).expect("a path");
        let is_under = |path, base| of(path).is_under(&of(base));
        for path in ["/a", "/a/", "//a//b", "/%61/b", "/./a"] {
            assert!(is_under(path, "/a") && is_under(path, "/a/") && is_under(path, "/"), "{path}");
        }
        for path in ["/", "/ab", "/a%2Fb", "/A", "/b/a"] {
            assert!(!is_under(path, "/a"), "{path}");
        }
    }

    #[test]
    fn a_part_is_found_in_the_path_as_it_was_sent() {
        for (raw, from, merged, kept) in [
            ("/p/a%2bb/c", 3, "a%2bb/c", "a%2bb/c"),
            ("/p/https://example.org/x", 3, "https:/example.org/x", "https://example.org/x"),
            ("//p//a/./b//", 3, "a/b/", "/a/b//"),
            ("/p//", 3, "", "/"),
            ("/p/", 3, "", ""),
            ("//x", 1, "x", "/x"),
            ("/%70/a[%", 3, "a[%", "a[%"),
        ] {
            let end = canonical(raw).len();
            assert_eq!(as_sent(raw.as_bytes(), from..end, false), merged, "{raw}");
            assert_eq!(as_sent(raw.as_bytes(), from..end, true), kept, "{raw}");
        }
        assert_eq!(as_sent(b"//a//b%2B//c", 3..5, false), "b%2B");
    }
}
