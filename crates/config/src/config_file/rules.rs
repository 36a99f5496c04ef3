//! Rules of a file: of header fields, and of paths that take the place of others.

use super::methods::read_methods;
use super::parts::read_fields;
use super::rewrite::Rewrite;
use super::value::{ValueReader, ValueTable, named};
use crate::access::{HeaderRule, StatusRange};

/// The keys of a rule of header fields.
pub(super) const HEADER_KEYS: [&str; 7] =
    ["path", "status", "type", "methods", "set", "add", "remove"];
/// The keys of a rewrite.
pub(super) const REWRITE_KEYS: [&str; 2] = ["from", "to"];

/// The most rules and rewrites of a table: each is tried for each request.
const RULES_MAX: usize = 1_000;

/// Reads the rules of header fields of a file, a site or a route.
pub(super) fn read_header_rules(
    reader: &mut ValueReader<'_>,
    table: ValueTable<'_>,
) -> Vec<HeaderRule> {
    let mut rules = Vec::new();
    for rule in reader.tables(table, "header") {
        reader.only(rule, &HEADER_KEYS);
        let before = reader.problems.len();
        let read = read_header_rule(reader, rule);
        if reader.problems.len() > before {
            continue;
        }
        match read.check() {
            Ok(()) => rules.push(read),
            Err(error) => reader.problem(rule.line, format!("header: {error}")),
        }
    }
    check_count(reader, table, "header", rules.len());
    rules
}

fn read_header_rule(reader: &mut ValueReader<'_>, table: ValueTable<'_>) -> HeaderRule {
    let path = reader.text(table, "path").map(|path| path.value.to_owned());
    let mut statuses = Vec::new();
    for status in reader.texts_or_numbers(table, "status").unwrap_or_default() {
        if let Some(range) = StatusRange::parse(&status.value) {
            statuses.push(range);
            continue;
        }
        let (name, found) = (named(table, "status"), status.value);
        let text = format!(
            "{name}: expected a status such as 404, or a class such as \"4xx\", found {found:?}; \
             leave it out for all"
        );
        reader.problem(status.line, text);
    }
    let types = reader.texts(table, "type").unwrap_or_default();
    let types = types.iter().map(|kind| kind.value.to_ascii_lowercase()).collect();
    let methods = read_methods(reader, table).unwrap_or_default();
    let set = read_fields(reader, table, "set");
    let add = read_fields(reader, table, "add");
    let add = add.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let remove = reader.texts(table, "remove").unwrap_or_default();
    let remove = remove.iter().map(|name| name.value.to_owned()).collect();
    HeaderRule { path, statuses, types, methods, set, add, remove }
}

/// Reads the rewrites of a file or a site.
///
/// - `rewrites`: those that other files have, which these come behind.
pub(super) fn read_rewrites(
    reader: &mut ValueReader<'_>,
    table: ValueTable<'_>,
    rewrites: &mut Vec<Rewrite>,
) {
    for rule in reader.tables(table, "rewrite") {
        reader.only(rule, &REWRITE_KEYS);
        let (from, to) = (reader.required(rule, "from"), reader.required(rule, "to"));
        let (Some(from), Some(to)) = (from, to) else { continue };
        if rewrites.iter().any(|known| known.from == from.value) {
            let text = format!("rewrite.from: {} is there twice; leave one out", from.value);
            reader.problem(from.line, text);
        }
        match Rewrite::new(from.value, to.value) {
            Ok(rewrite) => rewrites.push(rewrite),
            Err(error) => reader.problem(to.line, format!("rewrite: {error}")),
        }
    }
    check_count(reader, table, "rewrite", rewrites.len());
}

fn check_count(reader: &mut ValueReader<'_>, table: ValueTable<'_>, key: &str, count: usize) {
    if count > RULES_MAX {
        let text =
            format!("{key}: expected at most {RULES_MAX} of them, found {count}; merge some");
        reader.problem(table.line, text);
    }
}
