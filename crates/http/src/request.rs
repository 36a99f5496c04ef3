//! A request head as its readers see it: the checked offsets together with the bytes.

use std::fmt;

use crate::fields::{HeaderId, INDEXED};
use crate::head::{Head, Version};
use crate::method::Method;
use crate::syntax::{TOKEN, VALUE, skip, trim};
use crate::target;

pub use crate::target::TargetForm;

/// One request head, borrowed: two references, made to be passed by value.
#[derive(Clone, Copy)]
pub struct RequestView<'a> {
    head: &'a Head,
    bytes: &'a [u8],
}

impl Head {
    /// Returns the head together with its bytes: the same `input` it was decoded from, or at least
    /// [`Head::len`] bytes of it.
    #[inline]
    pub fn on<'a>(&'a self, bytes: &'a [u8]) -> RequestView<'a> {
        debug_assert!(bytes.len() >= self.len());
        RequestView { head: self, bytes }
    }
}

impl<'a> RequestView<'a> {
    /// Returns the head and its bytes, to be kept.
    pub fn to_parts(self) -> (Head, Vec<u8>) {
        (*self.head, self.bytes[..self.head.len()].to_vec())
    }

    /// Returns the head, for what it says without its bytes.
    #[inline]
    pub fn head(self) -> &'a Head {
        self.head
    }

    /// Returns the method.
    #[inline]
    pub fn method(self) -> Method {
        self.head.method()
    }

    /// Returns the method as it was sent: 1 to 64 bytes of a token (RFC 9110 §9.1).
    pub fn method_token(self) -> &'a [u8] {
        if let Some(name) = self.method().as_str() {
            return name.as_bytes();
        }
        // Behind it is the target: in HTTP/1 after one space. Empty lines may stand before it.
        let space = usize::from(self.version() != Version::Http2);
        let line = &self.bytes[..usize::from(self.head.target.start).saturating_sub(space)];
        &line[memchr::memrchr(b'\n', line).map_or(0, |line_end| line_end + 1)..]
    }

    /// Returns the protocols that the client would rather go on in, in its order: those of its
    /// Upgrade fields (RFC 9110 §7.8), or in HTTP/2 the one of `:protocol` (RFC 8441 §4).
    pub fn upgrade_protocols(self) -> impl Iterator<Item = &'a [u8]> {
        let is_wanted = self.head.wants_upgrade();
        let is_http2 = self.version() == Version::Http2;
        // Behind a line end, as a method without a name of its own.
        let of_stream =
            (is_wanted && is_http2).then(|| &self.bytes[1..usize::from(self.head.target.start)]);
        let fields = self.fields().filter(move |(name, _)| {
            is_wanted && !is_http2 && name.eq_ignore_ascii_case(b"upgrade")
        });
        let of_fields = fields
            .flat_map(|(_, value)| value.split(|byte| *byte == b','))
            .map(<[u8]>::trim_ascii)
            .filter(|protocol| !protocol.is_empty());
        of_stream.into_iter().chain(of_fields)
    }

    /// Returns whether the client would rather go on in a protocol; case does not matter.
    pub fn wants_protocol(self, protocol: &str) -> bool {
        let wanted = protocol.as_bytes();
        self.upgrade_protocols().any(|protocol| protocol.eq_ignore_ascii_case(wanted))
    }

    /// Returns the version.
    #[inline]
    pub fn version(self) -> Version {
        self.head.version()
    }

    /// Returns the request target as it was sent: 1 to `target_bytes_max` visible ASCII bytes.
    #[inline]
    pub fn target(self) -> &'a [u8] {
        self.head.target.of(self.bytes)
    }

    /// Returns the form that the target is in.
    #[inline]
    pub fn form(self) -> TargetForm {
        self.head.form
    }

    /// Returns the path, still percent-encoded, without the query. It starts with `/`, whatever the
    /// form; only asterisk-form gives `*`. Authority-form, and absolute-form without a path, give
    /// `/`.
    #[inline]
    pub fn path(self) -> &'a [u8] {
        let start = usize::from(self.head.path_start);
        let end =
            usize::from(if self.head.query == 0 { self.head.target.end } else { self.head.query });
        if start == end { b"/" } else { &self.bytes[start..end] }
    }

    /// Returns what stands behind the first `?`, still percent-encoded; empty if nothing does.
    #[inline]
    pub fn query(self) -> Option<&'a [u8]> {
        let mark = usize::from(self.head.query);
        (mark != 0).then(|| &self.bytes[mark + 1..usize::from(self.head.target.end)])
    }

    /// Returns the host with its port, if it says one: of the target in absolute-form and
    /// authority-form (RFC 9112 §3.2.2: Host is then ignored), else of Host. Always there on 1.1;
    /// checked, never empty.
    pub fn host(self) -> Option<&'a [u8]> {
        match self.form() {
            TargetForm::Origin | TargetForm::Asterisk => self.known(HeaderId::Host),
            TargetForm::Authority => Some(self.target()),
            TargetForm::Absolute => {
                let start = target::authority_start(self.target())?;
                let end = usize::from(self.head.path_start - self.head.target.start);
                Some(&self.target()[start..end])
            }
        }
    }

    /// Returns the first value of a field, by its id. Without the space around it; may be empty.
    ///
    /// Host, Range and the conditions need no search; for others the fields are walked.
    #[inline]
    pub fn known(self, id: HeaderId) -> Option<&'a [u8]> {
        if (id as usize) < INDEXED {
            return Some(self.head.indexed(id)?.of(self.bytes));
        }
        self.field(id.name())
    }

    /// Returns the first value of any field, by its name; case does not matter. Walks the fields:
    /// prefer [`RequestView::known`].
    pub fn field(self, name: &str) -> Option<&'a [u8]> {
        self.fields()
            .find(|field| field.0.eq_ignore_ascii_case(name.as_bytes()))
            .map(|field| field.1)
    }

    /// Returns all field lines in order: name and value, the value without the space around it.
    pub fn fields(self) -> FieldLines<'a> {
        let section = self.head.fields.of(self.bytes);
        if self.version() == Version::Http2 {
            FieldLines::of_records(section)
        } else {
            FieldLines::of(section)
        }
    }
}

impl fmt::Debug for RequestView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method_token().escape_ascii(), self.target().escape_ascii())
    }
}

/// The field lines of a message or of its trailer section, in order. Reads bytes that are already
/// checked.
#[derive(Clone, Debug)]
pub struct FieldLines<'a> {
    rest: &'a [u8],
    /// They came by HTTP/2.
    are_records: bool,
}

/// What stands in front of a field that came by HTTP/2: the lengths of its name and its value, in
/// 16 bits each.
pub(crate) const RECORD_BYTES: usize = 4;

/// Writes a field as a record. Both parts are shorter than 64 KiB.
pub(crate) fn write_record(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(lengths(name.len(), value.len()).as_flattened());
    out.extend_from_slice(name);
    out.extend_from_slice(value);
}

#[expect(clippy::cast_possible_truncation, reason = "both are parts of a head")]
fn lengths(name: usize, value: usize) -> [[u8; 2]; 2] {
    debug_assert!(u16::try_from(name.max(value)).is_ok());
    [name as u16, value as u16].map(u16::to_le_bytes)
}

/// Reads the first record.
fn record(records: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let ([n0, n1, v0, v1], rest) = records.split_first_chunk::<RECORD_BYTES>()?;
    let length = |low, high| usize::from(u16::from_le_bytes([low, high]));
    let (name, rest) = rest.split_at_checked(length(*n0, *n1))?;
    let (value, rest) = rest.split_at_checked(length(*v0, *v1))?;
    Some((name, value, rest))
}

impl<'a> FieldLines<'a> {
    /// The lines of a section that is checked: whole lines, without the blank one.
    ///
    /// # Panics
    /// If the section is none that was checked.
    #[inline]
    pub fn of(section: &'a [u8]) -> Self {
        Self { rest: section, are_records: false }
    }

    /// The same of fields that came by HTTP/2: whole records, as the head or the trailers of a
    /// response are kept.
    pub fn of_records(section: &'a [u8]) -> Self {
        Self { rest: section, are_records: true }
    }
}

impl<'a> Iterator for FieldLines<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.are_records {
            let (name, value, rest) = record(self.rest)?;
            self.rest = rest;
            return Some((name, value));
        }
        if self.rest.is_empty() {
            return None;
        }
        let colon = skip(self.rest, TOKEN);
        let name = &self.rest[..self.rest.len() - colon.len()];
        let line_end = skip(&colon[1..], VALUE);
        let value = &colon[1..colon.len() - line_end.len()];
        self.rest = &line_end[2..];
        Some((name, trim(value)))
    }
}
