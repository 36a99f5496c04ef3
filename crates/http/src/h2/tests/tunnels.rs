//! Requests for tunnels: CONNECT (RFC 9113 §8.5), and CONNECT with a protocol (RFC 8441).

use super::*;

const CHAT: &[(&str, &str)] = &[
    (":method", "CONNECT"),
    (":protocol", "websocket"),
    (":scheme", "https"),
    (":path", "/chat?room=1"),
    (":authority", "x.test"),
];

const PLAIN: &[(&str, &str)] = &[(":method", "CONNECT"), (":authority", "x.test:443")];

#[test]
fn the_setting_says_that_protocols_are_taken() {
    let talk = Talk::silent();
    let entry = [&setting::ENABLE_CONNECT_PROTOCOL.to_be_bytes()[..], &1_u32.to_be_bytes()];
    assert!(talk.out.windows(6).any(|bytes| bytes == entry.concat()));
}

#[test]
fn a_tunnel_is_asked_for_by_a_path_or_an_authority() {
    let mut talk = Talk::begun();
    talk.headers(1, 0, CHAT).frame(kind::DATA, 0, 1, b"hello");
    talk.headers(3, 0, PLAIN).frame(kind::DATA, flag::END_STREAM, 3, b"hello");
    talk.headers(5, flag::END_STREAM, &[CHAT, &[("cookie", "a=b")]].concat());
    assert_eq!(
        talk.run(),
        Ok([
            "1 CONNECT websocket /chat?room=1 [host=x.test]",
            "1 data 5",
            "3 CONNECT x.test:443 [host=x.test:443]",
            "3 data 5 end",
            "5 CONNECT websocket /chat?room=1 [host=x.test|cookie=a=b] end",
        ]
        .map(str::to_owned)
        .to_vec())
    );
    assert_eq!(talk.resets(), []);
}

#[test]
fn a_protocol_belongs_to_a_whole_connect() {
    let with = |extra: &[(&'static str, &'static str)]| [CHAT, extra].concat();
    let change = |name: &str, value: &'static str| -> Vec<_> {
        CHAT.iter().map(|field| if field.0 == name { (field.0, value) } else { *field }).collect()
    };
    let without =
        |name: &str| CHAT.iter().copied().filter(|field| field.0 != name).collect::<Vec<_>>();
    for fields in [
        without(":protocol"),
        without(":scheme"),
        without(":path"),
        without(":authority"),
        change(":method", "GET"),
        change(":method", "OPTIONS"),
        change(":protocol", ""),
        change(":protocol", "web socket"),
        change(":path", "*"),
        change(":path", "x.test:443"),
        change(":authority", "u@x"),
        with(&[(":protocol", "websocket")]),
        with(&[("content-length", "5")]),
        with(&[("connection", "upgrade")]),
        [PLAIN, &[(":path", "/")]].concat(),
        [PLAIN, &[(":scheme", "https")]].concat(),
        [PLAIN, &[("content-length", "5")]].concat(),
        vec![(":method", "CONNECT"), (":authority", "x.test")],
    ] {
        let mut talk = Talk::begun();
        talk.headers(1, 0, &fields).get(3);
        let seen = talk.run();
        assert_eq!(seen, Ok(vec!["3 GET /a?b [host=x.test] end".to_owned()]), "{fields:?}");
        assert_eq!(talk.resets(), [(1, ErrorCode::ProtocolError)], "{fields:?}");
    }
}

#[test]
fn nothing_but_data_follows() {
    for fields in [CHAT, PLAIN] {
        let mut talk = Talk::begun();
        talk.headers(1, 0, fields).headers(1, flag::END_STREAM, &[("x-sum", "1")]).get(3);
        let seen = talk.run().expect("the connection goes on");
        assert_eq!(seen[1..], ["1 reset PROTOCOL_ERROR", "3 GET /a?b [host=x.test] end"]);
        assert_eq!(talk.resets(), [(1, ErrorCode::ProtocolError)]);
    }
}

#[test]
fn short_messages_are_no_flood_on_a_tunnel() {
    let send = |fields: &[(&'static str, &'static str)], bytes: &[u8]| {
        let mut talk = Talk::begun();
        talk.headers(1, 0, fields);
        for _ in 0..3_000 {
            talk.frame(kind::DATA, 0, 1, bytes);
        }
        talk.run()
    };
    assert_eq!(send(CHAT, b"12345678").expect("the connection goes on").len(), 3_001);
    assert!(send(CHAT, b"").is_err(), "nothing is no message");
    let upload = [(":method", "POST"), (":scheme", "https"), (":path", "/"), (":authority", "x")];
    assert!(send(&upload, b"12345678").is_err(), "a body that trickles is one");
}
