//! Placeholders in the commands and files of a contender.

use std::fmt::Display;

/// Values of placeholders.
#[derive(Clone, Debug, Default)]
pub(super) struct Words {
    words: Vec<(&'static str, String)>,
}

impl Words {
    /// Adds a placeholder; a later one overrides an earlier one.
    pub(super) fn with(&self, word: &'static str, meaning: impl Display) -> Self {
        let mut words = self.words.clone();
        words.retain(|(known, _)| *known != word);
        words.push((word, meaning.to_string()));
        Self { words }
    }

    /// Replaces every known `{word}`. Other braces stay, because configuration files are full of
    /// them.
    pub(super) fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            filled.push_str(&rest[..at]);
            rest = &rest[at..];
            let known = self.words.iter().find(|(word, _)| {
                rest[1..].strip_prefix(word).is_some_and(|behind| behind.starts_with('}'))
            });
            let taken = known.map_or(1, |(word, _)| word.len() + 2);
            filled.push_str(known.map_or("{", |(_, meaning)| meaning));
            rest = &rest[taken..];
        }
        filled.push_str(rest);
        filled
    }

    /// Replaces them in every text.
    pub(super) fn fill_all(&self, texts: &[String]) -> Vec<String> {
        texts.iter().map(|text| self.fill(text)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_words_are_filled_and_other_braces_stay() {
        let words = Words::default().with("port", 80).with("root", "/srv").with("port", 81);
        assert_eq!(
            words.fill("http { listen {port}; root {root}; }"),
            "http { listen 81; root /srv; }"
        );
        assert_eq!(words.fill("{unknown} {port {{port}} {"), "{unknown} {port {81} {");
    }

    #[test]
    fn what_was_filled_in_is_not_filled_again() {
        let words = Words::default().with("port", 80).with("root", "{port}");
        assert_eq!(words.fill("{root}"), "{port}");
    }
}
