//! The `Content-Type` of a file, derived from its name alone.

use std::fmt;
use std::sync::Arc;

/// A media type, as in a `Content-Type` field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentType {
    /// Maybe with parameters, if it is of an operator's own.
    name: TypeName,
    charset: Charset,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TypeName {
    Usual(&'static str),
    Own(Arc<str>),
}

/// The charset that text is declared with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Charset {
    /// UTF-8, the only encoding that a new file is likely to have.
    #[default]
    Usual,
    Own(Arc<str>),
    None,
}

impl ContentType {
    /// Returns the type of a file by its name, the last segment of a decoded path.
    ///
    /// A name without a known extension is `application/octet-stream`, which browsers save and
    /// never run.
    pub fn of(name: &[u8]) -> ContentType {
        Self::usual(extension(name), Charset::Usual)
    }

    /// Returns the type of an extension, of those that are built in.
    pub(super) fn usual(extension: Option<&str>, charset: Charset) -> ContentType {
        // The lookup ignores the case of the letters.
        let guess = extension.and_then(|extension| mime_guess::from_ext(extension).first_raw());
        let name = match guess {
            // RFC 9239 §6: the old name is an alias, and only `text/*` gets a charset below.
            Some("application/javascript") => "text/javascript",
            Some(name) => name,
            None => "application/octet-stream",
        };
        ContentType { name: TypeName::Usual(name), charset }
    }

    /// Returns a type of an operator's own.
    pub(super) fn own(name: Arc<str>, charset: Charset) -> ContentType {
        ContentType { name: TypeName::Own(name), charset }
    }

    fn name(&self) -> &str {
        match &self.name {
            TypeName::Usual(name) => name,
            TypeName::Own(name) => name,
        }
    }

    /// Returns it without parameters: `text/html`.
    pub(super) fn essence(&self) -> &str {
        self.name().split(';').next().unwrap_or_default().trim_end()
    }

    /// Returns whether it is a page of HTML.
    pub(super) fn is_html(&self) -> bool {
        self.essence().eq_ignore_ascii_case("text/html")
    }
}

/// Text is declared with its charset, unless the type has parameters already.
impl fmt::Display for ContentType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        out.write_str(name)?;
        if !name.starts_with("text/") || name.contains(';') {
            return Ok(());
        }
        match &self.charset {
            Charset::Usual => out.write_str("; charset=utf-8"),
            Charset::Own(charset) => write!(out, "; charset={charset}"),
            Charset::None => Ok(()),
        }
    }
}

/// Returns the extension of a name, without its dot.
pub(super) fn extension(name: &[u8]) -> Option<&str> {
    let dot = memchr::memrchr(b'.', name)?;
    std::str::from_utf8(&name[dot + 1..]).ok()
}

#[cfg(test)]
mod tests {
    use super::ContentType;

    #[test]
    fn names_tell_their_types() {
        let cases = [
            ("index.html", "text/html; charset=utf-8"),
            ("A.HTM", "text/html; charset=utf-8"),
            ("style.css", "text/css; charset=utf-8"),
            ("app.js", "text/javascript; charset=utf-8"),
            ("app.mjs", "text/javascript; charset=utf-8"),
            ("readme.md", "text/markdown; charset=utf-8"),
            ("notes.txt", "text/plain; charset=utf-8"),
            ("data.json", "application/json"),
            ("a.wasm", "application/wasm"),
            ("logo.svg", "image/svg+xml"),
            ("photo.jpeg", "image/jpeg"),
            ("film.mp4", "video/mp4"),
            ("a.tar.gz", "application/gzip"),
            ("font.woff2", "font/woff2"),
            ("README", "application/octet-stream"),
            ("dot.", "application/octet-stream"),
            ("what.gustnado", "application/octet-stream"),
        ];
        for (name, expected) in cases {
            assert_eq!(ContentType::of(name.as_bytes()).to_string(), expected, "{name}");
        }
    }

    #[test]
    fn a_name_that_is_not_utf8_has_no_known_type() {
        assert_eq!(ContentType::of(b"a.h\xFFtml").to_string(), "application/octet-stream");
    }
}
