//! Atoms of connections by TLS: `%({ssl_protocol}x)s`, by the names of nginx and of Apache.

use gustnado_tls::{TlsInfo, TlsProperty};

/// A property of the connection that a request came by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TlsAtom {
    Text(TlsProperty),
    /// Whether a session was resumed, in one of two words: yes, no.
    IsResumed(&'static str, &'static str),
}

/// The names of nginx, and those of `mod_ssl` that differ by more than case.
const NAMES: [(&str, TlsAtom); 9] = [
    ("ssl_protocol", TlsAtom::Text(TlsProperty::Protocol)),
    ("ssl_cipher", TlsAtom::Text(TlsProperty::Cipher)),
    ("ssl_curve", TlsAtom::Text(TlsProperty::Group)),
    ("ssl_server_name", TlsAtom::Text(TlsProperty::ServerName)),
    ("ssl_tls_sni", TlsAtom::Text(TlsProperty::ServerName)),
    ("ssl_alpn_protocol", TlsAtom::Text(TlsProperty::Alpn)),
    ("ssl_session_reused", TlsAtom::IsResumed("r", ".")),
    ("ssl_session_resumed", TlsAtom::IsResumed("Resumed", "Initial")),
    ("ssl_client_s_dn", TlsAtom::Text(TlsProperty::ClientSubject)),
];

/// The keys of the object `tls` in a line of JSON, without `resumed`.
const JSON_KEYS: [(&str, TlsProperty); 6] = [
    ("protocol", TlsProperty::Protocol),
    ("cipher", TlsProperty::Cipher),
    ("group", TlsProperty::Group),
    ("server_name", TlsProperty::ServerName),
    ("alpn", TlsProperty::Alpn),
    ("client_subject", TlsProperty::ClientSubject),
];

impl TlsAtom {
    /// Returns the atom of a name, whose case does not matter: Apache's names are in upper case.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        let is_it = |(known, _): &&(&str, Self)| known.eq_ignore_ascii_case(name);
        NAMES.iter().find(is_it).map(|(_, atom)| *atom)
    }

    /// Returns all names.
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// Returns the value of a connection, if there is one.
    pub(super) fn value(self, tls: &TlsInfo) -> Option<&[u8]> {
        match self {
            Self::Text(property) => tls.property(property),
            Self::IsResumed(yes, no) => Some(if tls.is_resumed() { yes } else { no }.as_bytes()),
        }
    }
}

/// Writes the member `tls` of a line of JSON. A request in plain HTTP has none.
///
/// - `put`: writes a value.
pub(super) fn write_json(
    tls: &TlsInfo,
    out: &mut Vec<u8>,
    mut put: impl FnMut(Option<&[u8]>, &mut Vec<u8>),
) {
    out.extend_from_slice(b",\"tls\":{");
    for (key, property) in JSON_KEYS {
        out.push(b'"');
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(b"\":");
        put(tls.property(property), out);
        out.push(b',');
    }
    out.extend_from_slice(b"\"resumed\":");
    out.extend_from_slice(if tls.is_resumed() { b"true}" } else { b"false}" });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_nginx_and_of_apache_are_known_in_any_case() {
        let protocol = Some(TlsAtom::Text(TlsProperty::Protocol));
        assert_eq!(TlsAtom::of_name("ssl_protocol"), protocol);
        assert_eq!(TlsAtom::of_name("SSL_PROTOCOL"), protocol);
        assert_eq!(TlsAtom::of_name("SSL_TLS_SNI"), TlsAtom::of_name("ssl_server_name"));
        assert_ne!(
            TlsAtom::of_name("ssl_session_reused"),
            TlsAtom::of_name("SSL_SESSION_RESUMED"),
            "each program has its words"
        );
        assert_eq!(TlsAtom::of_name("ssl_protocols"), None);
        assert!(TlsAtom::names().all(|name| TlsAtom::of_name(name).is_some()));
    }
}
