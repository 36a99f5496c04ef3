//! How a client takes up connections by TLS: whom it trusts, and what it shows of itself.

use std::path::PathBuf;
use std::sync::Arc;

use gustnado_tasks::ConnectionError;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, SupportedKxGroup, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore,
    SignatureScheme,
};
use rustls::{KeyLogFile, version};

use crate::clients::{ClientsError, authorities};
use crate::handshake::HandshakeError;
use crate::identity::{IdentityError, SiteIdentity, is_valid};
use crate::records::TlsVersion;
use crate::shared_infos::SharedInfos;

/// Which servers a client trusts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Those that an authority of the system vouches for: the files of OpenSSL's usual places, or
    /// of `SSL_CERT_FILE` and `SSL_CERT_DIR`. Where there are none, Mozilla's list.
    #[default]
    System,
    /// Those that one of these certificates vouches for, in PEM, and those that have one of them.
    Authorities(PathBuf),
    /// All: nothing is checked. For measuring, and for tests.
    Anyone,
}

/// The settings of a client's TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectorSettings {
    /// Whom it trusts.
    pub trust: Trust,
    /// Its own certificate chain and the key, in PEM, for servers that ask for one.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The protocols that it offers by ALPN (RFC 7301), the best one first.
    pub protocols: Vec<Vec<u8>>,
    /// The newest version that it offers.
    pub newest: TlsVersion,
    /// The key exchanges that it offers, the best one first (IANA's names, such as
    /// `X25519MLKEM768`). It begins with the first one. Empty: all that it knows, X25519 first.
    pub groups: Vec<String>,
    /// Whether each connection has a handshake of its own, and resumes no session.
    pub is_fresh: bool,
    /// Whether rustls seals and opens records after the first response, too. Otherwise the own
    /// layer takes over then, so that a connection that waits holds little.
    pub library_records: bool,
}

/// Why a client's TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectorError {
    /// The authorities are of no use.
    #[error(transparent)]
    Authorities(#[from] ClientsError),
    /// The client's certificate or its key is of no use.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// A key exchange is not known.
    #[error("expected one of {known} as a key exchange, found {found:?}")]
    Group {
        /// As it was given.
        found: String,
        /// Those that are.
        known: String,
    },
    /// The library refuses the settings.
    #[error("TLS: {0}")]
    Library(#[from] rustls::Error),
}

/// Why a connection has not got through its handshake with a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectTlsError {
    /// What the server sent, or its certificate.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// The host can be in no certificate.
    #[error("{host} is neither a host name nor an IP address")]
    Name {
        /// As it was given.
        host: String,
    },
    /// The connection is lost, or the time is over.
    #[error("the connection ended in its handshake: {0}")]
    Lost(ConnectionError),
    /// The server has closed before the end of the handshake.
    #[error("the server closed in the handshake")]
    Closed,
}

impl ConnectTlsError {
    /// Returns whether the server speaks none of the protocols that were offered (RFC 7301 §3.2).
    pub fn is_protocol_refused(&self) -> bool {
        let Self::Handshake(HandshakeError::Refused(error)) = self else { return false };
        matches!(error, rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol))
    }
}

/// Takes up connections by TLS. One serves all of a client's connections, and keeps the sessions
/// that they may resume.
#[derive(Debug)]
pub struct TlsConnector {
    pub(crate) config: ClientConfig,
    pub(crate) own_records: bool,
    pub(crate) infos: SharedInfos,
}

impl TlsConnector {
    /// Reads the authorities and the client's certificate. It blocks for some milliseconds.
    ///
    /// - `now_s`: seconds since 1970, for the validity of the client's certificate.
    ///
    /// # Errors
    /// [`ConnectorError`].
    pub fn new(settings: &ConnectorSettings, now_s: i64) -> Result<Self, ConnectorError> {
        let provider = Arc::new(provider(&settings.groups)?);
        let versions: &[_] = match settings.newest {
            TlsVersion::V13 => &[&version::TLS13, &version::TLS12],
            TlsVersion::V12 => &[&version::TLS12],
        };
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)?
            .dangerous()
            .with_custom_certificate_verifier(verifier(&settings.trust, &provider)?);
        let mut config = match &settings.identity {
            None => builder.with_no_client_auth(),
            Some((certificates, key)) => {
                let identity = SiteIdentity::read(certificates, key, &provider, now_s)?;
                let resolver = rustls::sign::SingleCertAndKey::from(identity.key);
                builder.with_client_cert_resolver(Arc::new(resolver))
            }
        };
        config.alpn_protocols.clone_from(&settings.protocols);
        config.key_log = Arc::new(KeyLogFile::new());
        if settings.is_fresh {
            config.resumption = Resumption::disabled();
        }
        let own_records = !settings.library_records;
        Ok(Self { config, own_records, infos: SharedInfos::default() })
    }
}

/// Returns the library's ciphers, with these groups alone, or with all.
fn provider(groups: &[String]) -> Result<CryptoProvider, ConnectorError> {
    let mut provider = crate::crypto::provider();
    if groups.is_empty() {
        return Ok(provider);
    }
    let name_of = |group: &&dyn SupportedKxGroup| group.name().as_str().unwrap_or_default();
    let named = |found: &String| {
        let group = provider.kx_groups.iter().find(|group| name_of(group) == found);
        group.copied().ok_or_else(|| {
            let known: Vec<&str> = provider.kx_groups.iter().map(name_of).collect();
            ConnectorError::Group { found: found.clone(), known: known.join(", ") }
        })
    };
    provider.kx_groups = groups.iter().map(named).collect::<Result<_, _>>()?;
    Ok(provider)
}

fn verifier(
    trust: &Trust,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, ConnectorError> {
    let mut own = Vec::new();
    let roots = match trust {
        Trust::Anyone => {
            return Ok(Arc::new(NoCheck(provider.signature_verification_algorithms)));
        }
        Trust::System => system_roots(),
        Trust::Authorities(path) => authorities(path, |der| own.push(der.to_vec()))?,
    };
    let builder =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    let chains =
        builder.build().expect("there is an authority, and no list of revoked certificates");
    Ok(Arc::new(ByChainOrItself { chains, own }))
}

/// Returns the system's authorities. One that cannot be read is left out, as browsers do.
fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
}

/// Takes a certificate that an authority vouches for, or that is itself among those which are
/// trusted: `openssl req -x509` makes such.
#[derive(Debug)]
struct ByChainOrItself {
    chains: Arc<WebPkiServerVerifier>,
    own: Vec<Vec<u8>>,
}

impl ServerCertVerifier for ByChainOrItself {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if !self.own.iter().any(|own| **own == **certificate) {
            return self.chains.verify_server_cert(certificate, chain, name, ocsp, now);
        }
        if !is_valid(certificate, now) {
            return Err(CertificateError::Expired.into());
        }
        verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chains.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chains.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}

/// Checks nothing: whoever is in between can be the server.
#[derive(Debug)]
struct NoCheck(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for NoCheck {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::{ConnectorError, provider};

    #[test]
    fn the_groups_that_are_named_are_offered_and_no_other() {
        let offered = |groups: &[&str]| {
            let groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
            let names = |provider: rustls::crypto::CryptoProvider| {
                let groups = provider.kx_groups.iter();
                groups.filter_map(|group| group.name().as_str()).collect::<Vec<_>>()
            };
            provider(&groups).map(names)
        };
        assert_eq!(offered(&["X25519"]).expect("it is known"), ["X25519"]);
        let two = ["secp384r1", "X25519"];
        assert_eq!(offered(&two).expect("they are known"), two);
        let all = offered(&[]).expect("there are some");
        assert!(all[0] == "X25519" && all.len() > 2, "{all:?}");
        let found = offered(&["X25519", "x448"]);
        assert!(matches!(found, Err(ConnectorError::Group { found, .. }) if found == "x448"));
    }
}
