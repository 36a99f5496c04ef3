//! Paths as they are compared: with escapes in their normal form (RFC 3986 §6.2.2).

use std::fmt::Write;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// What a pattern may say plainly and a request has to escape.
const ESCAPED: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>').add(b'?').add(b'`');

/// The path with each escape in its normal form: `%7e` is `~`, `%2f` is `%2F`. `None` if it has no
/// escape, and so is normal already.
pub(crate) fn normalized(path: &str) -> Option<String> {
    let first = path.find('%')?;
    let mut normal = path[..first].to_owned();
    let mut rest = &path[first..];
    while let Some(at) = rest.find('%') {
        normal.push_str(&rest[..at]);
        rest = &rest[at..];
        let digits = rest.get(1..3).filter(|two| two.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte {
            Some(byte) if is_unreserved(byte) => normal.push(char::from(byte)),
            Some(byte) => write!(normal, "%{byte:02X}").expect("a string takes all text"),
            None => {
                normal.push('%');
                rest = &rest[1..];
                continue;
            }
        }
        rest = &rest[3..];
    }
    normal.push_str(rest);
    Some(normal)
}

/// A route's path as requests spell it.
pub(crate) fn pattern(path: &str) -> String {
    let escaped = utf8_percent_encode(path, ESCAPED).to_string();
    normalized(&escaped).unwrap_or(escaped)
}

/// RFC 3986 §2.3
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_get_their_normal_form() {
        assert_eq!(normalized("/plain"), None);
        for (path, normal) in [
            ("/%68ello", "/hello"),
            ("/a%2fb", "/a%2Fb"),
            ("/%7euser/%C3%a9", "/~user/%C3%A9"),
            ("/%", "/%"),
            ("/%zz%41", "/%zzA"),
            ("/%%41", "/%A"),
            ("/%+1", "/%+1"),
        ] {
            assert_eq!(normalized(path).as_deref(), Some(normal), "{path}");
        }
    }

    #[test]
    fn patterns_are_spelt_as_requests_are() {
        assert_eq!(pattern("/caf\u{e9}/{name}"), "/caf%C3%A9/{name}");
        assert_eq!(pattern("/a b/{*rest}"), "/a%20b/{*rest}");
        assert_eq!(pattern("/%7e"), "/~");
    }
}
