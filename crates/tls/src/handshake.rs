//! The handshake of a TLS connection, which rustls does; and what is left of it.
//!
//! Without I/O: received bytes go in, bytes to send come out. The library gets whole records, one
//! at a time, so that nothing of the peer's is inside it when it is dropped.

mod client;
mod outcome;

use std::sync::{Arc, OnceLock};

use rustls::server::{Accepted, Acceptor, ClientHello, ServerConfig};
use rustls::{CipherSuite, Connection};

use crate::challenges;
use crate::client_policy::ClientPolicy;
use crate::handshake_failure::HandshakeRefusal;
use crate::identity::{subject, to_pem};
use crate::records::{CONTENT_BYTES_MAX, SEALED_BYTES_MAX, TlsVersion};
use crate::session::{LibrarySession, Session, give, write_out};
use crate::traffic_secrets::{Capture, extract};
pub(crate) use client::ClientHandshake;
use outcome::info;

/// Bytes of a `ClientHello`'s records, at most. One with a post-quantum share, a grease of its own
/// and every extension has some 2 KiB.
const HELLO_BYTES_MAX: usize = 16 << 10;
/// Bytes of all records of a handshake, at most: a client's certificate chain is the most of them.
const HANDSHAKE_BYTES_MAX: usize = 128 << 10;
const HEAD_BYTES: usize = 5;
const HANDSHAKE_RECORD: u8 = 22;

/// Chooses the configuration for a client by its hello: the site that it names, and what it offers.
pub(crate) trait ChooseConfig {
    /// Returns what was chosen; `None` refuses the client (`unrecognized_name`).
    fn choose(&self, hello: &ClientHello<'_>) -> Option<Chosen>;
}

/// What was chosen for a client.
pub(crate) struct Chosen {
    /// The library's configuration.
    pub config: Arc<ServerConfig>,
    /// The certificate that it presents, in PEM.
    pub certificate: Arc<str>,
    /// What the handshake will have shown about the client.
    pub policy: ClientPolicy,
}

/// Why a handshake has failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The first bytes are a request in plain HTTP.
    #[error("plain HTTP on a port of TLS")]
    PlainHttp,
    /// The first bytes are neither TLS nor HTTP.
    #[error("no TLS record: it begins with {first:#04x}")]
    NotTls {
        /// The first byte.
        first: u8,
    },
    /// No site has the name that the client asks for.
    #[error("no site for the name {}", name.as_deref().unwrap_or("(none)"))]
    UnknownName {
        /// As the client sent it.
        name: Option<String>,
    },
    /// A record, or all of them together, is longer than any handshake has need of.
    #[error("a handshake of more than {bytes_max} bytes")]
    TooLong {
        /// The limit.
        bytes_max: usize,
    },
    /// The library refuses what the client sent.
    #[error("{0}")]
    Refused(rustls::Error),
}

impl HandshakeError {
    /// Returns why what the client sent was refused, as it is counted.
    pub(crate) fn refusal(&self) -> HandshakeRefusal {
        use rustls::Error;
        match self {
            Self::NotTls { .. } => HandshakeRefusal::NotTls,
            Self::UnknownName { .. } => HandshakeRefusal::UnknownName,
            Self::Refused(Error::PeerIncompatible(_) | Error::NoApplicationProtocol) => {
                HandshakeRefusal::Incompatible
            }
            Self::Refused(Error::NoCertificatesPresented | Error::InvalidCertificate(_)) => {
                HandshakeRefusal::ClientCertificate
            }
            Self::Refused(Error::AlertReceived(_)) => HandshakeRefusal::Alert,
            Self::PlainHttp | Self::TooLong { .. } | Self::Refused(_) => {
                HandshakeRefusal::Malformed
            }
        }
    }
}

/// What two ends have agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsInfo {
    /// The protocol's version.
    pub version: TlsVersion,
    /// The name of the cipher suite at IANA, such as `TLS_AES_128_GCM_SHA256`.
    pub cipher: &'static str,
    /// The number of the cipher suite (RFC 8446 §B.4).
    pub cipher_id: u16,
    /// The name of the key exchange group, such as `X25519MLKEM768`; none where a session of TLS
    /// 1.2 was resumed.
    pub group: Option<&'static str>,
    /// The name that the client asked for (RFC 6066 §3), in lower case.
    pub server_name: Option<Box<str>>,
    /// The protocol by ALPN (RFC 7301).
    pub alpn: Option<Box<[u8]>>,
    /// Whether an earlier session was resumed.
    pub is_resumed: bool,
    /// The server's own certificate in PEM, without its issuers. One that resumes a session is not
    /// presented again.
    pub server_certificate: Arc<str>,
    /// The client's certificates in DER, its own first; empty without one.
    pub client_chain: Vec<Vec<u8>>,
    policy: ClientPolicy,
    /// The subject of the client's certificate, once it was asked for: a log asks for each request.
    client_subject: OnceLock<Option<Box<str>>>,
}

impl TlsInfo {
    /// Returns whether an earlier session was resumed.
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// Returns whether a certificate authority has asked for a proof (RFC 8737), and wants nothing
    /// else.
    pub fn is_challenge(&self) -> bool {
        self.alpn.as_deref() == Some(challenges::ALPN)
    }

    /// Returns what the site of the handshake wanted of the client's certificate.
    pub fn policy(&self) -> ClientPolicy {
        self.policy
    }

    /// Returns the client's certificates in PEM, its own first.
    pub fn client_chain_pem(&self) -> Vec<String> {
        self.client_chain.iter().filter_map(|der| to_pem(der)).collect()
    }

    /// Returns the subject of the client's certificate (RFC 4514): `CN=client,O=Example`. `None`
    /// without one, or where it has no subject.
    pub fn client_subject(&self) -> Option<&str> {
        let own = self.client_chain.first()?;
        self.client_subject.get_or_init(|| subject(own).map(Into::into)).as_deref()
    }
}

/// A handshake under way.
pub(crate) struct Handshake {
    state: State,
    /// The beginning of a record that is not whole.
    partial: Vec<u8>,
    taken: usize,
}

enum State {
    Hello(Box<Acceptor>),
    Going(Box<Going>),
    Done,
}

struct Going {
    connection: Connection,
    capture: Arc<Capture>,
    certificate: Arc<str>,
    policy: ClientPolicy,
}

/// How far a handshake has come.
pub(crate) enum HandshakeProgress {
    /// More has to be received.
    NeedMore,
    /// It is over.
    Done(Box<Established>),
}

/// An established connection.
pub(crate) struct Established {
    /// Its records.
    pub session: Session,
    /// What was agreed on.
    pub info: TlsInfo,
    /// Bytes that were received behind the handshake, still sealed.
    pub rest: Vec<u8>,
}

impl Default for Handshake {
    fn default() -> Self {
        Self { state: State::Hello(Box::default()), partial: Vec::new(), taken: 0 }
    }
}

impl Handshake {
    /// Takes received bytes, and does nothing with them yet.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.partial.extend_from_slice(bytes);
    }

    /// Returns whether [`Handshake::advance`] has something to do.
    pub(crate) fn is_ready(&self) -> bool {
        // A malformed record is found by reading it.
        self.whole_record().map_or(true, |bytes| bytes.is_some())
    }

    /// Returns whether the client's hello is what comes next: to answer it takes the most time.
    pub(crate) fn is_at_hello(&self) -> bool {
        matches!(self.state, State::Hello(_))
    }

    /// Goes on by all whole records. What is to be sent is appended to `out`, also where it fails:
    /// an alert.
    ///
    /// - `own_records`: whether the own layer takes over afterwards, or the library goes on.
    ///
    /// # Errors
    /// [`HandshakeError`]; the handshake is over then.
    pub(crate) fn advance(
        &mut self,
        configs: &dyn ChooseConfig,
        own_records: bool,
        out: &mut Vec<u8>,
    ) -> Result<HandshakeProgress, HandshakeError> {
        let before = out.len();
        let advanced = self.advance_by_records(configs, own_records, out);
        if let Err(error) = &advanced
            && self.is_at_hello()
            && out.len() == before
            && let Some(alert) = plain_alert(error)
        {
            // Before the hello is answered the library has no connection that would tell it.
            out.extend_from_slice(&alert);
        }
        advanced
    }

    fn advance_by_records(
        &mut self,
        configs: &dyn ChooseConfig,
        own_records: bool,
        out: &mut Vec<u8>,
    ) -> Result<HandshakeProgress, HandshakeError> {
        loop {
            let Some(bytes) = self.whole_record()? else { return Ok(HandshakeProgress::NeedMore) };
            self.taken += bytes;
            let bytes_max = if self.is_at_hello() { HELLO_BYTES_MAX } else { HANDSHAKE_BYTES_MAX };
            if self.taken > bytes_max {
                return Err(HandshakeError::TooLong { bytes_max });
            }
            let record: Vec<u8> = self.partial.drain(..bytes).collect();
            self.take_record(&record, configs, own_records, out)?;
            if self.is_over() {
                return self.finish(own_records, out).map(HandshakeProgress::Done);
            }
        }
    }

    /// Returns the length of the first record, if it is whole.
    fn whole_record(&self) -> Result<Option<usize>, HandshakeError> {
        let is_first = matches!(self.state, State::Hello(_)) && self.taken == 0;
        if let (true, Some(first)) = (is_first, self.partial.first())
            && *first != HANDSHAKE_RECORD
        {
            return Err(not_tls(*first));
        }
        let sealed_max = if self.is_at_hello() { CONTENT_BYTES_MAX } else { SEALED_BYTES_MAX };
        whole_record(&self.partial, sealed_max)
    }

    fn take_record(
        &mut self,
        mut record: &[u8],
        configs: &dyn ChooseConfig,
        own_records: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), HandshakeError> {
        match &mut self.state {
            State::Hello(acceptor) => {
                // The library takes a few kilobytes at a time.
                while !record.is_empty() {
                    acceptor.read_tls(&mut record).expect("memory does not fail");
                }
                match acceptor.accept() {
                    Ok(None) => {}
                    Ok(Some(accepted)) => {
                        let going = begin(accepted, configs, own_records, out)?;
                        self.state = State::Going(Box::new(going));
                    }
                    Err((error, mut alert)) => {
                        alert.write_all(out).expect("memory does not fail");
                        return Err(HandshakeError::Refused(error));
                    }
                }
            }
            State::Going(going) => {
                let connection = &mut going.connection;
                let processed = give(connection, record);
                write_out(connection, out);
                processed.map_err(HandshakeError::Refused)?;
            }
            State::Done => unreachable!("nothing is received after the end"),
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        matches!(&self.state, State::Going(going) if !going.connection.is_handshaking())
    }

    /// Takes the result out of the library.
    fn finish(
        &mut self,
        own_records: bool,
        out: &mut Vec<u8>,
    ) -> Result<Box<Established>, HandshakeError> {
        let State::Going(going) = std::mem::replace(&mut self.state, State::Done) else {
            unreachable!("only a handshake that is going on ends");
        };
        let Going { mut connection, capture, certificate, policy } = *going;
        // Tickets leave with the last of the handshake, under the numbers that secrets begin at.
        write_out(&mut connection, out);
        let info = info(&connection, certificate, policy).map_err(HandshakeError::Refused)?;
        let session = if own_records {
            let records = extract(connection, &capture).map_err(HandshakeError::Refused)?;
            Session::Own(records)
        } else {
            Session::Library(Box::new(LibrarySession { connection, capture: None }))
        };
        let rest = std::mem::take(&mut self.partial);
        Ok(Box::new(Established { session, info, rest }))
    }
}

/// Starts a connection by the configuration that the client's hello chooses.
fn begin(
    accepted: Accepted,
    configs: &dyn ChooseConfig,
    own_records: bool,
    out: &mut Vec<u8>,
) -> Result<Going, HandshakeError> {
    let hello = accepted.client_hello();
    let name = hello.server_name().map(str::to_owned);
    let Some(Chosen { config, certificate, policy }) = configs.choose(&hello) else {
        out.extend_from_slice(&UNRECOGNIZED_NAME);
        return Err(HandshakeError::UnknownName { name });
    };
    // The configuration is all sites' and lasts; a clone of it, a few counters, captures the
    // secrets of this handshake alone.
    let capture = Arc::new(Capture::new(Arc::clone(&config.key_log)));
    let mut of_this = ServerConfig::clone(&config);
    if own_records {
        of_this.key_log = Arc::clone(&capture) as _;
    }
    of_this.ignore_client_order = !prefers_chacha(hello.cipher_suites(), &of_this);
    let config = Arc::new(of_this);
    match accepted.into_connection(config) {
        Ok(connection) => {
            let mut connection = Connection::from(connection);
            write_out(&mut connection, out);
            Ok(Going { connection, capture, certificate, policy })
        }
        Err((error, mut alert)) => {
            alert.write_all(out).expect("memory does not fail");
            Err(HandshakeError::Refused(error))
        }
    }
}

/// Returns whether a client wants `ChaCha20` most of all, as those do whose CPUs have no
/// instructions for AES. For others the server's order counts.
fn prefers_chacha(offered: &[CipherSuite], config: &ServerConfig) -> bool {
    let known = &config.crypto_provider().cipher_suites;
    let mut offered = offered.iter().copied();
    let first = offered.find(|offered| known.iter().any(|suite| suite.suite() == *offered));
    first.and_then(|suite| suite.as_str()).is_some_and(|name| name.contains("CHACHA20"))
}

/// A fatal alert in plain, before any key: `unrecognized_name` (RFC 6066 §3).
const UNRECOGNIZED_NAME: [u8; 7] = fatal(112);

const fn fatal(alert: u8) -> [u8; 7] {
    [21, 3, 3, 0, 2, 2, alert]
}

/// Returns the alert of an error (RFC 8446 §6.2). A client that speaks plain HTTP gets none.
fn plain_alert(error: &HandshakeError) -> Option<[u8; 7]> {
    use rustls::{Error, InvalidMessage};
    match error {
        HandshakeError::PlainHttp => None,
        HandshakeError::UnknownName { .. } => Some(UNRECOGNIZED_NAME),
        HandshakeError::NotTls { .. }
        | HandshakeError::Refused(
            Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. },
        ) => Some(fatal(10)),
        HandshakeError::TooLong { .. }
        | HandshakeError::Refused(Error::InvalidMessage(InvalidMessage::MessageTooLarge)) => {
            Some(fatal(22))
        }
        HandshakeError::Refused(Error::InvalidMessage(_)) => Some(fatal(50)),
        HandshakeError::Refused(_) => Some(fatal(40)),
    }
}

/// Returns the length of the first record, if it is whole.
///
/// - `bytes_max`: what it may have behind its head.
fn whole_record(bytes: &[u8], bytes_max: usize) -> Result<Option<usize>, HandshakeError> {
    let [_, _, _, high, low, ..] = *bytes else { return Ok(None) };
    let sealed = usize::from(u16::from_be_bytes([high, low]));
    if sealed > bytes_max {
        return Err(HandshakeError::TooLong { bytes_max });
    }
    Ok(Some(HEAD_BYTES + sealed).filter(|record| bytes.len() >= *record))
}

fn not_tls(first: u8) -> HandshakeError {
    // A letter of a method, or of `HTTP/`. What follows is not looked at: it may not have come yet.
    if first.is_ascii_uppercase() {
        HandshakeError::PlainHttp
    } else {
        HandshakeError::NotTls { first }
    }
}

#[cfg(test)]
mod differential;
#[cfg(test)]
mod tests;
