//! URLs that are signed, and valid for a time: `/path?expires=UNIX&signature=…`.
//!
//! The signature is HMAC-SHA-256 (RFC 2104) over the canonical path, the end of its time, the rest
//! of its query, and the method unless that only reads. So a URL is good for every spelling of its
//! path, and opens nothing that was not signed: no archive of a folder, and no upload.

use std::fmt::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gustnado_http::fields::check_field;
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
    /// - `method`: as it was sent.
    /// - `path`: in canonical form.
    ///
    /// # Errors
    /// The refusal: there is no right signature, or its time is over.
    pub(crate) fn check(
        &self,
        method: &[u8],
        (path, query): (&str, &[u8]),
        now_secs: u64,
    ) -> Result<(), Refusal> {
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
        let signed = signed_text(method, path, query, end_secs);
        let is_signed = self
            .0
            .iter()
            .fold(false, |found, key| mac(key, &signed).verify_slice(&signature).is_ok() | found);
        match is_signed {
            false => Err(Refusal::Signature),
            true if now_secs >= end_secs => Err(Refusal::Expired),
            true => Ok(()),
        }
    }
}

/// Returns what is signed: a line each for the path and the end of its time, then for the rest of
/// the query, which begins with `?`, and for a method other than GET and HEAD, if they are there.
/// None of them has a line end.
fn signed_text(method: &[u8], path: &str, query: &[u8], end_secs: u64) -> Vec<u8> {
    let mut text = format!("{path}\n{end_secs}").into_bytes();
    let pairs = query.split(|byte| *byte == b'&').filter(|pair| !is_own(pair));
    let rest = pairs.collect::<Vec<_>>().join(&b'&');
    if !rest.is_empty() {
        text.extend_from_slice(b"\n?");
        text.extend_from_slice(&rest);
    }
    if !matches!(method, b"GET" | b"HEAD") {
        text.push(b'\n');
        text.extend_from_slice(method);
    }
    text
}

/// Returns whether a pair of the query belongs to the signature.
fn is_own(pair: &[u8]) -> bool {
    pair.starts_with(b"expires=") || pair.starts_with(b"signature=")
}

fn mac(key: &[u8], text: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length is a key");
    mac.update(text);
    mac
}

/// Returns a URL with its signature, which `signed-urls` asks for: for GET and HEAD.
///
/// - `url`: a path, or a whole URL; its query stays and is signed, and a fragment goes. What no URL
///   has, such as a blank, is escaped.
/// - `key`: the one that the server's file has: see [`UrlKeys::read`].
/// - `end`: when it becomes invalid, to the second.
///
/// # Errors
/// [`AccessError::Setting`]: it has no path that is served, or it is signed already.
pub fn signed_url(url: &str, key: &[u8], end: SystemTime) -> Result<String, AccessError> {
    signed_url_for("GET", url, key, end)
}

/// Returns a URL with its signature, as [`signed_url`], for requests of one method.
///
/// - `method`: such as `PUT`; GET is good for HEAD, too.
///
/// # Errors
/// [`AccessError::Setting`]: as for [`signed_url`], or the method is none.
pub fn signed_url_for(
    method: &str,
    url: &str,
    key: &[u8],
    end: SystemTime,
) -> Result<String, AccessError> {
    let refused = |problem: String| AccessError::Setting { setting: "URL", problem };
    let whole = &*escaped(url.split('#').next().unwrap_or_default());
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
    if check_field(method, b"").is_err() {
        return Err(AccessError::Setting {
            setting: "method",
            problem: format!("expected a method such as PUT, found {method:?}; write it so"),
        });
    }
    let query_bytes = query.unwrap_or_default().as_bytes();
    if query_bytes.split(|byte| *byte == b'&').any(is_own) {
        return Err(refused(
            "expected one without expires and signature, found them; leave them out".to_owned(),
        ));
    }
    let canonical = CanonicalPath::of(path.as_bytes())
        .map_err(|error| refused(format!("expected a path that is served: {error}; change it")))?;
    let end_secs = end.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let signed = signed_text(method.as_bytes(), canonical.as_str(), query_bytes, end_secs);
    let tag = mac(key, &signed).finalize().into_bytes();
    let signature = URL_SAFE_NO_PAD.encode(tag);
    let joint = if query.is_some() { '&' } else { '?' };
    Ok(format!("{whole}{joint}expires={end_secs}&signature={signature}"))
}

/// Escapes what no URL has (RFC 3986 §2), so that it is signed as it will be requested.
fn escaped(url: &str) -> String {
    let mut escaped = String::with_capacity(url.len());
    for byte in url.bytes() {
        if byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            write!(escaped, "%{byte:02X}").expect("a string takes all");
        }
    }
    escaped
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
            ("/a b/\u{e9}.mp4?q=a b", "/a%20b/%C3%A9.mp4"),
        ] {
            let signed = sign(url);
            let check = |path, now| keys.check(b"GET", (path, query(&signed)), now);
            assert_eq!(check(path, 999), Ok(()), "{signed}");
            assert_eq!(check(path, 1_000), Err(Refusal::Expired));
            assert_eq!(check("/a/c.mp4", 999), Err(Refusal::Signature));
            assert!(signed.bytes().all(|byte| byte.is_ascii_graphic()), "{signed}");
        }
        let signed = sign("/a");
        let later = signed.replace("expires=1000", "expires=2000");
        let check = |keys: &UrlKeys, query| keys.check(b"GET", ("/a", query), 999);
        assert_eq!(check(&keys, query(&later)), Err(Refusal::Signature));
        let other = self::keys(&[b"another key of thirty-two bytes!"]);
        assert_eq!(check(&other, query(&signed)), Err(Refusal::Signature));
        for query in [
            &b""[..],
            b"expires=1000",
            b"signature=AAAA",
            b"expires=&signature=",
            b"expires=1e9&signature=AA",
        ] {
            assert_eq!(keys.check(b"GET", ("/a", query), 1), Err(Refusal::Signature));
        }
    }

    #[test]
    fn a_signature_opens_nothing_else_at_its_path() {
        let keys = keys(&[KEY]);
        let check = |method: &str, query: &str| {
            keys.check(method.as_bytes(), ("/a/", query.as_bytes()), 999).is_ok()
        };
        let signed_for = |method: &str, url: &str| {
            let end = UNIX_EPOCH + Duration::from_secs(1_000);
            let signed = signed_url_for(method, url, KEY, end).expect("it can be signed");
            String::from_utf8_lossy(query(&signed)).into_owned()
        };
        let plain = signed_for("GET", "/a/");
        assert!(
            check("GET", &plain) && check("HEAD", &plain) && check("GET", &format!("&{plain}"))
        );
        for more in ["archive=zip", "format=json", "%61rchive=zip", "x"] {
            assert!(!check("GET", &format!("{more}&{plain}")), "{more}");
            assert!(!check("GET", &format!("{plain}&{more}")), "{more}");
        }
        assert!(!check("PUT", &plain) && !check("POST", &plain) && !check("get", &plain));
        let archive = signed_for("GET", "/a/?archive=zip&b");
        assert!(check("GET", &archive) && !check("GET", &archive.replace("zip", "tar.zst")));
        assert!(check("GET", &format!("{archive}&expires=2000")), "the first one counts");
        assert!(!check("GET", &archive.replace("archive=zip&b", "b&archive=zip")));
        let upload = signed_for("PUT", "/a/");
        assert!(check("PUT", &upload) && !check("GET", &upload) && !check("POST", &upload));
        assert!(signed_url_for("P T", "/a", KEY, UNIX_EPOCH).is_err());
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
            let found = keys(&[KEY]).check(b"GET", ("/a", &query), 0);
            prop_assert_eq!(found, Err(Refusal::Signature));
        }
    }
}
