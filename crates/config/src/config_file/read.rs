//! Reading of a configuration file.

use std::path::Path;

use toml::de::DeTable;

use super::hosts::{Hosts, read_hosts};
use super::parts::{check_folder, read_headers};
use super::route::{read_page, read_route};
use super::settings::{keys_with_settings, read_own_settings, read_settings};
use super::site_tls::read_tls;
use super::specs::SiteSpec;
use super::value::{FolderCheck, ValueReader, ValueTable, named};
use super::{ConfigFile, SiteError, syntax};
use crate::file_settings::{FileSetting, FileSettings};
use crate::listen::ListenSpec;
use crate::table::TUNABLES;

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
        reader.only(table, &keys_with_settings(&SITE_KEYS));
        let mut site = read_site(&mut reader, table);
        site.settings = read_own_settings(&mut reader, table);
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
