//! The tables of a file with the lines of their keys, and the mistakes that are found in them.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::FileProblem;

/// A table of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawTable<'a> {
    /// The text of the whole file.
    text: &'a str,
    table: &'a DeTable<'a>,
    line: usize,
}

impl<'a> RawTable<'a> {
    /// Returns the table that is the whole file.
    pub(super) fn of_file(text: &'a str, table: &'a DeTable<'a>) -> Self {
        Self { text, table, line: 0 }
    }

    /// All keys with their values.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'a str, &'a DeValue<'a>)> + use<'a> {
        self.table.iter().map(|(key, value)| (&**key.get_ref(), value.get_ref()))
    }

    /// The value of a key, if it is a text.
    pub(super) fn word(&self, name: &str) -> Option<&'a str> {
        let (_, value) = self.entries().find(|(key, _)| *key == name)?;
        value.as_str()
    }

    /// The tables below a key: one, or a list of them.
    pub(super) fn tables(&self, name: &str) -> Vec<RawTable<'a>> {
        let known = self.table.iter().find(|(key, _)| key.get_ref() == name);
        let Some((_, value)) = known else { return Vec::new() };
        match value.get_ref() {
            DeValue::Array(items) => items.iter().filter_map(|item| self.below(item)).collect(),
            _ => self.below(value).into_iter().collect(),
        }
    }

    fn below(&self, value: &'a Spanned<DeValue<'a>>) -> Option<RawTable<'a>> {
        let DeValue::Table(table) = value.get_ref() else { return None };
        let line = line_of(self.text, value.span().start);
        Some(RawTable { text: self.text, table, line })
    }

    /// The lines of the keys.
    pub(super) fn lines(&self) -> KeyLines {
        let line = |key: &'a Spanned<_>| line_of(self.text, key.span().start);
        let keys = self.table.iter().map(|(key, _)| (key.get_ref().to_string(), line(key)));
        KeyLines { line: self.line, keys: keys.collect() }
    }
}

/// Returns the number of the line that an offset lies in, from 1.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

/// The lines of the keys of one table.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyLines {
    /// Line of the table; 0 for the file as a whole.
    line: usize,
    keys: Vec<(String, usize)>,
}

impl KeyLines {
    /// Returns whether the file has a key.
    pub(super) fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|(name, _)| name == key)
    }

    /// The line of a key; without it, that of the table.
    fn line(&self, key: &str) -> usize {
        let known = self.keys.iter().find(|(name, _)| name == key);
        known.map_or(self.line, |(_, line)| *line)
    }
}

/// Mistakes, each with its line.
#[derive(Debug, Default)]
pub(super) struct Problems {
    pub(super) found: Vec<FileProblem>,
}

impl Problems {
    /// Reports a mistake. A further one of the same key is often a consequence of the first, and is
    /// left out.
    ///
    /// - `key`: its key; empty for the table as a whole.
    pub(super) fn say(&mut self, lines: &KeyLines, key: &str, text: &str) {
        let line = lines.line(key);
        let begin = format!("{key}:");
        let known = |one: &FileProblem| one.line == line && one.text.starts_with(&begin);
        if key.is_empty() {
            self.found.push(FileProblem { line, text: text.to_owned() });
        } else if !self.found.iter().any(known) {
            self.found.push(FileProblem { line, text: format!("{key}: {text}") });
        }
    }
}
