//! Reading of a configuration file.

use std::ffi::OsString;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::hosts::{Hosts, read_hosts};
use super::listeners::read_listeners;
use super::parts::{check_folder, read_headers};
use super::route::{read_page, read_route};
use super::site_tls::read_tls;
use super::specs::SiteSpec;
use super::value::{FolderCheck, ValueReader, ValueTable, found, named};
use super::{ConfigFile, SiteError, syntax};
use crate::Config;
use crate::file_settings::{FileSetting, FileSettings};
use crate::listen::ListenSpec;
use crate::table::TUNABLES;
use crate::tunable::{Field, Tunable};

/// The keys of a file that are no settings.
pub(super) const TOP_KEYS: [&str; 5] = ["settings", "headers", "route", "site", "error-page"];
/// The keys of a site.
pub(super) const SITE_KEYS: [&str; 6] = ["hosts", "root", "tls", "headers", "route", "error-page"];

pub(super) fn read(
    path: &Path,
    text: &str,
    check_folder: FolderCheck,
) -> Result<ConfigFile, SiteError> {
    let mut reader = ValueReader::new(path, text, check_folder);
    let (document, errors) = DeTable::parse_recoverable(text);
    syntax::report(&mut reader, text, &errors);
    if !reader.problems.is_empty() {
        // Text behind a syntax error is often read wrongly.
        return Err(SiteError::new(path, reader.problems));
    }
    let file = ValueTable { values: document.get_ref(), name: "", line: 1 };
    let names = TUNABLES.iter().map(|tunable| tunable.name);
    let known: Vec<&str> = names.clone().chain(TOP_KEYS).collect();
    reader.only(file, &known);
    let mut settings = read_settings(&mut reader, file);
    if let Some(table) = reader.table(file, "settings") {
        reader.only(table, &names.collect::<Vec<_>>());
        for setting in read_settings(&mut reader, table) {
            if let Some(known) = settings.iter().find(|known| known.name == setting.name) {
                let (name, line) = (setting.name, known.line);
                let text = format!("{name}: line {line} sets it already; leave one of them out");
                reader.problem(setting.line, text);
            }
            settings.push(setting);
        }
    }
    check_settings(&mut reader, &settings);
    let headers = read_headers(&mut reader, file);
    let mut main = read_site(&mut reader, file);
    main.root = None;
    let mut sites = Vec::new();
    let mut hosts = Hosts::default();
    for table in reader.tables(file, "site") {
        reader.only(table, &SITE_KEYS);
        let mut site = read_site(&mut reader, table);
        site.hosts = read_hosts(&mut reader, table, &mut hosts);
        site.tls = read_tls(&mut reader, table);
        site.headers = read_headers(&mut reader, table);
        sites.push(site);
    }
    if !reader.problems.is_empty() {
        return Err(SiteError::new(path, reader.problems));
    }
    let settings = FileSettings { path: path.to_owned(), settings };
    Ok(ConfigFile { settings, headers, main, sites })
}

fn read_settings(reader: &mut ValueReader<'_>, table: ValueTable<'_>) -> Vec<FileSetting> {
    TUNABLES.iter().filter_map(|tunable| read_setting(reader, table, tunable)).collect()
}

fn read_setting(
    reader: &mut ValueReader<'_>,
    table: ValueTable<'_>,
    tunable: &'static Tunable,
) -> Option<FileSetting> {
    let (key, value) = table.values.get_key_value(tunable.name)?;
    let line = reader.line_of(key);
    let name = tunable.name;
    let mut items = Vec::new();
    let text: Option<OsString> = match (&tunable.field, value.get_ref()) {
        (Field::List { .. }, DeValue::String(_) | DeValue::Array(_)) if name == "listen" => {
            let (value, listeners) = read_listeners(reader, table)?;
            items = listeners;
            Some(value)
        }
        (Field::List { what, allowed, .. }, DeValue::String(_) | DeValue::Array(_)) => {
            let before = reader.problems.len();
            for text in reader.texts(table, name)? {
                let (found, line) = (text.value, text.line);
                if !allowed(found) || found.contains(',') {
                    reader.problem(line, format!("{name}: expected {what}, found {found:?}"));
                }
                items.push((found.to_owned(), line));
            }
            if reader.problems.len() > before {
                return None;
            }
            let all: Vec<&str> = items.iter().map(|(text, _)| text.as_str()).collect();
            Some(all.join(",").into())
        }
        (Field::Path { .. }, DeValue::String(path)) if path == "-" && name == "access-log" => {
            // Standard output, and no file of that name.
            Some("-".into())
        }
        (Field::Path { .. }, DeValue::String(path)) if !path.is_empty() => {
            Some(reader.path(path).into())
        }
        (Field::Switch { .. }, DeValue::Boolean(on)) => Some(on.to_string().into()),
        (Field::Switch { .. }, _) => None,
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
    let leave = match tunable.default {
        "" => "leave it out for none".to_owned(),
        default => format!("leave it out for {default}"),
    };
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
    Some(FileSetting { name, value, line, items })
}

/// Checks what no setting can check for itself.
fn check_settings(reader: &mut ValueReader<'_>, settings: &[FileSetting]) {
    let of = |name: &str| settings.iter().find(|setting| setting.name == name);
    if let Some(root) = of("root") {
        check_folder(reader, root.line, "root", Path::new(&root.value));
    }
    let Some(listen) = of("listen") else { return };
    for other in ["host", "port", "uds"] {
        if let Some(other) = of(other) {
            let (name, line) = (other.name, listen.line);
            let text = format!("{name}: listen in line {line} replaces it; leave one out");
            reader.problem(other.line, text);
        }
    }
    let address = |text: &str| ListenSpec::parse(text).map(|spec| spec.address).unwrap_or_default();
    for (at, (text, line)) in listen.items.iter().enumerate() {
        let text = address(text);
        if listen.items[..at].iter().any(|(other, _)| address(other) == text) {
            reader.problem(*line, format!("listen: {text:?} is set twice; leave one out"));
        }
    }
}

fn read_site(reader: &mut ValueReader<'_>, table: ValueTable<'_>) -> SiteSpec {
    let mut site = SiteSpec { line: table.line, ..SiteSpec::default() };
    if let Some(root) = (!table.name.is_empty()).then(|| reader.text(table, "root")).flatten() {
        let path = reader.path(root.value);
        check_folder(reader, root.line, &named(table, "root"), &path);
        site.root = Some(path);
    }
    let mut known = super::route::Paths::default();
    for route in reader.tables(table, "route") {
        if let Some(route) = read_route(reader, route) {
            known.add(reader, &route);
            site.routes.push(route);
        }
    }
    for page in reader.tables(table, "error-page") {
        if let Some(page) = read_page(reader, page, &site.pages) {
            site.pages.push(page);
        }
    }
    site
}
