//! The name of an archive, and the field that gives it to the client (RFC 6266).

use std::fmt::Write;

use gustnado_http::path::decode_into;

use crate::Mounted;

/// The name of what has none: the root of a server.
const UNNAMED: &[u8] = b"files";

/// Returns the name of the folder that a path is of, as the client knows it: that of the disk is
/// not told.
pub(super) fn name_of(place: &Mounted<'_>) -> Vec<u8> {
    let path = place.path.as_str().trim_end_matches('/');
    let last = path.rsplit('/').next().unwrap_or_default();
    let mut name = Vec::new();
    decode_into(last.as_bytes(), &mut name);
    // (A mount point may have any name, and that of a folder is checked.)
    let is_name = !name.is_empty()
        && name != b"."
        && name != b".."
        && !name.iter().any(|byte| matches!(byte, 0 | b'/' | b'\\'));
    if is_name { name } else { UNNAMED.to_vec() }
}

/// Returns the value of `Content-Disposition`: a name that every client reads, and the real one.
pub(super) fn disposition(name: &[u8], ending: &str) -> Vec<u8> {
    let text = String::from_utf8_lossy(name);
    let is_plain =
        |one: char| one == ' ' || one.is_ascii_graphic() && !"\"\\%/:*?<>|".contains(one);
    let plain: String = text.chars().map(|one| if is_plain(one) { one } else { '_' }).collect();
    let mut value = format!("attachment; filename=\"{plain}{ending}\"");
    if plain != text {
        value.push_str("; filename*=UTF-8''");
        for byte in text.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    value.push(char::from(byte));
                }
                _ => write!(value, "%{byte:02X}").expect("a string takes all"),
            }
        }
        value.push_str(ending);
    }
    value.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gustnado_http::path::CanonicalPath;

    fn name(path: &str) -> Vec<u8> {
        let path = CanonicalPath::of(path.as_bytes()).expect("a path that is served");
        name_of(&Mounted { path, at: 0 })
    }

    #[test]
    fn an_archive_has_the_name_of_its_folder() {
        assert_eq!(name("/"), b"files");
        assert_eq!(name("/photos/2026/"), b"2026");
        assert_eq!(name("/a%20b%0A%FF/"), b"a b\n\xff");
    }

    #[test]
    fn a_name_cannot_leave_its_field() {
        let value = |name: &[u8]| String::from_utf8(disposition(name, ".zip")).expect("ASCII");
        assert_eq!(value(b"a b"), "attachment; filename=\"a b.zip\"");
        assert_eq!(
            value("caf\u{e9}".as_bytes()),
            "attachment; filename=\"caf_.zip\"; filename*=UTF-8''caf%C3%A9.zip"
        );
        assert_eq!(
            value(b"\"\r\nX: y\xff"),
            "attachment; filename=\"___X_ y_.zip\"; \
             filename*=UTF-8''%22%0D%0AX%3A%20y%EF%BF%BD.zip"
        );
    }
}
