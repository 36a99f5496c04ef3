//! Known keys and their lines: reports all unknown keys at once, before any value is read.

use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{FileError, FileProblem};

/// The keys of a table, and of its subtables.
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
        "accept_status",
        "arguments",
    ],
    below: &[],
};

/// The lines of a file's keys.
pub(super) struct Document {
    tables: Vec<TableLines>,
}

/// Lines of one table and its keys.
struct TableLines {
    /// Name of the list that contains it; empty for the file itself.
    list: String,
    /// Index in that list.
    at: usize,
    line: usize,
    keys: Vec<(String, usize)>,
}

impl Document {
    /// Returns the line of a key in a table of a list (`("scenario", 2)`; the file itself is `("",
    /// 0)`), or the line of that table, or 0.
    pub(super) fn line(&self, list: &str, at: usize, key: &str) -> usize {
        let table = self.tables.iter().find(|table| table.list == list && table.at == at);
        table.map_or(0, |table| {
            let known = table.keys.iter().find(|(name, _)| name == key);
            known.map_or(table.line, |(_, line)| *line)
        })
    }
}

/// A text with checked keys.
pub(super) struct Checked {
    pub(super) document: Document,
    /// The text without its unknown keys, everything else in its place.
    pub(super) left: String,
    /// A line for each unknown key.
    pub(super) problems: Vec<FileProblem>,
}

/// Parses a text and checks all its keys.
///
/// # Errors
/// Invalid TOML. Unknown keys are taken out and reported together with all other mistakes.
pub(super) fn check(path: &Path, text: &str, known: &Keys) -> Result<Checked, FileError> {
    let mut walk = KeyWalk { text, problems: Vec::new(), tables: Vec::new(), unknown: Vec::new() };
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let line = error.span().map_or(0, |span| walk.line(span.start));
        let text = format!("{}; see https://toml.io", error.message().trim());
        walk.problems.push(FileProblem { line, text });
    }
    if !walk.problems.is_empty() {
        // An error after a mistake is often a consequence of it.
        return Err(FileError::new(path, walk.problems));
    }
    walk.table(document.get_ref(), ("", 0, 0), known);
    let KeyWalk { problems, tables, unknown, .. } = walk;
    let mut left = text.to_owned();
    for span in unknown {
        match without(&left, span) {
            Some(without) => left = without,
            // Nothing after it can be parsed without it.
            None => return Err(FileError::new(path, problems)),
        }
    }
    Ok(Checked { document: Document { tables }, left, problems })
}

/// Replaces a part of the text by blanks, so that all lines keep their numbers; `None` if the
/// result is not valid TOML.
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
    /// Unknown keys with the spans of their values.
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
            // The next step reports that this is not a table.
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
