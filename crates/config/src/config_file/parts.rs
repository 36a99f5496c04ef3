//! Parts that a file, a site and a route may all have: header fields, folders.

use std::path::Path;

use super::value::{ValueReader, ValueTable, named};
use crate::headers::Headers;

/// Headers that depend on the content: files have their own, and text responses have `type`.
const OF_CONTENT: [&str; 6] =
    ["Content-Type", "Content-Range", "ETag", "Last-Modified", "Accept-Ranges", "Location"];

/// Notes that a folder cannot be served, and why.
pub(super) fn check_folder(reader: &mut ValueReader<'_>, line: usize, name: &str, path: &Path) {
    if let Err(why) = (reader.checks.folder)(path) {
        reader.problem(line, format!("{name}: {why}"));
    }
}

/// Returns the header fields of a table.
pub(super) fn read_headers(reader: &mut ValueReader<'_>, table: ValueTable<'_>) -> Headers {
    let mut fields = Headers::default();
    let Some(headers) = reader.table(table, "headers") else { return fields };
    let place = named(table, "headers");
    for name in headers.values.keys() {
        let line = reader.line_of(name);
        let name = name.get_ref().as_ref();
        let Some(value) = reader.text(headers, name) else { continue };
        let mut one = Headers::default();
        one.set(name, value.value);
        let of_content = OF_CONTENT.iter().find(|known| known.eq_ignore_ascii_case(name));
        if let Err((_, error)) = one.check() {
            let text = format!("{place}: {name:?} cannot be sent: {error}; leave it out");
            reader.problem(line, text);
        } else if ["Server", "Date"].iter().any(|own| own.eq_ignore_ascii_case(name)) {
            let text = format!(
                "{place}: {name} is set by the server; leave it out (`server-name` sets the name)"
            );
            reader.problem(line, text);
        } else if of_content.is_some() {
            let text = format!(
                "{place}: {name} depends on the content; leave it out (a text response has the key \
                 `type`)"
            );
            reader.problem(line, text);
        } else if fields.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
            reader.problem(line, format!("{place}: {name} is set twice; leave one out"));
        } else {
            fields.set(name, value.value);
        }
    }
    fields
}

/// Returns the header fields of a rule, which checks them itself.
pub(super) fn read_fields(
    reader: &mut ValueReader<'_>,
    table: ValueTable<'_>,
    key: &str,
) -> Headers {
    let mut fields = Headers::default();
    let Some((_, value)) = table.values.get_key_value(key) else { return fields };
    let name = named(table, key);
    let form = "{ \"Cache-Control\" = \"no-cache\" }";
    let Some(inner) = reader.as_table(table.line, &name, value.get_ref(), form) else {
        return fields;
    };
    for field in inner.values.keys() {
        let field = field.get_ref().as_ref();
        if let Some(value) = reader.text(inner, field) {
            fields.set(field, value.value);
        }
    }
    fields
}
