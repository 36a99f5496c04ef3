//! Plain requests under Twisted: what the engine's parser takes there, against Twisted's own rules
//! in a reading that shares no code with it. `python/tests/test_twisted_reading.py` compares the
//! parser with Twisted itself.
#![no_main]

#[path = "../../python/src/twisted/plain.rs"]
mod plain;

use libfuzzer_sys::fuzz_target;
use plain::PlainRequest;

/// A name and its value.
type Field<'a> = (&'a [u8], &'a [u8]);

/// A request as Twisted reads it.
#[derive(Debug, PartialEq)]
struct Reading<'a> {
    method: &'a [u8],
    target: &'a [u8],
    is_old: bool,
    fields: Vec<Field<'a>>,
    body: &'a [u8],
    len: usize,
}

fuzz_target!(|received: &[u8]| {
    let theirs = read(received);
    match PlainRequest::read(received) {
        Some(ours) => {
            assert_eq!(received[..ours.len() - ours.body().len()], *whole_head(ours.head_lines()));
            let ours = Reading {
                method: ours.method(),
                target: ours.target(),
                is_old: ours.is_old(),
                fields: ours.fields().collect(),
                body: ours.body(),
                len: ours.len(),
            };
            assert_eq!(Some(ours), theirs);
        }
        None => assert!(!theirs.is_some_and(|theirs| is_ordinary(&theirs)), "it should be taken"),
    }
});

/// Returns the lines of a head with the empty one.
fn whole_head(head_lines: &[u8]) -> Vec<u8> {
    [head_lines, b"\r\n"].concat()
}

/// Reads a request as `LineReceiver` and `HTTPChannel` of every release do. `None` if one of them
/// refuses it, waits for more, or does something before the request is whole. So it is for an empty
/// line before the request and for folded lines, which Twisted takes: those are for its own code.
fn read(received: &[u8]) -> Option<Reading<'_>> {
    let (line, mut rest) = split_line(received)?;
    let mut head_bytes = line.len();
    let words: Vec<_> = line.split(|byte| *byte == b' ').collect();
    let [method, target, version] = words[..] else { return None };
    let is_old = match version {
        b"HTTP/1.1" => false,
        b"HTTP/1.0" => true,
        _ => return None,
    };
    if !is_token(method) || target.is_empty() || target.iter().any(|it| *it <= 32 || *it > 176) {
        return None;
    }
    let mut fields = Vec::new();
    let mut length = None;
    loop {
        let (line, behind) = split_line(rest)?;
        rest = behind;
        head_bytes += line.len();
        if head_bytes > 16_384 {
            return None;
        }
        if line.is_empty() {
            break;
        }
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = (&line[..colon], strip(&line[colon + 1..]));
        if !is_token(name) || value.iter().any(|byte| b"\0\r\n".contains(byte)) {
            return None;
        }
        match name.to_ascii_lowercase().as_slice() {
            b"content-length" => {
                if value.is_empty() || !value.iter().all(u8::is_ascii_digit) || length.is_some() {
                    return None;
                }
                length = Some(std::str::from_utf8(value).ok()?.parse::<usize>().ok()?);
            }
            b"transfer-encoding" | b"expect" | b"upgrade" => return None,
            _ => {}
        }
        fields.push((name, value));
        if fields.len() > 500 {
            return None;
        }
    }
    let body = rest.get(..length.unwrap_or(0))?;
    let len = received.len() - rest.len() + body.len();
    Some(Reading { method, target, is_old, fields, body, len })
}

/// Splits at the first CRLF, as `LineReceiver` does.
fn split_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    Some((&bytes[..end], &bytes[end + 2..]))
}

/// `bytes.strip(b" \t")`
fn strip(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// `_istoken`, with the bytes that all releases take.
fn is_token(bytes: &[u8]) -> bool {
    let is = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%'*+-.^_`|~".contains(byte);
    !bytes.is_empty() && bytes.iter().all(is)
}

/// Returns whether a request is one of those that nearly all clients send. The fast path is of no
/// use if it leaves them to Twisted.
fn is_ordinary(request: &Reading<'_>) -> bool {
    let is_host = |field: &&Field<'_>| field.0.eq_ignore_ascii_case(b"host");
    let hosts: Vec<_> = request.fields.iter().filter(is_host).collect();
    let is_host_good = match hosts[..] {
        [] => request.is_old,
        [(_, host)] => !host.is_empty() && host.iter().all(u8::is_ascii_alphanumeric),
        _ => false,
    };
    let is_path = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'/';
    is_host_good
        && matches!(request.method, b"GET" | b"HEAD" | b"POST" | b"PUT" | b"DELETE")
        && request.target.starts_with(b"/")
        && request.target.iter().all(is_path)
        && request.len - request.body.len() < 16_384
        && request.fields.len() < 500
        && request.fields.iter().all(|(_, value)| {
            value.iter().all(|byte| (b' '..=b'~').contains(byte) || *byte >= 0x80)
        })
}
