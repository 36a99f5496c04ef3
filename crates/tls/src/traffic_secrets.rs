//! The traffic secrets of a connection: taken out of the library, which tells those of TLS 1.3 to
//! nothing but a key log, they are what the own layer goes on with.

use std::sync::{Arc, Mutex, PoisonError};

use rustls::{CipherSuite, Connection, ConnectionTrafficSecrets, KeyLog, ProtocolVersion};
use zeroize::Zeroize;

use crate::records::{
    Cipher, DirectionSecret, KeyAndIv, RecordError, Records, Secrets, TlsVersion, seal_alert_by_key,
};

const OF_CLIENT: &str = "CLIENT_TRAFFIC_SECRET_0";
const OF_SERVER: &str = "SERVER_TRAFFIC_SECRET_0";

/// The key log of a single handshake. A log that was asked for (`SSLKEYLOGFILE`) gets all of it
/// too.
#[derive(Debug)]
pub(crate) struct Capture {
    secrets: Mutex<Captured>,
    also: Arc<dyn KeyLog>,
}

#[derive(Default)]
struct Captured {
    client: Option<Vec<u8>>,
    server: Option<Vec<u8>>,
}

impl Capture {
    pub(crate) fn new(also: Arc<dyn KeyLog>) -> Self {
        Self { secrets: Mutex::default(), also }
    }

    /// Takes the secrets out: what the client seals with, and what the server does.
    pub(crate) fn take(&self) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        (secrets.client.take(), secrets.server.take())
    }
}

impl KeyLog for Capture {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        if self.also.will_log(label) {
            self.also.log(label, client_random, secret);
        }
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        match label {
            OF_CLIENT => secrets.client = Some(secret.to_vec()),
            OF_SERVER => secrets.server = Some(secret.to_vec()),
            _ => {}
        }
    }

    fn will_log(&self, label: &str) -> bool {
        matches!(label, OF_CLIENT | OF_SERVER) || self.also.will_log(label)
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        for secret in [&mut self.client, &mut self.server].into_iter().flatten() {
            secret.zeroize();
        }
    }
}

// A log of this must not be a key log.
impl std::fmt::Debug for Captured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Captured").finish_non_exhaustive()
    }
}

pub(crate) fn version(connection: &Connection) -> Option<TlsVersion> {
    match connection.protocol_version()? {
        ProtocolVersion::TLSv1_2 => Some(TlsVersion::V12),
        ProtocolVersion::TLSv1_3 => Some(TlsVersion::V13),
        _ => None,
    }
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
    let direction = |(record, keys): (u64, ConnectionTrafficSecrets),
                     secret: Option<Vec<u8>>|
     -> Result<DirectionSecret, rustls::Error> {
        let (key, iv) = key_and_iv(&keys).ok_or_else(unsupported)?;
        let iv = iv.try_into().map_err(|_| unsupported())?;
        let derived = KeyAndIv { key: key.to_vec(), iv };
        if is_v13 {
            let secret = secret.ok_or(rustls::Error::HandshakeNotComplete)?;
            return Ok(DirectionSecret::V13(secret, record, Some(derived)));
        }
        Ok(DirectionSecret::V12(derived, record))
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

/// Seals the alert of an error that the library has not seen, which has no way to be told: with the
/// key that it would use next. `None` where the error has no alert, or the library has failed too.
pub(crate) fn seal_alert(
    connection: Connection,
    error: RecordError,
    out: &mut Vec<u8>,
) -> Option<()> {
    let version = version(&connection)?;
    let suite = connection.negotiated_cipher_suite().map(|suite| suite.suite());
    let (record, keys) = connection.dangerous_extract_secrets().ok()?.tx;
    let (key, iv) = key_and_iv(&keys)?;
    seal_alert_by_key((version, cipher(&keys, suite).ok()?), (key, iv, record), error, out)
}

fn key_and_iv(keys: &ConnectionTrafficSecrets) -> Option<(&[u8], &[u8])> {
    match keys {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv }
        | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
        | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
            Some((key.as_ref(), iv.as_ref()))
        }
        _ => None,
    }
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
