//! Hashes of passwords: bcrypt and Argon2.

use std::io;

use argon2::password_hash::{PasswordHash as Phc, PasswordHasher, PasswordVerifier, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};

use crate::AccessError;

/// The greatest cost of bcrypt, about five seconds: a longer one would hold a thread.
const BCRYPT_COST_MAX: u32 = 16;
/// The cost of new hashes.
const BCRYPT_COST: u32 = 12;
/// What bcrypt reads of a password, in bytes.
const BCRYPT_BYTES_MAX: usize = 72;
/// The most memory of Argon2, in KiB.
const ARGON2_KIB_MAX: u32 = 256 << 10;
/// The most passes of Argon2 over it.
const ARGON2_PASSES_MAX: u32 = 16;

/// Which hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashKind {
    /// Argon2id, with 19 MiB and two passes (OWASP).
    Argon2,
    /// bcrypt, as other servers read it.
    Bcrypt,
}

/// The hash of a password, checked.
#[derive(Clone, Debug)]
pub(crate) enum PasswordHash {
    Bcrypt(String),
    Argon2(String),
}

impl PasswordHash {
    /// Reads a hash.
    ///
    /// # Errors
    /// Expected, found, remedy.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        const REMEDY: &str = "make the line anew with `gustnado passwd`";
        let expected = |found: &str| {
            Err(format!("expected a hash of bcrypt or Argon2, found {found}; {REMEDY}"))
        };
        if text.starts_with("$argon2") {
            return Self::parse_argon2(text).map_err(|problem| format!("{problem}; {REMEDY}"));
        }
        let is_bcrypt = ["$2y$", "$2b$", "$2a$"].iter().any(|begin| text.starts_with(begin));
        if is_bcrypt {
            let cost = text.get(4..6).and_then(|cost| cost.parse().ok()).unwrap_or(0);
            let letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"./".contains(byte);
            let is_whole = text.len() == 60 && text.as_bytes()[6] == b'$';
            if !(is_whole && text.as_bytes()[7..].iter().all(letter)) {
                return expected("a malformed one");
            }
            if !(4..=BCRYPT_COST_MAX).contains(&cost) {
                return Err(format!(
                    "expected a cost of bcrypt from 4 to {BCRYPT_COST_MAX}, found {cost}; {REMEDY}"
                ));
            }
            return Ok(Self::Bcrypt(text.to_owned()));
        }
        match text {
            text if text.starts_with("{SHA}") => expected("SHA-1, which is guessed in no time"),
            text if text.starts_with("$apr1$") => expected("MD5, which is guessed in no time"),
            text if text.starts_with('$') => expected("another hash"),
            _ => expected("plain text or crypt, which is guessed in no time"),
        }
    }

    fn parse_argon2(text: &str) -> Result<Self, String> {
        let malformed = |error: argon2::password_hash::Error| {
            format!("expected a hash of Argon2, found a malformed one ({error})")
        };
        let phc = Phc::new(text).map_err(malformed)?;
        let params = Params::try_from(&phc).map_err(malformed)?;
        Algorithm::try_from(phc.algorithm).map_err(malformed)?;
        if phc.hash.is_none() || phc.salt.is_none() {
            return Err("expected a hash of Argon2 with salt and output, found none".to_owned());
        }
        let (kib, passes) = (params.m_cost(), params.t_cost());
        if kib > ARGON2_KIB_MAX || passes > ARGON2_PASSES_MAX {
            return Err(format!(
                "expected at most {ARGON2_KIB_MAX} KiB and {ARGON2_PASSES_MAX} passes, found {kib} \
                 KiB and {passes}"
            ));
        }
        Ok(Self::Argon2(text.to_owned()))
    }

    /// Returns the part that says how long a check takes.
    pub(crate) fn cost(&self) -> &str {
        match self {
            Self::Bcrypt(hash) => &hash[..6],
            // Salt and output are behind it.
            Self::Argon2(hash) => hash.rsplitn(3, '$').last().unwrap_or(hash),
        }
    }

    /// Returns whether a password is the one of the hash. It takes some tenths of a second.
    pub(crate) fn verify(&self, password: &[u8]) -> bool {
        match self {
            Self::Bcrypt(hash) => {
                // bcrypt reads no more; a longer one that begins alike is another password.
                let is_short = password.len() <= BCRYPT_BYTES_MAX;
                bcrypt::verify(password, hash).unwrap_or(false) && is_short
            }
            Self::Argon2(hash) => Phc::new(hash)
                .is_ok_and(|hash| Argon2::default().verify_password(password, &hash).is_ok()),
        }
    }
}

/// Returns the line of a user in a file of passwords.
///
/// # Errors
/// [`AccessError::Setting`] for a user or a password that cannot be in it.
pub fn hash_password(user: &str, password: &str, kind: HashKind) -> Result<String, AccessError> {
    let refused =
        |setting, problem: &str| Err(AccessError::Setting { setting, problem: problem.to_owned() });
    let is_user = !user.is_empty() && user.len() <= 255 && !user.starts_with('#');
    if !is_user || user.contains(|letter: char| letter == ':' || letter.is_control()) {
        return refused("user", "expected a name without colons, found another; choose one");
    }
    if password.is_empty() {
        return refused("password", "expected some, found none; type one");
    }
    let mut salt = [0; 16];
    fill_random(&mut salt)?;
    let hash = match kind {
        HashKind::Bcrypt if password.len() > BCRYPT_BYTES_MAX => {
            return refused(
                "password",
                "expected at most 72 bytes for bcrypt, found more; leave out --bcrypt",
            );
        }
        HashKind::Bcrypt => bcrypt::hash_with_salt(password, BCRYPT_COST, salt)
            .expect("its cost is in range")
            .format_for_version(bcrypt::Version::TwoY),
        HashKind::Argon2 => {
            let salt = SaltString::encode_b64(&salt).expect("sixteen bytes are a salt");
            let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::default());
            let hash = argon2.hash_password(password.as_bytes(), &salt);
            hash.expect("its parameters are in range").to_string()
        }
    };
    Ok(format!("{user}:{hash}"))
}

/// Fills bytes that nobody can guess.
pub(crate) fn fill_random(bytes: &mut [u8]) -> Result<(), AccessError> {
    let filled = rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty());
    match filled {
        Ok(filled) if filled == bytes.len() => Ok(()),
        Ok(_) => Err(AccessError::Random(io::ErrorKind::Interrupted.into())),
        Err(error) => Err(AccessError::Random(error.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_that_was_made_is_verified() {
        for kind in [HashKind::Argon2, HashKind::Bcrypt] {
            let line = hash_password("ann", "open sesame", kind).expect("it can be");
            let hash = line.strip_prefix("ann:").expect("the user");
            let hash = PasswordHash::parse(hash).expect("our own");
            assert!(
                hash.verify(b"open sesame") && !hash.verify(b"open sesam") && !hash.verify(b"")
            );
        }
        for (user, password) in [("", "x"), ("a:b", "x"), ("#a", "x"), ("a\nb", "x"), ("a", "")] {
            assert!(hash_password(user, password, HashKind::Argon2).is_err(), "{user:?}");
        }
        assert!(hash_password("a", &"x".repeat(73), HashKind::Bcrypt).is_err());
    }

    #[test]
    fn hashes_of_others_are_verified() {
        // By htpasswd -B, and by the reference implementation of Argon2.
        let bcrypt = "$2y$05$bvIG6Nmid91Mu9RcmmWZfO5HJIMCT8riNW0hEp8f6/FuA2/mHZFpe";
        let hash = PasswordHash::parse(bcrypt).expect("well formed");
        assert!(hash.verify(b"password") && !hash.verify(b"Password"));
        let argon2 = "$argon2i$v=19$m=65536,t=2,p=4$c29tZXNhbHQ$\
                      RdescudvJCsgt3ub+b+dWRWJTmaaJObG";
        let hash = PasswordHash::parse(argon2).expect("well formed");
        assert!(hash.verify(b"password") && !hash.verify(b"Password"));
    }

    #[test]
    fn what_is_guessed_in_no_time_is_refused_with_the_remedy() {
        for (hash, part) in [
            ("{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", "SHA-1"),
            ("$apr1$x$y", "MD5"),
            ("$1$x$y", "another hash"),
            ("$6$x$y", "another hash"),
            ("rl5FQRh6gLK5.", "plain text"),
            ("secret", "plain text"),
            ("", "plain text"),
            ("$2y$05$short", "malformed"),
            ("$2y$31$bvIG6Nmid91Mu9RcmmWZfO5HJIMCT8riNW0hEp8f6/FuA2/mHZFpe", "found 31"),
            ("$argon2id$v=19$m=19456,t=2,p=1", "with salt"),
            (
                "$argon2id$v=19$m=4000000,t=2,p=1$c29tZXNhbHQ$RdescudvJCsgt3ub+b+dWRWJTmaaJObG",
                "KiB",
            ),
            (
                "$argon2x$v=19$m=64,t=2,p=1$c29tZXNhbHQ$RdescudvJCsgt3ub+b+dWRWJTmaaJObG",
                "malformed",
            ),
        ] {
            let error = PasswordHash::parse(hash).expect_err(hash);
            assert!(error.contains(part) && error.contains("gustnado passwd"), "{hash}: {error}");
        }
    }
}
