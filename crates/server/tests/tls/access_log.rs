//! The access log of connections by TLS.

use std::path::Path;
use std::sync::Arc;

use gustnado::Request;
use gustnado::config::{Config, TlsClientAuth, TlsRecords};
use rustls::ClientConfig;
use rustls::version::{TLS12, TLS13};
use tempfile::TempDir;

use super::authority::{Authority, ClientOf};
use super::client::{TlsClient, request_of};
use crate::harness::client::get;
use crate::harness::{Server, Setup, wait_until};

on_every_server!(every_property_of_a_handshake_is_written, a_plain_connection_has_none);

/// Nginx's names, and two of Apache's.
const FORMAT: &str = "%({ssl_protocol}x)s %({ssl_cipher}x)s %({ssl_curve}x)s \
    %({ssl_server_name}x)s %({ssl_alpn_protocol}x)s %({ssl_session_reused}x)s \
    \"%({ssl_client_s_dn}x)s\" %({SSL_TLS_SNI}x)s %({SSL_SESSION_RESUMED}x)s";

/// The subject of every certificate that an authority of the tests issues.
const SUBJECT: &str = "CN=rcgen self signed cert";

struct LoggedServer {
    authority: Authority,
    clients: Authority,
    folder: TempDir,
    server: Server,
}

impl LoggedServer {
    fn start(setup: Setup, format: &str, client_auth: TlsClientAuth) -> Self {
        let (authority, clients) = (Authority::new(), Authority::new());
        let folder = TempDir::new().expect("a temporary folder");
        let pair = authority.issue("own", &["a.test"]);
        let config = Config {
            listen: ["http://127.0.0.1:0", "https://127.0.0.1:0"].map(str::to_owned).to_vec(),
            tls_cert: Some(pair.cert),
            tls_key: Some(pair.key),
            tls_client_auth: client_auth,
            tls_client_ca: Some(clients.path()),
            tls_records: TlsRecords::Own,
            access_log: Some(folder.path().join("access.log")),
            access_log_format: format.to_owned(),
            ..setup.patient_config()
        };
        let server = gustnado::Server::new().config(config).get("/", |_: &Request| "hello");
        Self { authority, clients, folder, server: Server::built(server) }
    }

    fn ask(&self, config: &Arc<ClientConfig>) {
        let address = self.server.running().addresses()[1].clone();
        let gustnado::Endpoint::Tcp(address) = address else { panic!("a TCP listener") };
        let mut client = TlsClient::over(address, "a.test", config);
        assert_eq!(client.ask(request_of("a.test")).status, 200);
    }

    fn lines(&self, count: usize) -> Vec<String> {
        let path = self.folder.path().join("access.log");
        let read = |path: &Path| std::fs::read_to_string(path).expect("a log is UTF-8");
        let is_there = || read(&path).matches('\n').count() >= count;
        wait_until("all lines are written", is_there);
        read(&path).lines().map(str::to_owned).collect()
    }
}

fn every_property_of_a_handshake_is_written(setup: Setup) {
    let logged = LoggedServer::start(setup, FORMAT, TlsClientAuth::Optional);
    for version in [&TLS13, &TLS12] {
        for of in [ClientOf::Nobody, ClientOf::Authority(&logged.clients)] {
            let mut config = of.config(&logged.authority, &[version]);
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            let config = Arc::new(config);
            // The second connection is resumed.
            logged.ask(&config);
            logged.ask(&config);
        }
    }
    let v13 = "TLSv1.3 TLS_AES_128_GCM_SHA256 X25519 a.test http/1.1";
    let v12 = "TLSv1.2 TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256";
    let (full, resumed) = ("a.test Initial", "a.test Resumed");
    let expected = [
        format!("{v13} . \"-\" {full}"),
        format!("{v13} r \"-\" {resumed}"),
        format!("{v13} . \"{SUBJECT}\" {full}"),
        format!("{v13} r \"{SUBJECT}\" {resumed}"),
        format!("{v12} X25519 a.test http/1.1 . \"-\" {full}"),
        // No keys are exchanged then.
        format!("{v12} - a.test http/1.1 r \"-\" {resumed}"),
        format!("{v12} X25519 a.test http/1.1 . \"{SUBJECT}\" {full}"),
        format!("{v12} - a.test http/1.1 r \"{SUBJECT}\" {resumed}"),
    ];
    let mut found = logged.lines(expected.len());
    // Lines of different connections may change their order.
    found.sort();
    let mut expected = expected.to_vec();
    expected.sort();
    assert_eq!(found, expected);
}

fn a_plain_connection_has_none(setup: Setup) {
    let logged = LoggedServer::start(setup, FORMAT, TlsClientAuth::None);
    assert_eq!(logged.server.ask(get("/")).status, 200);
    assert_eq!(logged.lines(1), ["- - - - - - \"-\" - -"]);
    let logged = LoggedServer::start(setup, "json", TlsClientAuth::None);
    assert_eq!(logged.server.ask(get("/")).status, 200);
    assert!(!logged.lines(1)[0].contains("tls"), "{:?}", logged.lines(1));
    logged.ask(&logged.authority.client(&[&TLS13], ClientOf::Nobody));
    let lines = logged.lines(2);
    let tls = lines.iter().find_map(|line| line.split_once(",\"tls\":")).expect("one has it").1;
    assert_eq!(
        tls,
        "{\"protocol\":\"TLSv1.3\",\"cipher\":\"TLS_AES_128_GCM_SHA256\",\
         \"group\":\"X25519\",\"server_name\":\"a.test\",\"alpn\":null,\
         \"client_subject\":null,\"resumed\":false}}"
    );
}
