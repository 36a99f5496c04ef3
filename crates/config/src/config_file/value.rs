//! Reading values out of a table of TOML, and collecting what is wrong with them.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::Problem;
use crate::nearest::nearest;

/// The keys that hold tables.
const TABLES: [&str; 5] = ["settings", "headers", "route", "site", "error-page"];

/// A value with the line it stands in.
#[derive(Debug, Clone, Copy)]
pub(super) struct WithLine<T> {
    pub(super) value: T,
    pub(super) line: usize,
}

/// A table of the file, and what it is called in messages.
#[derive(Clone, Copy)]
pub(super) struct ValueTable<'t> {
    pub(super) values: &'t DeTable<'t>,
    /// `route`, `site`; empty for the file itself.
    pub(super) name: &'t str,
    pub(super) line: usize,
}

/// The file on its way from text to what it says.
pub(super) struct ValueReader<'a> {
    text: &'a str,
    /// The folder that relative paths begin in.
    base: PathBuf,
    pub(super) problems: Vec<Problem>,
    pub(super) check_folder: FolderCheck,
}

/// Check of a folder that is to be served. The error says why it cannot be, and the remedy.
pub type FolderCheck = fn(&Path) -> Result<(), String>;

impl<'a> ValueReader<'a> {
    pub(super) fn new(path: &Path, text: &'a str, check_folder: FolderCheck) -> Self {
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let base = folder.unwrap_or(Path::new("."));
        // Where the current folder is gone, relative paths stay so.
        let base = std::path::absolute(base).unwrap_or_else(|_| base.to_owned());
        Self { text, base, problems: Vec::new(), check_folder }
    }

    pub(super) fn problem(&mut self, line: usize, text: impl Into<String>) {
        self.problems.push(Problem { line, text: text.into() });
    }

    /// Returns the line of a place in the text.
    pub(super) fn line(&self, at: usize) -> usize {
        let before = self.text.as_bytes().get(..at).unwrap_or(self.text.as_bytes());
        1 + memchr::memchr_iter(b'\n', before).count()
    }

    pub(super) fn line_of<T>(&self, spanned: &Spanned<T>) -> usize {
        self.line(spanned.span().start)
    }

    /// A path as the file means it.
    pub(super) fn path(&self, with_line: &str) -> PathBuf {
        let joined = self.base.join(with_line);
        std::path::absolute(&joined).unwrap_or(joined)
    }

    /// Reports the unknown keys of a table.
    pub(super) fn only(&mut self, table: ValueTable<'_>, known: &[&str]) {
        for (key, value) in table.values {
            let name = key.get_ref();
            if known.contains(&name.as_ref()) {
                continue;
            }
            let place = if table.name.is_empty() { "" } else { ": " };
            let of_tables = known.iter().copied().filter(|key| TABLES.contains(key));
            let near = match value.get_ref() {
                DeValue::Table(_) | DeValue::Array(_) => nearest(name, of_tables),
                _ => None,
            };
            let text = match near.or_else(|| nearest(name, known.iter().copied())) {
                Some(near) => format!("no key is called {name:?}; did you mean {near:?}?"),
                None if table.name.is_empty() => format!(
                    "no key is called {name:?}; settings have the names of flags (`gustnado serve \
                     --help`), and besides there are {}",
                    TABLES.join(", ")
                ),
                None => format!("no key is called {name:?}; expected one of {}", known.join(", ")),
            };
            self.problem(self.line_of(key), format!("{}{place}{text}", table.name));
        }
    }

    /// A text.
    pub(super) fn text<'t>(
        &mut self,
        table: ValueTable<'t>,
        key: &str,
    ) -> Option<WithLine<&'t str>> {
        let (key, value) = table.values.get_key_value(key)?;
        let line = self.line_of(key);
        match value.get_ref() {
            DeValue::String(text) => Some(WithLine { value: text.as_ref(), line }),
            other => {
                let name = named(table, key.get_ref());
                let found = found(other);
                self.problem(line, format!("{name}: expected text in quotes, found {found}"));
                None
            }
        }
    }

    /// A text that has to be there.
    pub(super) fn required<'t>(
        &mut self,
        table: ValueTable<'t>,
        key: &str,
    ) -> Option<WithLine<&'t str>> {
        if !table.values.contains_key(key) {
            let name = table.name;
            self.problem(table.line, format!("{name}: expected the key {key}; add it"));
        }
        self.text(table, key)
    }

    /// Texts: an array of them, or a single one.
    pub(super) fn texts<'t>(
        &mut self,
        table: ValueTable<'t>,
        key: &str,
    ) -> Option<Vec<WithLine<&'t str>>> {
        let (key, value) = table.values.get_key_value(key)?;
        let line = self.line_of(key);
        let name = named(table, key.get_ref());
        match value.get_ref() {
            DeValue::String(text) => Some(vec![WithLine { value: text.as_ref(), line }]),
            DeValue::Array(items) => {
                let mut texts = Vec::new();
                for item in items {
                    let line = self.line_of(item);
                    match item.get_ref() {
                        DeValue::String(text) => {
                            texts.push(WithLine { value: text.as_ref(), line });
                        }
                        other => {
                            let found = found(other);
                            let text = format!("{name}: expected text in quotes, found {found}");
                            self.problem(line, text);
                        }
                    }
                }
                Some(texts)
            }
            other => {
                let found = found(other);
                let text = format!("{name}: expected texts in brackets, found {found}");
                self.problem(line, text);
                None
            }
        }
    }

    /// True or false.
    pub(super) fn switch(&mut self, table: ValueTable<'_>, key: &str) -> Option<bool> {
        let (key, value) = table.values.get_key_value(key)?;
        let line = self.line_of(key);
        match value.get_ref() {
            DeValue::Boolean(on) => Some(*on),
            other => {
                let (name, found) = (named(table, key.get_ref()), found(other));
                self.problem(line, format!("{name}: expected true or false, found {found}"));
                None
            }
        }
    }

    /// A whole number that a `u16` holds.
    pub(super) fn number(&mut self, table: ValueTable<'_>, key: &str) -> Option<WithLine<u16>> {
        let (key, value) = table.values.get_key_value(key)?;
        let line = self.line_of(key);
        let number = match value.get_ref() {
            DeValue::Integer(number) => u16::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        if number.is_none() {
            let name = named(table, key.get_ref());
            let found = found(value.get_ref());
            self.problem(line, format!("{name}: expected a whole number, found {found}"));
        }
        number.map(|value| WithLine { value, line })
    }

    /// A table in a table.
    pub(super) fn table<'t>(
        &mut self,
        table: ValueTable<'t>,
        key: &'t str,
    ) -> Option<ValueTable<'t>> {
        let (with_line, value) = table.values.get_key_value(key)?;
        let line = self.line_of(with_line);
        match value.get_ref() {
            DeValue::Table(values) => Some(ValueTable { values, name: key, line }),
            other => {
                let found = found(other);
                let text = format!("{key}: expected a table, found {found}; write [{key}]");
                self.problem(line, text);
                None
            }
        }
    }

    /// Returns all tables of that name in a table.
    pub(super) fn tables<'t>(
        &mut self,
        table: ValueTable<'t>,
        key: &'t str,
    ) -> Vec<ValueTable<'t>> {
        let Some((with_line, value)) = table.values.get_key_value(key) else { return Vec::new() };
        let line = self.line_of(with_line);
        let DeValue::Array(items) = value.get_ref() else {
            let found = found(value.get_ref());
            let text = format!("{key}: expected tables, found {found}; write [[{key}]]");
            self.problem(line, text);
            return Vec::new();
        };
        let mut tables = Vec::new();
        for item in items {
            let line = self.line_of(item);
            match item.get_ref() {
                DeValue::Table(values) => tables.push(ValueTable { values, name: key, line }),
                other => {
                    let found = found(other);
                    let text = format!("{key}: expected a table, found {found}; write [[{key}]]");
                    self.problem(line, text);
                }
            }
        }
        tables
    }
}

/// Returns the name of a key in messages: `route.path`.
pub(super) fn named(table: ValueTable<'_>, key: &str) -> String {
    if table.name.is_empty() { key.to_owned() } else { format!("{}.{key}", table.name) }
}

/// Returns what was found, for a message.
pub(super) fn found(value: &DeValue<'_>) -> String {
    let short = |text: &str| text.chars().take(60).collect::<String>();
    match value {
        DeValue::String(text) => format!("{:?}", short(text)),
        DeValue::Integer(number) => short(&number.to_string()),
        DeValue::Float(number) => short(&number.to_string()),
        DeValue::Boolean(on) => on.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "an array".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
