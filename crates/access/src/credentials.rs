//! User and password of a request (RFC 7617).

use base64::Engine;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use gustnado_http::fields::HeaderId;
use gustnado_http::request::RequestView;

/// The longest user and password together, in bytes.
const BYTES_MAX: usize = 1024;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

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
    pub(crate) fn parse(value: &[u8]) -> Option<Self> {
        let (scheme, encoded) = value.split_at_checked(6)?;
        if !scheme.eq_ignore_ascii_case(b"basic ") {
            return None;
        }
        let encoded = encoded.trim_ascii();
        if encoded.len() > BYTES_MAX * 4 / 3 + 4 {
            return None;
        }
        let text = BASE64.decode(encoded).ok().filter(|text| text.len() <= BYTES_MAX)?;
        let colon = text.iter().position(|byte| *byte == b':')?;
        Some(Self { text, colon })
    }

    /// Returns the user.
    pub fn user(&self) -> &[u8] {
        &self.text[..self.colon]
    }

    /// Returns the password.
    pub(crate) fn password(&self) -> &[u8] {
        &self.text[self.colon + 1..]
    }

    /// Returns both, with a colon between them. A user has none, so that no two pairs are alike.
    pub(crate) fn whole(&self) -> &[u8] {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
            let encoded = BASE64.encode(format!("{user}:{password}"));
            let value = format!("Basic {encoded}");
            let found = Credentials::parse(value.as_bytes()).expect("well formed");
            prop_assert_eq!(found.user(), user.as_bytes());
            prop_assert_eq!(found.password(), password.as_bytes());
        }
    }
}
