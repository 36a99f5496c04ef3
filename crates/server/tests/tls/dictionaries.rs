//! Hashed files as the difference to a version that the client has: RFC 9842.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gustnado::client::{Client, ClientOptions, ConnectorSettings, Http2Use, Trust};
use gustnado::config::{Compress, Config, TlsRecords};
use gustnado::{Endpoint, Middleware, Routes};
use sha2::{Digest as _, Sha256};
use zstd_safe::DCtx;

use super::client::{Certificate, TlsClient};
use crate::harness::client::request;
use crate::harness::{Answer, Folder, PATIENCE, Server, Setup, wait_within};

on_every_server!(
    a_changed_bundle_comes_as_its_difference,
    a_server_that_was_restarted_knows_what_it_has_sent,
    in_clear_nothing_is_said_of_it,
    a_proxy_speaks_https_for_it,
    pages_of_other_origins_get_none,
    a_delta_is_made_once_for_all_clients,
    behind_middleware_it_is_the_same,
);

const OLD: &str = "/assets/main.0a1b2c3d.js";
const NEW: &str = "/assets/main.9f2c1b7a.js";

/// What Chromium accepts where it has a dictionary.
const ACCEPTED: &str = "gzip, deflate, br, zstd, dcb, dcz";

/// A bundle of 100 KB.
fn bundle(version: usize) -> Vec<u8> {
    bundle_of(100_000, version)
}

/// A bundle. In each version, a line here and there is its own.
fn bundle_of(bytes: usize, version: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let mut line = |at: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (name, place) = (state >> 44, state >> 56);
        let own = if at % 400 == 3 { version } else { 0 };
        format!("function f{name}(a,b){{return a[{place}]+b.m{name}({own})}}\n")
    };
    (0..).flat_map(|at| line(at).into_bytes()).take(bytes).collect()
}

/// Two releases, of which the first is the current one.
fn releases() -> Folder {
    releases_of(&bundle(1), &bundle(2))
}

fn releases_of(old: &[u8], new: &[u8]) -> Folder {
    let folder = Folder::new();
    folder.dated(&format!("releases/1{OLD}"), old);
    folder.dated(&format!("releases/2{NEW}"), new);
    folder.file("releases/1/index.html", "1");
    folder.file("releases/2/index.html", "2");
    swap(&folder, 1);
    // Deltas are made of files whose times have settled.
    thread::sleep(Duration::from_millis(2_200));
    folder
}

fn swap(folder: &Folder, release: usize) {
    symlink(format!("releases/{release}"), folder.path("next")).expect("a link to the next");
    fs::rename(folder.path("next"), folder.path("current")).expect("in the old one's place");
}

/// The settings that dictionaries come with by themselves.
fn tuned(folder: &Folder, mut config: Config) -> Config {
    config.root = Some(folder.path("current"));
    config.routes.compress = Compress::Zstd;
    config.routes.keep_old_assets = Duration::from_hours(1);
    config
}

fn hash(dictionary: &[u8]) -> String {
    format!(":{}:", STANDARD.encode(Sha256::digest(dictionary)))
}

/// The fields of a client that has a dictionary.
fn fields(dictionary: &[u8]) -> String {
    format!("Accept-Encoding: {ACCEPTED}\r\nAvailable-Dictionary: {}\r\n", hash(dictionary))
}

/// Reads a delta.
fn decoded(dictionary: &[u8], body: &[u8]) -> Vec<u8> {
    assert_eq!(body[..8], [0x5e, 0x2a, 0x4d, 0x18, 0x20, 0, 0, 0]);
    assert_eq!(body[8..40], Sha256::digest(dictionary)[..]);
    let mut decoder = DCtx::create();
    decoder.ref_prefix(dictionary).expect("a dictionary");
    let mut out = Vec::with_capacity(2_000_000);
    decoder.decompress(&mut out, &body[40..]).expect("a frame of Zstandard");
    out
}

/// A client over one version of HTTP.
struct Browser {
    client: Client,
    address: SocketAddr,
}

impl Browser {
    fn new(certificate: &Certificate, http2: Http2Use, server: &Server) -> Self {
        let trust = Trust::Authorities(certificate.path());
        let tls = ConnectorSettings { trust, ..ConnectorSettings::default() };
        let client = Client::new(ClientOptions { tls, http2, ..ClientOptions::default() });
        Self { client, address: server.address() }
    }

    fn get(&self, target: &str, dictionary: Option<&[u8]>) -> Answer {
        let url = format!("https://localhost:{}{target}", self.address.port());
        let mut request = self.client.get(&url).header("accept-encoding", ACCEPTED);
        if let Some(dictionary) = dictionary {
            request = request.header("available-dictionary", hash(dictionary));
        }
        let asked = async {
            let mut response = request.via(Endpoint::Tcp(self.address)).send().await?;
            let fields = response.headers().map(|(name, value)| {
                (name.to_ascii_lowercase(), String::from_utf8_lossy(value).into_owned())
            });
            let (status, fields) = (response.status(), fields.collect());
            let body = response.bytes(2 << 20).await?.to_vec();
            Ok::<_, gustnado::client::ClientError>(Answer { status, fields, body })
        };
        gustnado_tasks::block_on(asked).expect("no worker yet").expect("a response")
    }
}

fn is_delta(answer: &Answer) -> bool {
    answer.field("content-encoding") == Some("dcz")
}

fn vary(answer: &Answer) -> &str {
    answer.expect_field("vary")
}

/// Waits until a response is a delta.
fn delta(ask: impl Fn() -> Answer) -> Answer {
    let mut found = None;
    // It is made at a low priority: on a busy machine that may take long.
    wait_within(6 * PATIENCE, "the delta is there", || {
        let answer = ask();
        assert_eq!((answer.status, vary(&answer)), (200, "Accept-Encoding, Available-Dictionary"));
        found = Some(answer).filter(is_delta);
        if found.is_none() {
            // Clients that ask all the time would take the processor from it.
            thread::sleep(Duration::from_millis(50));
        }
        found.is_some()
    });
    found.expect("it was waited for")
}

fn a_changed_bundle_comes_as_its_difference(setup: Setup) {
    for http2 in [Http2Use::ByAlpn, Http2Use::Never] {
        let (old, new) = (bundle_of(400_000, 1), bundle_of(400_000, 2));
        let (folder, certificate) = (releases_of(&old, &new), Certificate::new());
        let server = Server::start(tuned(&folder, certificate.config(setup, TlsRecords::Own)));
        let browser = Browser::new(&certificate, http2, &server);
        let first = browser.get(OLD, None);
        assert_eq!(first.expect_field("use-as-dictionary"), "match=\"main.*.js\"");
        assert_eq!(vary(&first), "Accept-Encoding, Available-Dictionary");
        let before = browser.get(OLD, Some(b"something else")).body.len();
        swap(&folder, 2);
        thread::sleep(Duration::from_millis(1_200));
        let sent = delta(|| browser.get(NEW, Some(&old)));
        assert!(decoded(&old, &sent.body) == new);
        let percent = sent.body.len() * 100 / new.len();
        assert!(percent < 8, "{} bytes of {}", sent.body.len(), new.len());
        assert!(sent.body.len() * 4 < before, "{} bytes, {before} by zstd", sent.body.len());
        assert_eq!(sent.expect_field("content-length"), sent.body.len().to_string());
        assert_eq!(sent.field("accept-ranges"), None);
        // What comes so is the dictionary of the next one.
        assert_eq!(sent.expect_field("use-as-dictionary"), "match=\"main.*.js\"");
        let whole = browser.get(NEW, None);
        assert_eq!(whole.field("content-encoding"), Some("zstd"));
        assert_ne!(whole.expect_field("etag"), sent.expect_field("etag"));
        // The old page is still open, and the other way round it is a delta, too.
        let back = delta(|| browser.get(OLD, Some(&new)));
        assert!(decoded(&new, &back.body) == old);
        let stats = server.stats();
        assert_eq!((stats.deltas_made, stats.deltas_sent), (2, 2));
    }
}

fn a_server_that_was_restarted_knows_what_it_has_sent(setup: Setup) {
    let (folder, certificate) = (releases(), Certificate::new());
    swap(&folder, 2);
    let server = Server::start(tuned(&folder, certificate.config(setup, TlsRecords::Rustls)));
    let trusted = certificate.trusted(rustls::ALL_VERSIONS);
    let asked = |method: &str, more: &str| {
        let fields = fields(&bundle(1)) + more;
        let mut client = TlsClient::connect(&server, &trusted);
        if method == "HEAD" {
            client.send((request("HEAD", NEW, &fields)).as_bytes());
            return Answer::from_head(&client.read_until("\r\n\r\n"));
        }
        client.ask(request(method, NEW, &fields))
    };
    let sent = delta(|| asked("GET", ""));
    assert!(decoded(&bundle(1), &sent.body) == bundle(2));
    let head = asked("HEAD", "");
    assert_eq!(head.lasting_fields(), sent.lasting_fields());
    let tag = sent.expect_field("etag");
    let mut client = TlsClient::connect(&server, &trusted);
    let conditions = fields(&bundle(1)) + &format!("If-None-Match: {tag}\r\n");
    client.send(request("GET", NEW, &conditions).as_bytes());
    let same = Answer::from_head(&client.read_until("\r\n\r\n"));
    assert_eq!((same.status, same.field("etag")), (304, Some(tag)));
    assert_eq!(vary(&same), "Accept-Encoding, Available-Dictionary");
    // No part of a delta: the range is one of what comes without a dictionary.
    let part = asked("GET", "Range: bytes=0-99\r\n");
    assert_eq!(
        (part.status, part.field("content-encoding"), part.body.len()),
        (206, Some("zstd"), 100)
    );
    assert_eq!(vary(&part), "Accept-Encoding, Available-Dictionary");
}

/// A server with a plain listener and one of TLS.
fn both(setup: Setup, change: impl FnOnce(&mut Config)) -> (Folder, Certificate, Server) {
    let (folder, certificate) = (releases(), Certificate::new());
    swap(&folder, 2);
    let mut config = tuned(&folder, certificate.config(setup, TlsRecords::Own));
    config.listen = ["http://127.0.0.1:0", "https://127.0.0.1:0"].map(str::to_owned).to_vec();
    change(&mut config);
    (folder, certificate, Server::start(config))
}

fn by_tls(server: &Server, certificate: &Certificate, target: &str, fields: &str) -> Answer {
    let address = server.running().addresses()[1].to_string().parse().expect("an address");
    let trusted = certificate.trusted(rustls::ALL_VERSIONS);
    TlsClient::connect_at(address, &trusted).ask(request("GET", target, fields))
}

fn in_clear_nothing_is_said_of_it(setup: Setup) {
    let (_folder, certificate, server) = both(setup, |_| {});
    let fields = fields(&bundle(1));
    let sent = delta(|| by_tls(&server, &certificate, NEW, &fields));
    assert!(decoded(&bundle(1), &sent.body) == bundle(2));
    for fields in [fields.clone(), fields + "X-Forwarded-Proto: https\r\n"] {
        let plain = server.ask(request("GET", NEW, &fields));
        assert_eq!(plain.field("content-encoding"), Some("zstd"));
        assert_eq!((plain.field("use-as-dictionary"), vary(&plain)), (None, "Accept-Encoding"));
    }
}

fn a_proxy_speaks_https_for_it(setup: Setup) {
    let trust = |config: &mut Config| config.forwarded_allow_ips = vec!["127.0.0.1".to_owned()];
    let (_folder, _certificate, server) = both(setup, trust);
    let fields = fields(&bundle(1)) + "X-Forwarded-For: 192.0.2.1\r\n";
    let secure = fields.clone() + "X-Forwarded-Proto: https\r\n";
    let sent = delta(|| server.ask(request("GET", NEW, &secure)));
    assert!(decoded(&bundle(1), &sent.body) == bundle(2));
    let plain = server.ask(request("GET", NEW, &(fields + "X-Forwarded-Proto: http\r\n")));
    assert_eq!((is_delta(&plain), vary(&plain)), (false, "Accept-Encoding"));
}

fn pages_of_other_origins_get_none(setup: Setup) {
    let (_folder, certificate, server) = both(setup, |_| {});
    let ask = |more: &str| by_tls(&server, &certificate, NEW, &(fields(&bundle(1)) + more));
    delta(|| ask("Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\n"));
    for more in [
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n",
        "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: cors\r\nOrigin: https://b.example\r\n",
    ] {
        let answer = ask(more);
        assert_eq!((answer.status, answer.field("content-encoding")), (200, Some("zstd")));
        assert_eq!(vary(&answer), "Accept-Encoding, Available-Dictionary");
    }
}

fn a_delta_is_made_once_for_all_clients(setup: Setup) {
    let (_folder, certificate, server) = both(setup, |_| {});
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| delta(|| by_tls(&server, &certificate, NEW, &fields(&bundle(1)))));
        }
    });
    // Hashes of nothing make nothing, whoever sends them.
    for at in 0..20 {
        let answer = by_tls(&server, &certificate, NEW, &fields(&[at]));
        assert_eq!((answer.status, is_delta(&answer)), (200, false));
    }
    assert_eq!(server.stats().deltas_made, 1);
    assert!(server.stats().deltas_sent >= 8);
}

fn behind_middleware_it_is_the_same(setup: Setup) {
    let (folder, certificate) = (releases(), Certificate::new());
    let mut config = tuned(&folder, certificate.config(setup, TlsRecords::Own));
    let root = config.root.take().expect("it was set");
    let own = Middleware::after(|_, response| {
        response.try_header("X-Own", "1").expect("a field");
    });
    let routes = Routes::new().files("/app", root).middleware(own);
    let server = Server::routes(config, routes);
    swap(&folder, 2);
    let trusted = certificate.trusted(rustls::ALL_VERSIONS);
    let target = format!("/app{NEW}");
    let sent = delta(|| {
        let fields = fields(&bundle(1));
        TlsClient::connect(&server, &trusted).ask(request("GET", &target, &fields))
    });
    assert!(decoded(&bundle(1), &sent.body) == bundle(2));
    assert_eq!(
        (sent.field("x-own"), sent.expect_field("use-as-dictionary")),
        (Some("1"), "match=\"main.*.js\"")
    );
}
