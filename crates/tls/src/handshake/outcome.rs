//! What two ends have agreed on in a handshake that is over.

use std::sync::{Arc, OnceLock};

use rustls::{CipherSuite, Connection, HandshakeKind};

use super::TlsInfo;
use crate::client_policy::ClientPolicy;
use crate::traffic_secrets::version;

pub(super) fn info(
    connection: &Connection,
    server_certificate: Arc<str>,
    policy: ClientPolicy,
) -> Result<TlsInfo, rustls::Error> {
    let unfinished = || rustls::Error::HandshakeNotComplete;
    let suite = connection.negotiated_cipher_suite().ok_or_else(unfinished)?;
    let is_server = matches!(connection, Connection::Server(_));
    let chain = connection.peer_certificates().filter(|_| is_server).unwrap_or_default();
    Ok(TlsInfo {
        version: version(connection).ok_or_else(unfinished)?,
        cipher: suite_name(suite.suite()),
        cipher_id: u16::from(suite.suite()),
        group: connection.negotiated_key_exchange_group().and_then(|group| group.name().as_str()),
        server_name: server_name(connection),
        alpn: connection.alpn_protocol().map(Into::into),
        is_resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
        server_certificate,
        client_chain: chain.iter().map(|certificate| certificate.to_vec()).collect(),
        policy,
        client_subject: OnceLock::new(),
    })
}

/// Returns the name of a suite at IANA. The library has names of its own for those of TLS 1.3.
fn suite_name(suite: CipherSuite) -> &'static str {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
        CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
        other => other.as_str().unwrap_or("unknown"),
    }
}

/// Returns the name that the client has asked for. A client knows it without this.
fn server_name(connection: &Connection) -> Option<Box<str>> {
    let Connection::Server(connection) = connection else { return None };
    connection.server_name().map(|name| name.to_ascii_lowercase().into())
}
