//! TOML errors of a file, one for each line, with the remedy.

use super::value::ValueReader;

/// Reports what the parser has found. Of several problems in one line only the first: the others
/// most often come of it.
pub(super) fn report(reader: &mut ValueReader<'_>, text: &str, errors: &[toml::de::Error]) {
    let mut last = None;
    for error in errors {
        let at = error.span().map(|span| span.start);
        let line = at.map_or(0, |at| reader.line(at));
        if last.replace(line) == Some(line) {
            continue;
        }
        let message = error.message().trim();
        let with_line =
            line.checked_sub(1).and_then(|line| text.lines().nth(line)).unwrap_or_default();
        let problem = match unquoted(with_line) {
            Some((key, value)) if message != "duplicate key" => {
                format!("{key}: expected text in quotes, found {value}; write {key} = {value:?}")
            }
            _ if message == "duplicate key" => twice(text, with_line, line),
            _ => format!("{message}; see https://toml.io"),
        };
        reader.problem(line, problem);
    }
}

/// Returns the key and the value of a line such as `root = ./public`.
fn unquoted(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once('=')?;
    let (key, value) = (key.trim(), value.trim());
    let is_key =
        !key.is_empty() && key.chars().all(|one| one.is_ascii_alphanumeric() || "-_".contains(one));
    let is_word = |one: char| one.is_alphanumeric() || "./:_-*@~%+".contains(one);
    // What begins with a sign, a digit or a bracket may be a slip in something else.
    let begins = value.starts_with(|one: char| one.is_alphabetic() || "./~*:".contains(one));
    let is_number =
        value.starts_with('.') && value[1..].starts_with(|one: char| one.is_ascii_digit());
    let is_address = value.starts_with(|one: char| one.is_ascii_digit())
        && value.matches(['.', ':']).count() > 1;
    let is_text = (begins && !is_number || is_address) && value.chars().all(is_word);
    (is_key && is_text && !matches!(value, "true" | "false" | "inf" | "nan"))
        .then_some((key, value))
}

/// Returns which key is there twice, and where it was first.
fn twice(text: &str, with_line: &str, line: usize) -> String {
    let key_of = |line: &str| match line.trim().strip_prefix('[') {
        Some(table) => {
            let name = table.trim_start_matches('[').split(']').next();
            name.unwrap_or_default().trim().to_owned()
        }
        None => line.split('=').next().unwrap_or_default().trim().to_owned(),
    };
    let key = key_of(with_line);
    let is_table = with_line.trim_start().starts_with('[');
    let before: Vec<&str> = text.lines().take(line.saturating_sub(1)).collect();
    // A key is the same only in the same table; a table anywhere.
    let mut earlier = before.iter().enumerate().rev();
    let first = earlier
        .by_ref()
        .take_while(|(_, line)| is_table || !line.trim_start().starts_with('['))
        .filter(|(_, line)| line.trim_start().starts_with('[') == is_table)
        .find(|(_, line)| key_of(line) == key)
        .map(|(at, _)| at + 1);
    match first {
        Some(first) => format!("{key}: line {first} sets it already; leave one of them out"),
        None => format!("{key}: it is set already; leave one of them out"),
    }
}

#[cfg(test)]
mod tests {
    use crate::config_file::{ConfigFile, ValueChecks};
    use std::path::Path;

    fn with_line(text: &str) -> String {
        ConfigFile::parse(Path::new("a.toml"), text, ValueChecks::NONE)
            .expect_err("it is wrong")
            .to_string()
    }

    #[test]
    fn text_without_quotes_is_one_line_that_says_so() {
        for (value, shown) in
            [("./public", "./public"), ("/srv/www", "/srv/www"), ("public", "public")]
        {
            assert_eq!(
                with_line(&format!("port = 1\nroot = {value}\n")),
                format!(
                    "a.toml:2: root: expected text in quotes, found {shown}; write root = \
                     \"{shown}\""
                )
            );
        }
        assert!(with_line("host = 127.0.0.1\n").contains("write host = \"127.0.0.1\""));
        assert!(with_line("header-timeout = 5s\n").starts_with("a.toml:1: "));
        assert_eq!(with_line("header-timeout = 5s\n").lines().count(), 1);
    }

    #[test]
    fn a_key_that_is_there_twice_is_named() {
        assert_eq!(
            with_line("port = 1\nhidden = true\nport = 2\n"),
            "a.toml:3: port: line 1 sets it already; leave one of them out"
        );
        assert_eq!(
            with_line("[headers]\nA = \"b\"\n[headers]\n"),
            "a.toml:3: headers: line 1 sets it already; leave one of them out"
        );
    }

    #[test]
    fn other_slips_are_said_as_the_parser_has_them() {
        assert!(with_line("port = \n").contains("see https://toml.io"));
        assert!(with_line("port 80\n").contains("see https://toml.io"));
    }
}
