//! A server's certificates and its key, read from files and checked.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::sign::CertifiedKey;
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::der::pem::{LineEnding, encode_string};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::time::Time;

use crate::files::{UnreadableFile, read_file};

/// A certificate that ends sooner than that is warned of.
pub(crate) const WARN_BEFORE_S: i64 = 14 * 24 * 60 * 60;

/// Why certificates and a key cannot be used. Each names the file, what was expected, and a command
/// that shows what is in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] UnreadableFile),
    /// The file is not PEM.
    #[error(
        "{}: expected PEM, found {found}; `head -n 1 {}` shows how it begins",
        path.display(),
        path.display()
    )]
    NotPem {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        found: String,
    },
    /// The file holds no certificate.
    #[error(
        "{}: expected a certificate in PEM, found none; `openssl x509 -in {} -noout -subject` \
         shows the first one",
        path.display(),
        path.display()
    )]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The file holds no private key.
    #[error(
        "{}: expected a private key in PEM (PKCS#8, SEC1 or PKCS#1), found none; `openssl \
         pkey -in {} -noout -text` shows it",
        path.display(),
        path.display()
    )]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// The key is encrypted, and a server has nobody to ask for the password.
    #[error(
        "{}: the private key is encrypted; `openssl pkey -in {} -out plain.pem` writes it \
         without a password",
        path.display(),
        path.display()
    )]
    EncryptedKey {
        /// The file.
        path: PathBuf,
    },
    /// A certificate cannot be parsed.
    #[error(
        "{}: certificate {number} is malformed: {reason}; `openssl x509 -in {} -noout -text` \
         shows the first one",
        path.display(),
        path.display()
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Which one, counted from 1.
        number: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The key is of a kind that cannot sign.
    #[error(
        "{}: this kind of key is not supported: {reason}; expected ECDSA (P-256, P-384, \
         P-521), Ed25519 or RSA of 2,048 bits or more",
        path.display()
    )]
    UnsupportedKey {
        /// The file.
        path: PathBuf,
        /// The library's words.
        reason: rustls::Error,
    },
    /// The key belongs to another certificate.
    #[error(
        "{}: the key is not that of the first certificate in {}; `openssl x509 -noout \
         -pubkey` and `openssl pkey -pubout` show both",
        key.display(),
        certificates.display()
    )]
    Mismatch {
        /// The file of the certificates.
        certificates: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
    /// A certificate is not the issuer of the one before it.
    #[error(
        "{}: certificate {number} is issued by {issuer}, but the one behind it is {next}; put \
         each issuer behind its certificate",
        path.display()
    )]
    Order {
        /// The file.
        path: PathBuf,
        /// Which one, counted from 1.
        number: usize,
        /// Its issuer.
        issuer: String,
        /// The subject of the next one.
        next: String,
    },
    /// The first certificate is valid no longer, or not yet.
    #[error(
        "{}: the certificate is valid from {from} to {to}, and now is {now}; `openssl x509 \
         -in {} -noout -dates` shows it",
        path.display(),
        path.display()
    )]
    NotNow {
        /// The file.
        path: PathBuf,
        /// Its first second.
        from: String,
        /// Its last second.
        to: String,
        /// The clock, in seconds since 1970.
        now: i64,
    },
}

/// A server's certificate with its chain and key.
#[derive(Clone, Debug)]
pub struct SiteIdentity {
    /// What the library presents and signs with.
    pub(crate) key: Arc<CertifiedKey>,
    /// The first certificate in PEM, for programs that ask what was presented: all connections
    /// share it.
    pub(crate) pem: Arc<str>,
    /// The names that the first certificate is for: host names, some with a wildcard, and IP
    /// addresses.
    pub names: Vec<String>,
    /// When the first certificate ends, in seconds since 1970.
    pub not_after_s: i64,
}

impl SiteIdentity {
    /// Reads a chain, the server's own certificate first, and its key.
    ///
    /// - `now_s`: seconds since 1970, for validity.
    ///
    /// # Errors
    /// [`IdentityError`].
    pub fn read(
        certificates: &Path,
        key: &Path,
        provider: &CryptoProvider,
        now_s: i64,
    ) -> Result<Self, IdentityError> {
        let chain = read_chain(certificates)?;
        let parsed = parse_chain(certificates, &chain)?;
        check_order(certificates, &parsed)?;
        let first = &parsed[0];
        check_validity(certificates, first, now_s)?;
        let names = certificate_names(first);
        let not_after_s = seconds(&first.tbs_certificate.validity.not_after);
        let signing = provider
            .key_provider
            .load_private_key(read_key(key)?)
            .map_err(|reason| IdentityError::UnsupportedKey { path: key.to_owned(), reason })?;
        let pem = to_pem(&chain[0]).unwrap_or_default().into();
        let certified = CertifiedKey::new(chain, signing);
        match certified.keys_match() {
            // A key that cannot tell its public part is trusted to be the right one.
            Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => {}
            Err(error) if !matches!(error, rustls::Error::InconsistentKeys(_)) => {
                let (path, reason) = (certificates.to_owned(), error.to_string());
                return Err(IdentityError::Malformed { path, number: 1, reason });
            }
            Err(_) => {
                let (certificates, key) = (certificates.to_owned(), key.to_owned());
                return Err(IdentityError::Mismatch { certificates, key });
            }
        }
        Ok(Self { key: Arc::new(certified), pem, names, not_after_s })
    }

    /// Returns in how many seconds the certificate ends, if that is soon.
    pub fn ends_soon(&self, now_s: i64) -> Option<i64> {
        Some(self.not_after_s - now_s).filter(|left| *left < WARN_BEFORE_S)
    }
}

pub(crate) fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let pem = read_file(path)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let chain = chain.map_err(|error| not_pem(path, &error))?;
    if chain.is_empty() {
        return Err(IdentityError::NoCertificate { path: path.to_owned() });
    }
    Ok(chain.into_iter().map(CertificateDer::into_owned).collect())
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, IdentityError> {
    let pem = read_file(path)?;
    let has = |text: &[u8]| pem.windows(text.len()).any(|window| window == text);
    if has(b"ENCRYPTED PRIVATE KEY") || has(b"Proc-Type: 4,ENCRYPTED") {
        return Err(IdentityError::EncryptedKey { path: path.to_owned() });
    }
    PrivateKeyDer::from_pem_slice(&pem).map_err(|error| match error {
        pem::Error::NoItemsFound => IdentityError::NoKey { path: path.to_owned() },
        error => not_pem(path, &error),
    })
}

fn not_pem(path: &Path, error: &pem::Error) -> IdentityError {
    let found = match error {
        pem::Error::MissingSectionEnd { end_marker } => {
            format!("no line -----END {}-----", String::from_utf8_lossy(end_marker))
        }
        pem::Error::IllegalSectionStart { .. } => "a line that begins a section wrongly".to_owned(),
        pem::Error::Base64Decode(error) => format!("text that is no Base64: {error}"),
        error => error.to_string(),
    };
    IdentityError::NotPem { path: path.to_owned(), found }
}

pub(crate) fn parse_chain(
    path: &Path,
    chain: &[CertificateDer<'static>],
) -> Result<Vec<Certificate>, IdentityError> {
    let parse = |(at, certificate): (usize, &CertificateDer<'static>)| {
        Certificate::from_der(certificate).map_err(|error| {
            let (path, reason) = (path.to_owned(), error.to_string());
            IdentityError::Malformed { path, number: at + 1, reason }
        })
    };
    chain.iter().enumerate().map(parse).collect()
}

/// Each certificate must be issued by the one behind it: some clients look no further.
fn check_order(path: &Path, chain: &[Certificate]) -> Result<(), IdentityError> {
    for (at, pair) in chain.windows(2).enumerate() {
        let (issuer, next) = (&pair[0].tbs_certificate.issuer, &pair[1].tbs_certificate.subject);
        if issuer != next {
            return Err(IdentityError::Order {
                path: path.to_owned(),
                number: at + 1,
                issuer: issuer.to_string(),
                next: next.to_string(),
            });
        }
    }
    Ok(())
}

fn check_validity(path: &Path, certificate: &Certificate, now_s: i64) -> Result<(), IdentityError> {
    if is_within(certificate, now_s) {
        return Ok(());
    }
    let validity = &certificate.tbs_certificate.validity;
    let (from, to) = (&validity.not_before, &validity.not_after);
    let (path, from, to) = (path.to_owned(), from.to_string(), to.to_string());
    Err(IdentityError::NotNow { path, from, to, now: now_s })
}

fn is_within(certificate: &Certificate, now_s: i64) -> bool {
    let validity = &certificate.tbs_certificate.validity;
    (seconds(&validity.not_before)..=seconds(&validity.not_after)).contains(&now_s)
}

/// Returns whether a certificate can be parsed, and now is within its time.
pub(crate) fn is_valid(certificate: &CertificateDer<'_>, now: UnixTime) -> bool {
    let now_s = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    Certificate::from_der(certificate).is_ok_and(|parsed| is_within(&parsed, now_s))
}

/// Returns seconds since 1970.
pub(crate) fn seconds(time: &Time) -> i64 {
    i64::try_from(time.to_unix_duration().as_secs()).unwrap_or(i64::MAX)
}

/// Returns the names of the subject (RFC 5280 §4.2.1.6); the common name is none (RFC 9525 §2).
pub fn certificate_names(certificate: &Certificate) -> Vec<String> {
    let found = certificate.tbs_certificate.get::<SubjectAltName>();
    let Ok(Some((_, SubjectAltName(names)))) = found else { return Vec::new() };
    let name = |name: &GeneralName| match name {
        GeneralName::DnsName(name) => Some(name.as_str().to_ascii_lowercase()),
        GeneralName::IpAddress(bytes) => ip_address(bytes.as_bytes()),
        _ => None,
    };
    names.iter().filter_map(name).collect()
}

/// Returns the certificates of a text in PEM, whatever else is in it; `None` for one that is
/// malformed.
pub fn certificates_in(pem: &str) -> impl Iterator<Item = Option<Certificate>> + '_ {
    let found = CertificateDer::pem_slice_iter(pem.as_bytes());
    found.map(|certificate| Certificate::from_der(&certificate.ok()?).ok())
}

fn ip_address(bytes: &[u8]) -> Option<String> {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Some(std::net::Ipv4Addr::from(v4).to_string());
    }
    <[u8; 16]>::try_from(bytes).ok().map(|v6| std::net::Ipv6Addr::from(v6).to_string())
}

/// Returns a certificate in PEM.
pub(crate) fn to_pem(der: &[u8]) -> Option<String> {
    encode_string("CERTIFICATE", LineEnding::LF, der).ok()
}

/// Returns the subject of a certificate (RFC 4514), if it has one.
pub(crate) fn subject(der: &[u8]) -> Option<String> {
    let subject = Certificate::from_der(der).ok()?.tbs_certificate.subject.to_string();
    Some(subject).filter(|subject| !subject.is_empty())
}

#[cfg(test)]
mod tests;
