//! The keys of one direction, and how a record's nonce follows from its number.
//!
//! Asleep, a direction keeps its secret, key, IV and the number of the next record, in memory that
//! is left out of core dumps and wiped afterwards. The cipher is
//! set up when a record comes, and dropped afterwards: it takes a third of a microsecond, and would
//! hold a kilobyte for each connection.

use gustnado_tasks::{SECRET_BYTES, SecretBytes};
use zeroize::Zeroize;

use crate::crypto::hkdf::{self, KeyType, Prk};
use crate::crypto::{CipherKey, aead};

const IV_BYTES: usize = 12;
const KEY_BYTES_MAX: usize = 32;
const SECRET_BYTES_MAX: usize = 48;
/// Where key and IV are behind the secret.
const KEY_AT: usize = SECRET_BYTES_MAX;
const IV_AT: usize = KEY_AT + KEY_BYTES_MAX;
const _: () = assert!(IV_AT + IV_BYTES <= SECRET_BYTES);

/// Records under one key of AES-GCM, after which the key is to be replaced (RFC 8446 §5.5 allows
/// 2^24.5).
const GCM_RECORDS_MAX: u64 = 1 << 24;

/// A cipher, and the hash that its keys come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cipher {
    /// `TLS_AES_128_GCM_SHA256` and the like of TLS 1.2.
    Aes128Gcm,
    /// `TLS_AES_256_GCM_SHA384` and the like of TLS 1.2.
    Aes256Gcm,
    /// `TLS_CHACHA20_POLY1305_SHA256` and the like of TLS 1.2.
    Chacha20Poly1305,
}

impl Cipher {
    fn algorithm(self) -> &'static aead::Algorithm {
        match self {
            Self::Aes128Gcm => &aead::AES_128_GCM,
            Self::Aes256Gcm => &aead::AES_256_GCM,
            Self::Chacha20Poly1305 => &aead::CHACHA20_POLY1305,
        }
    }

    fn hkdf(self) -> hkdf::Algorithm {
        match self {
            Self::Aes256Gcm => hkdf::HKDF_SHA384,
            Self::Aes128Gcm | Self::Chacha20Poly1305 => hkdf::HKDF_SHA256,
        }
    }

    fn key_bytes(self) -> usize {
        match self {
            Self::Aes128Gcm => 16,
            Self::Aes256Gcm | Self::Chacha20Poly1305 => 32,
        }
    }

    fn secret_bytes(self) -> usize {
        match self {
            Self::Aes256Gcm => 48,
            Self::Aes128Gcm | Self::Chacha20Poly1305 => 32,
        }
    }

    fn is_gcm(self) -> bool {
        self != Self::Chacha20Poly1305
    }

    /// Returns how many records one key may seal or open.
    fn records_max(self) -> u64 {
        if self.is_gcm() { GCM_RECORDS_MAX } else { u64::MAX }
    }
}

/// The number of a record was already used, or would be the last one of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyExhausted;

/// The keys of one direction of a connection.
///
/// There is no way to use the number of a record twice: [`AwakeKeys::next`] consumes it.
pub(crate) struct DirectionKeys {
    cipher: Cipher,
    /// The traffic secret of TLS 1.3, which the next key comes from; the key; the IV.
    secrets: SecretBytes,
    /// The number of the next record.
    record: u64,
}

impl DirectionKeys {
    /// Takes the traffic secret of a TLS 1.3 direction.
    ///
    /// - `derived`: its key and IV, where they are known.
    /// - `record`: the number of the next record: how many the handshake has sent under it.
    pub(crate) fn from_secret(
        cipher: Cipher,
        secret: &[u8],
        derived: Option<(&[u8], &[u8])>,
        record: u64,
    ) -> Option<Self> {
        if secret.len() != cipher.secret_bytes() {
            return None;
        }
        let mut keys = match derived {
            Some((key, iv)) => Self::from_key(cipher, key, iv, record)?,
            None => Self { cipher, secrets: SecretBytes::new(), record },
        };
        keys.secrets[..secret.len()].copy_from_slice(secret);
        if derived.is_none() || cfg!(debug_assertions) {
            keys.derive();
        }
        debug_assert!(
            derived.is_none_or(|(key, iv)| keys.has(key, iv)),
            "they were derived from another secret"
        );
        Some(keys)
    }

    /// Takes the key and IV of a direction. Those of TLS 1.2 last as long as the connection.
    pub(crate) fn from_key(cipher: Cipher, key: &[u8], iv: &[u8], record: u64) -> Option<Self> {
        if key.len() != cipher.key_bytes() || iv.len() != IV_BYTES {
            return None;
        }
        let mut keys = Self { cipher, secrets: SecretBytes::new(), record };
        keys.secrets[KEY_AT..][..key.len()].copy_from_slice(key);
        keys.secrets[IV_AT..][..IV_BYTES].copy_from_slice(iv);
        Some(keys)
    }

    fn has(&self, key: &[u8], iv: &[u8]) -> bool {
        self.secrets[KEY_AT..][..key.len()] == *key && self.secrets[IV_AT..][..iv.len()] == *iv
    }

    /// Replaces the secret by the next one (RFC 8446 §7.2), and begins to count anew.
    pub(crate) fn update(&mut self) {
        let mut next = [0; SECRET_BYTES_MAX];
        let bytes = self.cipher.secret_bytes();
        self.expand(b"traffic upd", &mut next[..bytes]);
        self.secrets[..SECRET_BYTES_MAX].copy_from_slice(&next);
        next.zeroize();
        self.record = 0;
        self.derive();
    }

    /// Returns whether the key is near its end and should be replaced.
    pub(crate) fn is_worn(&self) -> bool {
        self.record >= self.cipher.records_max() / 2
    }

    /// Derives key and IV from the secret (RFC 8446 §7.3).
    fn derive(&mut self) {
        let (mut key, mut iv) = ([0; KEY_BYTES_MAX], [0; IV_BYTES]);
        let bytes = self.cipher.key_bytes();
        self.expand(b"key", &mut key[..bytes]);
        self.expand(b"iv", &mut iv);
        self.secrets[KEY_AT..IV_AT].copy_from_slice(&key);
        self.secrets[IV_AT..][..IV_BYTES].copy_from_slice(&iv);
        key.zeroize();
        iv.zeroize();
    }

    /// HKDF-Expand-Label with an empty context (RFC 8446 §7.1).
    fn expand(&self, label: &[u8], out: &mut [u8]) {
        struct Length(usize);
        impl KeyType for Length {
            fn len(&self) -> usize {
                self.0
            }
        }

        const PREFIX: &[u8] = b"tls13 ";
        let length = u16::try_from(out.len()).expect("no secret is that long").to_be_bytes();
        let label_bytes = u8::try_from(PREFIX.len() + label.len()).expect("labels are short");
        let secret = &self.secrets[..self.cipher.secret_bytes()];
        Prk::new_less_safe(self.cipher.hkdf(), secret)
            .expand(&[&length, &[label_bytes], PREFIX, label, &[0]], Length(out.len()))
            .and_then(|expanded| expanded.fill(out))
            .expect("the output is shorter than 255 hashes");
    }

    /// Sets the cipher up for some records.
    pub(crate) fn wake(&mut self) -> AwakeKeys<'_> {
        let key = &self.secrets[KEY_AT..][..self.cipher.key_bytes()];
        AwakeKeys { key: CipherKey::new(self.cipher.algorithm(), key), sleeping: self }
    }
}

// Never derived: a snapshot or a log must not hold a secret.
impl std::fmt::Debug for DirectionKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirectionKeys")
            .field("cipher", &self.cipher)
            .field("record", &self.record)
            .finish_non_exhaustive()
    }
}

/// Keys with a cipher that is set up.
pub(crate) struct AwakeKeys<'a> {
    key: CipherKey,
    sleeping: &'a mut DirectionKeys,
}

/// The number of one record, which can be used once.
pub(crate) struct RecordNumber(u64);

impl RecordNumber {
    /// Returns the number as records of TLS 1.2 authenticate it.
    pub(crate) fn to_be_bytes(&self) -> [u8; 8] {
        self.0.to_be_bytes()
    }
}

impl AwakeKeys<'_> {
    /// Takes the number of the next record.
    ///
    /// # Errors
    /// The key may not be used for another record.
    pub(crate) fn next(&mut self) -> Result<RecordNumber, KeyExhausted> {
        let record = self.sleeping.record;
        if record >= self.sleeping.cipher.records_max() {
            return Err(KeyExhausted);
        }
        self.sleeping.record += 1;
        Ok(RecordNumber(record))
    }

    /// Returns whether records of TLS 1.2 carry eight bytes of their nonce.
    pub(crate) fn has_explicit_nonce(&self) -> bool {
        self.sleeping.cipher.is_gcm()
    }

    /// Returns the nonce of a record: the IV and its number, by exclusive or (RFC 8446 §5.3).
    fn nonce(&self, number: &RecordNumber) -> [u8; IV_BYTES] {
        let mut nonce = [0; IV_BYTES];
        nonce.copy_from_slice(&self.sleeping.secrets[IV_AT..][..IV_BYTES]);
        for (byte, number) in nonce[4..].iter_mut().zip(number.0.to_be_bytes()) {
            *byte ^= number;
        }
        nonce
    }

    /// Returns the nonce's last eight bytes, which records of TLS 1.2 with GCM begin with.
    pub(crate) fn explicit_nonce(&self, number: &RecordNumber) -> [u8; 8] {
        self.nonce(number)[4..].try_into().expect("eight bytes")
    }

    /// Seals both parts of a content behind what `out` holds, and the tag.
    ///
    /// Consumes the number: a record is sealed once.
    #[expect(clippy::needless_pass_by_value, reason = "a number is used once")]
    pub(crate) fn seal(
        &self,
        number: RecordNumber,
        authenticated: &[u8],
        content: (&[u8], &[u8]),
        out: &mut Vec<u8>,
    ) {
        self.key.seal(self.nonce(&number), authenticated, content, out);
    }

    /// Opens `sealed`, whose last bytes are its tag, into `room`. Returns the length of the
    /// plaintext.
    ///
    /// - `explicit`: what a record of TLS 1.2 with GCM says its nonce ends with.
    #[expect(clippy::needless_pass_by_value, reason = "a number is used once")]
    pub(crate) fn open(
        &self,
        number: RecordNumber,
        explicit: Option<[u8; 8]>,
        authenticated: &[u8],
        sealed: &[u8],
        room: &mut [u8],
    ) -> Option<usize> {
        let mut nonce = self.nonce(&number);
        if let Some(explicit) = explicit {
            nonce[4..].copy_from_slice(&explicit);
        }
        self.key.open(nonce, authenticated, sealed, room)
    }
}
