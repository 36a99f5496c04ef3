//! The cookies of a request (RFC 6265 §4.2.1).

use gustnado_http::request::{FieldLines, RequestView};

/// Cookies in order: name and value as they were sent, without quotes. A part without `=` has an
/// empty name, as in browsers; parts that are not UTF-8 are skipped.
#[derive(Clone, Debug)]
pub struct Cookies<'a> {
    fields: FieldLines<'a>,
    rest: &'a str,
}

impl<'a> Cookies<'a> {
    pub(super) fn new(view: RequestView<'a>) -> Self {
        Self { fields: view.fields(), rest: "" }
    }
}

impl<'a> Iterator for Cookies<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            while self.rest.is_empty() {
                let field = self.fields.find(|field| field.0.eq_ignore_ascii_case(b"cookie"))?;
                self.rest = std::str::from_utf8(field.1).unwrap_or("");
            }
            let (part, rest) = self.rest.split_once(';').unwrap_or((self.rest, ""));
            self.rest = rest;
            let part = part.trim_matches([' ', '\t']);
            if part.is_empty() {
                continue;
            }
            let (name, value) = part.split_once('=').unwrap_or(("", part));
            let bare = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
            return Some((name, bare.unwrap_or(value)));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::request::tests::of;

    #[test]
    fn cookies_of_all_lines_come_in_order() {
        let request = of("GET / HTTP/1.1\r\nHost: h\r\nCookie: a=1; b=\"two\";; c\r\nX: y\r\n\
                          cookie: a=3;d=\r\n\r\n");
        let all: Vec<_> = request.cookies().collect();
        assert_eq!(all, [("a", "1"), ("b", "two"), ("", "c"), ("a", "3"), ("d", "")]);
    }
}
