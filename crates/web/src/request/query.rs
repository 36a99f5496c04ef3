//! Percent-encoding and the pairs of a query (RFC 3986 §2.1, WHATWG URL §5.1).

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// Decodes percent-encoding such as `%41`. A `%` that begins no escape stays; bytes that are not
/// UTF-8 become U+FFFD.
pub fn percent_decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

/// Pairs of a query or of a form, in order: name and value, decoded. A pair without `=` has an
/// empty value; an empty pair is skipped.
#[derive(Clone)]
pub struct Pairs<'a> {
    rest: &'a [u8],
}

impl<'a> Pairs<'a> {
    /// - `text`: the part after the `?`, or the body of a form.
    pub fn new(text: &'a [u8]) -> Self {
        Self { rest: text }
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = (Cow<'a, str>, Cow<'a, str>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.rest.is_empty() {
                return None;
            }
            let end = self.rest.iter().position(|byte| *byte == b'&').unwrap_or(self.rest.len());
            let pair = &self.rest[..end];
            self.rest = self.rest.get(end + 1..).unwrap_or(&[]);
            // Most pairs say what they mean: looking takes less than decoding.
            let decoded = plain_pair(pair).or_else(|| form_urlencoded::parse(pair).next());
            if decoded.is_some() {
                return decoded;
            }
        }
    }
}

/// Splits a pair that has nothing to decode. `None`: it has, or it is empty.
fn plain_pair(pair: &[u8]) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    if pair.is_empty() || pair.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        return None;
    }
    let text = std::str::from_utf8(pair).ok()?;
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    Some((Cow::Borrowed(name), Cow::Borrowed(value)))
}

impl std::fmt::Debug for Pairs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded_and_what_is_none_stays() {
        for (text, decoded) in [
            ("plain", "plain"),
            ("a%20b%2Fc", "a b/c"),
            ("a+b", "a+b"),
            ("100%", "100%"),
            ("%zz%4", "%zz%4"),
            ("%c3%a9", "\u{e9}"),
            ("%ff", "\u{fffd}"),
        ] {
            assert_eq!(percent_decoded(text), decoded, "{text}");
        }
    }

    #[test]
    fn pairs_come_in_order_with_and_without_values() {
        let all: Vec<_> = Pairs::new(b"a=1&&b&=x+y&c=2=3&a=").collect();
        let all: Vec<_> = all.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(all, [("a", "1"), ("b", ""), ("", "x y"), ("c", "2=3"), ("a", "")]);
    }

    /// The library is what browsers agree with.
    #[test]
    fn pairs_are_those_of_the_library() {
        const PARTS: [&[u8]; 12] = [
            b"a",
            b"=",
            b"&",
            b"+",
            b"%41",
            b"%",
            b"%zz",
            b"\xc3\xa9",
            b"\xff",
            b" ",
            b"b1",
            b"\0",
        ];
        for first in PARTS {
            for second in PARTS {
                for third in PARTS {
                    for fourth in PARTS {
                        let text = [first, second, third, fourth].concat();
                        let library = form_urlencoded::parse(&text);
                        assert!(Pairs::new(&text).eq(library), "{text:?}");
                    }
                }
            }
        }
    }
}
