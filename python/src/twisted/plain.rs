//! Requests that every parser reads alike.

/// Twisted's own limits.
const HEAD_BYTES_MAX: usize = 16_384;
const FIELDS_MAX: usize = 500;

/// A complete request that every parser reads alike.
pub(super) struct Plain<'a> {
    /// Its lines with their ends, except the empty one.
    pub(super) head: &'a [u8],
    pub(super) method: &'a [u8],
    pub(super) target: &'a [u8],
    /// Whether it is HTTP/1.0.
    pub(super) is_old: bool,
    fields: Vec<(&'a [u8], &'a [u8])>,
    pub(super) body: &'a [u8],
    /// Its total length.
    pub(super) length: usize,
}

impl<'a> Plain<'a> {
    /// Names as received, and values without surrounding blanks.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.fields.iter().copied()
    }
}

/// Parses a request at the beginning of the received bytes. `None` if it is incomplete or not
/// plain.
///
/// Plain means: lines that end with CRLF, tokens (RFC 9110 §5.6.2), a target of the bytes that
/// Twisted takes, HTTP/1.0 or 1.1, at most one Content-Length of digits, no Transfer-Encoding,
/// Expect or Upgrade, no folding, no control bytes in values, and everything within Twisted's
/// limits.
pub(super) fn parse(bytes: &[u8]) -> Option<Plain<'_>> {
    let (line, mut rest) = split_line(bytes)?;
    let mut parts = line.split(|byte| *byte == b' ');
    let (method, target, version) = (parts.next()?, parts.next()?, parts.next()?);
    let is_line = parts.next().is_none()
        && is_token(method)
        && !target.is_empty()
        && target.iter().all(|byte| (33..=176).contains(byte));
    let is_old = match version {
        b"HTTP/1.1" => false,
        b"HTTP/1.0" => true,
        _ => return None,
    };
    if !is_line {
        return None;
    }
    let (mut fields, mut length) = (Vec::with_capacity(16), None);
    loop {
        let (line, behind) = split_line(rest)?;
        rest = behind;
        if line.is_empty() {
            break;
        }
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = (&line[..colon], trimmed(&line[colon + 1..]));
        if !is_token(name) || value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
            return None;
        }
        match name.len() {
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                let digits = str::from_utf8(value).ok()?;
                if length.is_some() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
                    return None;
                }
                length = Some(digits.parse::<usize>().ok()?);
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => return None,
            6 if name.eq_ignore_ascii_case(b"expect") => return None,
            7 if name.eq_ignore_ascii_case(b"upgrade") => return None,
            _ => {}
        }
        fields.push((name, value));
    }
    let head = bytes.len() - rest.len();
    let body = rest.get(..length.unwrap_or(0))?;
    let is_small = head < HEAD_BYTES_MAX && fields.len() < FIELDS_MAX;
    let length = head + body.len();
    let head = &bytes[..head - 2];
    is_small.then_some(Plain { head, method, target, is_old, fields, body, length })
}

/// Splits off a line without its end. It may contain a bare LF or CR, which no part of a plain
/// request may have.
fn split_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b'\n', bytes)?;
    let line = bytes[..end].strip_suffix(b"\r")?;
    Some((line, &bytes[end + 1..]))
}

fn trimmed(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

fn is_token(bytes: &[u8]) -> bool {
    let is = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !bytes.is_empty() && bytes.iter().all(is)
}
