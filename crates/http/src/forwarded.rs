//! What proxies say of the client they speak for: entries of `X-Forwarded-For` and its like, and
//! elements of `Forwarded` (RFC 7239).
//!
//! Each proxy adds to the right, so what is further left was said by a proxy further away. Whose
//! word counts is not known here.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::syntax::is_token;
use crate::target;

pub use crate::target::port;

/// Returns the entries of a list in one field line, in order, without white space and without empty
/// ones (RFC 9110 §5.6.1). Nothing is quoted in them.
pub fn entries(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|entry| !entry.is_empty())
}

/// Returns the address that an entry names, with its port or 0: `192.0.2.1`, `192.0.2.1:80`,
/// `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:80`. IPv4 in IPv6 is told as what it is.
///
/// `None` for anything else: `unknown`, made-up names (RFC 7239 §6.3), garbage.
pub fn node(entry: &[u8]) -> Option<SocketAddr> {
    let text = std::str::from_utf8(entry).ok()?;
    let (ip, port) = if let Some(rest) = text.strip_prefix('[') {
        let (address, behind) = rest.split_once(']')?;
        (IpAddr::V6(address.parse::<Ipv6Addr>().ok()?), port_behind(behind)?)
    } else if let Ok(ip) = text.parse::<IpAddr>() {
        (ip, 0)
    } else {
        let (address, _) = text.split_once(':')?;
        (IpAddr::V4(address.parse().ok()?), port_behind(&text[address.len()..])?)
    };
    Some(SocketAddr::new(ip.to_canonical(), port))
}

/// Nothing, or a colon and a port.
fn port_behind(text: &str) -> Option<u16> {
    if text.is_empty() { Some(0) } else { port(text.strip_prefix(':')?.as_bytes()) }
}

/// `http` or `https`, of a scheme, whose case does not matter; `ws` and `wss` go over one or the
/// other.
pub fn scheme(text: &[u8]) -> Option<&'static str> {
    let is = |word: &str| text.eq_ignore_ascii_case(word.as_bytes());
    match () {
        () if is("http") || is("ws") => Some("http"),
        () if is("https") || is("wss") => Some("https"),
        () => None,
    }
}

/// A host with or without a port, if it is well-formed (RFC 9110 §4.2).
pub fn host(text: &[u8]) -> Option<&str> {
    target::authority(text)?;
    std::str::from_utf8(text).ok()
}

/// What one proxy says in `Forwarded`, as far as it matters here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Element<'a> {
    /// Who has asked it; see [`node`].
    pub from: Option<Cow<'a, [u8]>>,
    /// How it was asked; see [`scheme`].
    pub proto: Option<Cow<'a, [u8]>>,
    /// The host that it was asked for; see [`host`].
    pub host: Option<Cow<'a, [u8]>>,
}

/// Returns the elements in one field line of `Forwarded`, in order.
///
/// `None` if the line is malformed (RFC 7239 §4): a client may have begun a quoted text that takes
/// in what proxies have added, so nothing in it can be told from anything else.
pub fn elements(value: &[u8]) -> Option<Vec<Element<'_>>> {
    let (mut found, mut rest) = (Vec::new(), value);
    loop {
        let mut element = Element::default();
        let mut is_empty = true;
        loop {
            rest = rest.trim_ascii_start();
            if !matches!(rest, [] | [b',' | b';', ..]) {
                let ((name, text), behind) = pair(rest)?;
                element.note(name, text)?;
                (rest, is_empty) = (behind.trim_ascii_start(), false);
            }
            match rest {
                [b';', behind @ ..] => rest = behind,
                _ => break,
            }
        }
        if !is_empty {
            found.push(element);
        }
        match rest {
            [] => return Some(found),
            [b',', behind @ ..] => rest = behind,
            _ => return None,
        }
    }
}

impl<'a> Element<'a> {
    /// Keeps what it knows. `None` where something is said twice.
    fn note(&mut self, name: &[u8], value: Cow<'a, [u8]>) -> Option<()> {
        let is = |word: &str| name.eq_ignore_ascii_case(word.as_bytes());
        let place = match () {
            () if is("for") => &mut self.from,
            () if is("proto") => &mut self.proto,
            () if is("host") => &mut self.host,
            () => return Some(()),
        };
        place.replace(value).is_none().then_some(())
    }
}

/// A name and its value, without quotes.
type Pair<'a> = (&'a [u8], Cow<'a, [u8]>);

/// A token, an equals sign, and a token or a quoted text. Returns what stands behind, too.
fn pair(input: &[u8]) -> Option<(Pair<'_>, &[u8])> {
    let equals = input.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (&input[..equals], &input[equals + 1..]);
    if !is_token(name) {
        return None;
    }
    if let Some(quoted) = value.strip_prefix(b"\"") {
        let (text, behind) = unquoted(quoted)?;
        return Some(((name, text), behind));
    }
    let ends = |byte: &u8| matches!(byte, b',' | b';' | b' ' | b'\t');
    let end = value.iter().position(ends).unwrap_or(value.len());
    let (text, behind) = value.split_at(end);
    // (Some proxies do not quote ports and IPv6, which are no tokens.)
    let is_plain = !text.is_empty() && !text.contains(&b'"');
    is_plain.then_some(((name, Cow::Borrowed(text)), behind))
}

/// Returns the text up to the closing quote, and what stands behind that (RFC 9110 §5.6.4).
fn unquoted(input: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    let end = input.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
    if input[end] == b'"' {
        return Some((Cow::Borrowed(&input[..end]), &input[end + 1..]));
    }
    let (mut text, mut rest) = (Vec::new(), input);
    loop {
        match rest {
            [b'"', behind @ ..] => return Some((Cow::Owned(text), behind)),
            [b'\\', byte, behind @ ..] | [byte, behind @ ..] => {
                text.push(*byte);
                rest = behind;
            }
            [] => return None,
        }
    }
}

#[cfg(test)]
mod tests;
