//! Several sites on one listener: the certificate by name, what each wants of its clients, and
//! tickets that no other site resumes.

use std::sync::Arc;

use gustnado::config::{Config, SiteTls, TlsClientAuth, TlsRecords};
use gustnado::{Request, Routes};
use rustls::HandshakeKind;
use rustls::client::Resumption;
use rustls::version::{TLS12, TLS13};

use super::authority::{Authority, ClientOf};
use super::client::{TlsClient, request_of};
use crate::harness::{Server, Setup};

on_every_server!(
    each_name_gets_its_certificate,
    names_of_no_certificate_are_refused_if_that_is_wanted,
    clients_have_to_show_a_certificate,
    a_handler_sees_the_clients_certificate,
    a_request_for_a_site_whose_policy_is_not_met_gets_421,
    no_other_site_resumes_a_ticket,
);

/// Two sites beside the usual one: `a.test`, and all below `b.test`, which wants certificates of
/// its clients.
pub(crate) struct Sites {
    pub(crate) authority: Authority,
    pub(crate) clients: Authority,
    pub(crate) server: Server,
}

impl Sites {
    pub(crate) fn start(setup: Setup, strict: bool) -> Self {
        Self::with(setup, strict, TlsClientAuth::Required)
    }

    fn with(setup: Setup, strict: bool, client_auth: TlsClientAuth) -> Self {
        let (authority, clients) = (Authority::new(), Authority::new());
        let usual = authority.issue("usual", &["usual.test"]);
        let (a, b) = (authority.issue("a", &["a.test"]), authority.issue("b", &["*.b.test"]));
        let config = Config {
            tls_cert: Some(usual.cert.clone()),
            tls_key: Some(usual.key.clone()),
            tls_records: TlsRecords::Own,
            tls_strict_names: strict,
            ..setup.patient_config()
        };
        let named = |name: &'static str| {
            let say = move |request: &Request| {
                let chain = request.tls().map_or(0, |tls| tls.client_chain.len());
                format!("{name} {chain}")
            };
            Routes::new().get("/", say)
        };
        let routes = named("usual").host("a.test", named("a")).host("*.b.test", named("b"));
        let plain = |pair: &super::authority::Pair| SiteTls {
            cert: pair.cert.clone(),
            key: Some(pair.key.clone()),
            ..SiteTls::default()
        };
        let with_clients = SiteTls { client_auth, client_ca: Some(clients.path()), ..plain(&b) };
        let server = gustnado::Server::new()
            .config(config)
            .routes(routes)
            .site_tls(&["a.test"], plain(&a))
            .site_tls(&["*.b.test"], with_clients);
        let server = Server::built(server);
        Self { authority, clients, server }
    }

    fn client(&self, of: ClientOf<'_>) -> Arc<rustls::ClientConfig> {
        self.authority.client(&[&TLS13, &TLS12], of)
    }

    fn get(&self, name: &'static str, of: ClientOf<'_>) -> String {
        let mut client = TlsClient::connect_to(&self.server, name, &self.client(of));
        client.ask(request_of(name)).text()
    }
}

fn each_name_gets_its_certificate(setup: Setup) {
    let sites = Sites::start(setup, false);
    // Each client checks that the certificate is for the name that it asks for.
    assert_eq!(sites.get("usual.test", ClientOf::Nobody), "usual 0");
    assert_eq!(sites.get("a.test", ClientOf::Nobody), "a 0");
    assert_eq!(sites.get("x.b.test", ClientOf::Authority(&sites.clients)), "b 1");
    let mut client =
        TlsClient::connect_to(&sites.server, "other.test", &sites.client(ClientOf::Nobody));
    let error = client.try_send(b"GET").expect_err("the usual certificate has another name");
    assert!(error.to_string().contains("not valid for name"), "{error}");
}

fn names_of_no_certificate_are_refused_if_that_is_wanted(setup: Setup) {
    let sites = Sites::start(setup, true);
    assert_eq!(sites.get("usual.test", ClientOf::Nobody), "usual 0");
    assert_eq!(sites.get("a.test", ClientOf::Nobody), "a 0");
    let mut client =
        TlsClient::connect_to(&sites.server, "other.test", &sites.client(ClientOf::Nobody));
    let error = client.try_send(b"GET").expect_err("there is no site");
    assert!(error.to_string().contains("UnrecognisedName"), "{error}");
    sites.server.wait_until("it is counted", |stats| stats.handshakes_unknown_name == 1);
}

fn clients_have_to_show_a_certificate(setup: Setup) {
    let sites = Sites::start(setup, false);
    let strangers = Authority::new();
    for of in [ClientOf::Nobody, ClientOf::Authority(&strangers)] {
        let config = sites.client(of);
        let mut client = TlsClient::connect_to(&sites.server, "x.b.test", &config);
        // With TLS 1.3 the client may have sent its request before it hears.
        let outcome = client.try_send(request_of("x.b.test").as_bytes());
        let failed = outcome.is_err() || client.try_read().is_err();
        assert!(failed, "the client got in");
    }
    let both = |stats: &gustnado::Stats| stats.handshakes_client_certificate == 2;
    sites.server.wait_until("both are counted", both);
    let optional = Sites::with(setup, false, TlsClientAuth::Optional);
    assert_eq!(optional.get("x.b.test", ClientOf::Nobody), "b 0");
    assert_eq!(optional.get("x.b.test", ClientOf::Authority(&optional.clients)), "b 1");
}

fn a_handler_sees_the_clients_certificate(setup: Setup) {
    let sites = Sites::start(setup, false);
    for version in [&TLS13, &TLS12] {
        let config = sites.authority.client(&[version], ClientOf::Authority(&sites.clients));
        // The second connection is resumed, and the ticket has the chain.
        for expected in [HandshakeKind::Full, HandshakeKind::Resumed] {
            let mut client = TlsClient::connect_to(&sites.server, "x.b.test", &config);
            assert_eq!(client.ask(request_of("x.b.test")).text(), "b 1");
            assert_eq!(client.0.conn.handshake_kind(), Some(expected), "{version:?}");
        }
    }
}

fn a_request_for_a_site_whose_policy_is_not_met_gets_421(setup: Setup) {
    let sites = Sites::start(setup, false);
    let config = sites.client(ClientOf::Authority(&sites.clients));
    let mut client = TlsClient::connect_to(&sites.server, "a.test", &config);
    assert_eq!(client.ask(request_of("a.test")).text(), "a 0");
    let answer = client.ask(request_of("X.B.test.:443"));
    assert_eq!(answer.status, 421, "{answer:?}");
    // The other way round nothing is wanted that was not shown.
    let mut client = TlsClient::connect_to(&sites.server, "x.b.test", &config);
    assert_eq!(client.ask(request_of("a.test")).text(), "a 1");
}

fn no_other_site_resumes_a_ticket(setup: Setup) {
    let sites = Sites::with(setup, false, TlsClientAuth::Optional);
    for version in [&TLS13, &TLS12] {
        // A client that keeps its tickets under one name, and shows them to every site.
        let store = Arc::new(super::client::OneStore::default());
        let resumption = Resumption::store(Arc::clone(&store) as _);
        let mut config = ClientOf::Nobody.config(&sites.authority, &[version]);
        config.resumption = resumption;
        let config = Arc::new(config);
        let kind = |name: &'static str| {
            let mut client = TlsClient::connect_to(&sites.server, name, &config);
            assert_eq!(client.ask(request_of(name)).status, 200);
            client.0.conn.handshake_kind().expect("it is over")
        };
        assert_eq!(kind("a.test"), HandshakeKind::Full);
        assert_eq!(kind("a.test"), HandshakeKind::Resumed);
        assert_eq!(kind("x.b.test"), HandshakeKind::Full, "the ticket is of a.test");
    }
}
