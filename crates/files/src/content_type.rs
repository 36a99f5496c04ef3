//! The `Content-Type` of a file, derived from its name alone.

use std::fmt;

/// A media type, as in a `Content-Type` field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentType {
    essence: &'static str,
}

impl ContentType {
    /// Returns the type of a file by its name, the last segment of a decoded path.
    ///
    /// A name without a known extension is `application/octet-stream`, which browsers save and
    /// never run.
    pub fn of(name: &[u8]) -> ContentType {
        // The lookup ignores the case of the letters.
        let guess =
            extension(name).and_then(|extension| mime_guess::from_ext(extension).first_raw());
        let essence = match guess {
            // RFC 9239 §6: the old name is an alias, and only `text/*` gets a charset below.
            Some("application/javascript") => "text/javascript",
            Some(essence) => essence,
            None => "application/octet-stream",
        };
        ContentType { essence }
    }

    /// Returns it without parameters: `text/html`.
    pub(super) fn essence(self) -> &'static str {
        self.essence
    }

    /// Returns whether it is a page of HTML.
    pub(super) fn is_html(self) -> bool {
        self.essence == "text/html"
    }
}

/// Text is declared as UTF-8, the only encoding that a new file is likely to have.
impl fmt::Display for ContentType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.essence)?;
        if self.essence.starts_with("text/") {
            out.write_str("; charset=utf-8")?;
        }
        Ok(())
    }
}

fn extension(name: &[u8]) -> Option<&str> {
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
