//! Clients' certificates: whose are accepted, and which are revoked.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};

use crate::client_policy::ClientPolicy;
use crate::crypto::digest::{Context, SHA256};
use crate::files::{UnreadableFile, read_file};

/// What a site wants of its clients' certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSettings {
    /// Whether clients without a certificate are refused.
    pub is_required: bool,
    /// The authorities that may have issued them, in PEM.
    pub authorities: PathBuf,
    /// Lists of revoked certificates, in PEM.
    pub revoked: Option<PathBuf>,
}

/// Why clients' certificates cannot be checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientsError {
    /// The file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] UnreadableFile),
    /// The file is not PEM.
    #[error("{}: expected {expected} in PEM, found {found}", path.display())]
    NotPem {
        /// The file.
        path: PathBuf,
        /// What belongs there.
        expected: &'static str,
        /// What is wrong with it.
        found: String,
    },
    /// A certificate is none of an authority.
    #[error(
        "{}: certificate {number} cannot be an authority: {reason}; `openssl x509 -in {} \
         -noout -text` shows the first one",
        path.display(),
        path.display()
    )]
    NoAuthority {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        number: usize,
        /// The library's words.
        reason: rustls::Error,
    },
    /// A list of revoked certificates is malformed.
    #[error(
        "{}: {reason}; `openssl crl -in {} -noout -text` shows the first list",
        path.display(),
        path.display()
    )]
    Lists {
        /// The file.
        path: PathBuf,
        /// The library's words.
        reason: VerifierBuilderError,
    },
}

/// What checks clients' certificates, and the policy that it stands for.
pub(crate) struct ClientChecks {
    pub(crate) verifier: Arc<dyn ClientCertVerifier>,
    pub(crate) policy: ClientPolicy,
}

impl ClientChecks {
    /// Reads the authorities, and the lists of what they have revoked.
    ///
    /// # Errors
    /// [`ClientsError`].
    pub(crate) fn read(
        settings: Option<&ClientSettings>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, ClientsError> {
        let Some(settings) = settings else {
            let verifier = WebPkiClientVerifier::no_client_auth();
            return Ok(Self { verifier, policy: ClientPolicy::NONE });
        };
        let path = &settings.authorities;
        let mut digest = Context::new(&SHA256);
        digest.update(&[u8::from(settings.is_required)]);
        let roots = authorities(path, |authority| digest.update(authority))?;
        let mut builder =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        if let Some(path) = &settings.revoked {
            digest.update(path.as_os_str().as_encoded_bytes());
            // Every authority of a chain needs its list: without one, nobody vouches for a
            // certificate of it.
            let lists: Vec<CertificateRevocationListDer<'_>> =
                items(path, "lists of revoked certificates (X509 CRL)")?;
            builder = builder.with_crls(lists);
        }
        if !settings.is_required {
            builder = builder.allow_unauthenticated();
        }
        let failed = |reason| {
            let path = settings.revoked.as_ref().unwrap_or(path).clone();
            ClientsError::Lists { path, reason }
        };
        let verifier = builder.build().map_err(failed)?;
        let digest = digest.finish();
        let first = digest.as_ref()[..8].try_into().expect("it is longer");
        Ok(Self { verifier, policy: ClientPolicy::of_digest(u64::from_be_bytes(first)) })
    }
}

/// Reads authorities.
///
/// - `each`: gets each in DER.
///
/// # Errors
/// [`ClientsError`].
pub(crate) fn authorities(
    path: &Path,
    mut each: impl FnMut(&[u8]),
) -> Result<RootCertStore, ClientsError> {
    let mut roots = RootCertStore::empty();
    let all: Vec<CertificateDer<'_>> = items(path, "certificates of authorities")?;
    for (at, authority) in all.into_iter().enumerate() {
        each(&authority);
        let (path, number) = (path.to_owned(), at + 1);
        let failed = |reason| ClientsError::NoAuthority { path, number, reason };
        roots.add(authority).map_err(failed)?;
    }
    Ok(roots)
}

/// Reads all that a file has of one kind.
///
/// - `expected`: what belongs there.
fn items<T: PemObject>(path: &Path, expected: &'static str) -> Result<Vec<T>, ClientsError> {
    let pem = read_file(path)?;
    let all: Result<Vec<T>, _> = T::pem_slice_iter(&pem).collect();
    let found = match all {
        Ok(all) if !all.is_empty() => return Ok(all),
        Ok(_) => "none".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(ClientsError::NotPem { path: path.to_owned(), expected, found })
}
