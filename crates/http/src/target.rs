//! The four forms of a request target (RFC 9112 §3.2) and the syntax of authorities (RFC 3986
//! §3.2).
//!
//! A `%` is not decoded here: the decoder of the path decides what a broken escape means.

use std::net::Ipv6Addr;

use crate::method::Method;
use crate::syntax::{HOST, skip};

/// The form that a request target was written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TargetForm {
    /// `/path?query`
    Origin,
    /// `http://host/path?query`, or with `https`
    Absolute,
    /// `host:port`, with CONNECT only
    Authority,
    /// `*`, with OPTIONS only
    Asterisk,
}

impl TargetForm {
    /// Returns whether the target names a path, and so something that this server may have.
    #[inline]
    pub const fn has_path(self) -> bool {
        matches!(self, Self::Origin | Self::Absolute)
    }
}

/// Finds the form of a target and where in it the path starts, in bytes from its start. `None` if
/// it has none of the four forms, or one that the method does not allow.
#[expect(clippy::inline_always, reason = "it saves 20 instructions of each request")]
#[inline(always)]
pub(crate) fn form(target: &[u8], method: Method) -> Option<(TargetForm, usize)> {
    match target {
        [b'/', ..] if method != Method::Connect => Some((TargetForm::Origin, 0)),
        b"*" if method == Method::Options => Some((TargetForm::Asterisk, 0)),
        _ if method == Method::Connect => match authority(target) {
            Some(AuthorityPort::Given) => Some((TargetForm::Authority, target.len())),
            _ => None,
        },
        _ => {
            let from = authority_start(target)?;
            let rest = &target[from..];
            let end =
                rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
            authority(&rest[..end])?;
            Some((TargetForm::Absolute, from + end))
        }
    }
}

/// Returns where the authority of an absolute-form target starts. None if its scheme is not one of
/// ours.
pub(crate) fn authority_start(target: &[u8]) -> Option<usize> {
    [b"http://".as_slice(), b"https://"].into_iter().find_map(|scheme| {
        let start = target.get(..scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(scheme.len())
    })
}

/// Whether an authority says its port.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuthorityPort {
    /// With at least one digit.
    Given,
    /// No colon, or nothing behind it: both mean the default port of the scheme.
    Default,
}

/// Checks `host [":" port]`. None if it is malformed.
///
/// An empty host is malformed: no http URI may have one (RFC 9110 §4.2.1). So is user information
/// (§4.2.4), a zone identifier, and a port above 65,535.
pub(crate) fn authority(bytes: &[u8]) -> Option<AuthorityPort> {
    let end = if bytes.first() == Some(&b'[') { literal_end(bytes)? } else { name_end(bytes)? };
    match &bytes[end..] {
        [] | [b':'] => Some(AuthorityPort::Default),
        [b':', digits @ ..] if port(digits).is_some() => Some(AuthorityPort::Given),
        _ => None,
    }
}

/// Returns where a registered name or an IPv4 address ends. None if it is empty.
///
/// RFC 3986 §3.2.2 lets a name have escapes. No name of the Internet needs one, and a program that
/// reads it unread would take it for another host's: it is refused.
fn name_end(bytes: &[u8]) -> Option<usize> {
    let end = bytes.len() - skip(bytes, HOST).len();
    (end > 0).then_some(end)
}

/// Returns where an IPv6 literal ends, its brackets included.
fn literal_end(bytes: &[u8]) -> Option<usize> {
    let close = bytes.iter().position(|byte| *byte == b']')?;
    let address = std::str::from_utf8(&bytes[1..close]).ok()?;
    address.parse::<Ipv6Addr>().ok()?;
    Some(close + 1)
}

/// Reads a port: `1*DIGIT`, at most 65,535.
pub fn port(digits: &[u8]) -> Option<u16> {
    let mut port = 0_u32;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        // (It saturates far above 65,535, however many digits there are.)
        port = port.saturating_mul(10).saturating_add(digit.into());
    }
    if digits.is_empty() { None } else { u16::try_from(port).ok() }
}

#[cfg(test)]
mod tests {
    use super::{AuthorityPort, TargetForm, authority, form};
    use crate::method::Method;

    #[test]
    fn authorities_are_taken_or_refused_as_the_grammar_says() {
        for good in
            ["a", "a.b-c_d~", "127.0.0.1", "[::1]", "[2001:db8::1.2.3.4]", "a:", "!$&'()*+,;="]
        {
            assert!(authority(good.as_bytes()) == Some(AuthorityPort::Default), "{good}");
        }
        for good in ["a:0", "a:80", "a:65535", "[::1]:8080", "1.2.3.4:00080"] {
            assert!(authority(good.as_bytes()) == Some(AuthorityPort::Given), "{good}");
        }
        for bad in [
            "",
            ":80",
            "a:b",
            "a:65536",
            "a:-1",
            "a:+1",
            "a:1:2",
            "u@a",
            "a b",
            "a/b",
            "a\\b",
            "[::1",
            "[]",
            "[::1]a",
            "[::1%25eth0]",
            "[v1.a]",
            "[1.2.3.4]",
            "::1",
            "%4",
            "%zz",
            "%41b",
            "a%2eb",
            "a%",
            "a?b",
            "a#b",
            "é",
            "a\t",
        ] {
            assert!(authority(bad.as_bytes()).is_none(), "{bad}");
        }
    }

    #[test]
    fn each_form_is_found_and_only_with_the_methods_it_belongs_to() {
        let of = |target: &str, method| form(target.as_bytes(), method);
        assert_eq!(of("/", Method::Get), Some((TargetForm::Origin, 0)));
        assert_eq!(of("//a/b", Method::Get), Some((TargetForm::Origin, 0)));
        assert_eq!(of("*", Method::Options), Some((TargetForm::Asterisk, 0)));
        assert_eq!(of("http://a:80/b?c", Method::Get), Some((TargetForm::Absolute, 11)));
        assert_eq!(of("HTTPS://a?c", Method::Get), Some((TargetForm::Absolute, 9)));
        assert_eq!(of("http://a", Method::Options), Some((TargetForm::Absolute, 8)));
        assert_eq!(of("a:443", Method::Connect), Some((TargetForm::Authority, 5)));
        for (target, method) in [
            ("*", Method::Get),
            ("**", Method::Options),
            ("a:443", Method::Get),
            ("a", Method::Connect),
            ("a:", Method::Connect),
            ("/", Method::Connect),
            ("http://a/", Method::Connect),
            ("http:///b", Method::Get),
            ("http://u@a/", Method::Get),
            ("ftp://a/", Method::Get),
            ("http:/a", Method::Get),
            ("a/b", Method::Get),
            ("?a", Method::Get),
            ("", Method::Get),
        ] {
            assert_eq!(of(target, method), None, "{target}");
        }
    }
}
