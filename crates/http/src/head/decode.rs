//! The one pass over the bytes of a head.

use super::fields::is_looked_for;
use super::{Decoded, HEAD_BYTES_MAX, Head, HeadError, Span, Stop, Version, unfinished};
use crate::fields::{HeaderId, INDEXED};
use crate::limits::Limits;
use crate::method::{METHOD_BYTES_MAX, Method};
use crate::syntax::{
    HOST, PATH, TOKEN, VALUE, skip, skip_plain_name, skip_plain_value, skip_query, trim,
};
use crate::target;

/// Empty lines skipped before a request line: some clients send one after a body.
const EMPTY_LINES_MAX: usize = 4;

impl Head {
    /// Reads one request head from the start of `input`.
    ///
    /// - `input`: all bytes received since the last request; may stop anywhere.
    /// - `seen`: the caller's memory over the calls for one head, 0 at first. It counts the bytes
    ///   already searched for the blank line, so that a slow sender costs no rescans.
    /// - Done: the head; the body starts [`Head::len`] bytes into `input`.
    ///
    /// However the bytes are cut, the last verdict is the same. An error comes as soon as it is
    /// certain, whatever may follow: in bytes that come at once by the byte that makes it so, in
    /// others by the end of its line. Up to four empty lines before the request line are skipped
    /// (RFC 9112 §2.2, SHOULD).
    ///
    /// # Errors
    /// [`HeadError`]; [`HeadError::status`] says how to answer. The connection must then be closed.
    #[expect(clippy::inline_always, reason = "as a call it costs some 20 instructions")]
    #[inline(always)]
    pub fn decode(
        input: &[u8],
        seen: &mut usize,
        limits: &Limits,
    ) -> Result<Decoded<Self>, HeadError> {
        Ok(match Self::decode_in(&mut None, input, seen, limits)? {
            Decoded::Done(head) => Decoded::Done(*head),
            Decoded::NeedMore => Decoded::NeedMore,
        })
    }

    /// Reads one request head like [`Head::decode`], and leaves it in `place`: a head is 48 bytes,
    /// which the way through the result would copy three times.
    ///
    /// # Errors
    /// As [`Head::decode`]. What is in `place` then is unspecified.
    #[expect(clippy::inline_always, reason = "as a call it costs some 20 instructions")]
    #[inline(always)]
    pub fn decode_in<'h>(
        place: &'h mut Option<Self>,
        input: &[u8],
        seen: &mut usize,
        limits: &Limits,
    ) -> Result<Decoded<&'h Self>, HeadError> {
        let limit_bytes = limits.head_bytes_max.min(HEAD_BYTES_MAX);
        let window = &input[..input.len().min(limit_bytes)];
        if *seen == 0 || is_worth_a_pass(window, *seen, limits) {
            match pass(place, window, limits) {
                Ok(head) => return Ok(Decoded::Done(head)),
                Err(Stop::Bad(error)) => return Err(error),
                Err(Stop::NeedMore) if window.len() == limit_bytes => {
                    return Err(HeadError::TooLarge { limit_bytes });
                }
                Err(Stop::NeedMore) => {}
            }
        }
        *seen = window.len();
        Ok(Decoded::NeedMore)
    }
}

/// Returns whether another pass over an unfinished head can say more than "need more".
///
/// It must when the limit is reached, and it can when a line has ended or begun: then the head may
/// be whole, or the line was none. There are as many such passes at most as there may be lines.
/// The others make errors within a line known early: one when the target may have become too long,
/// and one each time the bytes have doubled, which together cost no more than two passes over the
/// whole.
#[cold]
fn is_worth_a_pass(window: &[u8], seen: usize, limits: &Limits) -> bool {
    let seen = seen.min(window.len());
    let target_bytes = limits.target_bytes_max.saturating_add(METHOD_BYTES_MAX);
    let line_end = &window[seen.saturating_sub(1)..]; // what follows one may be wrong
    window.len() >= limits.head_bytes_max.min(HEAD_BYTES_MAX)
        || (seen < target_bytes && window.len() >= target_bytes)
        || window.len().checked_ilog2() != seen.checked_ilog2()
        || memchr::memchr2(b'\r', b'\n', line_end).is_some()
}

/// Reads the head in one go. `rest` is what is still unread; its length tells where in `bytes` it
/// starts.
#[expect(clippy::inline_always, reason = "in two places; as a call it costs instructions")]
#[inline(always)]
fn pass<'h>(place: &'h mut Option<Head>, bytes: &[u8], limits: &Limits) -> Result<&'h Head, Stop> {
    let start = if bytes.first() == Some(&b'\r') { skip_empty_lines(bytes)? } else { 0 };
    let (method, rest) = method(&bytes[start..])?;
    let target_start = bytes.len() - rest.len();
    let (path_len, target, rest) = target(rest, method, limits)?;
    let target_len = target.len();
    let Some((form, path)) = target::form(target, method) else {
        return Err(no_target(method, rest));
    };
    let (version, rest) = version(rest)?;
    let version = version.ok_or(HeadError::VersionUnknown)?;
    let at = |offset: usize| Span::new(offset, offset).start;
    let head = place.insert(Head {
        content_length: 0,
        indexed: [Span::default(); INDEXED],
        target: Span::new(target_start, target_start + target_len),
        fields: Span::default(),
        path_start: at(target_start + path),
        query: if path_len == target_len { 0 } else { at(target_start + path_len) },
        flags: 0,
        method,
        version,
        form,
    });
    let fields_end = fields(head, bytes, rest, limits)?;
    head.fields = Span::new(bytes.len() - rest.len(), fields_end);
    head.finish()?;
    Ok(head)
}

#[cold]
fn skip_empty_lines(bytes: &[u8]) -> Result<usize, Stop> {
    let mut at = 0;
    loop {
        match &bytes[at..] {
            [] => return Err(Stop::NeedMore),
            [b'\r'] if at < EMPTY_LINES_MAX * 2 => return Err(Stop::NeedMore),
            [b'\r', b'\n', ..] if at < EMPTY_LINES_MAX * 2 => at += 2,
            [b'\r', ..] => return Err(HeadError::LineEnd.into()),
            _ => return Ok(at),
        }
    }
}

/// Returns the method, and what stands behind its space: `method SP request-target SP HTTP-version
/// CRLF` (RFC 9112 §3), each space exactly one.
#[expect(clippy::inline_always, reason = "in two places; as a call it costs instructions")]
#[inline(always)]
fn method(line: &[u8]) -> Result<(Method, &[u8]), Stop> {
    match line.split_first_chunk::<4>() {
        Some((token, rest)) if *token == *b"GET " => Ok((Method::Get, rest)),
        _ => method_other(line),
    }
}

fn method_other(line: &[u8]) -> Result<(Method, &[u8]), Stop> {
    let window = &line[..line.len().min(METHOD_BYTES_MAX + 1)];
    let (token, rest) = line.split_at(window.len() - skip(window, TOKEN).len());
    match rest {
        _ if token.len() > METHOD_BYTES_MAX => Err(HeadError::MethodUnknown.into()),
        [b' ', rest @ ..] if !token.is_empty() => {
            Ok((Method::from_token(token).unwrap_or(Method::Other), rest))
        }
        [] => Err(Stop::NeedMore),
        _ => Err(HeadError::MethodSyntax.into()),
    }
}

/// Returns how long the target's path is, the target, and what stands behind it, from the space on.
#[expect(clippy::inline_always, reason = "in two places; as a call it costs instructions")]
#[inline(always)]
fn target<'a>(
    rest: &'a [u8],
    method: Method,
    limits: &Limits,
) -> Result<(usize, &'a [u8], &'a [u8]), Stop> {
    let mut behind = skip(rest, PATH);
    let path_len = rest.len() - behind.len();
    let is_path_alone = path_len > 0 && behind.first() == Some(&b' ');
    if !is_path_alone || path_len > limits.target_bytes_max {
        behind = behind_query(rest, behind, method, limits)?;
    }
    Ok((path_len, &rest[..rest.len() - behind.len()], behind))
}

/// Returns what stands behind a target that has a query, or something wrong with it.
fn behind_query<'a>(
    rest: &'a [u8],
    query: &'a [u8],
    method: Method,
    limits: &Limits,
) -> Result<&'a [u8], Stop> {
    let behind = skip_query(query);
    let len = rest.len() - behind.len();
    let limit_bytes = limits.target_bytes_max;
    match behind {
        _ if len > limit_bytes => {
            unfinished::target(&rest[..limit_bytes], method)?;
            Err(HeadError::TargetTooLong { limit_bytes }.into())
        }
        [b' ', ..] if len > 0 => Ok(behind),
        [] => {
            unfinished::target(rest, method)?;
            Err(Stop::NeedMore)
        }
        _ => Err(HeadError::Target.into()),
    }
}

/// Returns what is wrong with a request line whose target is in no form that its method allows. A
/// version that we do not know goes before it where the method has no name here: it may say what
/// both mean (HTTP/2 begins with `PRI * HTTP/2.0`).
#[cold]
fn no_target(method: Method, rest: &[u8]) -> Stop {
    if method != Method::Other || rest.starts_with(b" HTTP/1") {
        return HeadError::Target.into();
    }
    match version(rest) {
        Ok((Some(_), _)) => HeadError::Target.into(),
        Ok((None, _)) => HeadError::VersionUnknown.into(),
        Err(stop) => stop,
    }
}

/// Returns the version, if we know it, and what stands behind its line. Any minor version above 1
/// is served as 1.1, the highest that this server conforms to (RFC 9110 §6.2).
#[expect(clippy::inline_always, reason = "in two places; as a call it costs instructions")]
#[inline(always)]
fn version(rest: &[u8]) -> Result<(Option<Version>, &[u8]), Stop> {
    let (line, rest) = rest.split_first_chunk::<11>().ok_or_else(|| no_version(rest))?;
    // Two words that overlap in the point.
    if line[..8] == *b" HTTP/1." && line[7..] == *b".1\r\n" {
        return Ok((Some(Version::Http11), rest));
    }
    Ok((version_other(line)?, rest))
}

fn version_other(line: &[u8; 11]) -> Result<Option<Version>, Stop> {
    match line {
        b" HTTP/1.0\r\n" => Ok(Some(Version::Http10)),
        [b' ', b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9', b'\r', b'\n'] => {
            Ok(Some(Version::Http11))
        }
        [b' ', b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9', b'\r', b'\n'] => {
            Ok(None)
        }
        _ => Err(HeadError::VersionSyntax.into()),
    }
}

/// Returns what is wrong where a version and its line end should be. `begun` is shorter than both.
#[cold]
fn no_version(begun: &[u8]) -> Stop {
    let fits = |(byte, model): (&u8, &u8)| match model {
        b'0' => byte.is_ascii_digit(),
        _ => byte == model,
    };
    if begun.iter().zip(b" HTTP/0.0\r\n").all(fits) {
        Stop::NeedMore
    } else {
        HeadError::VersionSyntax.into()
    }
}

/// `*( field-line CRLF ) CRLF` (RFC 9112 §5). Gives where the blank line starts.
#[expect(clippy::inline_always, reason = "called once; as a call it costs 9 instructions")]
#[inline(always)]
fn fields(head: &mut Head, bytes: &[u8], rest: &[u8], limits: &Limits) -> Result<usize, Stop> {
    let room = limits.fields_max;
    let Some((host, next)) = plain_host(rest).filter(|_| room > 0) else {
        return more_fields(head, bytes, rest, (room, limits));
    };
    let start = bytes.len() - rest.len() + HOST_NAMES[0].len();
    head.keep(HeaderId::Host, Span::new(start, start + host.len()));
    if next.starts_with(b"\r\n") {
        return Ok(bytes.len() - next.len());
    }
    more_fields(head, bytes, next, (room - 1, limits))
}

/// Reads the fields behind a plain host.
///
/// Not inlined: its loops need all registers, and many requests have no other field than the host.
///
/// - `room`: how many more there may be.
#[inline(never)]
fn more_fields<'a>(
    head: &mut Head,
    bytes: &'a [u8],
    mut rest: &'a [u8],
    (mut room, limits): (usize, &Limits),
) -> Result<usize, Stop> {
    loop {
        let [first, second, ..] = rest else {
            return Err(no_name(head, rest));
        };
        if *first <= b':' {
            match (first, second) {
                (b'\r', b'\n') => return Ok(bytes.len() - rest.len()),
                (b':', _) => return Err(HeadError::FieldName.into()),
                _ => {} // a digit, or no token: seen below
            }
        }
        let mut colon = skip_plain_name(rest);
        let value = match colon.split_first_chunk::<2>() {
            Some((mark, value)) if *mark == *b": " && is_visible(value.first()) => value,
            _ => {
                colon = skip(colon, TOKEN);
                let [b':', value @ ..] = colon else {
                    return Err(no_name(head, rest));
                };
                without_space(value)
            }
        };
        if room == 0 {
            return Err(HeadError::TooManyFields { limit: limits.fields_max }.into());
        }
        room -= 1;
        let mut line_end = skip_plain_value(value);
        let next = match line_end.split_first_chunk::<2>() {
            Some((mark, next)) if *mark == *b"\r\n" => next,
            _ => {
                line_end = skip(line_end, VALUE);
                let [b'\r', b'\n', next @ ..] = line_end else {
                    return Err(no_line_end(head, rest));
                };
                next
            }
        };
        let name_len = rest.len() - colon.len();
        if is_looked_for(*first, name_len) {
            let start = bytes.len() - value.len();
            let value = trim(&value[..value.len() - line_end.len()]);
            head.note(&rest[..name_len], value, Span::new(start, start + value.len()))?;
        }
        rest = next;
    }
}

/// Returns whether there is a byte, and it is neither space nor control.
#[expect(clippy::inline_always, reason = "in two places; as a call it costs instructions")]
#[inline(always)]
fn is_visible(byte: Option<&u8>) -> bool {
    byte.is_some_and(|byte| *byte > b' ')
}

/// The name before the host, in the two spellings that nearly every client uses, and uses first.
const HOST_NAMES: [&[u8; 6]; 2] = [b"Host: ", b"host: "];

/// Returns the host's value, and what stands behind its line, if that line is plain: a name or an
/// IPv4 address, perhaps a port. Any other goes the way of all fields.
#[inline]
fn plain_host(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let value = HOST_NAMES.iter().find_map(|name| line.strip_prefix(*name))?;
    let mut rest = skip(value, HOST);
    if rest.len() == value.len() {
        return None;
    }
    if let [b':', digits @ ..] = rest {
        rest = skip_port(digits)?;
    }
    match rest {
        [b'\r', b'\n', next @ ..] => Some((&value[..value.len() - rest.len()], next)),
        _ => None,
    }
}

/// Returns what follows a port of one to five digits, at most 65,535.
#[expect(clippy::inline_always, reason = "in two places; as a call it costs instructions")]
#[inline(always)]
fn skip_port(digits: &[u8]) -> Option<&[u8]> {
    let count = digits.iter().take(5).take_while(|byte| byte.is_ascii_digit()).count();
    let (port, rest) = digits.split_at(count);
    let is_port = count > 0 && (count < 5 || port <= b"65535".as_slice());
    is_port.then_some(rest)
}

/// Returns what is wrong where a line of the section should start: with a field name and its colon,
/// or with the blank line.
#[cold]
fn no_name(head: &Head, line: &[u8]) -> Stop {
    let behind = skip(line, TOKEN);
    let is_at_start = line.len() == behind.len();
    match behind {
        [] => Stop::NeedMore,
        [b'\r', after @ ..] if is_at_start => match head.finish() {
            Err(error) => error.into(), // the section ends here, or is wrong
            Ok(()) if after.is_empty() => Stop::NeedMore,
            Ok(()) => HeadError::LineEnd.into(),
        },
        [b'\n', ..] if is_at_start => HeadError::LineEnd.into(),
        _ => HeadError::FieldName.into(),
    }
}

/// Returns what is wrong where a field line, whose name and colon are good, should end: with
/// carriage return and line feed, nothing less (RFC 9112 §2.2 lets a lone line feed pass, and we do
/// not).
#[cold]
fn no_line_end(head: &Head, line: &[u8]) -> Stop {
    let colon = skip(line, TOKEN);
    let (name, value) = (&line[..line.len() - colon.len()], &colon[1..]);
    let line_end = skip(value, VALUE);
    let begun = &value[..value.len() - line_end.len()];
    let is_ended = line_end.first() == Some(&b'\r');
    match (unfinished::value(head, name, begun, is_ended), line_end) {
        (Err(error), _) => error.into(),
        (Ok(()), [] | [b'\r']) => Stop::NeedMore,
        (Ok(()), [b'\r' | b'\n', ..]) => HeadError::LineEnd.into(),
        (Ok(()), _) => HeadError::FieldValue.into(),
    }
}

/// Without the space in front of a value.
#[cold]
fn without_space(value: &[u8]) -> &[u8] {
    let mut value = value;
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    value
}
