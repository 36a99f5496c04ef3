//! Challenges of a certificate authority (RFC 8555 §8), answered from the folder that servers
//! share.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gustnado::config::{Config, TlsRecords};
use gustnado::{Request, Routes};
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tempfile::TempDir;

use super::authority::Authority;
use super::client::TlsClient;
use crate::harness::client::{Client, get};
use crate::harness::{Server, Setup, wait_until};

on_every_server!(
    tokens_are_answered_in_plain_http_before_anything_else,
    a_handshake_of_an_authority_gets_its_proof_and_nothing_else,
    a_placeholder_serves_until_there_is_a_certificate,
);

const DIGEST: [u8; 32] = [7; 32];

/// A server with a folder, and an authority that does not listen.
struct Scene {
    folder: TempDir,
    server: Server,
}

impl Scene {
    fn start(setup: Setup) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let listen = ["http://127.0.0.1:0", "https://127.0.0.1:0"].map(str::to_owned).to_vec();
        let config = Config {
            listen,
            acme: vec!["a.test".to_owned()],
            acme_dir: Some(folder.path().join("acme")),
            acme_directory: "https://127.0.0.1:9/dir".to_owned(),
            https_redirect: true,
            tls_records: TlsRecords::Own,
            ..setup.patient_config()
        };
        let routes = Routes::new().get("/", |_: &Request| "site");
        Self { server: Server::routes(config, routes), folder }
    }

    fn certificate(&self) -> PathBuf {
        self.folder.path().join("acme/certificate.pem")
    }

    fn put(&self, name: &str, bytes: &str) {
        let folder = self.folder.path().join("acme/challenges");
        let aside = folder.join("aside.new");
        fs::write(&aside, bytes).expect("a file");
        fs::rename(&aside, folder.join(name)).expect("a file");
    }

    fn take(&self, name: &str) {
        let path = self.folder.path().join("acme/challenges").join(name);
        fs::remove_file(path).expect("it was there");
    }

    /// Where it listens: 0 is plain HTTP, 1 is TLS.
    fn address(&self, at: usize) -> SocketAddr {
        let endpoint = &self.server.running().addresses()[at];
        endpoint.to_string().parse().expect("an address")
    }

    fn plain(&self) -> Client {
        Client::connect(self.address(0))
    }
}

fn tokens_are_answered_in_plain_http_before_anything_else(setup: Setup) {
    let scene = Scene::start(setup);
    let path = "/.well-known/acme-challenge/token-1";
    // Nobody is sent to https there, and the site has no such page.
    assert_eq!(scene.plain().get(path).status, 404);
    scene.put("http-01.token-1", "token-1.thumb");
    wait_until("it is answered", || scene.plain().get(path).status == 200);
    let answer = scene.plain().get(path);
    assert_eq!(answer.body, b"token-1.thumb");
    assert_eq!(answer.field("content-type"), Some("application/octet-stream"));
    for other in ["token-2", "token-1/", "token-1/x", "", "../http-01.token-1"] {
        let path = format!("/.well-known/acme-challenge/{other}");
        assert_ne!(scene.plain().get(&path).status, 200, "{other}");
    }
    assert_eq!(scene.plain().get("/").status, 308);
    scene.take("http-01.token-1");
    wait_until("it is not any more", || scene.plain().get(path).status == 404);
}

fn a_handshake_of_an_authority_gets_its_proof_and_nothing_else(setup: Setup) {
    let scene = Scene::start(setup);
    scene.put("tls-alpn-01.a.test", &proof("a.test"));
    let asks = |protocols: &[&str], name: &'static str, version| {
        let config = authority(protocols, version);
        let mut client = TlsClient::over(scene.address(1), name, &Arc::new(config));
        let sent = client.try_send(get("/").as_bytes()).is_ok();
        let shown = client.0.conn.peer_certificates().map(|chain| chain[0].to_vec());
        let received = sent && client.try_read().is_ok();
        (shown.filter(|_| sent), received)
    };
    let is_proof = |der: &[u8]| der.windows(DIGEST.len()).any(|part| part == DIGEST);
    wait_until("the proof is shown", || {
        asks(&["acme-tls/1"], "a.test", &TLS13).0.is_some_and(|der| is_proof(&der))
    });
    for version in [&TLS13, &TLS12] {
        let (shown, received) = asks(&["acme-tls/1"], "a.test", version);
        assert!(shown.is_some_and(|der| is_proof(&der)) && !received, "and the connection ends");
        // A browser gets the site's certificate, and its page.
        let (shown, received) = asks(&["http/1.1"], "a.test", version);
        assert!(shown.is_some_and(|der| !is_proof(&der)) && received);
        let both = asks(&["acme-tls/1", "http/1.1"], "a.test", version);
        assert!(both.0.is_some_and(|der| !is_proof(&der)), "an authority offers nothing else");
        // There is no proof for another name, and no other protocol.
        assert_eq!(asks(&["acme-tls/1"], "b.test", version).0, None);
    }
}

fn a_placeholder_serves_until_there_is_a_certificate(setup: Setup) {
    let scene = Scene::start(setup);
    let shown = || {
        let config = Arc::new(authority(&["http/1.1"], &TLS13));
        let address = scene.address(1);
        let mut client = TlsClient::over(address, "a.test", &config);
        assert_eq!(client.ask(get("/")).body, b"site");
        client.0.conn.peer_certificates().expect("it is shown")[0].to_vec()
    };
    let before = shown();
    let is_placeholder = |der: &[u8]| der.windows(8).any(|part| part == b"Gustnado");
    assert!(is_placeholder(&before));
    let authority = Authority::new();
    let pair = authority.own(&["a.test"]);
    let [key, cert] = [pair.key, pair.cert].map(|path| fs::read_to_string(path).expect("a file"));
    replace(&scene.certificate(), &(key + &cert));
    wait_until("the other one is shown", || !is_placeholder(&shown()));
}

fn replace(path: &Path, pem: &str) {
    let aside = path.with_extension("aside");
    fs::write(&aside, pem).expect("a file");
    fs::rename(aside, path).expect("a file");
}

/// A certificate and its key, with the extension of RFC 8737 §3.
fn proof(name: &str) -> String {
    let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(&DIGEST)];
    let key = KeyPair::generate().expect("a key");
    key.serialize_pem() + &params.self_signed(&key).expect("a certificate").pem()
}

/// A client that looks at the certificate by itself.
fn authority(
    protocols: &[&str],
    version: &'static rustls::SupportedProtocolVersion,
) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .expect("known versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone))
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    config
}

#[derive(Debug)]
struct Anyone;

impl ServerCertVerifier for Anyone {
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
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}
