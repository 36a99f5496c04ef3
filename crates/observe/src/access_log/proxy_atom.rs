//! Atoms of what a PROXY header says besides addresses: `%({proxy_protocol_tlv_authority}x)s`, by
//! the names of nginx.

use gustnado_http::proxy::ProxyInfo;

const PREFIX: &str = "proxy_protocol_tlv_";

/// A value in the PROXY header of the connection that a request came by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProxyAtom {
    Alpn,
    Authority,
    UniqueId,
    TlsVersion,
    TlsCipher,
    /// The common name of the client's certificate.
    TlsCn,
    /// Whether that is verified, as nginx has it: 0, or 1 if it is not, or there is none.
    TlsVerify,
}

const NAMES: [(&str, ProxyAtom); 7] = [
    ("proxy_protocol_tlv_alpn", ProxyAtom::Alpn),
    ("proxy_protocol_tlv_authority", ProxyAtom::Authority),
    ("proxy_protocol_tlv_unique_id", ProxyAtom::UniqueId),
    ("proxy_protocol_tlv_ssl_version", ProxyAtom::TlsVersion),
    ("proxy_protocol_tlv_ssl_cipher", ProxyAtom::TlsCipher),
    ("proxy_protocol_tlv_ssl_cn", ProxyAtom::TlsCn),
    ("proxy_protocol_tlv_ssl_verify", ProxyAtom::TlsVerify),
];

impl ProxyAtom {
    /// Returns the atom of a name, whose case does not matter.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        let is_it = |(known, _): &&(&str, Self)| known.eq_ignore_ascii_case(name);
        NAMES.iter().find(is_it).map(|(_, atom)| *atom)
    }

    /// Returns all names.
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// Returns the value in a header, if there is one.
    pub(super) fn value(self, info: &ProxyInfo) -> Option<&[u8]> {
        let tls = info.tls.as_ref();
        match self {
            Self::Alpn => info.alpn.as_deref(),
            Self::Authority => info.authority.as_deref().map(str::as_bytes),
            Self::UniqueId => info.unique_id.as_deref(),
            Self::TlsVersion => tls?.version.as_deref().map(str::as_bytes),
            Self::TlsCipher => tls?.cipher.as_deref().map(str::as_bytes),
            Self::TlsCn => tls?.client_name.as_deref().map(str::as_bytes),
            Self::TlsVerify => Some(if tls?.is_verified { b"0" } else { b"1" }),
        }
    }
}

/// Writes the member `proxy_protocol` of a line of JSON.
///
/// - `put`: writes a value.
pub(super) fn write_json(
    info: &ProxyInfo,
    out: &mut Vec<u8>,
    mut put: impl FnMut(Option<&[u8]>, &mut Vec<u8>),
) {
    out.extend_from_slice(b",\"proxy_protocol\":{");
    for (at, (name, atom)) in NAMES.into_iter().enumerate() {
        out.extend_from_slice(if at > 0 { b",\"" } else { b"\"" });
        out.extend_from_slice(&name.as_bytes()[PREFIX.len()..]);
        out.extend_from_slice(b"\":");
        put(atom.value(info), out);
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use gustnado_http::head::Decoded;
    use gustnado_http::proxy::decode;

    #[test]
    fn a_line_of_json_has_what_is_said_and_null_for_the_rest() {
        let tlvs = b"\x02\0\x04shop\x20\0\x05\x01\0\0\0\0";
        let start = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x1b";
        let header = [&start[..], &[0; 12], tlvs].concat();
        let Ok(Decoded::Done(header)) = decode(&header) else { panic!("expected a header") };
        let put = |value: Option<&[u8]>, out: &mut Vec<u8>| {
            out.extend_from_slice(value.unwrap_or(b"null"));
        };
        let mut out = Vec::new();
        write_json(&header.info.expect("it says something"), &mut out, put);
        let wanted = ",\"proxy_protocol\":{\"alpn\":null,\"authority\":shop,\"unique_id\":null,\
                      \"ssl_version\":null,\"ssl_cipher\":null,\"ssl_cn\":null,\"ssl_verify\":1}";
        assert_eq!(String::from_utf8_lossy(&out), wanted);
    }

    #[test]
    fn names_are_known_in_any_case_and_have_one_prefix() {
        for name in ProxyAtom::names() {
            assert!(name.starts_with(PREFIX), "{name}");
            assert_eq!(
                ProxyAtom::of_name(&name.to_ascii_uppercase()),
                ProxyAtom::of_name(name),
                "{name}"
            );
            assert!(ProxyAtom::of_name(name).is_some(), "{name}");
        }
        assert_eq!(ProxyAtom::of_name("proxy_protocol_tlv_netns"), None);
    }
}
