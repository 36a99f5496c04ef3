//! The published test vectors of the ciphers, through the keys as records use them.

use super::keys::{Cipher, DirectionKeys};

/// One line of a file of vectors.
struct Vector {
    cipher: Cipher,
    key: Vec<u8>,
    iv: Vec<u8>,
    authenticated: Vec<u8>,
    content: Vec<u8>,
    /// With its tag.
    sealed: Vec<u8>,
    is_valid: bool,
}

impl Vector {
    fn parse(line: &str, is_gcm: bool) -> Self {
        let fields: Vec<&str> = line.split(' ').collect();
        let [key, iv, authenticated, content, sealed, tag, verdict] = fields[..] else {
            panic!("seven fields in {line:?}");
        };
        let key = bytes_of(key);
        let cipher = match (is_gcm, key.len()) {
            (true, 16) => Cipher::Aes128Gcm,
            (true, _) => Cipher::Aes256Gcm,
            (false, _) => Cipher::Chacha20Poly1305,
        };
        Self {
            cipher,
            key,
            iv: bytes_of(iv),
            authenticated: bytes_of(authenticated),
            content: bytes_of(content),
            sealed: [bytes_of(sealed), bytes_of(tag)].concat(),
            is_valid: verdict == "valid",
        }
    }

    /// Keys whose first record has the vector's nonce: its number is zero.
    fn keys(&self) -> DirectionKeys {
        DirectionKeys::from_key(self.cipher, &self.key, &self.iv, 0).expect("the lengths fit")
    }
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a hexadecimal digit");
    let byte = |pair: &[u8]| u8::try_from(digit(pair[0]) << 4 | digit(pair[1])).expect("a byte");
    if hex == "-" { Vec::new() } else { hex.as_bytes().chunks(2).map(byte).collect() }
}

#[test]
fn wycheproofs_vectors_are_sealed_and_opened_as_they_say() {
    let files = [
        (include_str!("vectors/aes-gcm.txt"), true, 133),
        (include_str!("vectors/chacha20-poly1305.txt"), false, 316),
    ];
    for (text, is_gcm, expected) in files {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let vectors: Vec<Vector> = lines.map(|line| Vector::parse(line, is_gcm)).collect();
        assert_eq!(vectors.len(), expected);
        for vector in vectors {
            let mut keys = vector.keys();
            let mut keys = keys.wake();
            let number = keys.next().expect("the key is fresh");
            let mut room = vec![0; vector.sealed.len()];
            let opened = keys.open(number, None, &vector.authenticated, &vector.sealed, &mut room);
            let content = opened.map(|bytes| &room[..bytes]);
            assert_eq!(content, vector.is_valid.then_some(&vector.content[..]));
            if !vector.is_valid {
                continue;
            }
            let mut keys = vector.keys();
            let mut keys = keys.wake();
            let number = keys.next().expect("the key is fresh");
            let mut sealed = Vec::new();
            // The last byte comes apart, as a record's type does.
            let (content, last) = vector.content.split_at(vector.content.len().saturating_sub(1));
            keys.seal(number, &vector.authenticated, (content, last), &mut sealed);
            assert_eq!(sealed, vector.sealed);
        }
    }
}
