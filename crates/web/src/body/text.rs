//! From bytes to text: which charset, and what is no text in it.

use std::borrow::Cow;

use bytes::{Buf, Bytes};
use encoding_rs::{Encoding, UTF_8};
use gustnado_http::media_type::MediaType;

use super::BodyError;

/// Returns the charset of a Content-Type; UTF-8 if it names none.
pub fn encoding_of(kind: Option<&[u8]>) -> Result<&'static Encoding, BodyError> {
    let charset = kind.and_then(|kind| MediaType::of(kind).parameter("charset"));
    let Some(charset) = charset.filter(|charset| !charset.is_empty()) else { return Ok(UTF_8) };
    // Labels of charsets that were used for smuggling decode to nothing, so they are refused.
    Encoding::for_label_no_replacement(&charset).ok_or(BodyError::UnknownCharset)
}

/// Decodes all bytes of a text. A byte order mark takes precedence over the charset.
pub fn decoded<'b>(
    encoding: &'static Encoding,
    bytes: &'b [u8],
) -> Result<Cow<'b, str>, BodyError> {
    let (encoding, mark) = Encoding::for_bom(bytes).unwrap_or((encoding, 0));
    encoding
        .decode_without_bom_handling_and_without_replacement(&bytes[mark..])
        .ok_or(BodyError::NotText)
}

/// Decodes like [`decoded`], without a copy where the bytes are UTF-8.
pub(super) fn decoded_bytes(
    encoding: &'static Encoding,
    mut bytes: Bytes,
) -> Result<String, BodyError> {
    let (found, mark) = Encoding::for_bom(&bytes).unwrap_or((encoding, 0));
    if found == UTF_8 {
        bytes.advance(mark);
        return String::from_utf8(bytes.into()).map_err(|_| BodyError::NotText);
    }
    Ok(decoded(encoding, &bytes)?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(kind: Option<&str>, bytes: &[u8]) -> Result<String, BodyError> {
        let encoding = encoding_of(kind.map(str::as_bytes))?;
        let whole = decoded_bytes(encoding, Bytes::copy_from_slice(bytes));
        assert_eq!(decoded(encoding, bytes).map(Cow::into_owned), whole, "both ways agree");
        whole
    }

    #[test]
    fn the_charset_is_the_one_that_is_named_or_marked() {
        let ok = |text: &str| Ok(text.to_owned());
        assert_eq!(text(None, "\u{e4}".as_bytes()), ok("\u{e4}"));
        assert_eq!(text(Some("text/plain"), "\u{e4}".as_bytes()), ok("\u{e4}"));
        assert_eq!(text(Some("text/plain; charset=ISO-8859-1"), b"\xe4"), ok("\u{e4}"));
        assert_eq!(text(Some("text/plain; charset=\"shift_jis\""), b"\x82\xa0"), ok("\u{3042}"));
        assert_eq!(text(Some("a/b; charset=utf-16le"), b"h\0i\0"), ok("hi"));
        assert_eq!(text(Some("a/b; charset="), b"hi"), ok("hi"));
        // A mark counts more, and is no part of the text.
        assert_eq!(text(Some("a/b; charset=latin1"), b"\xef\xbb\xbfhi"), ok("hi"));
        assert_eq!(text(None, b"\xff\xfeh\0i\0"), ok("hi"));
    }

    #[test]
    fn what_is_no_text_or_in_no_known_charset_is_refused() {
        assert_eq!(text(None, b"a\xffb"), Err(BodyError::NotText));
        assert_eq!(text(Some("a/b; charset=utf-16be"), b"\xd8\0"), Err(BodyError::NotText));
        for charset in ["klingon", "utf-7", "utf-32", "hz-gb-2312"] {
            let kind = format!("text/plain; charset={charset}");
            assert_eq!(text(Some(&kind), b"x"), Err(BodyError::UnknownCharset), "{charset}");
        }
    }
}
