//! Authorities to test with, what they issue, and clients that trust them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, KeyUsagePurpose};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use tempfile::TempDir;

/// An authority, with a folder for what it issues.
pub(crate) struct Authority {
    folder: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, as files.
pub(crate) struct Pair {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("a certificate");
        let folder = TempDir::new().expect("a temporary folder");
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).expect("a file in it");
        Self { folder, issuer }
    }

    /// The file of its own certificate.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Makes an authority's certificate that a server itself has, as `openssl req -x509` does.
    pub(crate) fn own(&self, names: &[&str]) -> Pair {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        self.write("own", &params.self_signed(&key).expect("a certificate"), &key)
    }

    /// Issues a certificate for some names, or replaces one.
    pub(crate) fn issue(&self, file: &str, names: &[&str]) -> Pair {
        let (cert, key) = self.issued(names, SystemTime::UNIX_EPOCH);
        self.write(file, &cert, &key)
    }

    /// The same; it is valid in a while.
    pub(crate) fn issue_ahead(&self, file: &str, names: &[&str], ahead: Duration) -> Pair {
        let (cert, key) = self.issued(names, SystemTime::now() + ahead);
        self.write(file, &cert, &key)
    }

    fn write(&self, file: &str, cert: &rcgen::Certificate, key: &KeyPair) -> Pair {
        let path = |end: &str| self.folder.path().join(format!("{file}.{end}"));
        let pair = Pair { cert: path("pem"), key: path("key") };
        std::fs::write(&pair.cert, cert.pem()).expect("a file");
        std::fs::write(&pair.key, key.serialize_pem()).expect("a file");
        pair
    }

    fn issued(&self, names: &[&str], from: SystemTime) -> (rcgen::Certificate, KeyPair) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.not_before = from.into();
        let key = KeyPair::generate().expect("a key");
        (params.signed_by(&key, &self.issuer).expect("a certificate"), key)
    }

    /// Returns what a client trusts this authority with.
    pub(crate) fn client(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        of: ClientOf<'_>,
    ) -> Arc<ClientConfig> {
        Arc::new(of.config(self, versions))
    }
}

/// Who vouches for a client.
#[derive(Clone, Copy)]
pub(crate) enum ClientOf<'a> {
    Nobody,
    Authority(&'a Authority),
}

impl ClientOf<'_> {
    pub(crate) fn config(
        self,
        servers: &Authority,
        versions: &[&'static SupportedProtocolVersion],
    ) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::clone(servers.issuer.der())).expect("a certificate");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .expect("known versions")
            .with_root_certificates(roots);
        match self {
            Self::Nobody => builder.with_no_client_auth(),
            Self::Authority(authority) => {
                let (cert, key) = authority.issued(&["client.test"], SystemTime::UNIX_EPOCH);
                let key = PrivateKeyDer::try_from(key.serialize_der()).expect("PKCS#8");
                builder.with_client_auth_cert(vec![cert.der().clone()], key).expect("a pair")
            }
        }
    }
}
