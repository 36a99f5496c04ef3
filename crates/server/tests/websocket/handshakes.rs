//! Which requests get a WebSocket (RFC 6455 §4.2).

use gustnado::config::{Config, ForwardedFields};
use gustnado::task::sleep;
use gustnado::websocket::{CloseCode, Origins, WebSocket, WebSocketEndpoint, websocket};
use gustnado::{Request, Response, Routes, Status};

use std::time::Duration;

use crate::echo;
use crate::harness::client::{get, request};
use crate::harness::{Server, Setup};
use crate::peer::{ACCEPT, Peer, handshake};
use crate::serving;

on_every_server!(
    a_handshake_is_answered,
    a_request_that_is_no_handshake_is_told_what_to_do,
    keys_have_sixteen_bytes,
    another_version_is_told_the_right_one,
    pages_of_other_hosts_are_refused,
    pages_of_other_hosts_may_be_allowed,
    behind_a_trusted_proxy_the_host_is_what_it_was_asked_for,
    the_first_subprotocol_of_the_server_is_chosen,
    frames_may_come_with_the_handshake,
    a_program_may_answer_a_handshake_itself,
);

fn a_handshake_is_answered(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint);
    let (_, answer) = Peer::with_fields(&server, "/echo", "");
    assert_eq!(answer.field("upgrade"), Some("websocket"));
    assert_eq!(answer.field("sec-websocket-accept"), Some(ACCEPT));
    assert_eq!(answer.field("sec-websocket-extensions"), None);
    assert_eq!(answer.field("sec-websocket-protocol"), None);
}

fn a_request_that_is_no_handshake_is_told_what_to_do(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint);
    let answer = server.ask(get("/echo"));
    assert_eq!((answer.status, answer.field("upgrade")), (426, Some("websocket")));
    assert_eq!(server.ask(request("POST", "/echo", "Content-Length: 0\r\n")).status, 405);
}

fn keys_have_sixteen_bytes(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint);
    let with = |key: &str| {
        let fields = format!(
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n{key}"
        );
        server.ask(request("GET", "/echo", &fields)).status
    };
    assert_eq!(with(""), 400);
    assert_eq!(with("Sec-WebSocket-Key: x\r\n"), 400);
    assert_eq!(with("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ\r\n"), 400, "without its padding");
    assert_eq!(with("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZWFh\r\n"), 400, "18 bytes");
    let twice = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n".repeat(2);
    assert_eq!(with(&twice), 400);
}

fn another_version_is_told_the_right_one(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint);
    for version in ["", "Sec-WebSocket-Version: 8\r\n"] {
        let fields = format!("Upgrade: websocket\r\nConnection: Upgrade\r\n{version}");
        let answer = server.ask(request("GET", "/echo", &fields));
        assert_eq!((answer.status, answer.field("sec-websocket-version")), (426, Some("13")));
    }
}

fn pages_of_other_hosts_are_refused(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint);
    for (origin, status) in [
        ("https://gust.example", 101),
        ("http://GUST.example", 101),
        ("https://evil.example", 403),
        ("https://gust.example.evil.example", 403),
        ("https://gust.example:8443", 403),
        ("null", 403),
    ] {
        let mut client = server.connect();
        client.send(handshake("/echo", &format!("Origin: {origin}\r\n")));
        assert_eq!(client.read_head().status, status, "{origin}");
    }
}

fn pages_of_other_hosts_may_be_allowed(setup: Setup) {
    let also = Origins::Also(vec!["https://app.example".to_owned()]);
    let server = serving(setup, |endpoint| endpoint.origins(also));
    Peer::with_fields(&server, "/echo", "Origin: https://app.example\r\n");
    Peer::with_fields(&server, "/echo", "Origin: https://gust.example\r\n");
    let answer = server.ask(handshake("/echo", "Origin: https://evil.example\r\n"));
    assert_eq!(answer.status, 403);
    let server = serving(setup, |endpoint| endpoint.origins(Origins::Any));
    Peer::with_fields(&server, "/echo", "Origin: null\r\n");
}

fn behind_a_trusted_proxy_the_host_is_what_it_was_asked_for(setup: Setup) {
    let routes = || Routes::new().get("/echo", websocket(echo));
    let ask = |server: &Server, fields: &str| {
        let mut client = server.connect();
        client.send(handshake("/echo", fields));
        client.read_head().status
    };
    let of_page = |host: &str, more: &str| format!("Origin: https://{host}\r\n{more}");
    let forwarded = "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Host: www.example\r\n";
    // A host that anyone may write does not count.
    let server = Server::routes(setup.patient_config(), routes());
    assert_eq!(ask(&server, &of_page("www.example", forwarded)), 403);
    assert_eq!(ask(&server, &of_page("gust.example", forwarded)), 101);
    let trusting =
        Config { forwarded_allow_ips: vec!["127.0.0.1".to_owned()], ..setup.patient_config() };
    let server = Server::routes(trusting.clone(), routes());
    assert_eq!(ask(&server, &of_page("www.example", forwarded)), 101);
    assert_eq!(ask(&server, &of_page("gust.example", forwarded)), 403);
    assert_eq!(ask(&server, &of_page("gust.example", "")), 101, "it names no other host");
    let with_port = forwarded.to_owned() + "X-Forwarded-Proto: https\r\nX-Forwarded-Port: 8443\r\n";
    assert_eq!(ask(&server, &of_page("www.example:8443", &with_port)), 101);
    assert_eq!(ask(&server, &of_page("www.example", &with_port)), 403);
    let standard = Config { forwarded_fields: ForwardedFields::Forwarded, ..trusting };
    let server = Server::routes(standard, routes());
    let forwarded = "Forwarded: for=203.0.113.9;host=www.example;proto=https\r\n";
    assert_eq!(ask(&server, &of_page("www.example", forwarded)), 101);
    assert_eq!(ask(&server, &of_page("gust.example", forwarded)), 403);
}

fn the_first_subprotocol_of_the_server_is_chosen(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint.subprotocols(&["chat.v2", "chat.v1"]));
    for (offered, chosen) in [
        ("chat.v1, chat.v2", Some("chat.v2")),
        ("chat.v1", Some("chat.v1")),
        ("CHAT.v1", None),
        ("other", None),
    ] {
        let fields = format!("Sec-WebSocket-Protocol: {offered}\r\n");
        let (_, answer) = Peer::with_fields(&server, "/echo", &fields);
        assert_eq!(answer.field("sec-websocket-protocol"), chosen, "{offered}");
    }
}

fn frames_may_come_with_the_handshake(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint);
    let mut client = server.connect();
    let sent = [handshake("/echo", "").as_bytes(), &crate::peer::text("early")].concat();
    client.send(sent);
    assert_eq!(client.read_head().status, 101);
    assert_eq!(Peer { client }.text(), "early");
}

fn a_program_may_answer_a_handshake_itself(setup: Setup) {
    let endpoint = WebSocketEndpoint::undecided().subprotocols(&["v1"]);
    let handler = endpoint.with_acceptor(|acceptor| {
        move |request: Request| {
            let offer = acceptor.offer(&request);
            async move {
                let offer = match offer {
                    Ok(offer) => offer,
                    Err(response) => return response,
                };
                sleep(Duration::from_millis(5)).await;
                if request.raw_query() == Some("no") {
                    return Response::text("no").status(Status::FORBIDDEN);
                }
                let chosen = offer.subprotocol().map(|name| format!("{name}.1"));
                let base = Response::new(Status::UPGRADE_REQUIRED).header("X-Own", "1");
                offer.speaking(chosen.as_deref()).accept(base, async |mut socket: WebSocket| {
                    let said = socket.subprotocol().unwrap_or_else(|| "nothing".to_owned());
                    let sender = socket.sender();
                    assert!(sender.has_room());
                    _ = socket.send(said).await;
                    sender.close(CloseCode(4000), "enough");
                    assert!(socket.send("more").await.is_err());
                })
            }
        }
    });
    let server = Server::routes(setup.patient_config(), Routes::new().get("/echo", handler));
    let fields = "Sec-WebSocket-Protocol: v0, v1\r\n";
    let (mut peer, answer) = Peer::with_fields(&server, "/echo", fields);
    assert_eq!(
        (answer.field("x-own"), answer.field("sec-websocket-protocol")),
        (Some("1"), Some("v1.1"))
    );
    assert_eq!(peer.text(), "v1.1");
    peer.expect_close(4000);
    let refused = server.ask(handshake("/echo?no", ""));
    assert_eq!((refused.status, &*refused.body), (403, &b"no"[..]));
    // One that asks for none is told what there is.
    let answer = server.ask(get("/echo"));
    assert_eq!((answer.status, answer.field("upgrade")), (426, Some("websocket")));
}
