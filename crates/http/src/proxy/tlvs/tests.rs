use super::super::{Decoded, ProxyHeader, decode};
use super::*;
use proptest::prelude::*;

const FIXED: usize = 16;
const ADDRESSES: [u8; 12] = [192, 0, 2, 1, 198, 51, 100, 2, 0, 80, 1, 187];

fn tlv(kind: u8, value: &[u8]) -> Vec<u8> {
    let len = u16::try_from(value.len()).expect("a short value");
    [&[kind][..], &len.to_be_bytes(), value].concat()
}

/// The value of the type for TLS.
fn of_tls(flags: u8, verified: u32, behind: &[u8]) -> Vec<u8> {
    tlv(TLS, &[&[flags][..], &verified.to_be_bytes(), behind].concat())
}

fn header(tlvs: &[u8]) -> Vec<u8> {
    let len = u16::try_from(ADDRESSES.len() + tlvs.len()).expect("a short block");
    [b"\r\n\r\n\0\r\nQUIT\n\x21\x11", &len.to_be_bytes()[..], &ADDRESSES, tlvs].concat()
}

fn info(header: &[u8]) -> Result<Option<Box<ProxyInfo>>, ProxyError> {
    decode(header).map(|decoded| match decoded {
        Decoded::Done(ProxyHeader { info, len, .. }) if len == header.len() => info,
        other => panic!("expected a header, got {other:?}"),
    })
}

/// Writes the checksum into a header whose TLV of it has zeroes at `at`.
fn sum_up(header: &mut [u8], at: usize) {
    let sum = bitwise(header);
    header[at..at + 4].copy_from_slice(&sum.to_be_bytes());
}

/// The same sum bit by bit, without a table.
fn bitwise(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            if sum & 1 == 1 { sum >> 1 ^ 0x82f6_3b78 } else { sum >> 1 }
        })
    })
}

#[test]
fn the_checksum_is_that_of_the_rfc() {
    // RFC 3720 §B.4, and the check value of every catalogue.
    assert_eq!(crc32c([0; 32].iter()), 0x8a91_36aa);
    assert_eq!(crc32c([0xff; 32].iter()), 0x62a8_ab43);
    assert_eq!(crc32c(b"123456789".iter()), 0xe306_9283);
}

#[test]
fn what_a_proxy_says_of_a_client_is_read() {
    let behind = [
        tlv(TLS_VERSION, b"TLSv1.3"),
        tlv(TLS_CN, b"client"),
        tlv(TLS_CIPHER, b"TLS_AES_128_GCM_SHA256"),
        tlv(0x24, b"sha256"),
    ];
    let list = [
        tlv(ALPN, b"h2"),
        tlv(AUTHORITY, b"shop.example"),
        tlv(UNIQUE_ID, b"\0\xff id"),
        tlv(0x30, b"a network namespace"),
        tlv(0x04, b"padding"),
        tlv(0xea, b"a cloud's own"),
        of_tls(IS_TLS | 0x02, 0, &behind.concat()),
    ];
    let info = info(&header(&list.concat())).expect("a header").expect("they are known");
    let tls = ProxyTls {
        version: Some("TLSv1.3".into()),
        cipher: Some("TLS_AES_128_GCM_SHA256".into()),
        client_name: Some("client".into()),
        has_certificate: true,
        is_verified: true,
    };
    let wanted = ProxyInfo {
        alpn: Some((*b"h2").into()),
        authority: Some("shop.example".into()),
        unique_id: Some((*b"\0\xff id").into()),
        tls: Some(tls),
    };
    assert_eq!(*info, wanted);
}

#[test]
fn a_header_that_says_nothing_known_holds_nothing() {
    for tlvs in [vec![], tlv(0x04, b""), tlv(0x30, b"net"), of_tls(0, 0, b"")] {
        assert_eq!(info(&header(&tlvs)), Ok(None));
    }
}

#[test]
fn a_certificate_counts_as_verified_only_if_one_was_shown() {
    for (flags, verified, wanted) in [
        (IS_TLS, 0, (false, false)),
        (IS_TLS | 0x02, 0, (true, true)),
        (IS_TLS | 0x04, 0, (true, true)),
        (IS_TLS | 0x06, 18, (true, false)),
        (IS_TLS | 0x02, 1 << 24, (true, false)),
    ] {
        let info = info(&header(&of_tls(flags, verified, b""))).expect("a header");
        let tls = info.expect("it is known").tls.expect("by TLS");
        assert_eq!((tls.has_certificate, tls.is_verified), wanted, "{flags:x} {verified}");
    }
}

#[test]
fn the_first_of_a_type_counts_and_wrong_text_does_not() {
    let authorities = [&b"one\xff"[..], b"two", b"three"];
    let tlvs = authorities.map(|value| tlv(AUTHORITY, value)).concat();
    let info = info(&header(&tlvs)).expect("a header").expect("it is known");
    assert_eq!(info.authority.as_deref(), Some("two"));
}

#[test]
fn a_malformed_list_is_refused() {
    for tlvs in [
        b"\x01".to_vec(),
        b"\x01\0".to_vec(),
        b"\x01\0\x02h".to_vec(),
        tlv(CRC32C, b"abc"),
        tlv(UNIQUE_ID, &[0; UNIQUE_ID_BYTES_MAX + 1]),
        tlv(TLS, b"\x01\0\0\0"),
        of_tls(IS_TLS, 0, b"\x21\0\x07TLSv1."),
    ] {
        assert_eq!(info(&header(&tlvs)), Err(ProxyError::Tlv), "{tlvs:?}");
    }
    assert!(info(&header(&tlv(UNIQUE_ID, &[0; UNIQUE_ID_BYTES_MAX]))).is_ok());
}

#[test]
fn a_proxy_that_speaks_for_itself_or_of_no_family_says_nothing() {
    for (command, family) in [(0x20, 0x11), (0x21, 0x00)] {
        let mut header = header(&[tlv(ALPN, b"h2"), b"\x01".to_vec()].concat());
        (header[12], header[13]) = (command, family);
        assert_eq!(info(&header), Ok(None));
    }
}

fn list() -> impl Strategy<Value = Vec<(u8, Vec<u8>)>> {
    let kind = prop_oneof![Just(ALPN), Just(AUTHORITY), Just(UNIQUE_ID), Just(0x04), 0x30_u8..];
    prop::collection::vec((kind, prop::collection::vec(any::<u8>(), 0..40)), 0..8)
}

proptest! {
    #[test]
    fn what_is_written_is_read_back_wherever_its_checksum_is(
        list in list(), place: prop::sample::Index, flipped: prop::sample::Index, bit in 0..8,
    ) {
        let mut tlvs: Vec<_> = list.iter().map(|(kind, value)| tlv(*kind, value)).collect();
        let place = place.index(tlvs.len() + 1);
        tlvs.insert(place, tlv(CRC32C, &[0; 4]));
        let at = FIXED + ADDRESSES.len() + tlvs[..place].concat().len() + HEAD_BYTES;
        let mut header = header(&tlvs.concat());
        sum_up(&mut header, at);

        let first = |kind| list.iter().find(|(other, _)| *other == kind).map(|(_, value)| value);
        let found = info(&header).expect("a header").map_or_else(ProxyInfo::default, |info| *info);
        prop_assert_eq!(found.alpn.as_deref(), first(ALPN).map(Vec::as_slice));
        prop_assert_eq!(found.unique_id.as_deref(), first(UNIQUE_ID).map(Vec::as_slice));
        let mut authorities = list.iter().filter(|(kind, _)| *kind == AUTHORITY);
        let authority = authorities.find_map(|(_, value)| std::str::from_utf8(value).ok());
        prop_assert_eq!(found.authority.as_deref(), authority);

        // A bit that is not as it was sent, in an address or in the sum itself.
        let addresses = FIXED..FIXED + ADDRESSES.len();
        let places: Vec<_> = addresses.chain(at..at + 4).collect();
        header[*flipped.get(&places)] ^= 1_u8 << bit;
        prop_assert_eq!(info(&header), Err(ProxyError::Checksum));
    }

    #[test]
    fn no_list_is_too_much_for_it(tlvs in prop::collection::vec(any::<u8>(), 0..300)) {
        match info(&header(&tlvs)) {
            Ok(_) | Err(ProxyError::Tlv | ProxyError::Checksum) => {}
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}
