//! URLs that are signed, and valid for a time: `/path?expires=UNIX&signature=…`.
//!
//! The signature is HMAC-SHA-256 (RFC 2104) over the canonical path and the end of its time, so a
//! URL is good for every method and every spelling of its path, and other parts of its query may
//! change.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gustnado_http::path::CanonicalPath;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::AccessError;
use crate::counts::Refusal;
use crate::lines;

const SETTING: &str = "signed-urls";
/// The shortest key, in bytes.
const KEY_BYTES_MIN: usize = 32;
/// The most keys of a file: each is tried.
const KEYS_MAX: usize = 16;

/// Keys that URLs are signed by. The first signs; all of them are taken, so that a new one can be
/// put before the old one, which is removed when the last of its URLs has expired.
#[derive(Clone)]
pub struct UrlKeys(Vec<Box<[u8]>>);

impl std::fmt::Debug for UrlKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "UrlKeys ({})", self.0.len())
    }
}

impl UrlKeys {
    /// Reads a file of keys: one a line, at least 32 characters each.
    ///
    /// # Errors
    /// [`AccessError`]
    pub fn read(path: &Path) -> Result<Self, AccessError> {
        let text = lines::read(SETTING, path)?;
        let mut keys = Vec::new();
        for (line, key) in lines::entries(&text) {
            let problem = |problem: String| AccessError::Line {
                setting: SETTING,
                path: path.to_owned(),
                line,
                problem,
            };
            if key.len() < KEY_BYTES_MIN {
                let found = key.len();
                return Err(problem(format!(
                    "expected a key of at least {KEY_BYTES_MIN} characters, found {found}; make \
                     one with `openssl rand -hex 32`"
                )));
            }
            if keys.len() == KEYS_MAX {
                return Err(problem(format!(
                    "expected at most {KEYS_MAX} keys, found more; leave old ones out"
                )));
            }
            keys.push(key.as_bytes().into());
        }
        if keys.is_empty() {
            return Err(AccessError::Empty {
                setting: SETTING,
                path: path.to_owned(),
                expected: "at least one key",
                remedy: "make one with `openssl rand -hex 32`",
            });
        }
        Ok(Self(keys))
    }

    /// Returns the key that signs.
    pub fn first(&self) -> &[u8] {
        &self.0[0]
    }

    /// Checks the signature in a query.
    ///
    /// - `path`: in canonical form.
    ///
    /// # Errors
    /// The refusal: there is no right signature, or its time is over.
    pub(crate) fn check(&self, path: &str, query: &[u8], now_secs: u64) -> Result<(), Refusal> {
        let value = |name: &[u8]| {
            let mut pairs = query.split(|byte| *byte == b'&');
            pairs.find_map(|pair| pair.strip_prefix(name)?.strip_prefix(b"="))
        };
        let (expires, signature) =
            value(b"expires").zip(value(b"signature")).ok_or(Refusal::Signature)?;
        let is_number =
            !expires.is_empty() && expires.len() <= 15 && expires.iter().all(u8::is_ascii_digit);
        let number =
            std::str::from_utf8(expires).ok().and_then(|number| number.parse::<u64>().ok());
        let end_secs = number.filter(|_| is_number).ok_or(Refusal::Signature)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| Refusal::Signature)?;
        // Every key is tried, in constant time each.
        let is_signed = self.0.iter().fold(false, |found, key| {
            mac(key, path, end_secs).verify_slice(&signature).is_ok() | found
        });
        match is_signed {
            false => Err(Refusal::Signature),
            true if now_secs >= end_secs => Err(Refusal::Expired),
            true => Ok(()),
        }
    }
}

fn mac(key: &[u8], path: &str, end_secs: u64) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length is a key");
    mac.update(path.as_bytes());
    // No path has a line end.
    mac.update(format!("\n{end_secs}").as_bytes());
    mac
}

/// Returns a URL with its signature, which `signed-urls` asks for.
///
/// - `url`: a path, or a whole URL; its query stays, and a fragment goes.
/// - `key`: the one that the server's file has: see [`UrlKeys::read`].
/// - `end`: when it becomes invalid, to the second.
///
/// # Errors
/// [`AccessError::Setting`]: it has no path that is served, or it is signed already.
pub fn signed_url(url: &str, key: &[u8], end: SystemTime) -> Result<String, AccessError> {
    let refused = |problem: String| AccessError::Setting { setting: "URL", problem };
    let whole = url.split('#').next().unwrap_or_default();
    let begin = match whole.find("://") {
        Some(at) => whole[at + 3..].find('/').map(|slash| at + 3 + slash),
        None => whole.starts_with('/').then_some(0),
    };
    let begin = begin.ok_or_else(|| {
        refused(format!(
            "expected a path such as /a.mp4 or a URL with one, found {url:?}; begin it with /"
        ))
    })?;
    let (path, query) = match whole[begin..].split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (&whole[begin..], None),
    };
    let is_own = |pair: &str| pair.starts_with("expires=") || pair.starts_with("signature=");
    if query.is_some_and(|query| query.split('&').any(is_own)) {
        return Err(refused(
            "expected one without expires and signature, found them; leave them out".to_owned(),
        ));
    }
    let canonical = CanonicalPath::of(path.as_bytes())
        .map_err(|error| refused(format!("expected a path that is served: {error}; change it")))?;
    let end_secs = end.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let tag = mac(key, canonical.as_str(), end_secs).finalize().into_bytes();
    let signature = URL_SAFE_NO_PAD.encode(tag);
    let joint = if query.is_some() { '&' } else { '?' };
    Ok(format!("{whole}{joint}expires={end_secs}&signature={signature}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    const KEY: &[u8] = b"0123456789abcdef0123456789abcdef";

    fn keys(keys: &[&[u8]]) -> UrlKeys {
        UrlKeys(keys.iter().map(|key| (*key).into()).collect())
    }

    fn sign(url: &str) -> String {
        signed_url(url, KEY, UNIX_EPOCH + Duration::from_secs(1_000)).expect("it can be signed")
    }

    fn query(url: &str) -> &[u8] {
        url.split_once('?').expect("a query").1.as_bytes()
    }

    #[test]
    fn a_signed_url_is_good_until_its_end() {
        let keys = keys(&[b"another key of thirty-two bytes!", KEY]);
        for (url, path) in [
            ("/a/b.mp4", "/a/b.mp4"),
            ("https://example.org/a/b.mp4?t=5#x", "/a/b.mp4"),
            ("//a/./%62.mp4", "/a/b.mp4"),
        ] {
            let signed = sign(url);
            let check = |path, now| keys.check(path, query(&signed), now);
            assert_eq!(check(path, 999), Ok(()), "{signed}");
            assert_eq!(check(path, 1_000), Err(Refusal::Expired));
            assert_eq!(check("/a/c.mp4", 999), Err(Refusal::Signature));
        }
        let signed = sign("/a");
        let later = signed.replace("expires=1000", "expires=2000");
        assert_eq!(keys.check("/a", query(&later), 999), Err(Refusal::Signature));
        let other = self::keys(&[b"another key of thirty-two bytes!"]);
        assert_eq!(other.check("/a", query(&signed), 999), Err(Refusal::Signature));
        for query in [
            &b""[..],
            b"expires=1000",
            b"signature=AAAA",
            b"expires=&signature=",
            b"expires=1e9&signature=AA",
        ] {
            assert_eq!(keys.check("/a", query, 1), Err(Refusal::Signature));
        }
    }

    #[test]
    fn what_cannot_be_signed_is_said() {
        let error = |url: &str| {
            signed_url(url, KEY, UNIX_EPOCH).expect_err("it cannot be signed").to_string()
        };
        assert!(error("a/b").contains("begin it with /"));
        assert!(error("https://example.org").contains("begin it with /"));
        assert!(error("/a/../b").contains("a path that is served"));
        assert!(error("/a?expires=5").contains("leave them out"));
    }

    proptest! {
        #[test]
        fn any_query_is_refused_or_right(query in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(keys(&[KEY]).check("/a", &query, 0), Err(Refusal::Signature));
        }
    }
}
