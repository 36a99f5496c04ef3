//! The library of ciphers, hashes, random bytes and handshakes: aws-lc, or ring in a build that has
//! only that. All of this crate takes them from here.

#[cfg(not(any(feature = "tls-aws-lc", feature = "tls-ring")))]
compile_error!(
    "TLS needs a library of ciphers: the cargo feature `tls` of gustnado, or `tls-ring`"
);

#[cfg(feature = "tls-aws-lc")]
use aws_lc_rs as library;
#[cfg(not(feature = "tls-aws-lc"))]
use ring as library;

#[cfg(feature = "tls-aws-lc")]
pub(crate) use rustls::crypto::aws_lc_rs as handshakes;
#[cfg(not(feature = "tls-aws-lc"))]
pub(crate) use rustls::crypto::ring as handshakes;

use library::aead::{Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use rustls::CipherSuite;
use rustls::crypto::CryptoProvider;

pub(crate) use library::{aead, digest, hkdf};
pub(crate) use tickets::TicketCipher;

/// Bytes of an authentication tag, which all three ciphers of records have.
pub(crate) const TAG_BYTES: usize = 16;

/// Returns what handshakes are made with.
///
/// AES-128-GCM comes before AES-256-GCM: its suites hash by SHA-256, for which CPUs have
/// instructions. With SHA-384, for which few have, a handshake takes a quarter more of the server's
/// time.
pub(crate) fn provider() -> CryptoProvider {
    let mut provider = handshakes::default_provider();
    let is_longer =
        |suite: CipherSuite| suite.as_str().is_none_or(|name| !name.contains("AES_128"));
    provider.cipher_suites.sort_by_key(|suite| is_longer(suite.suite()));
    provider
}

/// Fills memory with random bytes. `None`: the system gives none.
#[cfg(feature = "tls-aws-lc")]
pub(crate) fn fill_random(bytes: &mut [u8]) -> Option<()> {
    library::rand::fill(bytes).ok()
}

/// Fills memory with random bytes. `None`: the system gives none.
#[cfg(not(feature = "tls-aws-lc"))]
pub(crate) fn fill_random(bytes: &mut [u8]) -> Option<()> {
    use library::rand::{SecureRandom, SystemRandom};
    SystemRandom::new().fill(bytes).ok()
}

/// A cipher of records that is set up.
pub(crate) struct CipherKey(LessSafeKey);

impl CipherKey {
    /// - `key`: as long as the algorithm's keys are.
    pub(crate) fn new(algorithm: &'static aead::Algorithm, key: &[u8]) -> Self {
        let key = UnboundKey::new(algorithm, key).expect("the key has its length");
        Self(LessSafeKey::new(key))
    }

    /// Seals `plaintext` behind what `out` holds, with `behind` as its last bytes, and the tag.
    ///
    /// - `nonce`: was not used with this key before.
    pub(crate) fn seal(
        &self,
        nonce: [u8; NONCE_LEN],
        authenticated: &[u8],
        (plaintext, behind): (&[u8], &[u8]),
        out: &mut Vec<u8>,
    ) {
        let (nonce, aad) = (Nonce::assume_unique_for_key(nonce), Aad::from(authenticated));
        let begins = out.len();
        #[cfg(feature = "tls-aws-lc")]
        let sealed = {
            out.resize(begins + plaintext.len() + behind.len() + TAG_BYTES, 0);
            let (sealed, end) = out[begins..].split_at_mut(plaintext.len());
            self.0.seal_out_of_place_scatter(nonce, aad, plaintext, sealed, behind, end)
        };
        #[cfg(not(feature = "tls-aws-lc"))]
        let sealed = {
            out.reserve(plaintext.len() + behind.len() + TAG_BYTES);
            out.extend_from_slice(plaintext);
            out.extend_from_slice(behind);
            let tag = self.0.seal_in_place_separate_tag(nonce, aad, &mut out[begins..]);
            tag.map(|tag| out.extend_from_slice(tag.as_ref()))
        };
        sealed.expect("a record is far below the cipher's limit");
    }

    /// Opens `sealed`, whose last bytes are its tag, into `room`. Returns the length of the
    /// plaintext; `None` if the tag is not that of the bytes, and then the room holds nothing that
    /// may be used.
    pub(crate) fn open(
        &self,
        nonce: [u8; NONCE_LEN],
        authenticated: &[u8],
        sealed: &[u8],
        room: &mut [u8],
    ) -> Option<usize> {
        let (nonce, aad) = (Nonce::assume_unique_for_key(nonce), Aad::from(authenticated));
        let len = sealed.len().checked_sub(TAG_BYTES)?;
        let (sealed, tag) = sealed.split_at(len);
        let room = &mut room[..len];
        #[cfg(feature = "tls-aws-lc")]
        let opened = self.0.open_separate_gather(nonce, aad, sealed, tag, room).ok();
        #[cfg(not(feature = "tls-aws-lc"))]
        let opened = {
            room.copy_from_slice(sealed);
            let tag = tag.try_into().ok()?;
            self.0.open_in_place_separate_tag(nonce, aad, tag, room, 0..).ok()
        };
        opened.is_some().then_some(len)
    }
}

/// Tickets by AES-256-GCM-SIV with a random nonce: one that repeats would tell only that two
/// tickets are the same.
#[cfg(feature = "tls-aws-lc")]
mod tickets {
    use super::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
    use super::fill_random;

    pub(crate) struct TicketCipher(LessSafeKey);

    impl TicketCipher {
        pub(crate) fn new(secret: &[u8; 32]) -> Self {
            let key = UnboundKey::new(&AES_256_GCM_SIV, secret).expect("the key has its length");
            Self(LessSafeKey::new(key))
        }

        /// Seals a session behind what `out` holds.
        pub(crate) fn seal(&self, session: &[u8], aad: &[u8], out: &mut Vec<u8>) -> Option<()> {
            let mut nonce = [0; NONCE_LEN];
            fill_random(&mut nonce)?;
            out.extend_from_slice(&nonce);
            let nonce = Nonce::assume_unique_for_key(nonce);
            let mut sealed = session.to_vec();
            self.0.seal_in_place_append_tag(nonce, Aad::from(aad), &mut sealed).ok()?;
            out.extend_from_slice(&sealed);
            Some(())
        }

        pub(crate) fn open(&self, sealed: &[u8], aad: &[u8]) -> Option<Vec<u8>> {
            let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN)?;
            let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
            let mut session = sealed.to_vec();
            let opened = self.0.open_in_place(nonce, Aad::from(aad), &mut session).ok()?.len();
            session.truncate(opened);
            Some(session)
        }
    }
}

/// Tickets by AES-256-GCM, each with a key of its own: ring has no GCM-SIV, and with GCM a nonce
/// that repeats under one key gives that key away. Keys of a file may be shared by many servers for
/// years, so that nothing bounds how many nonces one key sees. A key that comes from the secret and
/// 16 random bytes, with 12 more as its nonce, repeats for none of 2^96 tickets.
#[cfg(not(feature = "tls-aws-lc"))]
mod tickets {
    use super::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce};
    use super::hkdf::{HKDF_SHA256, Prk};
    use super::{UnboundKey, fill_random};

    const SALT_BYTES: usize = 16;
    const LABEL: &[u8] = b"gustnado ticket";

    pub(crate) struct TicketCipher(Prk);

    impl TicketCipher {
        pub(crate) fn new(secret: &[u8; 32]) -> Self {
            Self(Prk::new_less_safe(HKDF_SHA256, secret))
        }

        fn key(&self, salt: &[u8]) -> Option<LessSafeKey> {
            let parts = [LABEL, salt];
            let key = self.0.expand(&parts, &AES_256_GCM).ok()?;
            Some(LessSafeKey::new(UnboundKey::from(key)))
        }

        /// Seals a session behind what `out` holds.
        pub(crate) fn seal(&self, session: &[u8], aad: &[u8], out: &mut Vec<u8>) -> Option<()> {
            let (mut salt, mut nonce) = ([0; SALT_BYTES], [0; NONCE_LEN]);
            fill_random(&mut salt)?;
            fill_random(&mut nonce)?;
            out.extend_from_slice(&salt);
            out.extend_from_slice(&nonce);
            let nonce = Nonce::assume_unique_for_key(nonce);
            let mut sealed = session.to_vec();
            let key = self.key(&salt)?;
            key.seal_in_place_append_tag(nonce, Aad::from(aad), &mut sealed).ok()?;
            out.extend_from_slice(&sealed);
            Some(())
        }

        pub(crate) fn open(&self, sealed: &[u8], aad: &[u8]) -> Option<Vec<u8>> {
            let (salt, rest) = sealed.split_at_checked(SALT_BYTES)?;
            let (nonce, sealed) = rest.split_at_checked(NONCE_LEN)?;
            let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
            let mut session = sealed.to_vec();
            let key = self.key(salt)?;
            let opened = key.open_in_place(nonce, Aad::from(aad), &mut session).ok()?.len();
            session.truncate(opened);
            Some(session)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_aws_lc_has_a_group_against_quantum_computers_and_it_wins() {
        let names: Vec<_> =
            provider().kx_groups.iter().filter_map(|group| group.name().as_str()).collect();
        assert_eq!(names.contains(&"X25519MLKEM768"), cfg!(feature = "tls-aws-lc"), "{names:?}");
        assert!(names.contains(&"X25519"), "{names:?}");
    }

    #[test]
    fn a_session_is_never_sealed_alike_twice() {
        let cipher = TicketCipher::new(&[7; 32]);
        let seal = || {
            let mut out = Vec::new();
            cipher.seal(b"a session", b"a site", &mut out).expect("random bytes");
            out
        };
        let (one, other) = (seal(), seal());
        assert_ne!(one, other);
        for sealed in [one, other] {
            assert_eq!(cipher.open(&sealed, b"a site").as_deref(), Some(&b"a session"[..]));
            assert_eq!(cipher.open(&sealed, b"another"), None);
        }
    }
}
