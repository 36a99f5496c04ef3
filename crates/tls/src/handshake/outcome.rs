//! What two ends have agreed on in a handshake that is over.

use rustls::{Connection, HandshakeKind};

use super::TlsInfo;
use crate::client_policy::ClientPolicy;
use crate::traffic_secrets::version;

pub(super) fn info(
    connection: &Connection,
    policy: ClientPolicy,
) -> Result<TlsInfo, rustls::Error> {
    let unfinished = || rustls::Error::HandshakeNotComplete;
    let suite = connection.negotiated_cipher_suite().ok_or_else(unfinished)?;
    let is_server = matches!(connection, Connection::Server(_));
    let chain = connection.peer_certificates().filter(|_| is_server).unwrap_or_default();
    Ok(TlsInfo {
        version: version(connection).ok_or_else(unfinished)?,
        cipher: suite.suite().as_str().unwrap_or("unknown"),
        cipher_id: u16::from(suite.suite()),
        group: connection.negotiated_key_exchange_group().and_then(|group| group.name().as_str()),
        server_name: server_name(connection),
        alpn: connection.alpn_protocol().map(Into::into),
        is_resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
        client_chain: chain.iter().map(|certificate| certificate.to_vec()).collect(),
        policy,
    })
}

/// Returns the name that the client has asked for. A client knows it without this.
fn server_name(connection: &Connection) -> Option<Box<str>> {
    let Connection::Server(connection) = connection else { return None };
    connection.server_name().map(|name| name.to_ascii_lowercase().into())
}
