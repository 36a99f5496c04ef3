//! Connections that go on in another protocol, over TLS.

use std::io::{Read, Write};

use gustnado::config::TlsRecords;
use gustnado::{Request, Response, Routes, Tunnel};
use rustls::version::{TLS12, TLS13};

use super::client::{Certificate, TlsClient};
use crate::harness::client::request;
use crate::harness::echo::{Echo, echo};
use crate::harness::{Server, Setup};

on_every_server!(
    what_a_protocol_sends_and_receives_is_sealed,
    a_protocol_that_has_sent_all_says_so_in_order,
);

fn routes() -> Routes {
    let protocol =
        |_: &Request| Response::upgrade("echo", async |tunnel: Tunnel| _ = tunnel.run(Echo).await);
    Routes::new()
        .get("/protocol", protocol)
        .get("/function", |_: &Request| Response::upgrade("echo", echo))
}

fn each(setup: Setup, test: impl Fn(&mut TlsClient)) {
    for records in [TlsRecords::Rustls, TlsRecords::Own] {
        for version in [&TLS13, &TLS12] {
            let certificate = Certificate::new();
            let server = Server::routes(certificate.config(setup, records), routes());
            let trusted = certificate.trusted(&[version]);
            for path in ["/protocol", "/function"] {
                let mut client = TlsClient::connect(&server, &trusted);
                let fields = "Connection: Upgrade\r\nUpgrade: echo\r\n";
                client.send(request("GET", path, fields).as_bytes());
                let head = client.read_until("\r\n\r\n");
                assert!(head.starts_with(b"HTTP/1.1 101"), "{path}");
                test(&mut client);
            }
            server.wait_until_empty();
        }
    }
}

fn what_a_protocol_sends_and_receives_is_sealed(setup: Setup) {
    let bytes: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
    each(setup, |client| {
        for piece in bytes.chunks(10_000) {
            client.0.write_all(piece).expect("it is sent");
            let mut back = vec![0; piece.len()];
            client.0.read_exact(&mut back).expect("it comes back");
            assert!(back == piece, "the same");
        }
    });
}

fn a_protocol_that_has_sent_all_says_so_in_order(setup: Setup) {
    each(setup, |client| {
        client.send(b"the last");
        assert!(client.read_until("the last").ends_with(b"the last"));
        client.0.conn.send_close_notify();
        client.0.flush().expect("it is sent");
        // rustls reports an end without its alert.
        assert_eq!(client.read_to_end(), b"");
    });
}
