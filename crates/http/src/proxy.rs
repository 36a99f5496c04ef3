//! The PROXY header, with which a proxy that forwards bytes begins a connection and says whose it
//! is: version 1, a line of text, and version 2, which is binary.
//!
//! Source: "The PROXY protocol, versions 1 & 2", the document that comes with `HAProxy`.

mod tlvs;

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::ends;
use crate::head::Decoded;

pub use tlvs::{ProxyInfo, ProxyTls, UNIQUE_ID_BYTES_MAX};

/// Most bytes of a header of version 1, line end included.
pub const TEXT_BYTES_MAX: usize = 107;
/// Most bytes of a header of version 2. The protocol allows 65,551; addresses and what proxies say
/// besides take a few hundred.
pub const BINARY_BYTES_MAX: usize = 4_096;

const TEXT_START: &[u8] = b"PROXY ";
const BINARY_START: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// The start, the version with its command, the family, and the length of the rest.
const BINARY_FIXED: usize = 16;
/// Version 2 with its command: the proxy speaks for itself, or for the connection it forwards.
const LOCAL: u8 = 0x20;
const PROXIED: u8 = 0x21;
/// The family of a connection that the proxy does not name.
const UNSPECIFIED: u8 = 0x00;
/// Bytes of a path in version 2.
const PATH_BYTES: usize = 108;

/// The two ends of the connection that the proxy forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends<'a> {
    /// Those of the connection that the header came on: the proxy speaks for itself, or does not
    /// say.
    Own,
    /// Addresses. Both are of the same family.
    Inet {
        /// Where the client is.
        source: SocketAddr,
        /// Where it has connected to.
        destination: SocketAddr,
    },
    /// Paths of Unix sockets, without the zeroes behind them; mostly the client's is empty.
    Unix {
        /// Where the client is.
        source: &'a [u8],
        /// Where it has connected to.
        destination: &'a [u8],
    },
}

/// A header, as far as it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyHeader<'a> {
    /// Its length in bytes.
    pub len: usize,
    /// Whose the connection is.
    pub ends: Ends<'a>,
    /// What it says besides, in version 2.
    pub info: Option<Box<ProxyInfo>>,
}

/// Why bytes are no PROXY header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProxyError {
    /// They do not start as one of either version does.
    Missing,
    /// A line of version 1 against the rules.
    Text,
    /// A version, a command or a family that version 2 does not know.
    Unknown,
    /// A header of version 2 too short for its addresses.
    Short,
    /// What follows the addresses is not a list of types, lengths and values, or one of a length
    /// that its type cannot have.
    Tlv,
    /// The checksum in the header is not that of its bytes.
    Checksum,
    /// A header longer than the limit.
    TooLarge {
        /// The limit that was passed.
        limit_bytes: usize,
    },
}

impl fmt::Display for ProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("the connection does not begin with a PROXY header"),
            Self::Text => f.write_str("the PROXY line is malformed"),
            Self::Unknown => f.write_str("the PROXY header has an unknown version or family"),
            Self::Short => f.write_str("the PROXY header is too short for its addresses"),
            Self::Tlv => f.write_str("a TLV of the PROXY header is malformed"),
            Self::Checksum => f.write_str("the checksum of the PROXY header is wrong"),
            Self::TooLarge { limit_bytes } => {
                write!(f, "the PROXY header is longer than {limit_bytes} bytes")
            }
        }
    }
}

impl Error for ProxyError {}

/// Reads the header that a connection begins with, of either version.
///
/// - `input`: all bytes so far; may stop anywhere.
/// - Done: the header's length in bytes, and what it says.
/// - Need more: a header can come of it, or one that is longer than the limit. What follows the
///   addresses is looked at once all of it is here.
///
/// # Errors
/// [`ProxyError`], as soon as no header can come of it any more.
pub fn decode(input: &[u8]) -> Result<Decoded<ProxyHeader<'_>>, ProxyError> {
    if begins(input, TEXT_START) {
        return decode_text(input);
    }
    if begins(input, BINARY_START) {
        return decode_binary(input);
    }
    Err(ProxyError::Missing)
}

/// Returns whether both agree as far as both go.
fn begins(input: &[u8], start: &[u8]) -> bool {
    input.iter().zip(start).all(|(one, other)| one == other)
}

fn decode_text(input: &[u8]) -> Result<Decoded<ProxyHeader<'_>>, ProxyError> {
    let window = &input[..input.len().min(TEXT_BYTES_MAX)];
    let Some(end) = window.windows(2).position(|bytes| bytes == b"\r\n") else {
        let said = window.strip_prefix(TEXT_START).unwrap_or_default();
        return match begins_text(said) {
            false => Err(ProxyError::Text),
            true if window.len() < TEXT_BYTES_MAX => Ok(Decoded::NeedMore),
            true => Err(ProxyError::TooLarge { limit_bytes: TEXT_BYTES_MAX }),
        };
    };
    let said = window[..end].strip_prefix(TEXT_START).ok_or(ProxyError::Text)?;
    let ends = text_ends(said).ok_or(ProxyError::Text)?;
    Ok(Decoded::Done(ProxyHeader { len: end + 2, ends, info: None }))
}

/// Returns whether what [`text_ends`] takes can begin like that, its line end included.
fn begins_text(begun: &[u8]) -> bool {
    if let Some(ended) = begun.strip_suffix(b"\r") {
        // Where all is ignored, this byte may be too.
        return text_ends(ended).is_some();
    }
    // The spaces that are there, and what may still be missing of the last word and behind it.
    let words = begun.split(|byte| *byte == b' ').count() - 1;
    let family =
        if begun.starts_with(b"TCP6") { "TCP6 :: :: 0 0" } else { "TCP4 0.0.0.0 0.0.0.0 0 0" };
    let behind: String = family.split(' ').skip(words + 1).flat_map(|word| [" ", word]).collect();
    let of_word = ends::OF_ADDRESS.iter().chain(&["0.0.0.0"]).map(|end| [*end, behind.as_str()]);
    let of_family = ["TCP4", "TCP6", "UNKNOWN"].into_iter().flat_map(ends::of_word);
    ends::fit(begun, of_word, |said| text_ends(said).is_some())
        || (words == 0 && ends::fit(begun, of_family, is_family))
}

/// Returns the first word of a line.
fn is_family(word: &[u8]) -> bool {
    matches!(word, b"TCP4" | b"TCP6" | b"UNKNOWN")
}

/// Returns what follows `PROXY `: a family, two addresses, two ports, one space between each.
fn text_ends(said: &[u8]) -> Option<Ends<'static>> {
    let family = said.split(|byte| *byte == b' ').next().filter(|family| is_family(family))?;
    if family == b"UNKNOWN" {
        // Whatever may follow is to be ignored.
        return Some(Ends::Own);
    }
    let address = |word: &str| -> Option<IpAddr> {
        match family {
            b"TCP4" => word.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
            _ => word.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        }
    };
    let mut words = std::str::from_utf8(said).ok()?.split(' ').skip(1);
    let (from, to) = (address(words.next()?)?, address(words.next()?)?);
    let (from_port, to_port) = (port(words.next()?)?, port(words.next()?)?);
    if words.next().is_some() {
        return None;
    }
    let (source, destination) = (SocketAddr::new(from, from_port), SocketAddr::new(to, to_port));
    Some(Ends::Inet { source, destination })
}

/// A port without a sign and without zeroes in front.
fn port(word: &str) -> Option<u16> {
    let is_plain = word.bytes().all(|byte| byte.is_ascii_digit());
    let is_canonical = word == "0" || !word.starts_with('0');
    if is_plain && is_canonical { word.parse().ok() } else { None }
}

fn decode_binary(input: &[u8]) -> Result<Decoded<ProxyHeader<'_>>, ProxyError> {
    match input.get(BINARY_START.len()..).unwrap_or_default() {
        [] | [LOCAL, ..] | [PROXIED] => {}
        [PROXIED, family, ..] => _ = address_bytes(*family)?,
        _ => return Err(ProxyError::Unknown),
    }
    let Some((fixed, behind)) = input.split_first_chunk::<BINARY_FIXED>() else {
        return Ok(Decoded::NeedMore);
    };
    let &[.., command, family, high, low] = fixed;
    let is_local = command == LOCAL;
    let len = usize::from(u16::from_be_bytes([high, low]));
    if BINARY_FIXED + len > BINARY_BYTES_MAX {
        return Err(ProxyError::TooLarge { limit_bytes: BINARY_BYTES_MAX });
    }
    if !is_local && len < address_bytes(family)? {
        return Err(ProxyError::Short);
    }
    let Some(block) = behind.get(..len) else { return Ok(Decoded::NeedMore) };
    let len = BINARY_FIXED + len;
    if is_local || family == UNSPECIFIED {
        // Of a connection of the proxy's own, nothing else counts. Of a family that it does not
        // name, nothing says where the addresses end.
        return Ok(Decoded::Done(ProxyHeader { len, ends: Ends::Own, info: None }));
    }
    let info = tlvs::read(&input[..len], BINARY_FIXED + address_bytes(family)?)?;
    Ok(Decoded::Done(ProxyHeader { len, ends: binary_ends(family, block)?, info }))
}

/// Returns how many bytes of a block the addresses of a family take.
fn address_bytes(family: u8) -> Result<usize, ProxyError> {
    match family {
        UNSPECIFIED => Ok(0),
        0x11 | 0x12 => Ok(12),
        0x21 | 0x22 => Ok(36),
        0x31 | 0x32 => Ok(2 * PATH_BYTES),
        _ => Err(ProxyError::Unknown),
    }
}

/// Returns the addresses at the start of a block.
fn binary_ends(family: u8, block: &[u8]) -> Result<Ends<'_>, ProxyError> {
    match family {
        UNSPECIFIED => Ok(Ends::Own),
        0x11 | 0x12 => inet_ends::<4>(block),
        0x21 | 0x22 => inet_ends::<16>(block),
        0x31 | 0x32 => {
            let (from, to) = block
                .get(..2 * PATH_BYTES)
                .map(|paths| paths.split_at(PATH_BYTES))
                .ok_or(ProxyError::Short)?;
            Ok(Ends::Unix { source: path(from), destination: path(to) })
        }
        _ => Err(ProxyError::Unknown),
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], ProxyError> {
    let (taken, behind) = rest.split_first_chunk::<N>().ok_or(ProxyError::Short)?;
    *rest = behind;
    Ok(*taken)
}

/// Returns two addresses of `N` bytes each, with the ports that follow them.
fn inet_ends<const N: usize>(mut rest: &[u8]) -> Result<Ends<'static>, ProxyError>
where
    IpAddr: From<[u8; N]>,
{
    let (from, to) = (take::<N>(&mut rest)?, take::<N>(&mut rest)?);
    let mut with_port = |address: [u8; N]| {
        let port = u16::from_be_bytes(take(&mut rest)?);
        Ok(SocketAddr::new(address.into(), port))
    };
    Ok(Ends::Inet { source: with_port(from)?, destination: with_port(to)? })
}

fn path(padded: &[u8]) -> &[u8] {
    let end = padded.iter().position(|byte| *byte == 0).unwrap_or(padded.len());
    &padded[..end]
}

#[cfg(test)]
mod tests;
