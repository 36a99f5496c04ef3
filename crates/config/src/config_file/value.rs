//! Reading values out of a table of TOML, and collecting what is wrong with them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::Problem;
use crate::file_settings::FilePlace;
use crate::nearest::nearest;
use crate::route_settings::RouteSettings;

/// The keys that hold tables.
const TABLES: [&str; 9] =
    ["settings", "headers", "header", "rewrite", "listen", "route", "site", "error-page", "cache"];

/// A value with its line.
#[derive(Debug, Clone, Copy)]
pub(super) struct WithLine<T> {
    pub(super) value: T,
    pub(super) line: usize,
}

/// A table of the file, and its name in messages.
#[derive(Clone, Copy)]
pub(super) struct ValueTable<'t> {
    pub(super) values: &'t DeTable<'t>,
    /// `route`, `site`; empty for the file itself.
    pub(super) name: &'t str,
    pub(super) line: usize,
}

/// The file while it is read, and the problems found so far.
pub(super) struct ValueReader<'a> {
    text: &'a str,
    /// The file, as it was named.
    pub(super) file: Arc<Path>,
    /// The folder that relative paths begin in.
    base: PathBuf,
    pub(super) problems: Vec<Problem>,
    pub(super) checks: ValueChecks,
    /// The texts that have values of the environment in them.
    pub(super) interpolated: Interpolated,
}

/// The texts of a file that have values of the environment in them.
#[derive(Default)]
pub(super) struct Interpolated {
    /// Names of the variables, by the place of the text in the file.
    names: HashMap<usize, Vec<String>>,
    bytes: usize,
}

impl Interpolated {
    /// Adds a text, and returns how many bytes all of them have.
    ///
    /// - `start`: its place in the file.
    pub(super) fn add(&mut self, start: usize, names: Vec<String>, bytes: usize) -> usize {
        self.names.insert(start, names);
        self.bytes += bytes;
        self.bytes
    }

    /// Returns whether a value has a variable in it, or the default of one: then it is text,
    /// whatever it stands for.
    pub(super) fn is_in<T>(&self, value: &Spanned<T>) -> bool {
        self.names.contains_key(&value.span().start)
    }

    /// Returns the variables whose values are in a value.
    pub(super) fn names<T>(&self, value: &Spanned<T>) -> &[String] {
        self.names.get(&value.span().start).map_or(&[], Vec::as_slice)
    }
}

/// Checks of values that other crates do: those that serve folders, and that read what settings
/// name.
#[derive(Debug, Clone, Copy)]
pub struct ValueChecks {
    /// Whether a folder can be served. The error says why it cannot be, and the remedy.
    pub folder: fn(&Path) -> Result<(), String>,
    /// What is wrong with the settings of a table: each the name of the setting, and a message.
    pub settings: fn(&RouteSettings) -> Vec<(&'static str, String)>,
}

impl ValueChecks {
    /// No checks: every folder can be served, and every file be read.
    pub const NONE: Self = Self { folder: |_| Ok(()), settings: |_| Vec::new() };
}

impl<'a> ValueReader<'a> {
    pub(super) fn new(file: &Arc<Path>, text: &'a str, checks: ValueChecks) -> Self {
        let folder = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        let base = folder.unwrap_or(Path::new("."));
        // Where the current folder is gone, relative paths stay so.
        let base = std::path::absolute(base).unwrap_or_else(|_| base.to_owned());
        let file = Arc::clone(file);
        let (problems, interpolated) = (Vec::new(), Interpolated::default());
        Self { text, file, base, problems, checks, interpolated }
    }

    pub(super) fn problem(&mut self, line: usize, text: impl Into<String>) {
        let file = Arc::clone(&self.file);
        self.problems.push(Problem { file, line, text: text.into() });
    }

    /// Returns a line of the file as a place.
    pub(super) fn place(&self, line: usize) -> FilePlace {
        FilePlace { file: Arc::clone(&self.file), line }
    }

    /// Returns a place as messages name it: `line 3`, or with the name of another file.
    pub(super) fn seen(&self, place: &FilePlace) -> String {
        place.seen_from(&self.file)
    }

    /// Returns the line of a place in the text.
    pub(super) fn line(&self, at: usize) -> usize {
        let before = self.text.as_bytes().get(..at).unwrap_or(self.text.as_bytes());
        1 + memchr::memchr_iter(b'\n', before).count()
    }

    pub(super) fn line_of<T>(&self, spanned: &Spanned<T>) -> usize {
        self.line(spanned.span().start)
    }

    /// Returns the absolute path of one in the file.
    pub(super) fn path(&self, text: &str) -> PathBuf {
        let joined = self.base.join(text);
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
                     --help`), and there are {}",
                    TABLES.join(", ")
                ),
                None => format!("no key is called {name:?}; expected one of {}", known.join(", ")),
            };
            self.problem(self.line_of(key), format!("{}{place}{text}", table.name));
        }
    }

    /// Notes that a value is not what was expected.
    fn expected(&mut self, line: usize, name: &str, what: &str, value: &DeValue<'_>) {
        self.problem(line, format!("{name}: expected {what}, found {}", found(value)));
    }

    /// Returns a value that is text.
    fn as_text<'t>(
        &mut self,
        line: usize,
        name: &str,
        value: &'t DeValue<'t>,
    ) -> Option<WithLine<&'t str>> {
        if let DeValue::String(text) = value {
            return Some(WithLine { value: text.as_ref(), line });
        }
        self.expected(line, name, "text in quotes", value);
        None
    }

    /// Returns a value that is a table.
    ///
    /// - `form`: how such a table begins.
    pub(super) fn as_table<'t>(
        &mut self,
        line: usize,
        name: &'t str,
        value: &'t DeValue<'t>,
        form: &str,
    ) -> Option<ValueTable<'t>> {
        if let DeValue::Table(values) = value {
            return Some(ValueTable { values, name, line });
        }
        let found = found(value);
        self.problem(line, format!("{name}: expected a table, found {found}; write {form}"));
        None
    }

    /// Returns the text of a key.
    pub(super) fn text<'t>(
        &mut self,
        table: ValueTable<'t>,
        key: &str,
    ) -> Option<WithLine<&'t str>> {
        let (key, value) = table.values.get_key_value(key)?;
        self.as_text(self.line_of(key), &named(table, key.get_ref()), value.get_ref())
    }

    /// Returns the text of a key that has to be there.
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

    /// Returns the texts of a key: an array of them, or a single one.
    pub(super) fn texts<'t>(
        &mut self,
        table: ValueTable<'t>,
        key: &str,
    ) -> Option<Vec<WithLine<&'t str>>> {
        let (key, value) = table.values.get_key_value(key)?;
        let (line, name) = (self.line_of(key), named(table, key.get_ref()));
        match value.get_ref() {
            DeValue::String(text) => Some(vec![WithLine { value: text.as_ref(), line }]),
            DeValue::Array(items) => {
                let text = |item| self.as_text(self.line_of(item), &name, item.get_ref());
                Some(items.iter().filter_map(text).collect())
            }
            other => {
                self.expected(line, &name, "texts in brackets", other);
                None
            }
        }
    }

    /// Returns the texts of a key, or the numbers as text: an array of them, or a single one.
    pub(super) fn texts_or_numbers(
        &mut self,
        table: ValueTable<'_>,
        key: &str,
    ) -> Option<Vec<WithLine<String>>> {
        let (key, value) = table.values.get_key_value(key)?;
        let (line, name) = (self.line_of(key), named(table, key.get_ref()));
        let all = match value.get_ref() {
            DeValue::Array(items) => {
                items.iter().map(|item| (self.line_of(item), item.get_ref())).collect()
            }
            one => vec![(line, one)],
        };
        let mut texts = Vec::new();
        for (line, value) in all {
            match value {
                DeValue::String(text) => texts.push(WithLine { value: text.to_string(), line }),
                DeValue::Integer(number) => {
                    texts.push(WithLine { value: number.as_str().to_owned(), line });
                }
                other => self.expected(line, &name, "a text or a number", other),
            }
        }
        Some(texts)
    }

    /// Returns the switch of a key: true or false.
    pub(super) fn switch(&mut self, table: ValueTable<'_>, key: &str) -> Option<bool> {
        let (key, value) = table.values.get_key_value(key)?;
        match value.get_ref() {
            DeValue::Boolean(on) => return Some(*on),
            // A value of the environment is text.
            DeValue::String(text) if self.interpolated.is_in(value) => match text.as_ref() {
                "true" => return Some(true),
                "false" => return Some(false),
                _ => {}
            },
            _ => {}
        }
        let name = named(table, key.get_ref());
        self.expected(self.line_of(key), &name, "true or false", value.get_ref());
        None
    }

    /// Returns the number of a key, which a `u16` holds.
    pub(super) fn number(&mut self, table: ValueTable<'_>, key: &str) -> Option<WithLine<u16>> {
        let (key, value) = table.values.get_key_value(key)?;
        let line = self.line_of(key);
        let number = match value.get_ref() {
            DeValue::Integer(number) => u16::from_str_radix(number.as_str(), number.radix()).ok(),
            DeValue::String(text) if self.interpolated.is_in(value) => text.parse().ok(),
            _ => None,
        };
        if number.is_none() {
            self.expected(line, &named(table, key.get_ref()), "a whole number", value.get_ref());
        }
        number.map(|value| WithLine { value, line })
    }

    /// Returns the table of a key.
    pub(super) fn table<'t>(
        &mut self,
        table: ValueTable<'t>,
        key: &'t str,
    ) -> Option<ValueTable<'t>> {
        let (with_line, value) = table.values.get_key_value(key)?;
        self.as_table(self.line_of(with_line), key, value.get_ref(), &format!("[{key}]"))
    }

    /// Returns all tables of a key.
    pub(super) fn tables<'t>(
        &mut self,
        table: ValueTable<'t>,
        key: &'t str,
    ) -> Vec<ValueTable<'t>> {
        let Some((with_line, value)) = table.values.get_key_value(key) else { return Vec::new() };
        let form = format!("[[{key}]]");
        let DeValue::Array(items) = value.get_ref() else {
            let (line, found) = (self.line_of(with_line), found(value.get_ref()));
            self.problem(line, format!("{key}: expected tables, found {found}; write {form}"));
            return Vec::new();
        };
        let table = |item| self.as_table(self.line_of(item), key, item.get_ref(), &form);
        items.iter().filter_map(table).collect()
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
