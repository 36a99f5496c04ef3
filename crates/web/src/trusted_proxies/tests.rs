use super::*;
use crate::request::tests::of;

/// What is told of a request with these field lines that came from `peer`: client, scheme, host.
fn told(trusted: &str, fields: ForwardedFields, peer: &str, lines: &str) -> String {
    let networks: Vec<String> = trusted.split(',').map(str::to_owned).collect();
    let trusted = Networks::of(&networks).expect("each is well-formed");
    let trusted_proxies = TrustedProxies { trusted, fields };
    let lines = lines.replace('|', "\r\n");
    let request = of(&format!("GET / HTTP/1.1\r\nHost: own.example\r\n{lines}\r\n\r\n"));
    let peer = match peer {
        "unix" => Endpoint::Unix("".into()),
        address => Endpoint::Tcp(address.parse().expect("an address of this test")),
    };
    let scheme = trusted_proxies.scheme(request.view(), &peer).unwrap_or("-");
    let host = trusted_proxies.host(request.view(), &peer).unwrap_or("-".into());
    format!("{} {scheme} {host}", trusted_proxies.client(request.view(), peer))
}

fn of_entries(peer: &str, lines: &str) -> String {
    told("10.0.0.0/8,unix", ForwardedFields::XForwarded, peer, lines)
}

fn of_elements(peer: &str, lines: &str) -> String {
    told("10.0.0.0/8,unix", ForwardedFields::Forwarded, peer, lines)
}

#[test]
fn a_peer_that_is_not_believed_says_nothing() {
    let all = "X-Forwarded-For: 192.0.2.9|X-Forwarded-Proto: https|X-Forwarded-Host: a|\
               Forwarded: for=192.0.2.9;proto=https;host=a";
    assert_eq!(of_entries("192.0.2.1:5", all), "192.0.2.1:5 - -");
    assert_eq!(of_elements("192.0.2.1:5", all), "192.0.2.1:5 - -");
}

#[test]
fn the_nearest_that_is_not_believed_is_the_client() {
    for (lines, wanted) in [
        ("X-Forwarded-For: 192.0.2.9", "192.0.2.9:0 - -"),
        ("X-Forwarded-For: 1.1.1.1, 192.0.2.9", "192.0.2.9:0 - -"),
        ("X-Forwarded-For: 192.0.2.9, 10.0.0.7,10.0.0.8", "192.0.2.9:0 - -"),
        (
            "x-forwarded-for: 1.1.1.1|X-Forwarded-For: 192.0.2.9|x-Forwarded-For: 10.1.1.1",
            "192.0.2.9:0 - -",
        ),
        ("X-Forwarded-For: 10.0.0.3, 10.0.0.7", "10.0.0.3:0 - -"),
        ("X-Forwarded-For: [2001:db8::1]:99", "[2001:db8::1]:99 - -"),
        ("X-Forwarded-For: 192.0.2.9:1234", "192.0.2.9:1234 - -"),
        // Garbage ends the way: before it stands the last one that is known.
        ("X-Forwarded-For: 192.0.2.9, unknown", "10.0.0.1:5 - -"),
        ("X-Forwarded-For: 192.0.2.9, _x, 10.0.0.7", "10.0.0.7:0 - -"),
        ("X-Forwarded-For:", "10.0.0.1:5 - -"),
        ("Accept: */*", "10.0.0.1:5 - -"),
        // The other kind of fields is nobody's.
        ("Forwarded: for=192.0.2.9;proto=https", "10.0.0.1:5 - -"),
    ] {
        assert_eq!(of_entries("10.0.0.1:5", lines), wanted, "{lines}");
    }
    assert_eq!(of_entries("unix", "X-Forwarded-For: 1.1.1.1, 192.0.2.9"), "192.0.2.9:0 - -");
    let all =
        told("*", ForwardedFields::XForwarded, "1.1.1.1:5", "X-Forwarded-For: a, 2.2.2.2, ::1");
    assert_eq!(all, "2.2.2.2:0 - -");
}

/// A proxy that does not say who asked it is not the client: it may be let in where nobody else is.
#[test]
fn who_is_not_named_is_nobody() {
    for (fields, lines, wanted) in [
        (ForwardedFields::XForwarded, "X-Forwarded-For: 192.0.2.9, unknown", None),
        (ForwardedFields::XForwarded, "X-Forwarded-For: 192.0.2.9, _x, 10.0.0.7", None),
        (ForwardedFields::XForwarded, "X-Forwarded-For: unknown, 192.0.2.9", Some("192.0.2.9:0")),
        (ForwardedFields::XForwarded, "X-Forwarded-For: 10.0.0.3, 10.0.0.7", Some("10.0.0.3:0")),
        (ForwardedFields::XForwarded, "Accept: */*", Some("10.0.0.1:5")),
        (ForwardedFields::Forwarded, "Forwarded: for=192.0.2.9, for=unknown;proto=https", None),
        (ForwardedFields::Forwarded, "Forwarded: for=1.1.1.1;host=\", for=192.0.2.9", None),
        (
            ForwardedFields::Forwarded,
            "Forwarded: for=1.1.1.1;host=\"|Forwarded: for=192.0.2.9",
            Some("192.0.2.9:0"),
        ),
        (ForwardedFields::Forwarded, "Accept: */*", Some("10.0.0.1:5")),
    ] {
        let trusted = Networks::of(&["10.0.0.0/8".to_owned()]).expect("well-formed");
        let trusted_proxies = TrustedProxies { trusted, fields };
        let lines = lines.replace('|', "\r\n");
        let request = of(&format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n"));
        let peer = Endpoint::Tcp("10.0.0.1:5".parse().expect("an address"));
        let client = trusted_proxies.known_client(request.view(), peer);
        assert_eq!(client.map(|client| client.to_string()).as_deref(), wanted, "{lines}");
    }
}

#[test]
fn scheme_and_host_are_of_the_same_hop() {
    for (lines, wanted) in [
        ("X-Forwarded-For: 192.0.2.9|X-Forwarded-Proto: https", "192.0.2.9:0 https -"),
        ("X-Forwarded-For: 192.0.2.9|X-Forwarded-Proto: wss", "192.0.2.9:0 https -"),
        ("X-Forwarded-For: 192.0.2.9|X-Forwarded-Proto: gopher", "192.0.2.9:0 - -"),
        ("X-Forwarded-For: 192.0.2.9|X-Forwarded-Proto: https, http", "192.0.2.9:0 http -"),
        (
            "X-Forwarded-For: 1.1.1.1, 192.0.2.9|X-Forwarded-Proto: https, http",
            "192.0.2.9:0 http -",
        ),
        (
            "X-Forwarded-For: 192.0.2.9, 10.0.0.7|X-Forwarded-Proto: https, http",
            "192.0.2.9:0 https -",
        ),
        ("X-Forwarded-For: 192.0.2.9, 10.0.0.7|X-Forwarded-Proto: https", "192.0.2.9:0 https -"),
        ("X-Forwarded-Proto: https", "10.0.0.1:5 https -"),
        ("X-Forwarded-Host: a.example", "10.0.0.1:5 - a.example"),
        (
            "X-Forwarded-Host: b.example, a.example:81|X-Forwarded-Port: 80, 443",
            "10.0.0.1:5 - a.example:81",
        ),
        ("X-Forwarded-Host: a b", "10.0.0.1:5 - -"),
        ("X-Forwarded-Port: 8443", "10.0.0.1:5 - own.example:8443"),
        ("X-Forwarded-Port: 443|X-Forwarded-Proto: https", "10.0.0.1:5 https own.example"),
        ("X-Forwarded-Port: 443", "10.0.0.1:5 - own.example:443"),
        ("X-Forwarded-Host: [::1]|X-Forwarded-Port: 81", "10.0.0.1:5 - [::1]:81"),
        ("X-Forwarded-Port: 81x", "10.0.0.1:5 - -"),
    ] {
        assert_eq!(of_entries("10.0.0.1:5", lines), wanted, "{lines}");
    }
}

#[test]
fn forwarded_is_read_in_the_same_way() {
    for (lines, wanted) in [
        ("Forwarded: for=192.0.2.9;proto=https;host=a.example", "192.0.2.9:0 https a.example"),
        (
            "Forwarded: for=1.1.1.1;proto=http, for=192.0.2.9;proto=https, for=10.0.0.7;host=b",
            "192.0.2.9:0 https -",
        ),
        (
            "Forwarded: for=1.1.1.1|Forwarded: For=\"[2001:db8::1]:99\";Host=\"a\\:1\"",
            "[2001:db8::1]:99 - a:1",
        ),
        ("Forwarded: proto=https", "10.0.0.1:5 https -"),
        ("Forwarded: for=192.0.2.9, for=unknown;proto=https", "10.0.0.1:5 https -"),
        // A client that begins a quoted text takes nothing in but its own.
        ("Forwarded: for=1.1.1.1;host=\"|Forwarded: for=192.0.2.9", "192.0.2.9:0 - -"),
        ("Forwarded: for=1.1.1.1;host=\", for=192.0.2.9", "10.0.0.1:5 - -"),
        ("X-Forwarded-For: 192.0.2.9|X-Forwarded-Proto: https", "10.0.0.1:5 - -"),
    ] {
        assert_eq!(of_elements("10.0.0.1:5", lines), wanted, "{lines}");
    }
}
