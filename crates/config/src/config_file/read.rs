//! Reading of a configuration file.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use super::cache::read_cache;
use super::error::{Problem, SiteError, unreadable};
use super::hosts::{Hosts, read_hosts};
use super::interpolate::{Variables, interpolate};
use super::parts::{check_folder, read_headers};
use super::route::{Paths, read_page, read_route};
use super::rules::{read_header_rules, read_rewrites};
use super::secrets::HiddenValues;
use super::settings::{has_tables, keys_with_settings, read_own_settings, read_settings};
use super::site_tls::read_tls;
use super::specs::SiteSpec;
use super::value::{ValueChecks, ValueReader, ValueTable, named};
use super::{ConfigFile, ConfigFiles, include, syntax};
use crate::access::HeaderRule;
use crate::deploys::CacheRule;
use crate::file_settings::{FilePlace, FileSetting, FileSettings};
use crate::headers::Headers;
use crate::listen::ListenSpec;
use crate::table::TUNABLES;

/// The keys of a file that are no settings.
pub(super) const TOP_KEYS: [&str; 8] =
    ["include", "settings", "headers", "header", "rewrite", "route", "site", "cache"];
/// The keys of a site.
pub(super) const SITE_KEYS: [&str; 9] =
    ["hosts", "root", "tls", "headers", "header", "rewrite", "route", "error-page", "cache"];

/// The most bytes of a file.
const FILE_BYTES_MAX: usize = 4 << 20;
/// The most files that may belong to a configuration, and how deep they may include each other.
const FILES_MAX: usize = 1_000;
const DEPTH_MAX: usize = 8;
/// The most bytes that all of them may have.
const BYTES_MAX: usize = 16 << 20;

/// Reads a file, and those that it includes.
pub(super) fn read(
    path: &Path,
    text: &str,
    checks: ValueChecks,
    variables: Variables<'_>,
) -> Result<ConfigFile, SiteError> {
    let mut reading = FilesReader {
        checks,
        variables,
        files: Vec::new(),
        open: Vec::new(),
        included: Vec::new(),
        patterns: Vec::new(),
        bytes: 0,
        settings: Vec::new(),
        headers: Headers::default(),
        header_places: Vec::new(),
        cache: Vec::new(),
        header_rules: Vec::new(),
        main: SiteSpec::default(),
        paths: Paths::default(),
        sites: Vec::new(),
        hosts: Hosts::default(),
        secrets: HiddenValues::default(),
        problems: Vec::new(),
    };
    reading.file(path, text);
    reading.finish(path)
}

/// A configuration file while it is read, together with those that it includes.
struct FilesReader<'a> {
    checks: ValueChecks,
    variables: Variables<'a>,
    /// All files, in the order in which they are read.
    files: Vec<Arc<Path>>,
    /// The files whose includes are being read, the outermost first, by their real paths.
    open: Vec<PathBuf>,
    /// Files that are included, by their real paths, and where.
    included: Vec<(PathBuf, FilePlace)>,
    patterns: Vec<(PathBuf, String)>,
    bytes: usize,
    settings: Vec<FileSetting>,
    headers: Headers,
    /// The names of these fields, each with its place.
    header_places: Vec<(String, FilePlace)>,
    /// Rules for the `Cache-Control` of files.
    cache: Vec<CacheRule>,
    header_rules: Vec<HeaderRule>,
    main: SiteSpec,
    /// Paths of the routes of `main`.
    paths: Paths,
    sites: Vec<SiteSpec>,
    hosts: Hosts,
    secrets: HiddenValues,
    problems: Vec<Problem>,
}

impl FilesReader<'_> {
    /// Reads a file, and then those that it includes.
    fn file(&mut self, path: &Path, text: &str) {
        let file: Arc<Path> = path.into();
        self.files.push(Arc::clone(&file));
        let mut reader = ValueReader::new(&file, text, self.checks);
        let (mut document, errors) = DeTable::parse_recoverable(text);
        syntax::report(&mut reader, text, &errors);
        if reader.problems.is_empty() {
            let table = document.get_mut();
            interpolate(&mut reader, table, self.variables, &mut self.secrets);
        }
        if !reader.problems.is_empty() {
            // Text behind a syntax error is often read wrongly.
            self.problems.append(&mut reader.problems);
            return;
        }
        let table = ValueTable { values: document.get_ref(), name: "", line: 1 };
        self.settings(&mut reader, table);
        self.headers(&mut reader, table);
        self.cache.extend(read_cache(&mut reader, table));
        self.header_rules.extend(read_header_rules(&mut reader, table));
        read_site(&mut reader, table, &mut self.main, &mut self.paths);
        for table in reader.tables(table, "site") {
            reader.only(table, &keys_with_settings(&SITE_KEYS));
            let mut site = SiteSpec { place: reader.place(table.line), ..SiteSpec::default() };
            read_site(&mut reader, table, &mut site, &mut Paths::default());
            site.settings = read_own_settings(&mut reader, table);
            site.hosts = read_hosts(&mut reader, table, &mut self.hosts);
            site.tls = read_tls(&mut reader, table);
            site.headers = read_headers(&mut reader, table);
            site.cache = read_cache(&mut reader, table);
            site.header_rules = read_header_rules(&mut reader, table);
            self.sites.push(site);
        }
        self.includes(&mut reader, table);
        self.problems.append(&mut reader.problems);
    }

    fn settings(&mut self, reader: &mut ValueReader<'_>, table: ValueTable<'_>) {
        let names = TUNABLES.iter().map(|tunable| tunable.name);
        let known: Vec<&str> = names.clone().chain(TOP_KEYS).collect();
        reader.only(table, &known);
        let mut all = read_settings(reader, table);
        if let Some(table) = reader.table(table, "settings") {
            reader.only(table, &names.collect::<Vec<_>>());
            all.extend(read_settings(reader, table));
        }
        check_roots(reader, &all);
        for setting in all {
            if let Some(known) = self.settings.iter().find(|known| known.name == setting.name) {
                let (name, first) = (setting.name, reader.seen(&known.place));
                let text = format!("{name}: {first} sets it already; leave one of them out");
                reader.problem(setting.place.line, text);
            }
            self.settings.push(setting);
        }
    }

    fn headers(&mut self, reader: &mut ValueReader<'_>, table: ValueTable<'_>) {
        for (name, value) in read_headers(reader, table).iter() {
            let values = reader.table(table, "headers").map(|headers| headers.values);
            let line = values
                .and_then(|values| values.get_key_value(name))
                .map_or(table.line, |(key, _)| reader.line_of(key));
            let mut known = self.header_places.iter();
            if let Some((_, place)) = known.find(|(known, _)| known.eq_ignore_ascii_case(name)) {
                let first = reader.seen(place);
                let text = format!("headers: {first} sets {name} already; leave one of them out");
                reader.problem(line, text);
            }
            self.header_places.push((name.to_owned(), reader.place(line)));
            self.headers.set(name, value);
        }
    }

    /// Reads the files that a file includes.
    fn includes(&mut self, reader: &mut ValueReader<'_>, table: ValueTable<'_>) {
        let Some(patterns) = reader.texts(table, "include") else { return };
        let file = Arc::clone(&reader.file);
        let folder = file.parent().unwrap_or(Path::new(""));
        self.open.push(real(&file));
        for pattern in patterns {
            self.patterns.push((folder.to_owned(), pattern.value.to_owned()));
            match include::files(folder, pattern.value) {
                Ok(found) => {
                    for path in found {
                        self.include(reader, pattern.line, &path);
                    }
                }
                Err(problem) => reader.problem(pattern.line, format!("include: {problem}")),
            }
        }
        self.open.pop();
    }

    fn include(&mut self, reader: &mut ValueReader<'_>, line: usize, path: &Path) {
        let (shown, real) = (path.display(), real(path));
        let known = self.included.iter().find(|(known, _)| *known == real);
        if let Some(from) = self.open.iter().position(|open| *open == real) {
            let name = |path: &PathBuf| path.file_name().unwrap_or_default().display().to_string();
            let chain: Vec<String> = self.open[from..].iter().chain([&real]).map(name).collect();
            let text = format!(
                "include: {shown} includes itself ({}); leave out one of these",
                chain.join(" -> ")
            );
            reader.problem(line, text);
        } else if let Some((_, first)) = known {
            let first = reader.seen(first);
            let text = format!("include: {shown} is included in {first} already; leave one out");
            reader.problem(line, text);
        } else if self.open.len() > DEPTH_MAX {
            let text = format!(
                "include: expected files at most {DEPTH_MAX} deep, found {shown} below them; \
                 include it from further up"
            );
            reader.problem(line, text);
        } else if self.files.len() >= FILES_MAX {
            // Once is enough.
            if self.files.len() == FILES_MAX && self.included.len() < FILES_MAX {
                let text = format!(
                    "include: expected at most {FILES_MAX} files, found more; merge some of them"
                );
                reader.problem(line, text);
                self.included.push((real, reader.place(line)));
            }
        } else {
            self.included.push((real, reader.place(line)));
            match read_text(path, BYTES_MAX.saturating_sub(self.bytes)) {
                Ok(text) => {
                    self.bytes += text.len();
                    self.file(path, &text);
                }
                Err(problem) => {
                    self.files.push(path.into());
                    reader.problem(line, format!("include: {shown}: {problem}"));
                }
            }
        }
    }

    fn finish(mut self, path: &Path) -> Result<ConfigFile, SiteError> {
        check_listen(&self.settings, &mut self.problems);
        if !self.problems.is_empty() {
            for problem in &mut self.problems {
                problem.text = self.secrets.hidden(&problem.text);
            }
            return Err(SiteError::new(path, &self.files, self.problems));
        }
        let (settings, cache) = (self.settings, self.cache);
        let settings = FileSettings { path: path.to_owned(), settings, cache };
        Ok(ConfigFile {
            settings,
            headers: self.headers,
            header_rules: self.header_rules,
            main: self.main,
            sites: self.sites,
            files: ConfigFiles { read: self.files, patterns: self.patterns },
            secrets: self.secrets,
        })
    }
}

/// Returns the path of a file without symbolic links; that of one that is not there as it is.
fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns the text of a file.
///
/// - `bytes_max`: the most bytes that it may have, and no file may have more than 4 MiB.
///
/// # Errors
/// Why it cannot be read, and the remedy.
pub(crate) fn read_text(path: &Path, bytes_max: usize) -> Result<String, String> {
    let failed = |error| unreadable(&error);
    let bytes_max = bytes_max.min(FILE_BYTES_MAX);
    let mut text = String::new();
    let file = File::open(path).map_err(failed)?;
    file.take(bytes_max as u64 + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() > bytes_max {
        let (one, all) = (FILE_BYTES_MAX >> 20, BYTES_MAX >> 20);
        return Err(format!(
            "expected at most {one} MiB, and {all} MiB in all files, found more; shorten it"
        ));
    }
    Ok(text)
}

/// Checks the folder of the file.
fn check_roots(reader: &mut ValueReader<'_>, settings: &[FileSetting]) {
    for root in settings.iter().filter(|setting| setting.name == "root") {
        check_folder(reader, root.place.line, "root", Path::new(&root.value));
    }
}

/// Checks what replaces what, in all files.
fn check_listen(settings: &[FileSetting], problems: &mut Vec<Problem>) {
    let of = |name: &str| settings.iter().find(|setting| setting.name == name);
    let Some(listen) = of("listen") else { return };
    let mut problem = |file: &Arc<Path>, line, text| {
        problems.push(Problem { file: Arc::clone(file), line, text });
    };
    for other in ["host", "port", "uds"] {
        if let Some(FileSetting { name, place, .. }) = of(other) {
            let in_line = listen.place.seen_from(&place.file);
            let text = format!("{name}: listen in {in_line} replaces it; leave one out");
            problem(&place.file, place.line, text);
        }
    }
    let address = |text: &str| ListenSpec::parse(text).map(|spec| spec.address).unwrap_or_default();
    for (at, (text, line)) in listen.items.iter().enumerate() {
        let text = address(text);
        if listen.items[..at].iter().any(|(other, _)| address(other) == text) {
            let twice = format!("listen: {text:?} is set twice; leave one out");
            problem(&listen.place.file, *line, twice);
        }
    }
}

/// Reads what a site and the file itself both have.
///
/// - `known`: the paths of its routes.
fn read_site(
    reader: &mut ValueReader<'_>,
    table: ValueTable<'_>,
    site: &mut SiteSpec,
    known: &mut Paths,
) {
    if let Some(root) = (!table.name.is_empty()).then(|| reader.text(table, "root")).flatten() {
        let path = reader.path(root.value);
        check_folder(reader, root.line, &named(table, "root"), &path);
        site.root = Some(path);
    }
    read_rewrites(reader, table, &mut site.rewrites);
    for route in reader.tables(table, "route") {
        if let Some(route) = read_route(reader, route) {
            known.add(reader, &route);
            site.routes.push(route);
        }
    }
    let pages = table.values.get("error-page");
    // Texts at the top of a file are the setting of that name.
    let is_setting = |value: &toml::Spanned<DeValue<'_>>| !has_tables(value.get_ref());
    if table.name.is_empty() && pages.is_some_and(is_setting) {
        return;
    }
    for page in reader.tables(table, "error-page") {
        if let Some(page) = read_page(reader, page, &site.pages) {
            site.pages.push(page);
        }
    }
}

#[cfg(test)]
mod tests;
