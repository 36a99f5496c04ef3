//! The trailer fields of a request.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use gustnado_config::UNCHARGED_BYTES;
use gustnado_http::request::FieldLines;
use gustnado_tasks::{Charge, MemoryKind};

/// The trailer fields of a request (RFC 9110 §6.5): what a client adds behind the body, because it
/// knows it only then, e.g. a checksum. See
/// [`Request::trailers`](crate::request::Request::trailers).
///
/// They are no header fields, and never mixed with those: nothing in them says how the message is
/// framed or where it goes, and a field that must not be a trailer has no meaning here
/// (RFC 9110 §6.5.1).
///
/// A clone is cheap, and keeps their bytes.
#[derive(Clone)]
pub struct RequestTrailers {
    section: Bytes,
    /// They came by HTTP/2.
    are_records: bool,
    /// The memory of long ones.
    _charge: Option<Arc<Charge>>,
}

impl RequestTrailers {
    /// - `lines`: the section as HTTP/1 has it, checked, without the blank line.
    #[doc(hidden)]
    pub fn of_lines(lines: Vec<u8>) -> Self {
        Self::new(lines, false)
    }

    /// - `records`: the same as HTTP/2 keeps it.
    #[doc(hidden)]
    pub fn of_records(records: Vec<u8>) -> Self {
        Self::new(records, true)
    }

    fn new(section: Vec<u8>, are_records: bool) -> Self {
        let charge = (section.len() > UNCHARGED_BYTES).then(|| {
            let mut charge = Charge::new(MemoryKind::Heads);
            charge.set(section.len());
            Arc::new(charge)
        });
        Self { section: section.into(), are_records, _charge: charge }
    }

    /// Returns all fields in order: the name as it was sent, and the value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let lines = if self.are_records {
            FieldLines::of_records(&self.section)
        } else {
            FieldLines::of(&self.section)
        };
        // Names are ASCII: the decoder has let no other through.
        lines.map(|(name, value)| (std::str::from_utf8(name).unwrap_or_default(), value))
    }

    /// Returns the first value of a field; the case of the name does not matter. `None` also for a
    /// value that is not UTF-8: see [`RequestTrailers::get_bytes`].
    pub fn get(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.get_bytes(name)?).ok()
    }

    /// Returns the first value of a field as its bytes.
    pub fn get_bytes(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

impl fmt::Debug for RequestTrailers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The values may be secret.
        f.debug_list().entries(self.iter().map(|(name, _)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_they_came_in_either_version() {
        let lines = b"Checksum: 1a2b\r\nother:\t \xff\r\nchecksum: 3\r\n".to_vec();
        let records = b"\x08\0\x04\0Checksum1a2b\x05\0\x01\0other\xff\x08\0\x01\0checksum3";
        for trailers in
            [RequestTrailers::of_lines(lines), RequestTrailers::of_records(records.to_vec())]
        {
            assert_eq!(trailers.get("CHECKSUM"), Some("1a2b"));
            assert_eq!(trailers.get("other"), None);
            assert_eq!(trailers.get_bytes("other"), Some(&b"\xff"[..]));
            assert_eq!(trailers.get("host"), None);
            let names: Vec<_> = trailers.iter().map(|(name, _)| name).collect();
            assert_eq!(names, ["Checksum", "other", "checksum"]);
            assert_eq!(format!("{trailers:?}"), r#"["Checksum", "other", "checksum"]"#);
        }
    }
}
