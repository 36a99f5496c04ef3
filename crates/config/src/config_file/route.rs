//! Routes and error pages of a configuration file.

use std::collections::HashMap;

use gustnado_http::fields::check_field;
use gustnado_http::method::Method;
use gustnado_http::path::pattern::{path_names, pattern};
use gustnado_http::status::Status;
use matchit::{InsertError, Router};

use super::cache::read_cache;
use super::methods::read_methods;
use super::parts::{check_folder, read_headers};
use super::redirect::Template;
use super::rules::read_header_rules;
use super::settings::{keys_with_settings, read_own_settings};
use super::specs::{ErrorPageSpec, RouteAction, RouteSpec};
use super::value::{ValueReader, ValueTable, WithLine};
use crate::access::StatusRange;
use crate::early_hints::preload_link;
use crate::error_pages::{error_page_content, error_statuses};
use crate::file_settings::{FilePlace, FileSetting};
use crate::tunable::SettingGroup;

/// The keys of a route.
pub(super) const ROUTE_KEYS: [&str; 12] = [
    "path",
    "folder",
    "redirect",
    "answer",
    "status",
    "type",
    "methods",
    "merge_slashes",
    "headers",
    "header",
    "preload",
    "cache",
];
/// The keys of a page.
pub(super) const PAGE_KEYS: [&str; 2] = ["status", "file"];
/// The statuses of a redirect.
pub(super) const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];
/// The content type of a text response without `type`.
pub const PLAIN: &str = "text/plain; charset=utf-8";

/// Reads a route. `None` if too much of it is wrong.
pub(super) fn read_route(reader: &mut ValueReader<'_>, table: ValueTable<'_>) -> Option<RouteSpec> {
    reader.only(table, &keys_with_settings(&ROUTE_KEYS));
    let path = reader.required(table, "path");
    let methods = read_methods(reader, table);
    let merge_slashes = reader.switch(table, "merge_slashes");
    let settings = read_own_settings(reader, table);
    let headers = read_headers(reader, table);
    let header_rules = read_header_rules(reader, table);
    let preload = read_preload(reader, table);
    let cache = read_cache(reader, table);
    let kinds = ["folder", "redirect", "answer"];
    let with_line: Vec<&str> =
        kinds.into_iter().filter(|kind| table.values.contains_key(*kind)).collect();
    let [kind] = with_line[..] else {
        let found = if with_line.is_empty() { "none".to_owned() } else { with_line.join(" and ") };
        let text =
            format!("route: expected one of folder, redirect and answer, found {found}; name one");
        reader.problem(table.line, text);
        return None;
    };
    let misplaced: &[&str] = match kind {
        "folder" => &["status", "type", "methods", "merge_slashes"],
        "redirect" => &["type", "preload", "cache"],
        _ => &["merge_slashes", "cache"],
    };
    let is_misplaced =
        |own: &&FileSetting| kind != "folder" && own.tunable().group == SettingGroup::Folders;
    let of_folders = settings.iter().filter(is_misplaced).map(|own| own.name);
    let misplaced = misplaced.iter().copied().chain(of_folders);
    for key in misplaced.filter(|key| table.values.contains_key(*key)) {
        let text = format!("route: {key} does not go with {kind}; leave it out");
        reader.problem(table.line, text);
    }
    let path = path?;
    if !path.value.starts_with('/') {
        let found = path.value;
        let text = format!(
            "route.path: expected a path such as /static, found {found:?}; begin it with /"
        );
        reader.problem(path.line, text);
        return None;
    }
    let action = match kind {
        "folder" => read_folder(reader, table, path)?,
        "redirect" => read_redirect(reader, table, path.value)?,
        _ => read_answer(reader, table)?,
    };
    let methods = match (&action, methods) {
        (RouteAction::Text { .. }, None) => vec![Method::Get],
        (_, methods) => methods.unwrap_or_default(),
    };
    Some(RouteSpec {
        place: reader.place(path.line),
        path: path.value.to_owned(),
        action,
        methods,
        merge_slashes: merge_slashes.unwrap_or(true),
        settings,
        cache,
        headers,
        header_rules,
        preload,
    })
}

/// Returns what a route's pages need, as values of `Link`.
fn read_preload(reader: &mut ValueReader<'_>, table: ValueTable<'_>) -> Vec<String> {
    let mut links = Vec::new();
    for with_line in reader.texts(table, "preload").unwrap_or_default() {
        match preload_link(with_line.value) {
            Ok(link) => links.push(link),
            Err(reason) => {
                let found = with_line.value;
                let text = format!(
                    "route.preload: expected a link such as \"/app.css; as=style\", found \
                     {found:?}: {reason}"
                );
                reader.problem(with_line.line, text);
            }
        }
    }
    links
}

fn read_folder(
    reader: &mut ValueReader<'_>,
    table: ValueTable<'_>,
    path: WithLine<&str>,
) -> Option<RouteAction> {
    if !path_names(path.value).is_empty() {
        let found = path.value;
        let text = format!(
            "route.path: expected a path without named parts for a folder, found {found:?}; a \
             folder has all that lies beneath its path, such as /static"
        );
        reader.problem(path.line, text);
        return None;
    }
    let with_line = reader.text(table, "folder")?;
    let folder = reader.path(with_line.value);
    check_folder(reader, with_line.line, "route.folder", &folder);
    Some(RouteAction::Folder(folder))
}

fn read_redirect(
    reader: &mut ValueReader<'_>,
    table: ValueTable<'_>,
    path: &str,
) -> Option<RouteAction> {
    let with_line = reader.text(table, "redirect");
    let status = match reader.number(table, "status") {
        Some(with_line) if !REDIRECTS.contains(&with_line.value) => {
            let found = with_line.value;
            let text = format!(
                "route.status: expected 301, 302, 303, 307 or 308 for a redirect, found {found}; \
                 leave it out for 308"
            );
            reader.problem(with_line.line, text);
            None
        }
        with_line => with_line.and_then(|with_line| Status::from_code(with_line.value)),
    };
    let status = status.unwrap_or(Status::PERMANENT_REDIRECT);
    let with_line = with_line?;
    match Template::read(with_line.value, &path_names(path)) {
        Ok(to) => Some(RouteAction::Redirect { to, status }),
        Err(text) => {
            reader.problem(with_line.line, format!("route.redirect: {text}"));
            None
        }
    }
}

fn read_answer(reader: &mut ValueReader<'_>, table: ValueTable<'_>) -> Option<RouteAction> {
    let text = reader.text(table, "answer");
    let content_type = reader.text(table, "type");
    if let Some(kind) = content_type
        && (check_field("Content-Type", kind.value.as_bytes()).is_err()
            || !kind.value.contains('/'))
    {
        let found = kind.value;
        let text = format!(
            "route.type: expected a content type such as application/json, found {found:?}; leave \
             it out for {PLAIN}"
        );
        reader.problem(kind.line, text);
    }
    let with_line = reader.number(table, "status");
    let known = with_line.and_then(|with_line| Status::from_code(with_line.value));
    let takes = |status: &Status| (200..300).contains(&status.code()) || status.is_error();
    if let Some(with_line) = with_line
        && !known.is_some_and(|status| takes(&status))
    {
        let found = with_line.value;
        let text = format!(
            "route.status: expected a status of 2xx, 4xx or 5xx, found {found}; leave it out for \
             200 (a redirect has the key `redirect`)"
        );
        reader.problem(with_line.line, text);
    }
    let status = known.unwrap_or(Status::OK);
    let (text, content_type) = (text?, content_type.map_or(PLAIN, |kind| kind.value));
    if !status.may_have_body() && !text.value.is_empty() {
        let code = status.code();
        let text = format!("route.answer: a response of {code} has no content; write \"\"");
        reader.problem(table.line, text);
    }
    let (text, content_type) = (text.value.to_owned(), content_type.to_owned());
    Some(RouteAction::Text { text, status, content_type })
}

/// Paths of routes, to name both places of two that match the same requests.
#[derive(Default)]
pub(super) struct Paths {
    router: Router<()>,
    /// The place of each pattern.
    places: HashMap<String, FilePlace>,
    /// Paths of handlers, with their methods; none is all of them.
    taken: Vec<(String, Vec<Method>, FilePlace)>,
}

impl Paths {
    pub(super) fn add(&mut self, reader: &mut ValueReader<'_>, route: &RouteSpec) {
        if let RouteAction::Folder(_) = route.action {
            let Some(pattern) = checked(reader, &route.path, route.place.line) else { return };
            let base = pattern.trim_end_matches('/');
            let mut all = vec![format!("{base}/"), format!("{base}/{{*rest}}")];
            if !base.is_empty() {
                all.insert(0, base.to_owned());
            }
            let is_new = |pattern: String| self.insert(reader, pattern, route);
            let _ = all.into_iter().all(is_new);
            return;
        }
        let same = self.taken.iter().filter(|(path, ..)| *path == route.path);
        let clashes = |methods: &Vec<Method>| {
            let is_shared = |method: &Method| route.methods.contains(method);
            let all = (methods.is_empty(), route.methods.is_empty());
            all == (true, true) || methods.iter().any(is_shared)
        };
        let clash = same
            .clone()
            .find(|(_, methods, _)| clashes(methods))
            .map(|(.., place)| reader.seen(place));
        let is_known = same.count() > 0;
        if let Some(first) = clash {
            let text = format!(
                "route: {first} has {} with the same methods; change or leave out one of them",
                route.path
            );
            reader.problem(route.place.line, text);
        } else if !is_known && let Some(pattern) = checked(reader, &route.path, route.place.line) {
            self.insert(reader, pattern, route);
        }
        self.taken.push((route.path.clone(), route.methods.clone(), route.place.clone()));
    }

    /// Returns whether nothing is wrong with the path.
    fn insert(&mut self, reader: &mut ValueReader<'_>, pattern: String, route: &RouteSpec) -> bool {
        let (path, line) = (&route.path, route.place.line);
        let text = match self.router.insert(pattern.clone(), ()) {
            Ok(()) => {
                self.places.insert(pattern, route.place.clone());
                return true;
            }
            Err(InsertError::Conflict { with }) => match self.places.get(&with) {
                Some(first) => format!(
                    "route: {path} and {with} in {} match the same requests; change one of them",
                    reader.seen(first)
                ),
                None => {
                    format!("route: {path} and {with} match the same requests; change one of them")
                }
            },
            Err(error) => format!(
                "route.path: {path} is not well formed ({error}); expected /exact, /{{name}} or \
                 /{{*rest}}"
            ),
        };
        reader.problem(line, text);
        false
    }
}

/// Returns the pattern of a path, if there is one.
fn checked(reader: &mut ValueReader<'_>, path: &str, line: usize) -> Option<String> {
    match pattern(path) {
        Ok(pattern) => Some(pattern),
        Err(reason) => {
            reader.problem(line, format!("route.path: {path} is not well formed: {reason}"));
            None
        }
    }
}

/// Reads a page for errors, and the file it is in.
pub(super) fn read_page(
    reader: &mut ValueReader<'_>,
    table: ValueTable<'_>,
    known: &[ErrorPageSpec],
) -> Option<ErrorPageSpec> {
    reader.only(table, &PAGE_KEYS);
    let statuses = match &*reader.texts_or_numbers(table, "status").unwrap_or_default() {
        [] => StatusRange::ERRORS,
        [one] if let Some(statuses) = error_statuses(&one.value) => statuses,
        [one, ..] => {
            let found = &one.value;
            let text = format!(
                "error-page.status: expected a status of 4xx or 5xx, found {found}; leave it out \
                 for all of them"
            );
            reader.problem(one.line, text);
            StatusRange::ERRORS
        }
    };
    if let Some(first) = known.iter().find(|page| page.statuses == statuses) {
        let first = reader.seen(&first.place);
        let text = format!("error-page: {first} is for the same status; leave one out");
        reader.problem(table.line, text);
    }
    let with_line = reader.required(table, "file")?;
    let file = reader.path(with_line.value);
    match error_page_content(&file) {
        Ok(content) => {
            let place = reader.place(table.line);
            Some(ErrorPageSpec { place, statuses, file, content })
        }
        Err(text) => {
            let shown = file.display();
            reader.problem(with_line.line, format!("error-page.file: {shown}: {text}"));
            None
        }
    }
}
