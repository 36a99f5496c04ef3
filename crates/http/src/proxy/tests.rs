use super::*;
use proptest::prelude::*;

fn done(input: &[u8]) -> (usize, Ends<'_>) {
    match decode(input) {
        Ok(Decoded::Done(ProxyHeader { len, ends, .. })) => (len, ends),
        other => panic!("expected a header, got {other:?} of {:?}", input.escape_ascii()),
    }
}

/// A header of version 2 as a proxy writes it.
fn binary(command: u8, family: u8, block: &[u8]) -> Vec<u8> {
    let len = u16::try_from(block.len()).expect("a short block");
    [BINARY_START, &[command, family], &len.to_be_bytes(), block].concat()
}

fn block_of(source: SocketAddr, destination: SocketAddr) -> (u8, Vec<u8>) {
    let octets = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let ports = [source.port().to_be_bytes(), destination.port().to_be_bytes()].concat();
    let block = [octets(source.ip()), octets(destination.ip()), ports].concat();
    (if source.is_ipv4() { 0x11 } else { 0x21 }, block)
}

fn text_of(source: SocketAddr, destination: SocketAddr) -> String {
    let family = if source.is_ipv4() { "TCP4" } else { "TCP6" };
    let (from, to) = (source.ip(), destination.ip());
    format!("PROXY {family} {from} {to} {} {}\r\n", source.port(), destination.port())
}

fn inet(source: &str, destination: &str) -> Ends<'static> {
    let parse = |text: &str| text.parse().expect("an address of this test");
    Ends::Inet { source: parse(source), destination: parse(destination) }
}

#[test]
fn a_line_says_whose_the_connection_is() {
    let line = b"PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\nGET /";
    assert_eq!(done(line), (line.len() - 5, inet("192.0.2.1:56324", "198.51.100.2:443")));
    let line = b"PROXY TCP6 2001:db8::1 ::ffff:1.2.3.4 0 65535\r\n";
    assert_eq!(done(line).1, inet("[2001:db8::1]:0", "[::ffff:1.2.3.4]:65535"));
}

#[test]
fn an_unknown_family_of_version_1_keeps_the_ends_and_ignores_the_rest() {
    let longest = format!("PROXY UNKNOWN {}\r\n", "f".repeat(91));
    assert_eq!(longest.len(), TEXT_BYTES_MAX);
    for line in ["PROXY UNKNOWN\r\n", "PROXY UNKNOWN x y z\r\n", &longest] {
        assert_eq!(done(line.as_bytes()), (line.len(), Ends::Own));
    }
}

#[test]
fn a_line_against_the_rules_is_refused() {
    for said in [
        "TCP4 1.2.3.4 1.2.3.4 1",
        "TCP4 1.2.3.4 1.2.3.4 1 2 3",
        "TCP4 1.2.3.4  1.2.3.4 1 2",
        "TCP4 1.2.3.4 1.2.3.4 01 2",
        "TCP4 1.2.3.4 1.2.3.4 +1 2",
        "TCP4 1.2.3.4 1.2.3.4 1 65536",
        "TCP4 ::1 ::1 1 2",
        "TCP6 1.2.3.4 1.2.3.4 1 2",
        "TCP4 1.2.3 1.2.3.4 1 2",
        "TCP5 1.2.3.4 1.2.3.4 1 2",
        "tcp4 1.2.3.4 1.2.3.4 1 2",
        "TCP4 01.2.3.4 1.2.3.4 1 2",
        "",
        " TCP4 1.2.3.4 1.2.3.4 1 2",
        "TCP4 1.2.3.4 1.2.3.4 1 2 ",
        "UNKNOWNX",
        "TCP4 1.2.3.4 \n 1 2",
    ] {
        let line = format!("PROXY {said}\r\n");
        assert_eq!(decode(line.as_bytes()), Err(ProxyError::Text), "{said:?}");
    }
}

#[test]
fn a_line_without_an_end_is_refused_at_its_limit() {
    let endless = [TEXT_START, b"UNKNOWN ", &[b'x'; TEXT_BYTES_MAX]].concat();
    assert_eq!(decode(&endless[..TEXT_BYTES_MAX - 1]), Ok(Decoded::NeedMore));
    let too_large = Err(ProxyError::TooLarge { limit_bytes: TEXT_BYTES_MAX });
    assert_eq!(decode(&endless[..TEXT_BYTES_MAX]), too_large);
}

#[test]
fn what_is_no_header_is_known_by_its_first_wrong_byte() {
    for input in ["G", "PROXX", "PROXY\t", "\r\n\r\n\0\r\nQUIt", "proxy "] {
        assert_eq!(decode(input.as_bytes()), Err(ProxyError::Missing), "{input:?}");
    }
    assert_eq!(decode(b""), Ok(Decoded::NeedMore));
}

#[test]
fn a_proxy_that_speaks_for_itself_keeps_the_ends() {
    // (Of the family too, nothing counts.)
    for header in [binary(0x20, 0x00, b""), binary(0x20, 0xff, b"anything")] {
        assert_eq!(done(&header), (header.len(), Ends::Own));
    }
    assert_eq!(done(&binary(0x21, 0x00, b"tlv")).1, Ends::Own);
}

#[test]
fn paths_come_without_the_zeroes_behind_them() {
    let mut block = vec![0; 2 * PATH_BYTES];
    block.extend(b"\x04\0\x06zeroes");
    block[..4].copy_from_slice(b"/one");
    block[PATH_BYTES..2 * PATH_BYTES].fill(b'x');
    let header = binary(0x21, 0x31, &block);
    let ends = Ends::Unix { source: b"/one", destination: &[b'x'; PATH_BYTES] };
    assert_eq!(done(&header), (header.len(), ends));
    let short = binary(0x21, 0x31, &block[..2 * PATH_BYTES - 1]);
    assert_eq!(decode(&short), Err(ProxyError::Short));
}

#[test]
fn a_version_a_command_and_a_family_that_nobody_knows_are_refused() {
    for (command, family) in [(0x11, 0x11), (0x22, 0x11), (0x21, 0x10), (0x21, 0x13), (0x21, 0x41)]
    {
        let header = binary(command, family, &[0; 300]);
        assert_eq!(decode(&header), Err(ProxyError::Unknown), "{command:x} {family:x}");
    }
    assert_eq!(decode(&binary(0x21, 0x11, &[0; 11])), Err(ProxyError::Short));
    assert_eq!(decode(&binary(0x21, 0x21, &[0; 35])), Err(ProxyError::Short));
}

#[test]
fn a_long_header_is_refused_before_it_comes() {
    let mut block = [0; BINARY_BYTES_MAX - BINARY_FIXED];
    let padding = u16::try_from(block.len() - 15).expect("a short one").to_be_bytes();
    block[12..15].copy_from_slice(&[4, padding[0], padding[1]]);
    let longest = binary(0x21, 0x11, &block);
    assert_eq!(done(&longest).0, BINARY_BYTES_MAX);
    let longer = binary(0x21, 0x11, &[0; BINARY_BYTES_MAX - BINARY_FIXED + 1]);
    let too_large = Err(ProxyError::TooLarge { limit_bytes: BINARY_BYTES_MAX });
    assert_eq!(decode(&longer[..BINARY_FIXED]), too_large);
}

fn address() -> impl Strategy<Value = SocketAddr> {
    any::<(Ipv4Addr, u16)>().prop_map(SocketAddr::from)
}

fn address_6() -> impl Strategy<Value = SocketAddr> {
    any::<(Ipv6Addr, u16)>().prop_map(SocketAddr::from)
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        ends in prop_oneof![(address(), address()), (address_6(), address_6())],
        padding in prop::collection::vec(any::<u8>(), 0..50),
        behind in prop::collection::vec(any::<u8>(), 0..50),
    ) {
        let (source, destination) = ends;
        let (family, mut block) = block_of(source, destination);
        let padded = u8::try_from(padding.len()).expect("a short one");
        block.extend([&[4, 0, padded][..], &padding].concat());
        for header in [text_of(source, destination).into_bytes(), binary(0x21, family, &block)] {
            let input = [&header[..], &behind].concat();
            prop_assert_eq!(done(&input), (header.len(), Ends::Inet { source, destination }));
            for end in 0..header.len() {
                prop_assert_eq!(decode(&header[..end]), Ok(Decoded::NeedMore));
            }
        }
    }

    #[test]
    fn no_bytes_are_too_much_for_it(
        start in prop_oneof![
            Just(&b""[..]), Just(TEXT_START), Just(BINARY_START), Just(&b"PROXY TCP4 "[..]),
            Just(&b"\r\n\r\n\0\r\nQUIT\n\x21\x11"[..]),
        ],
        behind in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let input = [start, &behind].concat();
        let whole = decode(&input);
        // A verdict on some bytes is the verdict on all that begins with them.
        for end in 0..input.len() {
            match decode(&input[..end]) {
                Ok(Decoded::NeedMore) => {}
                verdict => prop_assert_eq!(verdict, whole.clone()),
            }
        }
        if let Ok(Decoded::Done(ProxyHeader { len, .. })) = whole {
            prop_assert!(len <= input.len() && len <= BINARY_BYTES_MAX);
        }
    }
}
