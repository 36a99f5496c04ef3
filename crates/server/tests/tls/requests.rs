//! The same messages as in plain HTTP, over TLS.

use std::io::{Read, Write};

use gustnado::config::{Config, TlsRecords};
use gustnado::{Request, Routes};
use rustls::version::{TLS12, TLS13};

use super::client::{Certificate, TlsClient};
use crate::harness::client::{get, post, request};
use crate::harness::{Folder, Server, Setup};

on_every_server!(
    requests_are_answered_on_one_connection,
    large_bodies_come_and_go_whole,
    files_are_sent_whole_and_in_parts,
    pipelined_requests_are_answered_in_order,
    a_connection_ends_in_order,
    a_request_in_small_records_is_read,
    a_record_that_may_not_come_gets_an_alert,
    an_end_that_comes_with_the_request_ends_the_connection_behind_the_response,
);

const RECORDS: [TlsRecords; 2] = [TlsRecords::Rustls, TlsRecords::Own];

fn echo() -> Routes {
    Routes::new()
        .get("/hello", |_: &Request| "Hello!")
        .post("/echo", |request: &Request| request.bytes().to_vec())
}

fn each(setup: Setup, test: impl Fn(&Server, &mut TlsClient)) {
    for records in RECORDS {
        for version in [&TLS13, &TLS12] {
            let certificate = Certificate::new();
            let config = certificate.config(setup, records);
            let config = Config { limit_body_bytes: 8 << 20, ..config };
            let server = Server::routes(config, echo());
            let mut client = TlsClient::connect(&server, &certificate.trusted(&[version]));
            test(&server, &mut client);
        }
    }
}

fn requests_are_answered_on_one_connection(setup: Setup) {
    each(setup, |server, client| {
        for _ in 0..3 {
            let answer = client.ask(get("/hello"));
            assert_eq!((answer.status, &*answer.body), (200, &b"Hello!"[..]));
        }
        let answer = client.ask(post("/echo", "some text"));
        assert_eq!((answer.status, &*answer.body), (200, &b"some text"[..]));
        assert_eq!(server.stats().requests, 4);
        assert_eq!(server.stats().handshakes_failed, 0);
    });
}

fn large_bodies_come_and_go_whole(setup: Setup) {
    let body: String = (0..3_000_000_u32).map(|at| char::from(b'a' + (at % 23) as u8)).collect();
    each(setup, |_, client| {
        let answer = client.ask(post("/echo", &body));
        assert!(answer.status == 200 && answer.body == body.as_bytes(), "{answer:?}");
    });
}

fn files_are_sent_whole_and_in_parts(setup: Setup) {
    let folder = Folder::new();
    let content: Vec<u8> = (0..5_000_000_u32).map(|at| (at % 251) as u8).collect();
    folder.file("large.bin", &content);
    folder.file("small.txt", "small");
    for records in RECORDS {
        let certificate = Certificate::new();
        let config = certificate.config(setup, records);
        let server = Server::start(Config { root: Some(folder.root()), ..config });
        let mut client = TlsClient::connect(&server, &certificate.trusted(&[&TLS13]));
        assert_eq!(client.ask(get("/small.txt")).body, b"small");
        assert!(client.ask(get("/large.bin")).body == content, "the whole file");
        let part = request("GET", "/large.bin", "Range: bytes=1000000-3999999\r\n");
        let answer = client.ask(part);
        assert_eq!(answer.status, 206);
        assert!(answer.body == content[1_000_000..4_000_000], "a part of it");
        assert_eq!(client.ask(get("/small.txt")).body, b"small");
    }
}

fn pipelined_requests_are_answered_in_order(setup: Setup) {
    each(setup, |_, client| {
        let requests = [get("/hello"), post("/echo", "first"), post("/echo", "second")].concat();
        client.send(requests.as_bytes());
        let received = client.read_until("second");
        let text = String::from_utf8(received).expect("text");
        let places = ["Hello!", "first", "second"].map(|word| text.find(word).expect(word));
        assert!(places.is_sorted(), "{text}");
    });
}

fn a_connection_ends_in_order(setup: Setup) {
    each(setup, |server, client| {
        client.send(request("GET", "/hello", "Connection: close\r\n").as_bytes());
        let received = client.read_to_end();
        assert!(received.ends_with(b"Hello!"));
        server.wait_until_empty();
    });
}

fn a_record_that_may_not_come_gets_an_alert(setup: Setup) {
    for (record, alert) in [
        (&[24, 3, 3, 0, 3, 1, 0, 0], rustls::AlertDescription::UnexpectedMessage),
        (&[23, 3, 3, 0x7f, 0xff, 1, 0, 0], rustls::AlertDescription::RecordOverflow),
    ] {
        each(setup, |_, client| {
            assert_eq!(client.ask(get("/hello")).status, 200);
            client.0.sock.write_all(record).expect("the server reads");
            let error = client.0.read(&mut [0; 10]).expect_err("an alert");
            let told = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
            assert_eq!(told, Some(&rustls::Error::AlertReceived(alert)), "{error}");
        });
    }
}

fn a_request_in_small_records_is_read(setup: Setup) {
    each(setup, |_, client| {
        for byte in get("/hello").as_bytes() {
            client.send(&[*byte]);
        }
        assert_eq!(client.answer().body, b"Hello!");
    });
}

/// RFC 8446 §6.1: `close_notify` ends one direction. The other one ends once the response is out,
/// and does not wait for the end of TCP.
fn an_end_that_comes_with_the_request_ends_the_connection_behind_the_response(setup: Setup) {
    each(setup, |server, client| {
        client.ask(get("/hello"));
        let connection = &mut client.0.conn;
        connection.writer().write_all(get("/hello").as_bytes()).expect("it has room");
        connection.send_close_notify();
        let mut records = Vec::new();
        while connection.wants_write() {
            connection.write_tls(&mut records).expect("memory does not fail");
        }
        client.0.sock.write_all(&records).expect("it is sent");
        assert!(client.read_to_end().ends_with(b"Hello!"));
        server.wait_until_empty();
    });
}
