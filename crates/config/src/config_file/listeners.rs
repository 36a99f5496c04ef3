//! The key `listen` of a file: texts, or a `[[listen]]` table for each listener.

use std::ffi::OsString;

use toml::de::DeValue;

use super::value::{ValueReader, ValueTable, found};
use crate::listen::{KEYS, ListenSpec};

/// Returns the listeners of a table, in the form of the setting, and each with its line.
pub(super) fn read_listeners(
    reader: &mut ValueReader<'_>,
    table: ValueTable<'_>,
) -> Option<(OsString, Vec<(String, usize)>)> {
    let before = reader.problems.len();
    let texts: Vec<(String, usize)> = match table.values.get("listen")?.get_ref() {
        DeValue::Array(items)
            if items.iter().any(|item| matches!(item.get_ref(), DeValue::Table(_))) =>
        {
            let tables = reader.tables(table, "listen");
            tables.into_iter().filter_map(|one| Some((text_of(reader, one)?, one.line))).collect()
        }
        _ => {
            let texts = reader.texts(table, "listen")?;
            texts.into_iter().map(|text| (text.value.to_owned(), text.line)).collect()
        }
    };
    let mut items = Vec::new();
    for (text, line) in texts {
        match ListenSpec::parse(&text) {
            Err(problem) => reader.problem(line, format!("listen: {problem}")),
            Ok(_) if text.contains(',') => {
                reader.problem(line, format!("listen: expected no comma, found {text:?}"));
            }
            Ok(mut spec) => {
                spec.address = absolute(reader, &spec.address);
                items.push((spec.to_string(), line));
            }
        }
    }
    if reader.problems.len() > before {
        return None;
    }
    let all: Vec<&str> = items.iter().map(|(text, _)| text.as_str()).collect();
    Some((all.join(",").into(), items))
}

/// Returns the text of a listener's table.
fn text_of(reader: &mut ValueReader<'_>, table: ValueTable<'_>) -> Option<String> {
    let known: Vec<&str> = ["address"].into_iter().chain(KEYS).collect();
    reader.only(table, &known);
    let address = reader.required(table, "address")?;
    let mut text = address.value.replace('\\', "\\\\").replace(' ', "\\ ");
    for (key, value) in table.values {
        let name = key.get_ref().as_ref();
        if name == "address" || !known.contains(&name) {
            continue;
        }
        let values: Vec<String> = match value.get_ref() {
            DeValue::Array(items) => items.iter().filter_map(|one| plain(one.get_ref())).collect(),
            // A number would be read as it is written in octal, and TOML means another one.
            DeValue::Integer(_) if name == "mode" => Vec::new(),
            one => plain(one).into_iter().collect(),
        };
        if values.is_empty() {
            let (line, found) = (reader.line_of(key), found(value.get_ref()));
            let text = format!("listen.{name}: expected a value in quotes, found {found}");
            reader.problem(line, text);
        }
        for value in values {
            text = format!("{text} {name}={value}");
        }
    }
    Some(text)
}

fn plain(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) if !text.contains([' ', '\t', '\\', ',']) => Some(text.to_string()),
        DeValue::Boolean(on) => Some(on.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
        _ => None,
    }
}

/// Returns an address; the path of a Unix socket is relative to the file.
fn absolute(reader: &ValueReader<'_>, text: &str) -> String {
    let path = text.strip_prefix("unix:").filter(|path| !path.starts_with('@'));
    match path {
        Some(path) => format!("unix:{}", reader.path(path).display()),
        None => text.to_owned(),
    }
}
