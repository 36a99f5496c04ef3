//! Reading a response head: first its end is found, then it is checked in one pass.

use super::{ResponseError, ResponseFraming, ResponseHead};
use crate::head::{Decoded, Span, Version};
use crate::limits::Limits;
use crate::method::Method;
use crate::syntax::{TOKEN, VALUE, decimal, is, is_space, is_token, list, skip, trim};

/// What a head may be long at most, whatever the limits say: offsets have 16 bits.
const HEAD_BYTES_MAX: usize = u16::MAX as usize;

/// What every response starts with. A peer that speaks another protocol is told apart at once.
const START: &[u8] = b"HTTP/";

/// See [`ResponseHead::decode`].
pub(super) fn decode(
    input: &[u8],
    seen: &mut usize,
    method: Method,
    limits: &Limits,
) -> Result<Decoded<ResponseHead>, ResponseError> {
    let limit_bytes = limits.head_bytes_max.min(HEAD_BYTES_MAX);
    let window = &input[..input.len().min(limit_bytes)];
    let start = window.len().min(START.len());
    if window[..start] != START[..start] {
        return Err(ResponseError::NotHttp);
    }
    match head_end(window, *seen)? {
        Some(end) => head(&window[..end], method, limits).map(Decoded::Done),
        None if window.len() == limit_bytes => Err(ResponseError::TooLarge { limit_bytes }),
        None => {
            *seen = window.len();
            Ok(Decoded::NeedMore)
        }
    }
}

/// Where the head ends, blank line included. Every line feed up to there has its carriage return.
///
/// - `seen`: bytes that held no end.
fn head_end(window: &[u8], seen: usize) -> Result<Option<usize>, ResponseError> {
    let from = seen.min(window.len());
    for at in memchr::memchr_iter(b'\n', &window[from..]) {
        let end = from + at + 1;
        if !window[..end].ends_with(b"\r\n") {
            return Err(ResponseError::LineEnd);
        }
        if window[..end].ends_with(b"\r\n\r\n") {
            return Ok(Some(end));
        }
    }
    Ok(None)
}

/// Checks a whole head, blank line included.
fn head(bytes: &[u8], method: Method, limits: &Limits) -> Result<ResponseHead, ResponseError> {
    let line_end = memchr::memchr(b'\r', bytes).expect("a head ends with a line end");
    let (version, status, reason_start) = status_line(&bytes[..line_end])?;
    if bytes[line_end + 1] != b'\n' {
        return Err(ResponseError::StatusLine);
    }
    let (fields_start, fields_end) = (line_end + 2, bytes.len() - 2);
    let mut noted = Noted::default();
    let mut room = limits.fields_max;
    let mut rest = &bytes[fields_start..fields_end];
    while !rest.is_empty() {
        let (name, value, next) = field(rest)?;
        let limit = limits.fields_max;
        room = room.checked_sub(1).ok_or(ResponseError::TooManyFields { limit })?;
        noted.note(name, value)?;
        rest = next;
    }
    let framing = noted.framing(version, status, method)?;
    let endless = matches!(framing, ResponseFraming::UntilClose | ResponseFraming::Tunnel);
    let (old, coded) = (version == Version::Http10, noted.coding != Coding::None);
    Ok(ResponseHead {
        framing,
        content_length: noted.length,
        reason: Span::new(reason_start, line_end),
        fields: Span::new(fields_start, fields_end),
        status,
        version,
        // RFC 9112 §6.1: a transfer coding in 1.0 means that the sender misframes.
        keep_alive: !endless && !noted.close && !(old && (!noted.keep_alive || coded)),
    })
}

/// `HTTP-version SP status-code [ SP [ reason-phrase ] ]`, and where the phrase starts.
fn status_line(line: &[u8]) -> Result<(Version, u16, usize), ResponseError> {
    let (version, rest) = line.split_first_chunk::<8>().ok_or(ResponseError::StatusLine)?;
    let version = match version {
        b"HTTP/1.1" => Version::Http11,
        b"HTTP/1.0" => Version::Http10,
        [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => {
            return Err(ResponseError::VersionUnknown);
        }
        _ => return Err(ResponseError::StatusLine),
    };
    let (digits, reason) = match rest {
        [b' ', a, b, c] => ([*a, *b, *c], &line[line.len()..]),
        [b' ', a, b, c, b' ', reason @ ..] => ([*a, *b, *c], reason),
        _ => return Err(ResponseError::StatusLine),
    };
    let is_code = matches!(digits[0], b'1'..=b'9') && digits.iter().all(u8::is_ascii_digit);
    if !is_code || !reason.iter().all(|byte| is(*byte, VALUE)) {
        return Err(ResponseError::StatusLine);
    }
    let code = digits.iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'));
    Ok((version, code, line.len() - reason.len()))
}

/// A field's name, its value, and what stands behind its line.
type Field<'a> = (&'a [u8], &'a [u8], &'a [u8]);

/// `field-name ":" OWS field-value OWS CRLF`, the first line of `rest`.
fn field(rest: &[u8]) -> Result<Field<'_>, ResponseError> {
    if is_space(rest[0]) {
        return Err(ResponseError::Folded);
    }
    let colon = skip(rest, TOKEN);
    let name = &rest[..rest.len() - colon.len()];
    let [b':', value @ ..] = colon else {
        return Err(ResponseError::FieldName);
    };
    if name.is_empty() {
        return Err(ResponseError::FieldName);
    }
    let line_end = skip(value, VALUE);
    let next = line_end.strip_prefix(b"\r\n").ok_or(ResponseError::FieldValue)?;
    Ok((name, trim(&value[..value.len() - line_end.len()]), next))
}

/// What the fields say about the body's end and the connection's.
#[derive(Default)]
struct Noted {
    length: Option<u64>,
    coding: Coding,
    close: bool,
    keep_alive: bool,
}

/// The transfer codings so far.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Coding {
    #[default]
    None,
    Chunked,
    /// At least one that we do not know.
    Unknown,
}

impl Noted {
    /// Takes note of one field line.
    fn note(&mut self, name: &[u8], value: &[u8]) -> Result<(), ResponseError> {
        if name.eq_ignore_ascii_case(b"content-length") {
            self.note_length(value)
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.note_coding(value)
        } else {
            if name.eq_ignore_ascii_case(b"connection") {
                self.note_connection(value);
            }
            Ok(())
        }
    }

    /// RFC 9112 §6.3 rule 5: a list of one and the same number is taken as that number (MAY).
    fn note_length(&mut self, value: &[u8]) -> Result<(), ResponseError> {
        for part in list(value) {
            let length = decimal(part).ok_or(ResponseError::LengthSyntax)?;
            if self.length.is_some_and(|before| before != length) {
                return Err(ResponseError::LengthConflict);
            }
            self.length = Some(length);
        }
        Ok(())
    }

    /// RFC 9112 §6.1, over all lines of the field. An empty element and parameters on chunked are
    /// refused, as in requests.
    fn note_coding(&mut self, value: &[u8]) -> Result<(), ResponseError> {
        for coding in list(value) {
            let name = coding.split(|byte| *byte == b';').next().map(trim).unwrap_or_default();
            let is_chunked = name.eq_ignore_ascii_case(b"chunked");
            let has_parameter = name.len() != coding.len();
            // Nothing may follow chunked, not even itself.
            if !is_token(name) || self.coding == Coding::Chunked || (is_chunked && has_parameter) {
                return Err(ResponseError::CodingSyntax);
            }
            self.coding = match self.coding {
                Coding::None if is_chunked => Coding::Chunked,
                _ => Coding::Unknown,
            };
        }
        Ok(())
    }

    /// RFC 9110 §7.6.1
    fn note_connection(&mut self, value: &[u8]) {
        for option in list(value) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// The rules of RFC 9112 §6.3, in their order.
    fn framing(
        &self,
        version: Version,
        status: u16,
        method: Method,
    ) -> Result<ResponseFraming, ResponseError> {
        if method == Method::Head || matches!(status, 100..=199 | 204 | 304) {
            return Ok(ResponseFraming::None);
        }
        if method == Method::Connect && (200..300).contains(&status) {
            return Ok(ResponseFraming::Tunnel);
        }
        match (self.coding, self.length) {
            (Coding::None, Some(bytes)) => Ok(ResponseFraming::Length(bytes)),
            (Coding::None, None) => Ok(ResponseFraming::UntilClose),
            _ if version == Version::Http10 => Err(ResponseError::CodingInOldVersion),
            (_, Some(_)) => Err(ResponseError::LengthWithCoding),
            (Coding::Unknown, None) => Err(ResponseError::CodingUnknown),
            (Coding::Chunked, None) => Ok(ResponseFraming::Chunked),
        }
    }
}
