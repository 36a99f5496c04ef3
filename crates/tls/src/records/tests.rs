use super::*;

fn secrets(cipher: Cipher, version: TlsVersion, record: u64) -> (Secrets, Secrets) {
    let bytes = match cipher {
        Cipher::Aes256Gcm => 48,
        Cipher::Aes128Gcm | Cipher::Chacha20Poly1305 => 32,
    };
    let key_bytes = if cipher == Cipher::Aes128Gcm { 16 } else { 32 };
    let direction = |fill: u8| match version {
        TlsVersion::V13 => DirectionSecret::V13(vec![fill; bytes], record, None),
        TlsVersion::V12 => {
            let keys = KeyAndIv { key: vec![fill; key_bytes], iv: [fill; 12] };
            DirectionSecret::V12(keys, record)
        }
    };
    let side = |read, write, is_client| {
        let (read, write) = (direction(read), direction(write));
        Secrets { cipher, read, write, is_client }
    };
    (side(1, 2, true), side(2, 1, false))
}

/// Two ends of a connection.
fn pair(cipher: Cipher, version: TlsVersion) -> (Records, Records) {
    let (one, other) = secrets(cipher, version, 0);
    (Records::new(&one).expect("the lengths fit"), Records::new(&other).expect("the lengths fit"))
}

fn every_kind() -> impl Iterator<Item = (Cipher, TlsVersion)> {
    let ciphers = [Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::Chacha20Poly1305];
    ciphers
        .into_iter()
        .flat_map(|cipher| [TlsVersion::V12, TlsVersion::V13].map(|version| (cipher, version)))
}

fn sealed(records: &mut Records, content: &[u8], record_bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    records.seal(content, record_bytes, &mut out).expect("the key is fresh");
    out
}

/// Opens all of `bytes`.
fn open(
    records: &mut Records,
    bytes: &[u8],
    now_ms: u64,
) -> Result<(Vec<u8>, Opened), RecordError> {
    let mut room = vec![0; bytes.len()];
    let opened = records.open(bytes, &mut room, now_ms)?;
    room.truncate(opened.content);
    Ok((room, opened))
}

/// Opens what is known to be right, and returns its content.
fn opened(records: &mut Records, bytes: &[u8]) -> Vec<u8> {
    open(records, bytes, 0).expect("nothing was changed").0
}

fn refused(records: &mut Records, bytes: &[u8], now_ms: u64) -> RecordError {
    open(records, bytes, now_ms).expect_err("it is wrong")
}

fn handshake(records: &mut Records, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let version = records.version;
    seal_record(version, &mut records.write.wake(), HANDSHAKE, message, &mut out)
        .expect("the key is fresh");
    out
}

#[test]
fn what_one_end_seals_the_other_opens_in_order() {
    for (cipher, version) in every_kind() {
        let (mut one, mut other) = pair(cipher, version);
        let content: Vec<u8> = (0..40_000_u32).map(|at| at.to_le_bytes()[0]).collect();
        let bytes = sealed(&mut one, &content, CONTENT_BYTES_MAX);
        let (found, opened) = open(&mut other, &bytes, 0).expect("nothing was changed");
        let all = Opened { taken: bytes.len(), content: content.len(), is_end: false };
        assert_eq!(opened, all);
        assert!(found == content, "{cipher:?} {version:?}");
    }
}

#[test]
fn a_stream_cut_at_any_byte_opens_to_the_same() {
    let (mut one, _) = pair(Cipher::Aes128Gcm, TlsVersion::V13);
    let bytes = sealed(&mut one, b"the first content and the second", 9);
    for cut in 0..=bytes.len() {
        let (_, mut other) = pair(Cipher::Aes128Gcm, TlsVersion::V13);
        let (mut content, mut held) = (Vec::new(), Vec::new());
        for part in [&bytes[..cut], &bytes[cut..]] {
            held.extend_from_slice(part);
            let (found, opened) = open(&mut other, &held, 0).expect("nothing was changed");
            content.extend_from_slice(&found);
            held.drain(..opened.taken);
        }
        assert_eq!(content, b"the first content and the second", "cut at {cut}");
        assert!(held.is_empty());
    }
}

#[test]
fn a_record_that_does_not_fit_waits() {
    let (mut one, mut other) = pair(Cipher::Aes128Gcm, TlsVersion::V13);
    let bytes = sealed(&mut one, &[b'x'; 200], 100);
    let record = bytes.len() / 2;
    let mut room = vec![0; record + 50];
    let opened = other.open(&bytes, &mut room, 0).expect("nothing was changed");
    assert_eq!(opened, Opened { taken: record, content: 100, is_end: false });
    let opened = other.open(&bytes[record..], &mut room, 0).expect("it goes on");
    assert_eq!(opened.content, 100);
}

#[test]
fn a_changed_bit_anywhere_is_refused() {
    for (cipher, version) in every_kind() {
        let (mut one, _) = pair(cipher, version);
        let bytes = sealed(&mut one, b"hello", 100);
        for at in HEAD_BYTES..bytes.len() {
            let (_, mut other) = pair(cipher, version);
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(refused(&mut other, &changed, 0), RecordError::BadMac, "byte {at}");
        }
    }
}

#[test]
fn a_record_that_comes_twice_is_refused() {
    let (mut one, mut other) = pair(Cipher::Chacha20Poly1305, TlsVersion::V13);
    let bytes = sealed(&mut one, b"hello", 100);
    assert_eq!(opened(&mut other, &bytes), b"hello");
    assert_eq!(refused(&mut other, &bytes, 0), RecordError::BadMac);
}

#[test]
fn keys_are_replaced_both_ways() {
    let (mut one, mut other) = pair(Cipher::Aes256Gcm, TlsVersion::V13);
    let mut bytes = handshake(&mut one, &[KEY_UPDATE, 0, 0, 1, 1]);
    one.write.update();
    bytes.extend_from_slice(&sealed(&mut one, b"under the new key", 100));
    assert_eq!(opened(&mut other, &bytes), b"under the new key");
    // The other end was asked to do the same: it says so first.
    let answer = sealed(&mut other, b"and so is this", 100);
    assert_eq!(opened(&mut one, &answer), b"and so is this");
    let next = other.write.wake().next().expect("the key is fresh");
    assert_eq!(next.to_be_bytes(), [0, 0, 0, 0, 0, 0, 0, 1]);
}

#[test]
fn a_peer_may_replace_its_key_once_a_second() {
    let (mut one, mut other) = pair(Cipher::Aes128Gcm, TlsVersion::V13);
    for now_ms in [5_000, 6_000] {
        let bytes = handshake(&mut one, &[KEY_UPDATE, 0, 0, 1, 0]);
        one.write.update();
        assert!(open(&mut other, &bytes, now_ms).is_ok());
    }
    let bytes = handshake(&mut one, &[KEY_UPDATE, 0, 0, 1, 0]);
    assert_eq!(refused(&mut other, &bytes, 6_999), RecordError::TooMany("key updates"));
}

#[test]
fn other_handshake_messages_are_refused() {
    for (cipher, version) in every_kind() {
        let (mut one, mut other) = pair(cipher, version);
        let hello = handshake(&mut one, &[1, 0, 0, 0]);
        let unexpected = RecordError::Unexpected { kind: HANDSHAKE };
        assert_eq!(refused(&mut other, &hello, 0), unexpected);
    }
}

#[test]
fn an_orderly_end_is_told_from_a_fatal_alert() {
    for (cipher, version) in every_kind() {
        let (mut one, mut other) = pair(cipher, version);
        let mut bytes = sealed(&mut one, b"last", 100);
        one.close(&mut bytes).expect("the key is fresh");
        let whole = bytes.len();
        bytes.extend_from_slice(b"what follows is not looked at");
        let (content, opened) = open(&mut other, &bytes, 0).expect("an orderly end");
        assert_eq!((content, opened.taken, opened.is_end), (b"last".to_vec(), whole, true));

        let mut bytes = Vec::new();
        other.alert(RecordError::BadMac, &mut bytes).expect("the key is fresh");
        assert_eq!(refused(&mut one, &bytes, 0), RecordError::Alert(20));
    }
}

#[test]
fn padding_is_removed_and_padding_alone_is_refused() {
    let (mut one, mut other) = pair(Cipher::Aes128Gcm, TlsVersion::V13);
    let bytes = padded(&mut one, b"hi\x17\0\0\0\0");
    assert_eq!(opened(&mut other, &bytes), b"hi");
    let bytes = padded(&mut one, &[0; 20]);
    assert_eq!(refused(&mut other, &bytes, 0), RecordError::Unexpected { kind: 0 });
    // RFC 8446 §5.4: padding, too, is within the limit of a record.
    for (bytes, is_opened) in [(CONTENT_BYTES_MAX + 1, true), (CONTENT_BYTES_MAX + 2, false)] {
        let (mut one, mut other) = pair(Cipher::Aes128Gcm, TlsVersion::V13);
        let mut inner = b"hi\x17".to_vec();
        inner.resize(bytes, 0);
        let bytes = padded(&mut one, &inner);
        assert_eq!(open(&mut other, &bytes, 0).is_ok(), is_opened);
    }
}

/// Seals what is inside of a record, its type and its padding included.
fn padded(records: &mut Records, inner: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let head = record_head(APPLICATION_DATA, inner.len() + TAG_BYTES);
    out.extend_from_slice(&head);
    let mut keys = records.write.wake();
    let number = keys.next().expect("the key is fresh");
    keys.seal(number, &head, (inner, &[]), &mut out);
    out
}

#[test]
fn a_key_update_may_come_in_parts_with_nothing_between() {
    let update = [KEY_UPDATE, 0, 0, 1, 0];
    for at in 1..update.len() {
        let (mut one, mut other) = pair(Cipher::Aes128Gcm, TlsVersion::V13);
        let (first, rest) = update.split_at(at);
        let mut bytes = handshake(&mut one, first);
        bytes.extend_from_slice(&handshake(&mut one, rest));
        one.write.update();
        bytes.extend_from_slice(&sealed(&mut one, b"under the new key", 100));
        assert_eq!(opened(&mut other, &bytes), b"under the new key");

        let (mut one, mut other) = pair(Cipher::Aes128Gcm, TlsVersion::V13);
        let mut bytes = handshake(&mut one, first);
        bytes.extend_from_slice(&sealed(&mut one, b"between", 100));
        let unexpected = RecordError::Unexpected { kind: APPLICATION_DATA };
        assert_eq!(refused(&mut other, &bytes, 0), unexpected);
    }
}

#[test]
fn a_key_update_has_one_of_two_values_and_is_the_last_of_its_record() {
    let (mut one, mut other) = pair(Cipher::Aes128Gcm, TlsVersion::V13);
    let bytes = handshake(&mut one, &[KEY_UPDATE, 0, 0, 1, 2]);
    assert_eq!(refused(&mut other, &bytes, 0).alert(), Some(47));
    let (mut one, mut other) = pair(Cipher::Aes128Gcm, TlsVersion::V13);
    let bytes = handshake(&mut one, &[KEY_UPDATE, 0, 0, 1, 0, KEY_UPDATE]);
    assert_eq!(refused(&mut other, &bytes, 0), RecordError::Unexpected { kind: HANDSHAKE });
    // A long one is refused before it is there.
    let (mut one, mut other) = pair(Cipher::Aes128Gcm, TlsVersion::V13);
    let bytes = handshake(&mut one, &[KEY_UPDATE, 1, 0, 0, 0, 0]);
    assert_eq!(refused(&mut other, &bytes, 0), RecordError::Unexpected { kind: HANDSHAKE });
}

#[test]
fn a_client_lets_late_tickets_pass_in_parts_too() {
    // The client reads as the first of a pair.
    let (mut client, mut server) = pair(Cipher::Aes128Gcm, TlsVersion::V13);
    let mut ticket = vec![4, 0, 1, 0];
    ticket.resize(4 + 256, b't');
    let mut bytes = handshake(&mut server, &[ticket.clone(), ticket.clone()].concat());
    bytes.extend_from_slice(&handshake(&mut server, &ticket[..100]));
    bytes.extend_from_slice(&handshake(&mut server, &ticket[100..]));
    bytes.extend_from_slice(&sealed(&mut server, b"content", 100));
    assert_eq!(opened(&mut client, &bytes), b"content");
    let bytes = handshake(&mut client, &ticket);
    assert_eq!(refused(&mut server, &bytes, 0), RecordError::Unexpected { kind: HANDSHAKE });
}

#[test]
fn empty_records_in_a_row_are_bounded() {
    let (mut one, mut other) = pair(Cipher::Aes128Gcm, TlsVersion::V13);
    let empty = |records: &mut Records| {
        let mut out = Vec::new();
        let version = records.version;
        seal_record(version, &mut records.write.wake(), APPLICATION_DATA, &[], &mut out)
            .expect("the key is fresh");
        out
    };
    for _ in 0..EMPTY_IN_A_ROW_MAX {
        assert!(opened(&mut other, &empty(&mut one)).is_empty());
    }
    let one_more = empty(&mut one);
    assert_eq!(refused(&mut other, &one_more, 0), RecordError::TooMany("empty records"));
}

#[test]
fn heads_are_checked_before_their_bytes_are_waited_for() {
    let too_long = [APPLICATION_DATA, 3, 3, 0x41, 1];
    assert_eq!(record_bytes(&too_long), Err(RecordError::TooLong { bytes: 16_641 }));
    assert_eq!(record_bytes(b"GET /"), Err(RecordError::Unexpected { kind: b'G' }));
    assert_eq!(record_bytes(&[APPLICATION_DATA, 3, 3, 0x41]), Ok(None));
    assert_eq!(record_bytes(&[APPLICATION_DATA, 3, 3, 0x41, 0]), Ok(Some(16_645)));
}

#[test]
fn a_worn_key_of_tls_13_is_replaced_and_one_of_tls_12_ends_the_connection() {
    let (one, other) = secrets(Cipher::Aes128Gcm, TlsVersion::V13, (1 << 23) + 1);
    let mut one = Records::new(&one).expect("the lengths fit");
    let mut other = Records::new(&other).expect("the lengths fit");
    let bytes = sealed(&mut one, b"hello", 100);
    assert_eq!(opened(&mut other, &bytes), b"hello", "the update comes first");

    let (one, _) = secrets(Cipher::Aes128Gcm, TlsVersion::V12, 1 << 24);
    let mut one = Records::new(&one).expect("the lengths fit");
    assert_eq!(one.seal(b"hello", 100, &mut Vec::new()), Err(RecordError::KeyExhausted));
}

/// The client's traffic secret of RFC 8448 §3 and its first record.
#[test]
fn the_trace_of_rfc_8448_opens() {
    let secret = bytes_of("9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5");
    let record = bytes_of(concat!(
        "1703030043a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5b46b395bd54a9a",
        "20441e2b62974e1f5a6292a2977014bd1e3deae63aeebb21694915e4",
    ));
    let secrets = Secrets {
        cipher: Cipher::Aes128Gcm,
        read: DirectionSecret::V13(secret, 0, None),
        write: DirectionSecret::V13(vec![7; 32], 0, None),
        is_client: false,
    };
    let mut server = Records::new(&secrets).expect("the lengths fit");
    let expected: Vec<u8> = (0..50).collect();
    assert_eq!(opened(&mut server, &record), expected);
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digit =
        |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    hex.as_bytes()
        .chunks(2)
        .map(|pair| digit(pair[0]).expect("hex") << 4 | digit(pair[1]).expect("hex"))
        .collect()
}
