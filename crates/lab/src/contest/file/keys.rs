//! Known keys and their lines: reports all unknown keys at once, before any value is read.

use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{FileError, FileProblem};

/// The keys of a table, and of the tables in it.
pub(super) struct Keys {
    own: &'static [&'static str],
    below: &'static [(&'static str, &'static Keys)],
}

pub(super) const CONTEST: Keys = Keys {
    own: &[
        "title",
        "about",
        "reference",
        "rounds",
        "output",
        "fresh",
        "time_limit",
        "server_cpus",
        "generator_cpus",
        "page",
        "contender",
        "scenario",
    ],
    below: &[("page", &PAGE), ("contender", &CONTENDER), ("scenario", &SCENARIO)],
};

const PAGE: Keys = Keys { own: &["bytes", "file", "path"], below: &[] };

pub(super) const CONTENDER: Keys = Keys {
    own: &[
        "preset",
        "name",
        "about",
        "tuning",
        "needs",
        "installed_if",
        "install",
        "command",
        "version",
        "set_up",
        "files",
        "environment",
        "url",
        "unix_socket",
        "ready_timeout",
        "stop_timeout",
        "allow_unequal",
    ],
    below: &[],
};

const SCENARIO: Keys = Keys {
    own: &[
        "name",
        "title",
        "bytes",
        "path",
        "generator",
        "model",
        "connections",
        "probes",
        "rate",
        "requests",
        "duration",
        "warm_up",
        "keep_alive",
        "pipeline",
        "threads",
        "rounds",
        "arguments",
    ],
    below: &[],
};

/// The lines of a file's keys.
pub(super) struct Document {
    tables: Vec<TableLines>,
}

/// Where one table and its keys stand.
struct TableLines {
    /// The name of the list it is in; empty for the file itself.
    list: String,
    /// Its place in that list.
    at: usize,
    line: usize,
    keys: Vec<(String, usize)>,
}

impl Document {
    /// The line of a key in a table of a list (`("scenario", 2)`; the file itself is `("", 0)`), or
    /// of that table, or 0.
    pub(super) fn line(&self, list: &str, at: usize, key: &str) -> usize {
        let table = self.tables.iter().find(|table| table.list == list && table.at == at);
        table.map_or(0, |table| {
            let known = table.keys.iter().find(|(name, _)| name == key);
            known.map_or(table.line, |(_, line)| *line)
        })
    }
}

/// A text whose keys were looked at.
pub(super) struct Checked {
    pub(super) document: Document,
    /// The text without the keys that there are not, everything else in its place.
    pub(super) left: String,
    /// A line for each of them.
    pub(super) problems: Vec<FileProblem>,
}

/// Parses a text and looks at all its keys.
///
/// # Errors
/// What is no TOML. A key that there is not is taken out and said with all that is wrong besides.
pub(super) fn check(path: &Path, text: &str, known: &Keys) -> Result<Checked, FileError> {
    let mut walk = KeyWalk { text, problems: Vec::new(), tables: Vec::new(), unknown: Vec::new() };
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let line = error.span().map_or(0, |span| walk.line(span.start));
        let text = format!("{}; see https://toml.io", error.message().trim());
        walk.problems.push(FileProblem { line, text });
    }
    if !walk.problems.is_empty() {
        // What stands behind a slip is often read wrongly.
        return Err(FileError::new(path, walk.problems));
    }
    walk.table(document.get_ref(), ("", 0, 0), known);
    let KeyWalk { problems, tables, unknown, .. } = walk;
    let mut left = text.to_owned();
    for span in unknown {
        match without(&left, span) {
            Some(without) => left = without,
            // Nothing behind it can be read without reading it.
            None => return Err(FileError::new(path, problems)),
        }
    }
    Ok(Checked { document: Document { tables }, left, problems })
}

/// The text with blanks in place of a part of it, so that all lines stay where they are; `None`
/// where that is no TOML any more.
pub(super) fn without(text: &str, span: Range<usize>) -> Option<String> {
    let blank = |c: char| if c == '\n' { "\n".to_owned() } else { " ".repeat(c.len_utf8()) };
    let gone: String = text.get(span.clone())?.chars().map(blank).collect();
    let left = [&text[..span.start], &gone, &text[span.end..]].concat();
    DeTable::parse_recoverable(&left).1.is_empty().then_some(left)
}

struct KeyWalk<'a> {
    text: &'a str,
    problems: Vec<FileProblem>,
    tables: Vec<TableLines>,
    /// Where keys that there are not stand, with their values.
    unknown: Vec<Range<usize>>,
}

impl KeyWalk<'_> {
    fn line(&self, offset: usize) -> usize {
        self.text[..offset].matches('\n').count() + 1
    }

    fn table(&mut self, table: &DeTable<'_>, place: (&str, usize, usize), known: &Keys) {
        let (list, at, line) = place;
        let mut keys = Vec::new();
        for (key, value) in table {
            let name: &str = key.get_ref();
            let line = self.line(key.span().start);
            keys.push((name.to_owned(), line));
            if !known.own.contains(&name) {
                self.problems.push(FileProblem { line, text: unknown(name, known.own) });
                self.unknown.push(key.span().start..value.span().end);
            }
            if let Some((_, below)) = known.below.iter().find(|(table, _)| *table == name) {
                self.value(value, name, below);
            }
        }
        self.tables.push(TableLines { list: list.to_owned(), at, line, keys });
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>, name: &str, known: &Keys) {
        let line = self.line(value.span().start);
        match value.get_ref() {
            DeValue::Table(table) => self.table(table, (name, 0, line), known),
            DeValue::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    let line = self.line(item.span().start);
                    if let DeValue::Table(table) = item.get_ref() {
                        self.table(table, (name, at, line), known);
                    }
                }
            }
            // The next reader says that this is no table.
            _ => {}
        }
    }
}

fn unknown(name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(near) => format!("{name}: no such key here; did you mean {near}?"),
        None => format!("{name}: no such key here; there are {}", known.join(", ")),
    }
}

/// The known word that was probably meant.
pub(super) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let score = |word: &&&str| strsim::jaro_winkler(name, word);
    let best = known.iter().max_by(|a, b| score(a).total_cmp(&score(b)))?;
    (score(&best) > 0.8).then_some(*best)
}

#[cfg(test)]
pub(super) fn lists() -> [&'static [&'static str]; 4] {
    [CONTEST.own, PAGE.own, CONTENDER.own, SCENARIO.own]
}
