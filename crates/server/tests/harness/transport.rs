//! How the suites speak with a server: over plain sockets, or over TLS or HTTP/2 where the
//! environment says so.
//!
//! `GUSTNADO_TEST_TRANSPORT=h2` makes every client one of HTTP/2 in clear: it translates what a
//! test writes and reads. `GUSTNADO_TEST_TRANSPORT=tls` makes every server one of HTTPS and every
//! client one of TLS; `GUSTNADO_TEST_TLS_RECORDS=rustls` takes rustls's layer of records in place
//! of our own.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use gustnado::config::{Config, TlsRecords};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

/// The host of most requests in these tests, which the certificate is for.
const HOST: &str = "gust.example";

/// What a connection's bytes travel in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransportKind {
    Plain,
    Tls(TlsRecords),
    /// HTTP/2 in clear.
    Http2,
}

impl TransportKind {
    /// What the environment asks for.
    ///
    /// # Panics
    /// It asks for something else: a misspelt name must not pass as a run over TLS.
    pub(crate) fn chosen() -> Self {
        static CHOSEN: LazyLock<TransportKind> = LazyLock::new(|| {
            let named = |name| std::env::var(name).unwrap_or_default();
            let records = named("GUSTNADO_TEST_TLS_RECORDS");
            match (&*named("GUSTNADO_TEST_TRANSPORT"), &*records) {
                ("" | "plain", "") => TransportKind::Plain,
                ("h2", "") => TransportKind::Http2,
                ("tls", "" | "own") => TransportKind::Tls(TlsRecords::Own),
                ("tls", "rustls") => TransportKind::Tls(TlsRecords::Rustls),
                (other, records) => panic!("GUSTNADO_TEST_TRANSPORT={other} with {records:?}"),
            }
        });
        *CHOSEN
    }

    /// The scheme of a server's URLs.
    pub(crate) fn scheme(self) -> &'static str {
        if self.is_tls() { "https" } else { "http" }
    }

    fn is_tls(self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// How many of `count` connections a test makes: over TLS a fifth, as a handshake of code that
    /// is not optimised takes milliseconds.
    pub(crate) fn of_connections(self, count: usize) -> usize {
        if self.is_tls() { count / 5 } else { count }
    }

    /// How long one test may take that takes `plain` over plain sockets.
    pub(crate) fn deadline(self, plain: Duration) -> Duration {
        if self.is_tls() { plain * 4 } else { plain }
    }

    /// Makes a configuration one of HTTPS, or of HTTP/2, if that is chosen.
    pub(crate) fn configure(self, config: &mut Config) {
        config.h2c |= self == Self::Http2;
        if let Self::Tls(records) = self {
            config.tls_cert = Some(certificate());
            config.tls_key = Some(certificate());
            config.tls_records = records;
        }
    }
}

/// Returns whether the running test is skipped, because it means nothing over TLS.
///
/// - `reason`: why it does not.
pub(crate) fn plain_only(reason: &str) -> bool {
    TransportKind::chosen().is_tls() && skips(reason)
}

/// Returns whether the running test is skipped, because it means nothing over HTTP/2.
///
/// - `reason`: why it does not.
pub(crate) fn http1_only(reason: &str) -> bool {
    TransportKind::chosen() == TransportKind::Http2 && skips(reason)
}

fn skips(reason: &str) -> bool {
    let thread = thread::current();
    let name = thread.name().unwrap_or("a test");
    super::say_skipped(name, reason);
    true
}

/// A new client of TLS, which trusts the certificate of these tests.
pub(crate) fn client() -> ClientConnection {
    static TRUSTS: LazyLock<Arc<ClientConfig>> = LazyLock::new(|| Arc::new(trusting()));
    connection(&TRUSTS)
}

/// The same, which offers HTTP/2 and nothing else.
pub(crate) fn http2_client() -> ClientConnection {
    static TRUSTS: LazyLock<Arc<ClientConfig>> = LazyLock::new(|| {
        let mut config = trusting();
        config.alpn_protocols = vec![b"h2".to_vec()];
        Arc::new(config)
    });
    connection(&TRUSTS)
}

fn connection(config: &Arc<ClientConfig>) -> ClientConnection {
    let name = ServerName::try_from(HOST).expect("a name");
    ClientConnection::new(Arc::clone(config), name).expect("a client")
}

fn trusting() -> ClientConfig {
    let own = CertificateDer::from_pem_file(certificate()).expect("a certificate");
    let mut roots = RootCertStore::empty();
    roots.add(own).expect("a certificate");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("known versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    // Each connection stands for a client of its own.
    config.resumption = rustls::client::Resumption::disabled();
    config
}

/// A file with a certificate and its key, made once and kept: test programs run at the same time,
/// and the two parts are read by different threads.
fn certificate() -> PathBuf {
    static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let file = folder.join("capability-tls.pem");
        if !file.exists() {
            let made = generate_simple_self_signed([HOST.to_owned()]).expect("a certificate");
            let CertifiedKey { cert, signing_key } = made;
            let draft = folder.join(format!("capability-tls.{}", std::process::id()));
            fs::write(&draft, cert.pem() + &signing_key.serialize_pem()).expect("a file");
            // Fails if another program was faster, whose file is then the one.
            _ = fs::hard_link(&draft, &file);
            fs::remove_file(&draft).expect("our own file");
        }
        file
    });
    FILE.clone()
}
