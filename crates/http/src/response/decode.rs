//! The one pass over the bytes of a response head.

use super::{ResponseError, ResponseFraming, ResponseHead};
use crate::ends;
use crate::head::{Decoded, HEAD_BYTES_MAX, Span, Stop, Version};
use crate::limits::Limits;
use crate::method::Method;
use crate::syntax::{TOKEN, VALUE, decimal, is_space, is_token, list, skip, trim};

/// What every response starts with. A peer that speaks another protocol is told apart at once.
const START: &[u8] = b"HTTP/";

impl ResponseHead {
    /// Reads one response head from the start of `input`.
    ///
    /// - `input`: all bytes received since the last response; may stop anywhere.
    /// - `seen`: the caller's memory over the calls for one head, 0 at first. It counts the bytes
    ///   already searched for the blank line, so that a slow server costs no rescans.
    /// - `method`: what was asked with; it decides about the body.
    /// - `limits`: of which `head_bytes_max` and `fields_max` count here.
    /// - Done: the head; the body starts [`ResponseHead::len`] bytes into `input`.
    ///
    /// However the bytes are cut, the last verdict is the same. An error comes as soon as it is
    /// certain, whatever may follow: in bytes that come at once by the byte that makes it so, in
    /// others by the end of its line. An interim response (1xx) is a head of its own, and the final
    /// one follows it.
    ///
    /// Three choices: a folded line is refused (RFC 9112 §5.2 lets a gateway do so; a user agent
    /// would have to join it), so is a line feed without carriage return (§2.2), and the space
    /// before an absent reason phrase may be absent too, as many servers have it (§4).
    ///
    /// # Errors
    /// [`ResponseError`]. The connection must then be closed.
    pub fn decode(
        input: &[u8],
        seen: &mut usize,
        method: Method,
        limits: &Limits,
    ) -> Result<Decoded<Self>, ResponseError> {
        let limit_bytes = limits.head_bytes_max.min(HEAD_BYTES_MAX);
        let window = &input[..input.len().min(limit_bytes)];
        if window.len() == limit_bytes || is_worth_a_pass(window, *seen) {
            match pass(window, method, limits) {
                Ok(head) => return Ok(Decoded::Done(head)),
                Err(Stop::Bad(error)) => return Err(error),
                Err(Stop::NeedMore) if window.len() == limit_bytes => {
                    return Err(ResponseError::TooLarge { limit_bytes });
                }
                Err(Stop::NeedMore) => {}
            }
        }
        *seen = window.len();
        Ok(Decoded::NeedMore)
    }
}

/// Returns whether a pass over an unfinished head can say more than "need more": at first, when a
/// line has ended or begun since the last one, and when the bytes have doubled.
fn is_worth_a_pass(window: &[u8], seen: usize) -> bool {
    let seen = seen.min(window.len());
    let line_end = &window[seen.saturating_sub(1)..]; // what follows one may be wrong
    window.len().checked_ilog2() != seen.checked_ilog2()
        || memchr::memchr2(b'\r', b'\n', line_end).is_some()
}

fn pass(
    bytes: &[u8],
    method: Method,
    limits: &Limits,
) -> Result<ResponseHead, Stop<ResponseError>> {
    let (version, status, reason, fields_start) = status_line(bytes)?;
    let mut noted = Noted::new(version, status, method);
    let mut framing = noted.framing()?;
    let mut room = limits.fields_max;
    let mut rest = &bytes[fields_start..];
    let fields_end = loop {
        match rest {
            [] | [b'\r'] => return Err(Stop::NeedMore),
            [b'\r', b'\n', ..] => break bytes.len() - rest.len(),
            _ => {}
        }
        let name = field_name(rest)?;
        let limit = limits.fields_max;
        room = room.checked_sub(1).ok_or(ResponseError::TooManyFields { limit })?;
        let (value, next) = field_value(&noted, name, &rest[name.len() + 1..])?;
        noted.note(name, value)?;
        framing = noted.framing()?;
        rest = next;
    };
    let endless = matches!(framing, ResponseFraming::UntilClose | ResponseFraming::Tunnel);
    let (old, coded) = (version == Version::Http10, noted.coding != Coding::None);
    Ok(ResponseHead {
        framing,
        content_length: noted.length,
        reason,
        fields: Span::new(fields_start, fields_end),
        status,
        version,
        // RFC 9112 §6.1: a transfer coding in 1.0 means that the sender misframes.
        keep_alive: !endless && !noted.close && !(old && (!noted.keep_alive || coded)),
    })
}

/// `HTTP-version SP status-code [ SP [ reason-phrase ] ] CRLF`: the version, the code, where the
/// phrase is, and where the next line starts.
fn status_line(bytes: &[u8]) -> Result<(Version, u16, Span, usize), Stop<ResponseError>> {
    let line_end = skip(bytes, VALUE);
    let line = &bytes[..bytes.len() - line_end.len()];
    let (version, status, reason_start) = match b"HTTP/1.1 200".get(line.len()..) {
        Some(missing) if line_end.first() != Some(&b'\r') => {
            read_status_line(&[line, missing].concat())?
        }
        _ => read_status_line(line)?,
    };
    match line_end {
        [b'\r', b'\n', ..] => {
            Ok((version, status, Span::new(reason_start, line.len()), line.len() + 2))
        }
        [] | [b'\r'] => Err(Stop::NeedMore),
        [b'\n', ..] => Err(ResponseError::LineEnd.into()),
        _ => Err(ResponseError::StatusLine.into()),
    }
}

/// Returns what a whole status line says. Any minor version above 1 is taken as 1.1 (RFC 9110
/// §6.2).
fn read_status_line(line: &[u8]) -> Result<(Version, u16, usize), ResponseError> {
    let Some(version) = line.strip_prefix(START) else {
        return Err(ResponseError::NotHttp);
    };
    let (version, rest) = match version {
        [b'1', b'.', b'0', rest @ ..] => (Version::Http10, rest),
        [b'1', b'.', b'1'..=b'9', rest @ ..] => (Version::Http11, rest),
        [b'1', ..] => return Err(ResponseError::StatusLine),
        [b'0'..=b'9', ..] => return Err(ResponseError::VersionUnknown),
        _ => return Err(ResponseError::StatusLine),
    };
    let (digits, reason) = match rest {
        [b' ', a, b, c] => ([*a, *b, *c], &line[line.len()..]),
        [b' ', a, b, c, b' ', reason @ ..] => ([*a, *b, *c], reason),
        _ => return Err(ResponseError::StatusLine),
    };
    if !matches!(digits[0], b'1'..=b'9') || !digits.iter().all(u8::is_ascii_digit) {
        return Err(ResponseError::StatusLine);
    }
    let code = digits.iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'));
    Ok((version, code, line.len() - reason.len()))
}

/// Returns the name that a field line starts with; its colon follows.
fn field_name(rest: &[u8]) -> Result<&[u8], Stop<ResponseError>> {
    let colon = skip(rest, TOKEN);
    let name = &rest[..rest.len() - colon.len()];
    match colon {
        [] => Err(Stop::NeedMore),
        [b':', ..] if !name.is_empty() => Ok(name),
        [byte, ..] if name.is_empty() && is_space(*byte) => Err(ResponseError::Folded.into()),
        [b'\n', ..] => Err(ResponseError::LineEnd.into()),
        _ => Err(ResponseError::FieldName.into()),
    }
}

/// `OWS field-value OWS CRLF`, and what stands behind it.
fn field_value<'a>(
    noted: &Noted,
    name: &[u8],
    rest: &'a [u8],
) -> Result<(&'a [u8], &'a [u8]), Stop<ResponseError>> {
    let line_end = skip(rest, VALUE);
    let value = trim(&rest[..rest.len() - line_end.len()]);
    match line_end {
        [b'\r', b'\n', next @ ..] => return Ok((value, next)),
        [b'\r', ..] => noted.clone().note(name, value)?,
        _ => noted.begin(name, &rest[..rest.len() - line_end.len()])?,
    }
    match line_end {
        [] | [b'\r'] => Err(Stop::NeedMore),
        [b'\n', ..] => Err(ResponseError::LineEnd.into()),
        _ => Err(ResponseError::FieldValue.into()),
    }
}

/// What the fields say about the body's end and the connection's.
#[derive(Clone)]
struct Noted {
    version: Version,
    /// What there is in place of a body, whatever the fields say.
    without_body: Option<ResponseFraming>,
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
    /// Of a response to a method, before its fields. Of RFC 9112 §6.3, the rules 1 and 2.
    fn new(version: Version, status: u16, method: Method) -> Self {
        let without_body = match (method, status) {
            (Method::Head, _) | (_, 100..=199 | 204 | 304) => Some(ResponseFraming::None),
            (Method::Connect, 200..=299) => Some(ResponseFraming::Tunnel),
            _ => None,
        };
        let coding = Coding::None;
        Self { version, without_body, length: None, coding, close: false, keep_alive: false }
    }

    /// Returns whether the value of a field can begin like that. Fails like every value that does.
    fn begin(&self, name: &[u8], begun: &[u8]) -> Result<(), ResponseError> {
        let note = |value: &[u8]| self.clone().note(name, trim(value));
        let is_good = |value: &[u8]| note(value).is_ok();
        let can_end = if name.eq_ignore_ascii_case(b"content-length") {
            // All of a list must be the same number.
            let first = self.length.or_else(|| decimal(list(begun).next()?)).unwrap_or(0);
            ends::fit(begun, ends::of_word(&first.to_string()).chain([["0"]]), is_good)
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            ends::fit(begun, ends::of_word("chunked"), is_good)
        } else {
            false
        };
        if can_end { Ok(()) } else { note(begun) }
    }

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
        if self.without_body.is_none() && self.coding != Coding::None {
            return Err(ResponseError::LengthWithCoding);
        }
        for part in list(value) {
            match (self.length, decimal(part)) {
                (None, None) => return Err(ResponseError::LengthSyntax),
                (Some(before), length) if length != Some(before) => {
                    return Err(ResponseError::LengthConflict);
                }
                (_, length) => self.length = length,
            }
        }
        Ok(())
    }

    /// RFC 9112 §6.1, over all lines of the field. An empty element and parameters on chunked are
    /// refused, as in requests.
    fn note_coding(&mut self, value: &[u8]) -> Result<(), ResponseError> {
        match (self.without_body, self.version, self.length) {
            (Some(_), ..) | (None, Version::Http11 | Version::Http2, None) => {}
            (None, Version::Http10, _) => return Err(ResponseError::CodingInOldVersion),
            (None, Version::Http11 | Version::Http2, Some(_)) => {
                return Err(ResponseError::LengthWithCoding);
            }
        }
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

    /// Returns the rules of RFC 9112 §6.3, in their order, for the fields so far.
    fn framing(&self) -> Result<ResponseFraming, ResponseError> {
        match (self.without_body, self.coding, self.length) {
            (Some(framing), ..) => Ok(framing),
            (None, Coding::Unknown, _) => Err(ResponseError::CodingUnknown),
            (None, Coding::Chunked, _) => Ok(ResponseFraming::Chunked),
            (None, Coding::None, Some(bytes)) => Ok(ResponseFraming::Length(bytes)),
            (None, Coding::None, None) => Ok(ResponseFraming::UntilClose),
        }
    }
}
