//! What a handshake has agreed on, as logs and counters name it.

#[cfg(feature = "tls")]
use crate::handshake::TlsInfo;

/// A property of a connection by TLS whose value is text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsProperty {
    /// The protocol's version: `TLSv1.3`.
    Protocol,
    /// The cipher suite by its name at IANA: `TLS_AES_128_GCM_SHA256`.
    Cipher,
    /// The group of the key exchange: `X25519MLKEM768`.
    Group,
    /// The name that the client asked for.
    ServerName,
    /// The protocol by ALPN: `http/1.1`.
    Alpn,
    /// The subject of the client's certificate: `CN=client,O=Example`.
    ClientSubject,
}

#[cfg(feature = "tls")]
impl TlsInfo {
    /// Returns the value of a property, if there is one.
    pub fn property(&self, property: TlsProperty) -> Option<&[u8]> {
        match property {
            TlsProperty::Protocol => Some(self.version.name().as_bytes()),
            TlsProperty::Cipher => Some(self.cipher.as_bytes()),
            TlsProperty::Group => self.group.map(str::as_bytes),
            TlsProperty::ServerName => self.server_name.as_deref().map(str::as_bytes),
            TlsProperty::Alpn => self.alpn.as_deref(),
            TlsProperty::ClientSubject => self.client_subject().map(str::as_bytes),
        }
    }
}
