//! What a header of version 2 says of a connection besides its two ends: a list of types, lengths
//! and values.
//!
//! Source: "The PROXY protocol, versions 1 & 2", §2.2.

use super::ProxyError;

/// Most bytes of a connection's id.
pub const UNIQUE_ID_BYTES_MAX: usize = 128;

const ALPN: u8 = 0x01;
const AUTHORITY: u8 = 0x02;
const CRC32C: u8 = 0x03;
const UNIQUE_ID: u8 = 0x05;
const TLS: u8 = 0x20;
/// Types within that of TLS.
const TLS_VERSION: u8 = 0x21;
const TLS_CN: u8 = 0x22;
const TLS_CIPHER: u8 = 0x23;
/// Flags of TLS: the client speaks it, and has shown a certificate, now or as the session began.
const IS_TLS: u8 = 0x01;
const HAS_CERTIFICATE: u8 = 0x02 | 0x04;
/// A type and a length.
const HEAD_BYTES: usize = 3;

/// What a proxy says of a client's connection besides its addresses, in a PROXY header of version
/// 2. Text that is not UTF-8 is left out. All of it is in the header, so that bounds its memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProxyInfo {
    /// The protocol by ALPN, as the client and the proxy have agreed on it.
    pub alpn: Option<Box<[u8]>>,
    /// The host that the client asked the proxy for, mostly by SNI.
    pub authority: Option<Box<str>>,
    /// The proxy's id of the connection, 128 bytes at most: what they mean is the proxy's to say.
    pub unique_id: Option<Box<[u8]>>,
    /// The client's TLS, which ends at the proxy; `None` if it speaks none, or nothing is said.
    pub tls: Option<ProxyTls>,
}

/// What a proxy says of the TLS between it and the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProxyTls {
    /// The version in the proxy's words, such as `TLSv1.3`.
    pub version: Option<Box<str>>,
    /// The cipher in the proxy's words, such as `ECDHE-RSA-AES128-GCM-SHA256`.
    pub cipher: Option<Box<str>>,
    /// The common name of the client's certificate. It proves nothing without
    /// [`ProxyTls::is_verified`].
    pub client_name: Option<Box<str>>,
    /// Whether the client has shown a certificate, on this connection or as its session began.
    pub has_certificate: bool,
    /// Whether it has shown one, and the proxy has verified it.
    pub is_verified: bool,
}

impl ProxyInfo {
    fn is_empty(&self) -> bool {
        let Self { alpn, authority, unique_id, tls } = self;
        alpn.is_none() && authority.is_none() && unique_id.is_none() && tls.is_none()
    }
}

/// Reads what follows the addresses of a header. Returns `None` if nothing in it is known.
///
/// - `header`: the whole header, which its checksum is of.
/// - `at`: where the list begins.
///
/// Of a type that comes twice, the first one counts. Unknown types are skipped.
///
/// # Errors
/// [`ProxyError::Tlv`], [`ProxyError::Checksum`].
pub(super) fn read(header: &[u8], at: usize) -> Result<Option<Box<ProxyInfo>>, ProxyError> {
    let mut info = ProxyInfo::default();
    let mut rest = &header[at..];
    while let Some((kind, value)) = next(&mut rest)? {
        match kind {
            ALPN => put(&mut info.alpn, Some(value.into())),
            AUTHORITY => put(&mut info.authority, text(value)),
            CRC32C => {
                let value_at = header.len() - rest.len() - value.len();
                check(header, value_at, value)?;
            }
            UNIQUE_ID if value.len() > UNIQUE_ID_BYTES_MAX => return Err(ProxyError::Tlv),
            UNIQUE_ID => put(&mut info.unique_id, Some(value.into())),
            TLS if info.tls.is_none() => info.tls = tls(value)?,
            _ => {}
        }
    }
    Ok(if info.is_empty() { None } else { Some(Box::new(info)) })
}

/// Takes the next type and value off a list. `None` at its end.
fn next<'a>(rest: &mut &'a [u8]) -> Result<Option<(u8, &'a [u8])>, ProxyError> {
    if rest.is_empty() {
        return Ok(None);
    }
    let (&[kind, high, low], behind) =
        rest.split_first_chunk::<HEAD_BYTES>().ok_or(ProxyError::Tlv)?;
    let len = usize::from(u16::from_be_bytes([high, low]));
    let (value, behind) = behind.split_at_checked(len).ok_or(ProxyError::Tlv)?;
    *rest = behind;
    Ok(Some((kind, value)))
}

fn put<T>(place: &mut Option<T>, value: Option<T>) {
    if place.is_none() {
        *place = value;
    }
}

fn text(value: &[u8]) -> Option<Box<str>> {
    std::str::from_utf8(value).ok().map(Box::from)
}

/// Reads the value of the type for TLS: flags, the outcome of the verification, and a list.
fn tls(value: &[u8]) -> Result<Option<ProxyTls>, ProxyError> {
    let (&[flags, verified @ ..], mut rest) =
        value.split_first_chunk::<5>().ok_or(ProxyError::Tlv)?;
    let has_certificate = flags & HAS_CERTIFICATE != 0;
    // A proxy that has seen no certificate reports no error either.
    let is_verified = has_certificate && verified == [0; 4];
    let mut tls = ProxyTls { has_certificate, is_verified, ..ProxyTls::default() };
    while let Some((kind, value)) = next(&mut rest)? {
        match kind {
            TLS_VERSION => put(&mut tls.version, text(value)),
            TLS_CIPHER => put(&mut tls.cipher, text(value)),
            TLS_CN => put(&mut tls.client_name, text(value)),
            _ => {}
        }
    }
    Ok((flags & IS_TLS != 0).then_some(tls))
}

/// Compares the checksum at a place of a header with that of the header, in which it counts as 0.
fn check(header: &[u8], at: usize, value: &[u8]) -> Result<(), ProxyError> {
    let stated: [u8; 4] = value.try_into().map_err(|_| ProxyError::Tlv)?;
    let bytes = header[..at].iter().chain(&[0; 4]).chain(&header[at + 4..]);
    if crc32c(bytes) == u32::from_be_bytes(stated) { Ok(()) } else { Err(ProxyError::Checksum) }
}

/// Returns the CRC-32C of bytes (RFC 3720 §B.4).
fn crc32c<'a>(bytes: impl Iterator<Item = &'a u8>) -> u32 {
    const TABLE: [u32; 256] = table();
    !bytes.fold(u32::MAX, |sum, byte| TABLE[usize::from(sum.to_le_bytes()[0] ^ byte)] ^ (sum >> 8))
}

/// Returns the remainders of all bytes by Castagnoli's polynomial, bits reversed.
const fn table() -> [u32; 256] {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut sum: u32 = byte;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ POLYNOMIAL } else { sum >> 1 };
            bit += 1;
        }
        table[byte as usize] = sum;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests;
