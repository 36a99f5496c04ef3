use super::*;
use proptest::prelude::*;

fn shown(text: &str) -> Option<String> {
    node(text.as_bytes()).map(|address| address.to_string())
}

#[test]
fn an_entry_names_an_address_with_or_without_a_port() {
    for (text, address) in [
        ("192.0.2.1", "192.0.2.1:0"),
        ("192.0.2.1:8080", "192.0.2.1:8080"),
        ("2001:db8::1", "[2001:db8::1]:0"),
        ("[2001:db8::1]", "[2001:db8::1]:0"),
        ("[2001:db8::1]:80", "[2001:db8::1]:80"),
        ("::ffff:192.0.2.1", "192.0.2.1:0"),
        ("[::ffff:192.0.2.1]:80", "192.0.2.1:80"),
    ] {
        assert_eq!(shown(text).as_deref(), Some(address), "{text}");
    }
}

#[test]
fn what_names_no_address_is_none() {
    for text in [
        "",
        "unknown",
        "_hidden",
        "localhost",
        "192.0.2.1:",
        "192.0.2.1:x",
        "192.0.2.1:65536",
        "192.0.2.1:+1",
        "192.0.2",
        "192.0.2.256",
        "[192.0.2.1]",
        "[::1",
        "[::1]x",
        "[::1]:",
        "::1%lo",
        "192.0.2.1 192.0.2.2",
        "1",
    ] {
        assert_eq!(shown(text), None, "{text:?}");
    }
    assert_eq!(node(b"\xff"), None);
}

#[test]
fn entries_come_without_white_space_and_empty_ones() {
    let found: Vec<_> = entries(b" a ,b,, \t,c d,").collect();
    assert_eq!(found, [&b"a"[..], b"b", b"c d"]);
    assert_eq!(entries(b"").count(), 0);
}

#[test]
fn schemes_are_two_and_hosts_are_checked() {
    let schemes = ["HTTP", "ws", "https", "WSS"].map(|text| scheme(text.as_bytes()));
    assert_eq!(schemes, [Some("http"), Some("http"), Some("https"), Some("https")]);
    assert_eq!((scheme(b"ftp"), scheme(b""), scheme(b"https ")), (None, None, None));
    assert_eq!(host(b"a.example:8443"), Some("a.example:8443"));
    assert_eq!((host(b"a/b"), host(b""), host(b"a@b"), host(b"a b")), (None, None, None, None));
    assert_eq!(
        (port(b"443"), port(b""), port(b"+1"), port(b"65536")),
        (Some(443), None, None, None)
    );
}

fn told(value: &str) -> Option<Vec<String>> {
    let text = |part: Option<Cow<'_, [u8]>>| {
        part.map_or_else(|| "-".to_owned(), |part| part.escape_ascii().to_string())
    };
    let told = |element: Element<'_>| {
        [text(element.from), text(element.proto), text(element.host)].join(" ")
    };
    Some(elements(value.as_bytes())?.into_iter().map(told).collect())
}

#[test]
fn elements_are_read_as_the_rfc_writes_them() {
    let found = told("for=\"_gazonk\"").expect("it is well-formed");
    assert_eq!(found, ["_gazonk - -"]);
    let found = told("For=\"[2001:db8:cafe::17]:4711\"").expect("it is well-formed");
    assert_eq!(found, ["[2001:db8:cafe::17]:4711 - -"]);
    let found = told("for=192.0.2.60;proto=http;by=203.0.113.43, for=10.0.0.1 ; host=a:1")
        .expect("it is well-formed");
    assert_eq!(found, ["192.0.2.60 http -", "10.0.0.1 - a:1"]);
    let found = told(" , for=a;;, ,by=x;unknown=\"q\\\"\\\\,;=\" ").expect("it is well-formed");
    assert_eq!(found, ["a - -", "- - -"]);
    let found = told("for=\"a\\b\"").expect("it is well-formed");
    assert_eq!(found, ["ab - -"]);
    assert_eq!(told(""), Some(Vec::new()));
}

#[test]
fn a_malformed_line_says_nothing() {
    for value in [
        "for",
        "for=",
        "=a",
        "for=\"a",
        "for=\"a\\",
        "for=a b",
        "for=\"a\"b",
        "for=a;for=b",
        "f r=a",
        "for=a\"",
        "\"for\"=a",
        "for=\"evil, for=192.0.2.1",
        "for=192.0.2.9, x=\", for=\"[2001:db8::2]:80\"",
    ] {
        assert_eq!(told(value), None, "{value}");
    }
}

proptest! {
    #[test]
    fn addresses_are_read_back_as_they_are_written(ip: IpAddr, given in 1..=u16::MAX) {
        let canonical = SocketAddr::new(ip.to_canonical(), given);
        prop_assert_eq!(node(SocketAddr::new(ip, given).to_string().as_bytes()), Some(canonical));
        let alone = SocketAddr::new(ip.to_canonical(), 0);
        prop_assert_eq!(node(ip.to_string().as_bytes()), Some(alone));
    }

    #[test]
    fn quoted_texts_are_read_back_as_they_are_written(text in "[ -~]{0,20}", behind in 0..3_usize) {
        let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
        let line = format!("proto=\"{quoted}\"{}", [", for=1", ";for=1", " "][behind]);
        let found = elements(line.as_bytes()).expect("it is well-formed");
        prop_assert_eq!(found[0].proto.as_deref(), Some(text.as_bytes()));
        prop_assert_eq!(found.len(), if behind == 0 { 2 } else { 1 });
    }

    #[test]
    fn no_bytes_are_too_much_for_them(bytes in "[fort=,;\"\\\\ :\\[\\]0-9._]{0,60}") {
        let bytes = bytes.as_bytes();
        _ = (node(bytes), host(bytes), port(bytes), scheme(bytes), entries(bytes).count());
        _ = elements(bytes);
    }
}
