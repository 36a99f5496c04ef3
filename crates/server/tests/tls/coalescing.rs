//! A client of HTTP/2 that sends requests for several sites on one connection (RFC 9113 §9.1.1), as
//! browsers do, and asks again elsewhere where it is told to.

use std::io::Read;
use std::sync::Arc;

use gustnado_http::h2::{ErrorCode, H2Client, H2ClientEvent, H2ClientLimits};
use rustls::ClientConfig;
use rustls::version::{TLS12, TLS13};

use super::authority::ClientOf;
use super::client::TlsClient;
use super::sites::Sites;
use crate::harness::Setup;

on_every_server!(a_site_that_wants_certificates_sends_coalesced_requests_elsewhere);

/// A connection that requests for any host are sent on.
struct Coalescing {
    tls: TlsClient,
    core: H2Client<usize>,
    unread: Vec<u8>,
}

impl Coalescing {
    fn connect(sites: &Sites, name: &'static str, config: &Arc<ClientConfig>) -> Self {
        let mut tls = TlsClient::connect_to(&sites.server, name, config);
        let mut out = Vec::new();
        let core = H2Client::new(H2ClientLimits::default(), &mut out);
        tls.send(&out);
        assert_eq!(tls.0.conn.alpn_protocol(), Some(&b"h2"[..]));
        Self { tls, core, unread: Vec::new() }
    }

    /// Asks each host for its page, all at once. Returns their statuses and texts.
    fn ask(&mut self, hosts: &[&str]) -> Vec<(u16, String)> {
        let mut out = Vec::new();
        for (at, host) in hosts.iter().enumerate() {
            self.core.open((false, true), at, &mut out, |encoder, out| {
                encoder.request_line(("GET", true), (host.as_bytes(), b"/"), false, out);
            });
        }
        self.tls.send(&out);
        let mut answers = vec![(0, String::new()); hosts.len()];
        while self.core.open_streams() > 0 {
            self.read(&mut answers);
        }
        answers
    }

    fn read(&mut self, answers: &mut [(u16, String)]) {
        let mut piece = [0; 16 << 10];
        let count = self.tls.0.read(&mut piece).expect("more");
        assert!(count > 0, "the connection has ended");
        self.unread.extend_from_slice(&piece[..count]);
        let (input, mut used, mut out) = (std::mem::take(&mut self.unread), 0, Vec::new());
        loop {
            let next = self.core.next(&input[used..], 0, &mut out);
            let (more, event) = next.expect("it keeps to the rules");
            used += more;
            let (id, is_end) = match event {
                None => break,
                Some(H2ClientEvent::Response { id, head, is_end }) => {
                    let at = self.core.stream(id).expect("it is open").state;
                    answers[at].0 = head.status();
                    (id, is_end)
                }
                Some(H2ClientEvent::Data { id, bytes, is_end }) => {
                    let at = self.core.stream(id).expect("it is open").state;
                    answers[at].1 += std::str::from_utf8(bytes).expect("text");
                    (id, is_end)
                }
                Some(H2ClientEvent::Window) => continue,
                Some(other) => panic!("{other:?}"),
            };
            if is_end {
                _ = self.core.close(id, ErrorCode::NoError, &mut out);
            }
        }
        self.unread = input[used..].to_vec();
        self.tls.send(&out);
    }
}

fn a_site_that_wants_certificates_sends_coalesced_requests_elsewhere(setup: Setup) {
    let sites = Sites::start(setup, false);
    for versions in [&[&TLS13][..], &[&TLS12]] {
        let of = ClientOf::Authority(&sites.clients);
        let mut config = of.config(&sites.authority, versions);
        config.alpn_protocols = vec![b"h2".to_vec()];
        let config = Arc::new(config);
        let mut client = Coalescing::connect(&sites, "a.test", &config);
        let hosts = ["a.test", "x.b.test", "a.test", "X.B.test.:443", "usual.test"];
        let answers = client.ask(&hosts);
        let statuses: Vec<_> = answers.iter().map(|(status, _)| *status).collect();
        assert_eq!(statuses, [200, 421, 200, 421, 200], "{answers:?}");
        assert_eq!((&*answers[0].1, &*answers[2].1, &*answers[4].1), ("a 0", "a 0", "usual 0"));
        // What has come of `b` says nothing of its pages, and the connection goes on.
        assert!(!answers[1].1.contains("b 0"), "{answers:?}");
        assert_eq!(client.ask(&["a.test"]), [(200, "a 0".to_owned())]);
        // Elsewhere it shows its certificate, and nothing is wanted there that was not shown.
        let mut client = Coalescing::connect(&sites, "x.b.test", &config);
        let both = client.ask(&["x.b.test", "a.test"]);
        assert_eq!(both, [(200, "b 1".to_owned()), (200, "a 1".to_owned())]);
    }
    assert_eq!(sites.server.stats().connections_accepted, 4);
}
