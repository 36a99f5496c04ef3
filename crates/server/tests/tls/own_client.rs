//! The HTTP client of the library, over TLS.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;

use gustnado::client::{
    Client, ClientError, ClientOptions, ClientRequest, ConnectorSettings, Http2Use, Trust,
};
use gustnado::config::{Config, SiteTls, TlsClientAuth, TlsRecords};
use gustnado::websocket::{CloseCode, WebSocket, WebSocketRequest, websocket};
use gustnado::{Endpoint, Request, Routes, Server as Builder, Version};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::authority::Authority;
use super::client::Certificate;
use crate::harness::{PATIENCE, Server, Setup};

on_every_server!(
    requests_and_large_bodies_are_sent_by_https,
    a_later_connection_resumes_the_session,
    a_server_that_nobody_vouches_for_is_refused,
    a_certificate_that_is_trusted_itself_is_for_its_names_alone,
    a_server_sees_the_clients_certificate,
    the_server_chooses_the_version,
    a_server_may_speak_http_2_later,
    a_websocket_is_opened_by_https,
);

fn client(tls: ConnectorSettings) -> Client {
    Client::new(ClientOptions { tls, ..ClientOptions::default() })
}

fn trusting(path: std::path::PathBuf) -> ConnectorSettings {
    ConnectorSettings { trust: Trust::Authorities(path), ..ConnectorSettings::default() }
}

fn routes() -> Routes {
    let tell = |request: &Request| {
        let tls = request.tls().expect("it is https");
        format!("{} {}", tls.is_resumed, tls.client_chain.len())
    };
    Routes::new().get("/tls", tell).post("/echo", |request: &Request| request.bytes().to_vec())
}

fn wait<T>(work: impl Future<Output = Result<T, ClientError>>) -> Result<T, ClientError> {
    gustnado_tasks::block_on(work).expect("no worker yet")
}

async fn text(request: ClientRequest, via: SocketAddr) -> Result<String, ClientError> {
    request.via(Endpoint::Tcp(via)).send().await?.text(64).await
}

fn requests_and_large_bodies_are_sent_by_https(setup: Setup) {
    let body: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    for (records, library_records) in [(TlsRecords::Own, false), (TlsRecords::Rustls, true)] {
        let certificate = Certificate::new();
        let config = certificate.config(setup, records);
        let server = Server::routes(Config { limit_body_bytes: 8 << 20, ..config }, routes());
        let settings = ConnectorSettings { library_records, ..trusting(certificate.path()) };
        let client = client(settings);
        let url = format!("https://localhost:{}/echo", server.address().port());
        let asked = async {
            for _ in 0..3 {
                let to = Endpoint::Tcp(server.address());
                let request = client.post(&url).body(body.clone()).via(to);
                let answer = request.send().await?.bytes(8 << 20).await?;
                assert!(answer == body, "the whole body comes back");
            }
            assert_eq!(client.connections_kept(), 1);
            Ok(())
        };
        wait(asked).expect("answers come");
        assert_eq!(server.stats().connections_accepted, 1);
        server.wait_until_empty();
    }
}

fn the_server_chooses_the_version(setup: Setup) {
    let certificate = Certificate::new();
    for (http2, records) in
        [(true, TlsRecords::Own), (true, TlsRecords::Rustls), (false, TlsRecords::Own)]
    {
        let config = Config { http2, ..certificate.config(setup, records) };
        let server = Server::routes(config, routes());
        let port = server.address().port();
        let asked = |option: Http2Use| {
            let tls = trusting(certificate.path());
            let client =
                Client::new(ClientOptions { tls, http2: option, ..ClientOptions::default() });
            let (url, via) = (format!("https://localhost:{port}/echo"), server.address());
            wait(async move {
                let mut version = None;
                for _ in 0..3 {
                    let request = client.post(&url).body("text").via(Endpoint::Tcp(via));
                    let mut response = request.send().await?;
                    assert_eq!(response.text(9).await?, "text");
                    version = Some(response.version());
                }
                assert_eq!(client.connections_kept(), 1);
                Ok(version)
            })
        };
        let best = if http2 { Version::Http2 } else { Version::Http11 };
        assert_eq!(asked(Http2Use::ByAlpn).expect("responses"), Some(best));
        assert_eq!(asked(Http2Use::Never).expect("responses"), Some(Version::Http11));
        match asked(Http2Use::Always) {
            Ok(version) => assert_eq!((http2, version), (true, Some(Version::Http2))),
            Err(error) => assert!(!http2 && error.to_string().contains("by ALPN"), "{error}"),
        }
        server.wait_until_empty();
    }
}

/// One that has chosen HTTP/1.1 before: requests share a connection from then on.
fn a_server_may_speak_http_2_later(setup: Setup) {
    let certificate = Certificate::new();
    let later = certificate.config(setup, TlsRecords::Own);
    let first = Config { http2: false, max_requests_per_connection: 1, ..later.clone() };
    let server = Server::routes(first, routes());
    let tls = trusting(certificate.path());
    let client = Client::new(ClientOptions { tls, ..ClientOptions::default() });
    let url = format!("https://localhost:{}/echo", server.address().port());
    let asked = async |version: Version| {
        for _ in 0..3 {
            let request = client.post(&url).body("text").via(Endpoint::Tcp(server.address()));
            let mut response = request.send().await?;
            assert_eq!((response.text(9).await?, response.version()), ("text".to_owned(), version));
        }
        Ok(())
    };
    let all = async {
        asked(Version::Http11).await?;
        let successor = Builder::new().config(later).routes(routes());
        server.running().reload(successor).expect("it is taken");
        asked(Version::Http2).await
    };
    wait(all).expect("responses");
    assert_eq!(server.stats().connections_accepted, 4);
}

fn a_later_connection_resumes_the_session(setup: Setup) {
    let certificate = Certificate::new();
    let server = Server::routes(certificate.config(setup, TlsRecords::Own), routes());
    let url = format!("https://localhost:{}/tls", server.address().port());
    for (is_fresh, expected) in [(false, ["false 0", "true 0"]), (true, ["false 0", "false 0"])] {
        let client = client(ConnectorSettings { is_fresh, ..trusting(certificate.path()) });
        for expected in expected {
            let told = wait(text(client.get(&url).alone(), server.address()));
            assert_eq!(told.expect("an answer"), expected);
        }
    }
}

fn a_server_that_nobody_vouches_for_is_refused(setup: Setup) {
    let (certificate, stranger) = (Certificate::new(), Certificate::new());
    let server = Server::routes(certificate.config(setup, TlsRecords::Own), routes());
    let port = server.address().port();
    let asked = |host: &str, trust: Trust| {
        let client = client(ConnectorSettings { trust, ..ConnectorSettings::default() });
        wait(text(client.get(&format!("https://{host}:{port}/tls")), server.address()))
    };
    let refused = |told: Result<String, ClientError>| match told {
        Err(error @ ClientError::Tls { .. }) => error.to_string(),
        other => panic!("expected a refusal, found {other:?}"),
    };
    let by_other = asked("localhost", Trust::Authorities(stranger.path()));
    assert!(refused(by_other).contains("invalid peer certificate"), "another authority");
    let by_system = asked("localhost", Trust::System);
    assert!(refused(by_system).contains("UnknownIssuer"), "the system's authorities");
    let other_name = asked("example.org", Trust::Authorities(certificate.path()));
    assert!(refused(other_name).contains("not valid for name"), "another name");
    assert_eq!(asked("example.org", Trust::Anyone).expect("an answer"), "false 0");
    let missing = asked("localhost", Trust::Authorities("/nowhere/ca.pem".into()));
    assert!(matches!(missing, Err(ClientError::TlsSettings(_))), "{missing:?}");
    assert_eq!(server.stats().handshakes, 1);
}

fn a_certificate_that_is_trusted_itself_is_for_its_names_alone(setup: Setup) {
    let authority = Authority::new();
    let pair = authority.own(&["localhost"]);
    let config = Config {
        tls_cert: Some(pair.cert.clone()),
        tls_key: Some(pair.key),
        ..setup.patient_config()
    };
    let server = Server::routes(config, routes());
    let client = client(trusting(pair.cert));
    let asked = |host: &str| {
        let url = format!("https://{host}:{}/tls", server.address().port());
        wait(text(client.get(&url), server.address()))
    };
    assert_eq!(asked("localhost").expect("an answer"), "false 0");
    let error = asked("example.org").expect_err("another name").to_string();
    assert!(error.contains("not valid for name"), "{error}");
}

fn a_server_sees_the_clients_certificate(setup: Setup) {
    let (servers, clients) = (Authority::new(), Authority::new());
    let (pair, own) = (servers.issue("site", &["a.test"]), clients.issue("own", &["me.test"]));
    let config = Config {
        tls_cert: Some(pair.cert.clone()),
        tls_key: Some(pair.key.clone()),
        ..setup.patient_config()
    };
    let site = SiteTls {
        cert: pair.cert,
        key: Some(pair.key),
        client_auth: TlsClientAuth::Required,
        client_ca: Some(clients.path()),
        ..SiteTls::default()
    };
    let routes = Routes::new().host("a.test", routes());
    let server = gustnado::Server::new().config(config).routes(routes).site_tls(&["a.test"], site);
    let server = Server::built(server);
    let url = format!("https://a.test:{}/tls", server.address().port());
    let identity = Some((own.cert, own.key));
    let shown = client(ConnectorSettings { identity, ..trusting(servers.path()) });
    let told = wait(text(shown.get(&url), server.address()));
    assert_eq!(told.expect("an answer"), "false 1");
    let told = wait(text(client(trusting(servers.path())).get(&url), server.address()));
    assert!(told.is_err(), "{told:?}");
}

/// RFC 9112 §9.8: without `close_notify` nobody knows that the end of the bytes is the message's.
#[test]
fn a_body_until_the_end_that_is_cut_off_is_an_error() {
    for (is_orderly, expected) in [(true, Some("some")), (false, None)] {
        let certificate = Certificate::new();
        let address = one_answer(&certificate, is_orderly);
        let client = client(trusting(certificate.path()));
        let url = format!("https://localhost:{}/", address.port());
        let told = wait(text(client.get(&url), address));
        match expected {
            Some(expected) => assert_eq!(told.expect("the whole body"), expected),
            None => assert!(matches!(told, Err(ClientError::Truncated { .. })), "{told:?}"),
        }
    }
}

/// By HTTP/1.1, whatever the server would choose, unless the client speaks HTTP/2 alone.
fn a_websocket_is_opened_by_https(setup: Setup) {
    let echo = |mut socket: WebSocket| async move {
        while let Ok(Some(message)) = socket.recv().await {
            if socket.send(message).await.is_err() {
                return;
            }
        }
    };
    for http2 in [Http2Use::ByAlpn, Http2Use::Never, Http2Use::Always] {
        let certificate = Certificate::new();
        let config = certificate.config(setup, TlsRecords::Own);
        let routes = routes().get("/ws", websocket(echo));
        let server = Server::routes(config, routes);
        let tls = trusting(certificate.path());
        let client = Client::new(ClientOptions { tls, http2, ..ClientOptions::default() });
        let (port, to) = (server.address().port(), Endpoint::Tcp(server.address()));
        let asked = async {
            // One that speaks HTTP/2 has a connection for requests, too.
            let url = format!("https://localhost:{port}/tls");
            let response = client.get(&url).via(to.clone()).send().await?;
            let is_http2 = response.version() == Version::Http2;
            assert_eq!(is_http2, http2 != Http2Use::Never);
            drop(response);
            let url = format!("wss://localhost:{port}/ws");
            let request = WebSocketRequest::new(&client, &url).via(to);
            let mut socket = request.open().await.expect("it is opened");
            for len in [5, 300_000] {
                socket.send("x".repeat(len)).await.expect("it is open");
                let message = socket.recv().await.expect("no error").expect("a message");
                assert_eq!(message.as_bytes().len(), len);
            }
            socket.end(CloseCode::NORMAL, "").await;
            Ok(())
        };
        wait(asked).expect("it is asked");
        // A WebSocket by HTTP/2 is a stream of the connection that is there.
        let connections = if http2 == Http2Use::Always { 1 } else { 2 };
        assert_eq!(server.stats().connections_accepted, connections, "{http2:?}");
    }
}

/// A server that answers once, with a body until the end of the connection.
fn one_answer(certificate: &Certificate, is_orderly: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let config: Arc<ServerConfig> = certificate.served();
    thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a client");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let connection = ServerConnection::new(config).expect("a configuration");
        let mut stream = StreamOwned::new(connection, stream);
        let mut head = [0; 1024];
        assert!(stream.read(&mut head).expect("a request") > 0);
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nsome").expect("a client that reads");
        if is_orderly {
            stream.conn.send_close_notify();
        }
        stream.flush().expect("a client that reads");
    });
    address
}
