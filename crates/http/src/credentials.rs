//! User and password of a request (RFC 7617).

use crate::fields::HeaderId;
use crate::request::RequestView;

/// The longest user and password together, in bytes.
const BYTES_MAX: usize = 1024;

/// User and password, as a request has them.
#[derive(Clone)]
pub struct Credentials {
    /// `user:password`
    text: Vec<u8>,
    colon: usize,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials of {:?}", String::from_utf8_lossy(self.user()))
    }
}

impl Credentials {
    /// Reads them from a request; `None` if it has none, or malformed ones.
    pub fn of(view: RequestView<'_>) -> Option<Self> {
        Self::parse(view.known(HeaderId::Authorization)?)
    }

    /// Reads them from the value of `Authorization`.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (scheme, encoded) = value.split_at_checked(6)?;
        if !scheme.eq_ignore_ascii_case(b"basic ") {
            return None;
        }
        let encoded = encoded.trim_ascii();
        if encoded.len() > BYTES_MAX * 4 / 3 + 4 {
            return None;
        }
        let text = base64_decoded(encoded).filter(|text| text.len() <= BYTES_MAX)?;
        let colon = text.iter().position(|byte| *byte == b':')?;
        Some(Self { text, colon })
    }

    /// Returns the user.
    pub fn user(&self) -> &[u8] {
        &self.text[..self.colon]
    }

    /// Returns the password.
    pub fn password(&self) -> &[u8] {
        &self.text[self.colon + 1..]
    }

    /// Returns both, with a colon between them. A user has none, so that no two pairs are alike.
    pub fn whole(&self) -> &[u8] {
        &self.text
    }
}

/// Decodes Base64 (RFC 4648 §4), with or without its padding. Bits that mean nothing have to be
/// zero (§3.5), so that no two texts are the same bytes.
fn base64_decoded(text: &[u8]) -> Option<Vec<u8>> {
    let end = text.iter().rposition(|byte| *byte != b'=').map_or(0, |last| last + 1);
    if text.len() - end > 2 {
        return None;
    }
    let (mut bytes, mut bits, mut held) = (Vec::with_capacity(end), 0_u32, 0);
    for byte in &text[..end] {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from(bits >> held).expect("8 bits are left"));
            bits &= (1 << held) - 1;
        }
    }
    (held < 6 && bits == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    fn base64(bytes: &[u8]) -> String {
        let group = |group: &[u8]| {
            let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            let letter =
                move |at: usize| char::from(LETTERS[(bits >> (18 - 6 * at)) as usize & 63]);
            let end = group.len() + 1;
            (0..4).map(|at| if at < end { letter(at) } else { '=' }).collect::<String>()
        };
        bytes.chunks(3).map(group).collect()
    }

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (text, bytes) in
            [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYg", "foob")]
        {
            assert_eq!(
                base64_decoded(text.as_bytes()).as_deref(),
                Some(bytes.as_bytes()),
                "{text}"
            );
        }
        for text in ["Z", "Zh==", "Zm9=", "Zm9v====", "Zm=9", "Zm 9v", "Zm9-"] {
            assert_eq!(base64_decoded(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_password_may_have_colons_and_a_user_none() {
        let read = |value: &str| {
            let found = Credentials::parse(value.as_bytes())?;
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            Some((text(found.user()), text(found.password())))
        };
        let both = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        assert_eq!(read("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), both("Aladdin", "open sesame"));
        assert_eq!(read("basic  QWxhZGRpbjpvcGVuIHNlc2FtZQ"), both("Aladdin", "open sesame"));
        assert_eq!(read("BASIC YTpiOmM="), both("a", "b:c"));
        assert_eq!(read("Basic Og=="), both("", ""));
        for value in
            ["", "Basic", "Basic ", "Basic YWI=", "Basic !", "Bearer YTpi", "Basic YTpi YTpi"]
        {
            assert_eq!(read(value), None, "{value}");
        }
        assert_eq!(read(&format!("Basic {}", "YTpi".repeat(400))), None, "too long");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(value in proptest::collection::vec(any::<u8>(), 0..2000)) {
            if let Some(found) = Credentials::parse(&value) {
                let len = found.user().len() + 1 + found.password().len();
                prop_assert_eq!(found.whole().len(), len);
            }
        }

        #[test]
        fn what_is_written_reads_back(user in "[^:]{0,20}", password in ".{0,20}") {
            let value = format!("Basic {}", base64(format!("{user}:{password}").as_bytes()));
            let found = Credentials::parse(value.as_bytes()).expect("well formed");
            prop_assert_eq!(found.user(), user.as_bytes());
            prop_assert_eq!(found.password(), password.as_bytes());
        }
    }
}
