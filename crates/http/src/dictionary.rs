//! Compression dictionaries (RFC 9842): what client and server say of them. Nothing here
//! compresses.

use crate::request::RequestView;

/// The field by which a client names a dictionary that it has (RFC 9842 §2.2).
pub const AVAILABLE_DICTIONARY: &str = "Available-Dictionary";
/// The field that makes a response a dictionary for later ones (RFC 9842 §2.1).
pub const USE_AS_DICTIONARY: &str = "Use-As-Dictionary";

/// The SHA-256 hash of a dictionary.
pub type DictionaryHash = [u8; 32];

/// The digits of a hash in base64, without the padding.
const HASH_DIGITS: usize = 43;

/// What means something else than itself in a URL pattern (URL Pattern Standard §2.1).
const OF_PATTERNS: &[u8] = b"*:+?(){}\\";

/// Returns the hash of the dictionary that a client has for the response to a request.
pub fn available_dictionary(request: RequestView<'_>) -> Option<DictionaryHash> {
    read_hash(request.field(AVAILABLE_DICTIONARY)?)
}

/// Reads a hash in base64 between colons (RFC 9651 §3.3.5).
fn read_hash(value: &[u8]) -> Option<DictionaryHash> {
    let text = value.strip_prefix(b":")?.strip_suffix(b":")?;
    let digits = text.strip_suffix(b"=").filter(|digits| digits.len() == HASH_DIGITS)?;
    let (mut hash, mut bits, mut count, mut at) = ([0; 32], 0_u32, 0, 0);
    for digit in digits {
        bits = bits << 6 | u32::from(value_of(*digit)?);
        count += 6;
        if count >= 8 {
            count -= 8;
            hash[at] = u8::try_from(bits >> count & 0xff).ok()?;
            at += 1;
        }
    }
    Some(hash)
}

fn value_of(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

/// Returns the value of `Use-As-Dictionary` for a file whose next version has another text between
/// two parts of its name: `match="main.*.js"`. The pattern is relative to the file's own URL, so it
/// holds wherever the folder is mounted, and behind a proxy that takes a part of the path away.
///
/// `None`: a part has a byte that some clients escape in URLs and others do not.
pub fn use_as_dictionary(before: &[u8], behind: &[u8]) -> Option<Vec<u8>> {
    if ![before, behind].concat().iter().all(|byte| is_never_escaped(*byte)) {
        return None;
    }
    let mut value = b"match=\"".to_vec();
    push_literal(before, &mut value);
    value.push(b'*');
    push_literal(behind, &mut value);
    value.push(b'"');
    Some(value)
}

/// Returns whether a byte stands for itself in every path (RFC 3986 §3.3).
fn is_never_escaped(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte)
}

/// Appends a part of a name as a pattern, within the quotes of a field: of the two backslashes that
/// a special character gets, the field's syntax takes one (RFC 9651 §3.3.3), and the pattern's the
/// other.
fn push_literal(text: &[u8], value: &mut Vec<u8>) {
    for byte in text {
        if OF_PATTERNS.contains(byte) {
            value.extend_from_slice(b"\\\\");
        }
        value.push(*byte);
    }
}

/// Returns whether a response may be compressed with a dictionary, as far as the page counts that
/// asks (RFC 9842 §9.3.3): a page of another origin could learn from lengths and times what it must
/// not read.
///
/// Requests of such pages by CORS are refused like others. The RFC would allow some of them.
pub fn is_asked_by_own_page(request: RequestView<'_>) -> bool {
    let site = request.field("sec-fetch-site");
    let mode = request.field("sec-fetch-mode");
    match (site, mode) {
        (None | Some(b"same-origin"), _) | (_, None) => true,
        (_, Some(mode)) => mode == b"navigate" || mode == b"same-origin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::{Decoded, Head};
    use crate::limits::Limits;
    use proptest::prelude::*;

    fn with_request<T>(fields: &str, act: impl FnOnce(RequestView<'_>) -> T) -> T {
        let input = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let outcome = Head::decode(input.as_bytes(), &mut 0, &Limits::default());
        let Ok(Decoded::Done(head)) = outcome else { panic!("{input}: {outcome:?}") };
        act(head.on(input.as_bytes()))
    }

    #[test]
    fn a_hash_is_read_as_clients_write_it() {
        // The example of RFC 9842 §2.2: the hash of "Hello World".
        let line = "Available-Dictionary: :pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:\r\n";
        let hash = with_request(line, available_dictionary).expect("a hash");
        assert_eq!((hash[..4].to_vec(), hash[31]), (vec![0xa5, 0x91, 0xa6, 0xd4], 0x6e));
        assert_eq!(with_request("", available_dictionary), None);
        for value in [
            "",
            ":",
            "::",
            ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=",
            "pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=",
            ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG=:",
            ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4!=:",
            ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG*=:",
            ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG44:",
        ] {
            assert_eq!(read_hash(value.as_bytes()), None, "{value}");
        }
    }

    #[test]
    fn a_pattern_has_a_star_in_the_hash_s_place() {
        for (before, behind, expected) in [
            ("main.", ".js", r#"match="main.*.js""#),
            ("index-", ".css", r#"match="index-*.css""#),
            ("a(b)+c*", ":d.js", r#"match="a\\(b\\)\\+c\\**\\:d.js""#),
            ("@scope~x-", ".js", r#"match="@scope~x-*.js""#),
        ] {
            let value = use_as_dictionary(before.as_bytes(), behind.as_bytes()).expect("a value");
            assert_eq!(String::from_utf8_lossy(&value), expected);
        }
        // What one page writes as it is and another one escapes.
        for name in ["[slug]-", "a b", "ü", "a\"b", "a\\b", "a/b", "a?b", "a%20b", "a{b}", "a\nb"]
        {
            assert_eq!(use_as_dictionary(name.as_bytes(), b".js"), None, "{name}");
        }
    }

    #[test]
    fn only_pages_of_the_same_origin_get_deltas() {
        for (fields, expected) in [
            ("", true),
            ("Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: no-cors\r\n", true),
            ("Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\n", true),
            ("Sec-Fetch-Site: cross-site\r\n", true),
            ("Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\n", true),
            ("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n", true),
            ("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n", false),
            ("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: cors\r\nOrigin: https://b\r\n", false),
            ("Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: no-cors\r\n", false),
            ("Sec-Fetch-Site: other\r\nSec-Fetch-Mode: other\r\n", false),
        ] {
            assert_eq!(with_request(fields, is_asked_by_own_page), expected, "{fields}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_hash_or_none(value in proptest::collection::vec(any::<u8>(), 0..60)) {
            read_hash(&value);
        }

        #[test]
        fn a_pattern_is_one_field_value_of_visible_characters(
            before in proptest::collection::vec(any::<u8>(), 0..20),
            behind in proptest::collection::vec(any::<u8>(), 0..20),
        ) {
            if let Some(value) = use_as_dictionary(&before, &behind) {
                prop_assert!(value.iter().all(u8::is_ascii_graphic));
                let quotes = memchr::memchr_iter(b'"', &value).count();
                prop_assert!(quotes == 2 && value.starts_with(b"match=\""));
                prop_assert!(value.ends_with(b"\""));
            }
        }
    }
}
