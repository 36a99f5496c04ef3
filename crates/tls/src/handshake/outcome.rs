//! What a finished handshake leaves: what was agreed on, and the secrets of the connection.

use rustls::{CipherSuite, Connection, ConnectionTrafficSecrets, HandshakeKind, ProtocolVersion};

use super::{Capture, TlsInfo};
use crate::client_policy::ClientPolicy;
use crate::records::{Cipher, DirectionSecret, Records, Secrets, TlsVersion};

fn version(connection: &Connection) -> Option<TlsVersion> {
    match connection.protocol_version()? {
        ProtocolVersion::TLSv1_2 => Some(TlsVersion::V12),
        ProtocolVersion::TLSv1_3 => Some(TlsVersion::V13),
        _ => None,
    }
}

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

/// Takes the secrets of both directions out of a finished handshake: what the own layer goes on
/// with.
///
/// # Errors
/// The library's; and where a secret is not the one that was captured, as a key was updated since.
pub(crate) fn extract(connection: Connection, capture: &Capture) -> Result<Records, rustls::Error> {
    let is_client = matches!(connection, Connection::Client(_));
    let suite = connection.negotiated_cipher_suite().map(|suite| suite.suite());
    let is_v13 = version(&connection) == Some(TlsVersion::V13);
    let extracted = connection.dangerous_extract_secrets()?;
    let cipher = cipher(&extracted.tx.1, suite)?;
    let direction = |(record, keys): (u64, ConnectionTrafficSecrets), secret: Option<Vec<u8>>| {
        if is_v13 {
            let secret = secret.ok_or(rustls::Error::HandshakeNotComplete)?;
            return Ok(DirectionSecret::V13(secret, record));
        }
        let (ConnectionTrafficSecrets::Aes128Gcm { key, iv }
        | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
        | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv }) = &keys
        else {
            return Err(unsupported());
        };
        let iv = iv.as_ref().try_into().map_err(|_| unsupported())?;
        Ok(DirectionSecret::V12(key.as_ref().to_vec(), iv, record))
    };
    let (of_client, of_server) = capture.take();
    let (read, write) = if is_client { (of_server, of_client) } else { (of_client, of_server) };
    let secrets = Secrets {
        cipher,
        read: direction(extracted.rx, read)?,
        write: direction(extracted.tx, write)?,
        is_client,
    };
    Ok(Records::new(&secrets).expect("the library's secrets have their length"))
}

fn cipher(
    keys: &ConnectionTrafficSecrets,
    suite: Option<CipherSuite>,
) -> Result<Cipher, rustls::Error> {
    match keys {
        ConnectionTrafficSecrets::Aes128Gcm { .. } => Ok(Cipher::Aes128Gcm),
        ConnectionTrafficSecrets::Aes256Gcm { .. } => Ok(Cipher::Aes256Gcm),
        ConnectionTrafficSecrets::Chacha20Poly1305 { .. } => Ok(Cipher::Chacha20Poly1305),
        _ => Err(rustls::Error::General(format!("no own records for {suite:?}"))),
    }
}

fn unsupported() -> rustls::Error {
    rustls::Error::General("no own records for this cipher".to_owned())
}
