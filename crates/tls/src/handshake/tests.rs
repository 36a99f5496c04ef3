use std::io::{Read, Write};

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion,
};

use super::*;

const NAME: &str = "example.org";
const PEM: &str = "the certificate";

pub(super) struct OneSite(Arc<ServerConfig>);

impl ChooseConfig for OneSite {
    fn choose(&self, hello: &ClientHello<'_>) -> Option<Chosen> {
        let (config, certificate) = (Arc::clone(&self.0), Arc::from(PEM));
        let chosen = Chosen { config, certificate, policy: ClientPolicy::NONE };
        (hello.server_name() == Some(NAME)).then_some(chosen)
    }
}

fn receive(
    handshake: &mut Handshake,
    bytes: &[u8],
    configs: &dyn ChooseConfig,
    own_records: bool,
    out: &mut Vec<u8>,
) -> Result<HandshakeProgress, HandshakeError> {
    handshake.push(bytes);
    handshake.advance(configs, own_records, out)
}

/// A server's and a client's configuration that fit each other.
pub(super) fn configs(
    versions: &[&'static SupportedProtocolVersion],
    suite: Option<CipherSuite>,
) -> (OneSite, Arc<ClientConfig>) {
    let mut provider = crate::crypto::provider();
    if let Some(suite) = suite {
        provider.cipher_suites.retain(|known| known.suite() == suite);
    }
    configs_of(versions, provider.clone(), provider)
}

/// The same of two that do not have the same ciphers.
fn configs_of(
    versions: &[&'static SupportedProtocolVersion],
    of_server: CryptoProvider,
    of_client: CryptoProvider,
) -> (OneSite, Arc<ClientConfig>) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed([NAME.to_owned()]).expect("a certificate");
    let key: PrivateKeyDer<'static> = KeyPair::serialize_der(&signing_key).try_into().expect("DER");
    let mut server = ServerConfig::builder_with_provider(Arc::new(of_server))
        .with_protocol_versions(versions)
        .expect("versions that go with the suites")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .expect("a pair");
    server.alpn_protocols = vec![b"http/1.1".to_vec()];
    server.enable_secret_extraction = true;
    server.ticketer = crate::crypto::handshakes::Ticketer::new().expect("random bytes");
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).expect("a root");
    let mut client = ClientConfig::builder_with_provider(Arc::new(of_client))
        .with_protocol_versions(versions)
        .expect("the same")
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = vec![b"http/1.1".to_vec()];
    (OneSite(Arc::new(server)), Arc::new(client))
}

pub(super) fn client(config: &Arc<ClientConfig>, name: &'static str) -> ClientConnection {
    let name = ServerName::try_from(name).expect("a name");
    ClientConnection::new(Arc::clone(config), name).expect("a client")
}

pub(super) fn written(client: &mut ClientConnection) -> Vec<u8> {
    let mut bytes = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut bytes).expect("memory does not fail");
    }
    bytes
}

pub(super) fn give(client: &mut ClientConnection, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        client.read_tls(&mut bytes).expect("memory does not fail");
        client.process_new_packets().expect("the server is right");
    }
}

/// Makes a connection. The client's first bytes of content come with the last of its handshake.
pub(super) fn shaken(site: &OneSite, client: &mut ClientConnection, own: bool) -> Box<Established> {
    let mut handshake = Handshake::default();
    for _ in 0..10 {
        let mut out = Vec::new();
        let progress = receive(&mut handshake, &written(client), site, own, &mut out);
        give(client, &out);
        if let HandshakeProgress::Done(done) = progress.expect("the client is right") {
            return done;
        }
    }
    panic!("no end after ten flights");
}

/// Opens what a client has sent.
fn opened(session: &mut Session, bytes: &[u8], now_ms: u64) -> (Vec<u8>, bool) {
    let mut room = vec![0; bytes.len()];
    let opened = session.open(bytes, &mut room, now_ms).expect("the client is right");
    room.truncate(opened.content);
    (room, opened.is_end)
}

pub(super) fn content(client: &mut ClientConnection) -> Vec<u8> {
    let mut bytes = Vec::new();
    _ = client.reader().read_to_end(&mut bytes);
    bytes
}

pub(super) fn every_kind()
-> impl Iterator<Item = (&'static SupportedProtocolVersion, CipherSuite, bool)> {
    let kinds = [
        (&TLS13, CipherSuite::TLS13_AES_128_GCM_SHA256),
        (&TLS13, CipherSuite::TLS13_AES_256_GCM_SHA384),
        (&TLS13, CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
        (&TLS12, CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
        (&TLS12, CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
        (&TLS12, CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ];
    kinds.into_iter().flat_map(|(version, suite)| [true, false].map(|own| (version, suite, own)))
}

#[test]
fn a_client_of_the_library_is_served_by_either_layer() {
    for (version, suite, own) in every_kind() {
        let (site, config) = configs(&[version], Some(suite));
        let mut client = client(&config, NAME);
        let done = shaken(&site, &mut client, own);
        let Established { mut session, info, rest } = *done;
        assert_eq!(info.server_name.as_deref(), Some(NAME));
        assert_eq!(info.alpn.as_deref(), Some(&b"http/1.1"[..]));
        assert!(!info.is_resumed && rest.is_empty());

        client.writer().write_all(b"GET / HTTP/1.1").expect("memory does not fail");
        let (request, _) = opened(&mut session, &written(&mut client), 0);
        assert_eq!(request, b"GET / HTTP/1.1", "{suite:?}");

        let mut out = Vec::new();
        session.seal(&[b'x'; 12_000], 16_384, &mut out).expect("the key is fresh");
        session.close(&mut out).expect("the key is fresh");
        give(&mut client, &out);
        assert_eq!(content(&mut client), [b'x'; 12_000], "{suite:?}, own: {own}");

        client.send_close_notify();
        assert!(opened(&mut session, &written(&mut client), 0).1);
    }
}

#[test]
fn content_right_behind_the_handshake_is_not_lost() {
    let (site, config) = configs(&[&TLS13], None);
    let mut client = client(&config, NAME);
    client.writer().write_all(b"GET /").expect("memory does not fail");
    let Established { mut session, rest, .. } = *shaken(&site, &mut client, true);
    assert_eq!(opened(&mut session, &rest, 0).0, b"GET /");
}

#[test]
fn a_handshake_cut_at_any_byte_goes_on() {
    let (site, config) = configs(&[&TLS13], None);
    let hello = written(&mut client(&config, NAME));
    for cut in (0..hello.len()).step_by(7) {
        let mut client = client(&config, NAME);
        let hello = written(&mut client);
        let mut handshake = Handshake::default();
        let mut out = Vec::new();
        let first = receive(&mut handshake, &hello[..cut], &site, true, &mut out);
        assert!(matches!(first, Ok(HandshakeProgress::NeedMore)) && out.is_empty());
        let second = receive(&mut handshake, &hello[cut..], &site, true, &mut out);
        assert!(matches!(second, Ok(HandshakeProgress::NeedMore)) && !out.is_empty());
    }
}

#[test]
fn a_session_is_resumed_and_its_keys_are_its_own() {
    for (version, own) in [(&TLS13, true), (&TLS13, false), (&TLS12, true), (&TLS12, false)] {
        let (site, config) = configs(&[version], None);
        for is_second in [false, true] {
            let mut client = client(&config, NAME);
            let Established { mut session, info, .. } = *shaken(&site, &mut client, own);
            assert_eq!(info.is_resumed, is_second, "{version:?}, own: {own}");
            let mut out = Vec::new();
            session.seal(b"hello", 100, &mut out).expect("the key is fresh");
            give(&mut client, &out);
            assert_eq!(content(&mut client), b"hello");
        }
    }
}

#[test]
fn a_client_that_replaces_its_key_is_followed() {
    let (site, config) = configs(&[&TLS13], None);
    let mut client = client(&config, NAME);
    let Established { mut session, .. } = *shaken(&site, &mut client, true);
    for round in 0..3 {
        client.refresh_traffic_keys().expect("the handshake is over");
        client.writer().write_all(b"hello").expect("memory does not fail");
        let (request, _) = opened(&mut session, &written(&mut client), round * 1_000);
        assert_eq!(request, b"hello");
        let mut out = Vec::new();
        session.seal(b"and back", 100, &mut out).expect("the key is fresh");
        give(&mut client, &out);
        assert_eq!(content(&mut client), b"and back");
    }
}

#[test]
fn what_is_no_handshake_is_told_apart() {
    let (site, _) = configs(&[&TLS13], None);
    let refused = |bytes: &[u8]| {
        let progress = receive(&mut Handshake::default(), bytes, &site, true, &mut Vec::new());
        progress.map(|_| ()).expect_err("it is no handshake")
    };
    assert!(matches!(refused(b"GET / HTTP/1.1\r\n"), HandshakeError::PlainHttp));
    assert!(matches!(refused(b"\x80\x2e\x01"), HandshakeError::NotTls { first: 0x80 }));
    assert!(matches!(refused(&[22, 3, 1, 0xff, 0xff]), HandshakeError::TooLong { .. }));
    assert!(matches!(refused(&[22, 3, 1, 0, 4, 1, 0, 0, 0]), HandshakeError::Refused(_)));
}

#[test]
fn a_record_that_no_layer_may_open_gets_its_alert_from_either() {
    use rustls::AlertDescription::{RecordOverflow, UnexpectedMessage};
    for (version, suite, own) in every_kind() {
        let too_long = [&[23, 3, 3, 0x7f, 0xff][..], &[0; 40]].concat();
        let heartbeat = vec![24, 3, 3, 0, 3, 1, 0, 0];
        for (record, wanted) in [(too_long, RecordOverflow), (heartbeat, UnexpectedMessage)] {
            let (site, config) = configs(&[version], Some(suite));
            let mut client = client(&config, NAME);
            let mut session = shaken(&site, &mut client, own).session;
            // Records before it, so that its number is not the first.
            let mut out = Vec::new();
            session.seal(b"a response", 100, &mut out).expect("a fresh key");
            let mut room = [0; 100];
            let error = session.open(&record, &mut room, 0).expect_err("it may not come");
            session.alert(error, &mut out).expect("a fresh key");
            client.read_tls(&mut &out[..]).expect("memory does not fail");
            let told = client.process_new_packets().expect_err("an alert");
            let wanted = rustls::Error::AlertReceived(wanted);
            assert_eq!(told, wanted, "{suite:?} {own}");
            assert_eq!(content(&mut client), b"a response");
        }
    }
}

#[test]
fn a_name_without_a_site_gets_an_alert() {
    let (site, config) = configs(&[&TLS13], None);
    let mut client = client(&config, "other.example");
    let mut out = Vec::new();
    let error = receive(&mut Handshake::default(), &written(&mut client), &site, true, &mut out);
    let Err(HandshakeError::UnknownName { name }) = error else { panic!("it has no site") };
    assert_eq!(name.as_deref(), Some("other.example"));
    client.read_tls(&mut out.as_slice()).expect("memory does not fail");
    let told = client.process_new_packets().expect_err("an alert");
    assert!(matches!(
        told,
        rustls::Error::AlertReceived(rustls::AlertDescription::UnrecognisedName)
    ));
}

#[test]
fn the_servers_order_of_ciphers_counts_unless_chacha20_is_wanted_most() {
    use CipherSuite as Suite;
    let chosen = |version: &'static SupportedProtocolVersion, suites: &[Suite], own: bool| {
        let place = |suite| suites.iter().position(|known| *known == suite);
        let mut provider = crate::crypto::provider();
        provider.cipher_suites.retain(|known| place(known.suite()).is_some());
        provider.cipher_suites.sort_by_key(|known| place(known.suite()));
        let (site, config) = configs_of(&[version], crate::crypto::provider(), provider);
        shaken(&site, &mut client(&config, NAME), own).info.cipher_id
    };
    let v13 = [
        Suite::TLS13_AES_128_GCM_SHA256,
        Suite::TLS13_AES_256_GCM_SHA384,
        Suite::TLS13_CHACHA20_POLY1305_SHA256,
    ];
    let v12 = [
        Suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        Suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        Suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ];
    for (version, [shorter, longer, chacha]) in [(&TLS13, v13), (&TLS12, v12)] {
        for (offered, expected) in [
            (&[longer, shorter, chacha][..], shorter),
            (&[longer, chacha], longer),
            (&[chacha, longer, shorter], chacha),
        ] {
            for own in [true, false] {
                assert_eq!(chosen(version, offered, own), u16::from(expected), "{offered:?}");
            }
        }
    }
}
