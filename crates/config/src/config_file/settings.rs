//! Settings in a configuration file: those of the server, and those that a site or a route has of
//! its own.

use std::ffi::OsString;

use toml::Spanned;
use toml::de::DeValue;

use super::listeners::read_listeners;
use super::value::{ValueReader, ValueTable, found, named};
use crate::Config;
use crate::error_pages::error_page_of;
use crate::file_settings::FileSetting;
use crate::route_settings::RouteSettings;
use crate::table::TUNABLES;
use crate::tunable::{Field, Tunable};

/// Returns the settings that a site and a route may have.
pub(super) fn of_routes() -> impl Iterator<Item = &'static Tunable> + Clone {
    TUNABLES.iter().filter(|tunable| tunable.fits_route())
}

/// Returns the keys of a site or a route: its own, and the settings that it may have.
pub(super) fn keys_with_settings<'k>(keys: &[&'k str]) -> Vec<&'k str> {
    keys.iter().copied().chain(of_routes().map(|tunable| tunable.name)).collect()
}

/// Reads the settings that a site or a route has of its own.
pub(super) fn read_own_settings(
    reader: &mut ValueReader<'_>,
    table: ValueTable<'_>,
) -> Vec<FileSetting> {
    let settings = of_routes().filter_map(|tunable| read_setting(reader, table, tunable)).collect();
    check_settings(reader, settings)
}

/// Reads the server's settings.
pub(super) fn read_settings(
    reader: &mut ValueReader<'_>,
    table: ValueTable<'_>,
) -> Vec<FileSetting> {
    let settings = TUNABLES.iter().filter_map(|tunable| read_setting(reader, table, tunable));
    let settings = settings.collect();
    check_settings(reader, settings)
}

/// Reports what is wrong with the settings of a table together, and with the files that they name.
fn check_settings(reader: &mut ValueReader<'_>, settings: Vec<FileSetting>) -> Vec<FileSetting> {
    let mut tuned = RouteSettings::default();
    for setting in settings.iter().filter(|setting| setting.tunable().fits_route()) {
        setting.tune(&mut tuned);
    }
    for (name, problem) in (reader.checks.settings)(&tuned) {
        let of = settings.iter().find(|setting| setting.name == name);
        reader.problem(of.map_or(1, |setting| setting.place.line), problem);
    }
    settings
}

fn read_setting(
    reader: &mut ValueReader<'_>,
    table: ValueTable<'_>,
    tunable: &'static Tunable,
) -> Option<FileSetting> {
    let (key, value) = table.values.get_key_value(tunable.name)?;
    if tunable.name == "error-page" && table.name.is_empty() && has_tables(value.get_ref()) {
        // Pages of the site of the file itself.
        return None;
    }
    let line = reader.line_of(key);
    let name = &*named(table, tunable.name);
    let variables = variables_in(reader, value);
    let is_interpolated = reader.interpolated.is_in(value);
    let mut items = Vec::new();
    let text: Option<OsString> = match (&tunable.field, value.get_ref()) {
        (Field::List { .. }, DeValue::String(_) | DeValue::Array(_))
            if tunable.name == "listen" =>
        {
            let (value, listeners) = read_listeners(reader, table)?;
            items = listeners;
            Some(value)
        }
        (Field::List { what, allowed, .. }, DeValue::String(_) | DeValue::Array(_)) => {
            items = read_items(reader, table, tunable.name, (what, *allowed))?;
            if tunable.name == "error-page" {
                items = pages_of(reader, items)?;
            }
            let all: Vec<&str> = items.iter().map(|(text, _)| text.as_str()).collect();
            Some(all.join(",").into())
        }
        (Field::Path { .. }, DeValue::String(path)) if !path.is_empty() => {
            Some(path_of(reader, tunable, path))
        }
        (Field::Switch { .. } | Field::Text { .. }, DeValue::Boolean(on))
            if tunable.bare_value().is_some() =>
        {
            Some(on.to_string().into())
        }
        (Field::Switch { .. }, DeValue::String(text)) if is_interpolated => {
            Some(text.as_ref().into())
        }
        // (No path at all would be no password, where a file of them was meant.)
        (Field::Switch { .. } | Field::Path { .. }, _) => None,
        (Field::Number { .. }, DeValue::Integer(number)) => {
            let number = u64::from_str_radix(number.as_str(), number.radix()).ok();
            number.map(|number| number.to_string().into())
        }
        (_, DeValue::String(text)) => Some(text.as_ref().into()),
        _ => None,
    };
    let expected = match &tunable.field {
        Field::Switch { .. } => "true or false, without quotes".to_owned(),
        _ => tunable.takes(),
    };
    let found = found(value.get_ref());
    let leave = remedy(tunable, &variables);
    let Some(value) = text else {
        reader.problem(line, format!("{name}: expected {expected}, found {found}; {leave}"));
        return None;
    };
    if let Err(refused) = tunable.set(&mut Config::default(), &value) {
        let remedy = refused.nearest.map_or(leave, |near| format!("did you mean {near}?"));
        let expected = refused.expected;
        reader.problem(line, format!("{name}: expected {expected}, found {found}; {remedy}"));
        return None;
    }
    let place = reader.place(line);
    Some(FileSetting { name: tunable.name, value, place, items, variables })
}

/// Returns whether a value has the form of `[[error-page]]`, as opposed to that of a setting.
pub(super) fn has_tables(value: &DeValue<'_>) -> bool {
    match value {
        DeValue::Array(items) => {
            items.iter().any(|item| matches!(item.get_ref(), DeValue::Table(_)))
        }
        value => matches!(value, DeValue::Table(_)),
    }
}

/// Returns pages for errors with the whole paths of their files; `None` if one of them cannot be
/// written in a list.
fn pages_of(
    reader: &mut ValueReader<'_>,
    items: Vec<(String, usize)>,
) -> Option<Vec<(String, usize)>> {
    let before = reader.problems.len();
    let mut pages = Vec::new();
    for (text, line) in items {
        let Some((statuses, file)) = error_page_of(&text) else { continue };
        let path = reader.path(file);
        if let Some(path) = path.to_str().filter(|path| !path.contains(',')) {
            pages.push((format!("{statuses}={path}"), line));
            continue;
        }
        let shown = path.display();
        let text = format!(
            "error-page: expected a path without a comma, found {shown}; name it in a \
             [[error-page]]"
        );
        reader.problem(line, text);
    }
    (reader.problems.len() == before).then_some(pages)
}

/// Returns the remedy for a wrong value: another one of the variables in it, or the default.
fn remedy(tunable: &Tunable, variables: &[String]) -> String {
    match (variables, tunable.default) {
        ([], "") => "leave it out for none".to_owned(),
        ([], default) => format!("leave it out for {default}"),
        (names, _) => format!("set {} to that", names.join(" and ")),
    }
}

/// Returns the value of a setting that is a path.
fn path_of(reader: &ValueReader<'_>, tunable: &Tunable, path: &str) -> OsString {
    match (tunable.name, path) {
        // Standard output, and no file of that name.
        ("access-log", "-") => "-".into(),
        // A route may want none of what its site has.
        (_, "off") if tunable.is_of_route() || tunable.is_guard() => "".into(),
        ("control", path) => reader.path(path.strip_prefix("unix:").unwrap_or(path)).into(),
        (_, path) => reader.path(path).into(),
    }
}

/// Returns the variables of the environment that are in a value.
fn variables_in(reader: &ValueReader<'_>, value: &Spanned<DeValue<'_>>) -> Vec<String> {
    let mut names = reader.interpolated.names(value).to_vec();
    if let DeValue::Array(items) = value.get_ref() {
        names.extend(items.iter().flat_map(|item| reader.interpolated.names(item)).cloned());
    }
    names
}

/// Reads the texts of a list, each with its line; `None` if one is not as it should be.
fn read_items(
    reader: &mut ValueReader<'_>,
    table: ValueTable<'_>,
    key: &str,
    (what, allowed): (&str, fn(&str) -> bool),
) -> Option<Vec<(String, usize)>> {
    let (before, name) = (reader.problems.len(), named(table, key));
    let mut items = Vec::new();
    let (_, value) = table.values.get_key_value(key)?;
    let is_interpolated = match value.get_ref() {
        DeValue::Array(items) => items.iter().any(|item| reader.interpolated.is_in(item)),
        _ => reader.interpolated.is_in(value),
    };
    for text in reader.texts(table, key)? {
        let (found, line) = (text.value, text.line);
        // One variable may hold several, as the setting's own variable does.
        let all = found.split(',').map(str::trim).filter(|one| !one.is_empty());
        let all: Vec<&str> = if is_interpolated { all.collect() } else { vec![found] };
        // No network at all would be every network, where some were meant.
        if all.is_empty() || !all.iter().all(|one| allowed(one) && !one.contains(',')) {
            let remedy = if all.is_empty() { "; set the variable to that" } else { "" };
            reader.problem(line, format!("{name}: expected {what}, found {found:?}{remedy}"));
        }
        items.extend(all.into_iter().map(|one| (one.to_owned(), line)));
    }
    (reader.problems.len() == before).then_some(items)
}
