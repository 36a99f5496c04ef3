//! The target of a redirect: a text with parts of the request's path in it.

use std::fmt;

/// `/new/{rest}`, or a whole URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<TemplatePiece>,
    has_query: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePiece {
    Text(String),
    Param(String),
}

impl Template {
    /// Reads a template.
    ///
    /// - `names`: the named parts of the route's path.
    ///
    /// # Errors
    /// What is wrong with it, and the remedy.
    pub(super) fn read(text: &str, names: &[String]) -> Result<Self, String> {
        let is_url = text.starts_with("https://") || text.starts_with("http://");
        let is_path = text.starts_with('/') && !text.starts_with("//");
        if !(is_url || is_path) {
            return Err("expected a path such as /new or a URL such as https://example.org/; \
                        begin it with / or https://"
                .to_owned());
        }
        if let Some(odd) = text.chars().find(|letter| !letter.is_ascii_graphic()) {
            return Err(format!("expected visible ASCII letters, found {odd:?}; escape it (%20)"));
        }
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let Some(length) = rest[open..].find('}') else {
                return Err("expected } behind {; close it, or write %7B for {".to_owned());
            };
            let name = &rest[open + 1..open + length];
            if !names.iter().any(|known| known == name) {
                return Err(unknown(name, names, text));
            }
            pieces.push(TemplatePiece::Text(rest[..open].to_owned()));
            pieces.push(TemplatePiece::Param(name.to_owned()));
            rest = &rest[open + length + 1..];
        }
        pieces.push(TemplatePiece::Text(rest.to_owned()));
        pieces.retain(|piece| *piece != TemplatePiece::Text(String::new()));
        let begin = text.find("://").map_or(0, |at| at + 3);
        let (host_end, open) = (text[begin..].find('/'), text[begin..].find('{'));
        if is_url && open.is_some_and(|open| host_end.is_none_or(|end| open < end)) {
            return Err("expected the host in plain letters, found a part of the path in it; put \
                        a / before it"
                .to_owned());
        }
        Ok(Self { pieces, has_query: text.contains('?') })
    }

    /// Returns where a request is led to. A query goes along, unless the template has one.
    ///
    /// - `raw_param`: the part of the request's path that has a name, as it was sent. Within the
    ///   template's query it is one value, whatever a path may have.
    /// - `raw_query`: the request's query, as it was sent.
    pub fn location(&self, raw_param: impl Fn(&str) -> String, raw_query: Option<&str>) -> String {
        let mut location = String::new();
        let mut is_query = false;
        for piece in &self.pieces {
            match piece {
                TemplatePiece::Text(text) => {
                    is_query |= text.contains('?');
                    location.push_str(text);
                }
                TemplatePiece::Param(name) if is_query => {
                    raw_param(name).chars().for_each(|letter| push_value(&mut location, letter));
                }
                TemplatePiece::Param(name) => location.push_str(&raw_param(name)),
            }
        }
        // `//host` and `/\host` would lead to another host: what a request brings cannot.
        let begins_with = |text: &str| location.starts_with(text);
        if begins_with("//") || begins_with("/\\") {
            location = format!("/{}", location.trim_start_matches(['/', '\\']));
        }
        if let Some(query) = raw_query.filter(|_| !self.has_query) {
            let end = location.find('#').unwrap_or(location.len());
            location.insert_str(end, &format!("?{query}"));
        }
        location
    }
}

/// Adds a letter of a path to the value of a query, where some divide one pair from the next.
fn push_value(query: &mut String, letter: char) {
    match letter {
        '&' => query.push_str("%26"),
        '=' => query.push_str("%3D"),
        '+' => query.push_str("%2B"),
        ';' => query.push_str("%3B"),
        letter => query.push(letter),
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|piece| match piece {
            TemplatePiece::Text(text) => f.write_str(text),
            TemplatePiece::Param(name) => write!(f, "{{{name}}}"),
        })
    }
}

/// - `text`: the whole template. It is shown where the name is none: a part of a value that is not
///   to be shown may be in it.
fn unknown(name: &str, names: &[String], text: &str) -> String {
    let has = match names {
        [] => "the path has no named parts".to_owned(),
        names => format!("the path has {{{}}}", names.join("}, {")),
    };
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    let found = if is_name { format!("{{{name}}}") } else { format!("{text:?}") };
    format!("found {found}, but {has}; name one of its parts, or write %7B for {{")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Template, String> {
        Template::read(text, &["rest".to_owned(), "id".to_owned()])
    }

    #[test]
    fn a_template_is_shown_as_it_was_written() {
        for text in ["/", "/new", "/a/{id}/b/{rest}", "https://x.org/{rest}?y={id}", "http://x"] {
            assert_eq!(read(text).expect("well formed").to_string(), text);
        }
    }

    #[test]
    fn a_part_of_the_path_is_one_value_of_a_query() {
        let location = |text: &str, query| {
            let template = read(text).expect("well formed");
            let param = |name: &str| if name == "id" { "7&a=b+c;d" } else { "x/y" }.to_owned();
            template.location(param, query)
        };
        assert_eq!(location("/u?id={id}&tab=x", None), "/u?id=7%26a%3Db%2Bc%3Bd&tab=x");
        assert_eq!(location("/u?of={rest}", Some("p=1")), "/u?of=x/y");
        assert_eq!(location("/u/{id}", Some("p=1")), "/u/7&a=b+c;d?p=1");
        assert_eq!(location("/u#top", Some("p=1")), "/u?p=1#top");
        assert_eq!(location("/u#top", None), "/u#top");
    }

    #[test]
    fn what_leads_nowhere_is_refused() {
        for (text, part) in [
            ("new", "begin it with /"),
            ("//example.org/x", "begin it with /"),
            ("javascript:alert(1)", "begin it with /"),
            ("/a b", "visible ASCII"),
            ("/a\r\nX: y", "visible ASCII"),
            ("/{rest", "expected }"),
            ("/{other}", "the path has {rest}, {id}"),
            ("https://x.org{rest}", "the host in plain letters"),
            ("https://{rest}", "the host in plain letters"),
        ] {
            let error = read(text).expect_err("not well formed");
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
