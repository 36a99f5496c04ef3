//! A client of HTTPS over a real socket, and certificates to test with.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;

use gustnado::config::{Config, TlsRecords};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::client::{
    ClientSessionMemoryCache, ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, NamedGroup, RootCertStore, ServerConfig, StreamOwned,
};
use tempfile::TempDir;

use crate::harness::{Answer, PATIENCE, Server, Setup};

/// A certificate for `localhost`, in a folder of its own.
pub(crate) struct Certificate {
    folder: TempDir,
    own: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Certificate {
    pub(crate) fn new() -> Self {
        let made = generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let CertifiedKey { cert, signing_key } = made;
        let folder = TempDir::new().expect("a temporary folder");
        let write = |name: &str, pem: String| {
            std::fs::write(folder.path().join(name), pem).expect("a file in it");
        };
        write("cert.pem", cert.pem());
        write("key.pem", signing_key.serialize_pem());
        Self { folder, own: cert.der().clone(), key: signing_key.serialize_der() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("cert.pem")
    }

    pub(crate) fn key_path(&self) -> PathBuf {
        self.folder.path().join("key.pem")
    }

    /// A configuration that serves with it.
    pub(crate) fn config(&self, setup: Setup, records: TlsRecords) -> Config {
        Config {
            tls_cert: Some(self.path()),
            tls_key: Some(self.key_path()),
            tls_records: records,
            ..setup.patient_config()
        }
    }

    /// What another server serves with it.
    pub(crate) fn served(&self) -> Arc<ServerConfig> {
        let key = PrivateKeyDer::try_from(self.key.clone()).expect("PKCS#8");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("known versions")
            .with_no_client_auth()
            .with_single_cert(vec![self.own.clone()], key)
            .expect("a pair");
        Arc::new(config)
    }

    /// What a client trusts it with.
    pub(crate) fn trusted(
        &self,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.own.clone()).expect("a certificate");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .expect("known versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Arc::new(config)
    }
}

/// A request for `/` of a host.
pub(crate) fn request_of(host: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

/// Keeps the tickets of all servers together, which no honest client does.
#[derive(Debug)]
pub(crate) struct OneStore(ClientSessionMemoryCache);

impl Default for OneStore {
    fn default() -> Self {
        Self(ClientSessionMemoryCache::new(32))
    }
}

fn any_server() -> ServerName<'static> {
    ServerName::try_from("any.test").expect("a name")
}

impl ClientSessionStore for OneStore {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.0.set_kx_hint(any_server(), group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.0.kx_hint(&any_server())
    }

    fn set_tls12_session(&self, _: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.0.set_tls12_session(any_server(), value);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.0.tls12_session(&any_server())
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.0.remove_tls12_session(&any_server());
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.0.insert_tls13_ticket(any_server(), value);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.0.take_tls13_ticket(&any_server())
    }
}

/// Parses a whole response with a length.
fn whole(received: &[u8]) -> Option<Answer> {
    let head = received.windows(4).position(|bytes| bytes == b"\r\n\r\n")? + 4;
    let mut answer = Answer::from_head(&received[..head]);
    let length: usize = answer.expect_field("content-length").parse().expect("a number");
    answer.body = received[head..].get(..length)?.to_vec();
    Some(answer)
}

/// A connection by TLS.
pub(crate) struct TlsClient(pub(crate) StreamOwned<ClientConnection, TcpStream>);

impl TlsClient {
    /// Connects, and completes the handshake with the first bytes.
    pub(crate) fn connect(server: &Server, config: &Arc<ClientConfig>) -> Self {
        Self::connect_to(server, "localhost", config)
    }

    /// Connects to a name.
    pub(crate) fn connect_to(
        server: &Server,
        name: &'static str,
        config: &Arc<ClientConfig>,
    ) -> Self {
        Self::over(server.address(), name, config)
    }

    /// Connects to an address.
    pub(crate) fn connect_at(address: SocketAddr, config: &Arc<ClientConfig>) -> Self {
        Self::over(address, "localhost", config)
    }

    /// Connects to a name at an address.
    pub(crate) fn over(
        address: SocketAddr,
        name: &'static str,
        config: &Arc<ClientConfig>,
    ) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        stream.set_write_timeout(Some(PATIENCE)).expect("a time-out");
        let name = ServerName::try_from(name).expect("a name");
        let connection = ClientConnection::new(Arc::clone(config), name).expect("a client");
        Self(StreamOwned::new(connection, stream))
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).expect("it is sent");
        self.0.flush().expect("it is sent");
    }

    /// Sends bytes, for which the handshake has to succeed.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.write_all(bytes)?;
        self.0.flush()
    }

    /// Reads a byte, for which the handshake has to succeed.
    pub(crate) fn try_read(&mut self) -> std::io::Result<()> {
        self.0.read_exact(&mut [0])
    }

    /// Reads until what was received ends with `end`.
    pub(crate) fn read_until(&mut self, end: &str) -> Vec<u8> {
        let mut received = Vec::new();
        while !received.ends_with(end.as_bytes()) {
            let mut piece = [0; 4 << 10];
            let count = self.0.read(&mut piece).expect("more");
            assert!(count > 0, "it ended early: {received:?}");
            received.extend_from_slice(&piece[..count]);
        }
        received
    }

    /// Sends a request, and reads its response, which has a length.
    pub(crate) fn ask(&mut self, request: impl AsRef<[u8]>) -> Answer {
        self.send(request.as_ref());
        self.answer()
    }

    /// Reads a response, which has a length.
    pub(crate) fn answer(&mut self) -> Answer {
        let mut received = Vec::new();
        loop {
            if let Some(answer) = whole(&received) {
                return answer;
            }
            let mut piece = [0; 16 << 10];
            let count = self.0.read(&mut piece).expect("more of the response");
            assert!(count > 0, "it ended within the response: {received:?}");
            received.extend_from_slice(&piece[..count]);
        }
    }

    /// Reads to the end, which has to be in order: rustls reports one without `close_notify`.
    pub(crate) fn read_to_end(&mut self) -> Vec<u8> {
        let mut received = Vec::new();
        self.0.read_to_end(&mut received).expect("an end in order");
        received
    }
}
