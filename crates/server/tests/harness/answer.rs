//! One answer as a client reads it, strictly: what RFC 9112 does not allow fails the test.

use std::fmt;

/// A final or interim response.
#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl fmt::Debug for Answer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, fields, body } = self;
        let start = String::from_utf8_lossy(&body[..body.len().min(60)]);
        write!(out, "{status} {fields:?} {} bytes: {start:?}", body.len())
    }
}

/// How long an answer's body is. RFC 9112 §6.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    Bytes(usize),
    Chunks,
    UntilClose,
}

impl Answer {
    /// Reads a head, blank line included.
    pub(crate) fn from_head(head: &[u8]) -> Self {
        let text = std::str::from_utf8(head).expect("a head of ASCII");
        let mut lines = text.strip_suffix("\r\n\r\n").expect("a blank line").split("\r\n");
        let status_line = lines.next().expect("a split has a first part");
        let status = status_line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..4));
        let status = status.and_then(|code| code.strip_suffix(' ')?.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status line: {status_line:?}"));
        let fields = lines.map(read_field).collect();
        let answer = Self { status, fields, body: Vec::new() };
        assert!(answer.count("content-length") <= 1, "two lengths: {answer:?}");
        answer
    }

    /// The value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.values(name).first().copied()
    }

    /// The value of a field that must be there.
    pub(crate) fn expect_field(&self, name: &str) -> &str {
        self.field(name).unwrap_or_else(|| panic!("no {name} in {self:?}"))
    }

    /// How many lines a field has.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.values(name).len()
    }

    fn values(&self, name: &str) -> Vec<&str> {
        let fields = self.fields.iter();
        let found = fields.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str()).collect()
    }

    /// Whether the server says that it closes.
    pub(crate) fn closes(&self) -> bool {
        self.field("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    /// The body as text, for messages.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The fields that describe the resource: all but those that change from answer to answer.
    pub(crate) fn lasting_fields(&self) -> Vec<(String, String)> {
        let fields = self.fields.iter();
        let lasting = fields.filter(|(name, _)| !name.eq_ignore_ascii_case("date"));
        lasting.cloned().collect()
    }

    /// How the body that follows this head ends; `None` where no body can follow.
    pub(crate) fn length(&self) -> Option<Length> {
        if self.status < 200 || self.status == 204 || self.status == 304 {
            return None;
        }
        let bytes = self.field("content-length");
        if let Some(coding) = self.field("transfer-encoding") {
            assert_eq!(coding, "chunked", "no other coding was asked for");
            assert_eq!(bytes, None, "a length beside chunks: {self:?}");
            return Some(Length::Chunks);
        }
        Some(match bytes {
            Some(digits) => Length::Bytes(digits.parse().expect("a length in digits")),
            None => Length::UntilClose,
        })
    }
}

fn read_field(line: &str) -> (String, String) {
    let (name, value) = line.split_once(": ").unwrap_or_else(|| panic!("no field: {line:?}"));
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_!#$%&'*+.^`|~".contains(&byte);
    assert!(!name.is_empty() && name.bytes().all(is_token), "no field name: {line:?}");
    assert!(!value.contains(['\r', '\n', '\0']), "no field value: {line:?}");
    (name.to_owned(), value.to_owned())
}

/// One part of a body in several parts.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Part {
    /// The value of a field that must be there.
    pub(crate) fn expect_field(&self, name: &str) -> &str {
        let found = self.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map_or_else(|| panic!("no {name} in {self:?}"), |(_, value)| value)
    }
}

/// The parts of a `multipart/byteranges` body. RFC 9110 §14.6, RFC 2046 §5.1.1.
pub(crate) fn parts(answer: &Answer) -> Vec<Part> {
    let kind = answer.expect_field("content-type");
    let boundary = kind.strip_prefix("multipart/byteranges; boundary=").expect("several parts");
    let delimiter = format!("--{}", boundary.trim_matches('"'));
    let text = std::str::from_utf8(&answer.body).expect("these tests serve text");
    let (opened, rest) = text.split_once(&*delimiter).expect("the first delimiter");
    assert!(opened.is_empty() || opened == "\r\n", "something before the first: {opened:?}");
    let (inner, after) = rest.rsplit_once(&format!("\r\n{delimiter}--")).expect("the last one");
    assert!(after.is_empty() || after == "\r\n", "something after the last: {after:?}");
    inner.split(&format!("\r\n{delimiter}")).map(read_part).collect()
}

fn read_part(part: &str) -> Part {
    let part = part.strip_prefix("\r\n").expect("a delimiter ends its line");
    let (head, body) = part.split_once("\r\n\r\n").expect("a part has a head");
    Part { fields: head.split("\r\n").map(read_field).collect(), body: body.into() }
}
