//! Values of the environment that are not shown: those of variables whose names look like secrets.

use crate::text::quoted;

/// Parts of such names.
const PARTS: [&str; 7] =
    ["PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "TOKEN", "CREDENTIAL", "APIKEY"];
/// Words of such names: what is between underscores.
const WORDS: [&str; 5] = ["KEY", "PASS", "PWD", "AUTH", "PRIVATE"];
/// A message shows this many letters of a value.
const SHOWN_CHARS: usize = 60;

/// Values that are not shown, each with the text that stands for it.
#[derive(Debug, Clone, Default)]
pub(super) struct HiddenValues {
    /// Values of variables, plain and as they are in quotes, with `${NAME}`.
    values: Vec<(String, String)>,
    /// Whole texts that have one in them, as messages show them, with what is in the file.
    texts: Vec<(String, String)>,
}

/// Returns whether the value of a variable should not be shown.
pub(super) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let is_word = |word: &str| WORDS.contains(&word);
    PARTS.iter().any(|part| name.contains(part)) || name.split('_').any(is_word)
}

impl HiddenValues {
    /// Adds a value.
    ///
    /// - `source`: the text of the file that it is in.
    /// - `expanded`: that text, with all values in it.
    pub(super) fn add(&mut self, name: &str, value: &str, source: &str, expanded: &str) {
        if value.is_empty() {
            return;
        }
        let stands = format!("${{{name}}}");
        put(&mut self.values, value.to_owned(), stands.clone());
        let in_quotes = quoted(value);
        put(&mut self.values, in_quotes[1..in_quotes.len() - 1].to_owned(), stands.clone());
        let short = |text: &str| text.chars().take(SHOWN_CHARS).collect::<String>();
        let debug = |text: &str| {
            let quoted = format!("{text:?}");
            quoted[1..quoted.len() - 1].to_owned()
        };
        for (text, stands) in [(value, &*stands), (expanded, source)] {
            for shown in [text.to_owned(), short(text)] {
                put(&mut self.texts, debug(&shown), stands.to_owned());
                put(&mut self.texts, shown, stands.to_owned());
            }
        }
        // The longest first: a shorter one may be a part of it.
        self.values.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        self.texts.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
    }

    /// Returns a message without them.
    pub(super) fn hidden(&self, message: &str) -> String {
        replaced(message, &self.texts, str::to_owned)
    }

    /// Returns a text as it is written into a file, so that it is read as the same: values that are
    /// not shown become `${NAME}` again, and `${` is escaped.
    pub(super) fn written(&self, text: &str) -> String {
        replaced(text, &self.values, |piece| piece.replace("${", "$${"))
    }
}

fn put(all: &mut Vec<(String, String)>, text: String, stands: String) {
    if !text.is_empty() && !all.iter().any(|(known, _)| *known == text) {
        all.push((text, stands));
    }
}

/// Returns a text with others in place of some parts, which are not read again.
fn replaced(text: &str, parts: &[(String, String)], other: impl Fn(&str) -> String) -> String {
    let (mut out, mut rest) = (String::new(), text);
    loop {
        let found =
            parts.iter().filter_map(|(part, stands)| Some((rest.find(part)?, part, stands)));
        let Some((at, part, stands)) = found.min_by_key(|(at, ..)| *at) else {
            out.push_str(&other(rest));
            return out;
        };
        out.push_str(&other(&rest[..at]));
        out.push_str(stands);
        rest = &rest[at + part.len()..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_like_secrets() {
        for name in ["DB_PASSWORD", "TOKEN", "API_KEY", "apikey", "X_PASS", "AUTH", "MY_SECRETS"] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["PORT", "HOST", "KEYBOARD", "COMPASS", "AUTHOR", "ROOT_DIR"] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn a_value_is_not_shown_whole_cut_or_escaped() {
        let mut secrets = HiddenValues::default();
        let value = format!("hun\"ter{}", "2".repeat(80));
        let expanded = format!("Bearer {value}");
        secrets.add("TOKEN", &value, "Bearer ${TOKEN}", &expanded);
        let cut: String = expanded.chars().take(SHOWN_CHARS).collect();
        for message in [format!("found {expanded:?}"), format!("found {cut:?}"), value.clone()] {
            let shown = secrets.hidden(&message);
            assert!(!shown.contains("222") && shown.contains("${TOKEN}"), "{shown}");
        }
        assert_eq!(secrets.written(&format!("${{a}} {value}")), "$${a} ${TOKEN}");
    }

    #[test]
    fn of_two_values_the_longer_one_is_taken() {
        let mut secrets = HiddenValues::default();
        secrets.add("A_KEY", "ab", "${A_KEY}", "ab");
        secrets.add("B_KEY", "abc", "${B_KEY}", "abc");
        assert_eq!(secrets.written("abcab"), "${B_KEY}${A_KEY}");
    }
}
