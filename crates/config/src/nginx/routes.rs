//! Routes of a server: what its locations become.

use std::path::PathBuf;

use super::caches::headers_of;
use super::imported::{ImportedAction, ImportedRoute, ImportedRoutes};
use super::location::{LocationMatcher, NginxLocation};
use super::rewrites::{self, RewriteRoute};
use super::scope::{NginxAnswer, NginxScope};
use super::server::NginxServer;
use super::target::{is_plain, target};
use super::{LeftOuts, caches};
use crate::forbidden::is_matched;

/// Names of programs, which are never served as text where programs are run.
const PROGRAMS: [&str; 9] =
    ["*.php*", "*.phtml", "*.phar", "*.inc", "*.py", "*.pl", "*.cgi", "*.rb", "*.lua"];
/// The most patterns of a folder; with more it is closed.
const FORBIDDEN_MAX: usize = 500;

/// Returns the routes of a server.
pub(super) fn of(server: &NginxServer, left: &mut LeftOuts) -> ImportedRoutes {
    let mut building = RouteBuilding {
        server,
        routes: ImportedRoutes::new(),
        folders: Vec::new(),
        redirects: Vec::new(),
    };
    if server.scope.is_closed {
        building.close("/", true);
        return building.routes;
    }
    let Some(redirects) = rewrites::routes_of(&server.scope.rewrites, ("/", true), server.host())
    else {
        left.add(&server.directive, "a rewrite is not understood: all of it responds with 403");
        building.close("/", true);
        return building.routes;
    };
    building.redirects = redirects;
    // What is exact is put in last: folders have paths of their own.
    let is_exact =
        |location: &&NginxLocation| matches!(location.matcher, LocationMatcher::Exact(_));
    building.root(left);
    for location in server.locations.iter().filter(|one| !is_exact(one)) {
        building.location(location, left);
    }
    for location in server.locations.iter().filter(is_exact) {
        building.location(location, left);
    }
    building.forbid();
    building.put_redirects(left);
    building.routes
}

/// A folder that is served beneath a path.
struct FolderMount {
    /// Without a slash at its end; empty for all paths.
    path: String,
    /// Whether regular expressions have no part in it.
    is_strong: bool,
    scope: NginxScope,
}

struct RouteBuilding<'s> {
    server: &'s NginxServer,
    routes: ImportedRoutes,
    folders: Vec<FolderMount>,
    /// Those of the server itself, which come before its locations.
    redirects: Vec<RewriteRoute>,
}

impl RouteBuilding<'_> {
    /// Adds what the server itself says, for paths without a location.
    fn root(&mut self, left: &mut LeftOuts) {
        let has_root =
            self.server.locations.iter().any(
                |one| matches!(&one.matcher, LocationMatcher::Prefix { path, .. } if path == "/"),
            );
        let scope = &self.server.scope;
        if self.redirects.iter().any(|one| one.covers("/", true)) {
            // Nothing is left.
        } else if scope.answer.is_some() {
            self.answer("/", scope, left);
        } else if !has_root && let Some(root) = &scope.root {
            self.folder("", root.clone(), scope, false);
        }
    }

    fn location(&mut self, location: &NginxLocation, left: &mut LeftOuts) {
        let scope = &location.scope;
        match &location.matcher {
            LocationMatcher::Named => {}
            LocationMatcher::Expression(_) => {
                if location.serves_as(&self.server.scope) {
                    let is_dressed = scope.is_dressed_as(self.server.root_scope());
                    if !is_dressed && !caches::are_all_of(self.server, location) {
                        left.add(
                            &location.directive,
                            "its files are served without what it sets for them",
                        );
                    }
                } else if !scope.is_closed {
                    left.add(&location.directive, "what it matches is not served: 404");
                }
            }
            LocationMatcher::Prefix { path, is_strong } => {
                if self.before_serving(location, (path, true), left) {
                    match &scope.answer {
                        Some(_) => self.answer(path, scope, left),
                        None => self.prefix(location, (path, *is_strong), left),
                    }
                }
            }
            LocationMatcher::Exact(path) => {
                if self.before_serving(location, (path, false), left) {
                    self.exact(location, path, left);
                }
            }
        }
    }

    /// Does what comes before a location serves anything: it is redirected, or closed. Returns
    /// whether something is left to serve.
    ///
    /// - `is_prefix`: the location is for what is beneath its path, too.
    fn before_serving(
        &mut self,
        location: &NginxLocation,
        (path, is_prefix): (&str, bool),
        left: &mut LeftOuts,
    ) -> bool {
        let scope = &location.scope;
        let is_covered = |all: &[RewriteRoute]| all.iter().any(|one| one.covers(path, is_prefix));
        // The server's own answer is for all paths.
        if self.server.scope.answer.is_some() || is_covered(&self.redirects) {
            return false;
        }
        if !is_plain(path) {
            left.add(&location.directive, "a path that routes do not have: not served");
            return false;
        }
        if scope.is_closed {
            self.close(path, is_prefix);
            return false;
        }
        let host = self.server.host();
        let Some(redirects) = rewrites::routes_of(&scope.rewrites, (path, is_prefix), host) else {
            left.add(&location.directive, "a rewrite is not understood: it responds with 403");
            self.close(path, is_prefix);
            return false;
        };
        let is_left = !is_covered(&redirects);
        for RewriteRoute { path, action } in redirects {
            self.put(&path, action, scope);
        }
        is_left
    }

    fn prefix(
        &mut self,
        location: &NginxLocation,
        (path, strong): (&str, bool),
        left: &mut LeftOuts,
    ) {
        let scope = &location.scope;
        let of_root = self.server.root_scope();
        if self.is_of_root(location, path) {
            if !scope.is_dressed_as(of_root) {
                left.add(&location.directive, "it is served without the fields that it adds");
            }
            return;
        }
        let is_file = path.rsplit('/').next().is_some_and(|name| name.contains('.'));
        if is_file && scope.alias.is_none() && scope.root == of_root.root {
            left.add(&location.directive, "a single file has no route: it responds with 403");
            return self.close(path, true);
        }
        let below = path.trim_start_matches('/').trim_end_matches('/');
        let folder = match (&scope.alias, &scope.root) {
            (Some(alias), _) => {
                let is_odd = path.ends_with('/') && !alias.to_string_lossy().ends_with('/');
                (!is_odd).then(|| alias.clone())
            }
            (None, Some(root)) => Some(root.join(below)),
            (None, None) => None,
        };
        if let Some(folder) = folder {
            self.folder(path.trim_end_matches('/'), folder, scope, strong);
        } else {
            left.add(&location.directive, "it has no folder: it responds with 403");
            self.close(path, true);
        }
    }

    /// Returns whether a location is served with all others of the root: it says nothing of its
    /// own, or it is for a single file, which has no route.
    fn is_of_root(&self, location: &NginxLocation, path: &str) -> bool {
        let of_root = self.server.root_scope();
        let is_file = path.rsplit('/').next().is_some_and(|name| name.contains('.'));
        let is_alike = is_file || location.scope.is_dressed_as(of_root);
        path != "/" && location.scope.is_folder_as(of_root) && is_alike
    }

    fn exact(&mut self, location: &NginxLocation, path: &str, left: &mut LeftOuts) {
        let scope = &location.scope;
        if let Some(answer) = &scope.answer {
            if let Some(action) = self.action(answer, scope, (path, "")) {
                if !self.put(path, action, scope) {
                    left.add(&location.directive, "a folder has that path: left out");
                }
            } else {
                left.add(&location.directive, "its target is not understood: 403");
                self.close(path, false);
            }
            return;
        }
        // A file of the root is served from there, if the root is, and to the same clients.
        let is_alike = scope.settings.admits_as(&self.server.root_scope().settings);
        if scope.alias.is_some() || scope.root != self.server.scope.root || !is_alike {
            left.add(&location.directive, "a single file has no route: it responds with 403");
            self.close(path, false);
        }
    }

    /// Adds the answer of a prefix.
    fn answer(&mut self, path: &str, scope: &NginxScope, left: &mut LeftOuts) {
        let Some(answer) = &scope.answer else { return };
        let base = path.trim_end_matches('/');
        let rest = format!("{base}/{{*rest}}");
        let Some(action) = self.action(answer, scope, (base, "{rest}")) else {
            left.add(&self.server.directive_of(path), "its target is not understood: 403");
            self.close(path, true);
            return;
        };
        self.put(&rest, action, scope);
        if !path.ends_with('/')
            && let Some(action) = self.action(answer, scope, (base, ""))
        {
            self.put(base, action, scope);
        }
    }

    /// Returns what a route does for an answer.
    ///
    /// - `base`: the beginning of the path, and `rest` what is behind it.
    fn action(
        &self,
        answer: &NginxAnswer,
        scope: &NginxScope,
        (base, rest): (&str, &str),
    ) -> Option<ImportedAction> {
        Some(match answer {
            NginxAnswer::Text { status, text } => {
                let kind = scope.default_type.clone().filter(|kind| kind.contains('/'));
                let text = match (status, text.is_empty()) {
                    (204 | 205, _) => String::new(),
                    (400.., true) => format!("{status}"),
                    _ => text.clone(),
                };
                ImportedAction::Text { text, status: *status, kind }
            }
            NginxAnswer::Redirect { status, to } => {
                let to = target(to, self.server.host(), (base, rest))?;
                ImportedAction::Redirect { to, status: *status }
            }
        })
    }

    /// Adds the redirects of the server.
    fn put_redirects(&mut self, left: &mut LeftOuts) {
        for RewriteRoute { path, action } in std::mem::take(&mut self.redirects).into_iter().rev() {
            let is_folder =
                |route: &ImportedRoute| matches!(route.action, ImportedAction::Folder(_));
            if self.routes.get(&path).is_none_or(|route| !is_folder(route)) {
                self.routes.remove(&path);
            }
            if !self.put(&path, action, &self.server.scope) {
                left.add(&self.server.directive, "a folder has the path of a redirect: left out");
            }
        }
    }

    /// Adds a route, and returns whether no other one has its path.
    fn put(&mut self, path: &str, action: ImportedAction, scope: &NginxScope) -> bool {
        // What is closed stays so, and folders have their own paths.
        let is_of_folder = |mount: &FolderMount| {
            path == mount.path
                || path == format!("{}/", mount.path)
                || path == format!("{}/{{*rest}}", mount.path)
        };
        if self.routes.contains_key(path) || self.folders.iter().any(is_of_folder) {
            return false;
        }
        let headers = headers_of(scope);
        let route = ImportedRoute::of(action, headers);
        self.routes.insert(path.to_owned(), route);
        true
    }

    /// Lets a path respond with 403.
    fn close(&mut self, path: &str, is_prefix: bool) {
        let text = "403 Forbidden".to_owned();
        let action = ImportedAction::Text { text, status: 403, kind: None };
        let base = path.trim_end_matches('/');
        let mut paths = vec![path.to_owned()];
        if is_prefix {
            paths.push(format!("{base}/{{*rest}}"));
        }
        for path in paths {
            // `/a/{*rest}` is `/a/` as well.
            let is_covered = is_prefix && path.ends_with('/');
            if !is_covered {
                self.routes.remove(&path);
                self.put(&path, action.clone(), &NginxScope::default());
            }
        }
    }

    fn folder(&mut self, mount: &str, folder: PathBuf, scope: &NginxScope, is_strong: bool) {
        let path = if mount.is_empty() { "/" } else { mount };
        if self.routes.contains_key(path) {
            return;
        }
        let (try_files, spa) = scope.try_files_beneath(mount);
        let route = ImportedRoute {
            listing: scope.listing,
            index: scope.index.clone(),
            try_files,
            spa,
            settings: scope.settings.lines(),
            cache: caches::rules(self.server, scope, is_strong),
            ..ImportedRoute::of(ImportedAction::Folder(folder), headers_of(scope))
        };
        self.routes.insert(path.to_owned(), route);
        self.folders.push(FolderMount { path: mount.to_owned(), is_strong, scope: scope.clone() });
    }

    /// Leaves out of each folder what other locations are for.
    fn forbid(&mut self) {
        let scopes = self.server.locations.iter().map(|one| &one.scope);
        let runs_programs = scopes.chain([&self.server.scope]).any(|scope| scope.runs_programs);
        for mount in &self.folders {
            let mut all: Vec<String> = Vec::new();
            if runs_programs {
                all.extend(PROGRAMS.map(str::to_owned));
            }
            for location in &self.server.locations {
                match &location.matcher {
                    // A folder that others may read has none of it either.
                    LocationMatcher::Expression(patterns)
                        if !(mount.is_strong
                            || location.serves_as(&self.server.scope)
                                && location.scope.settings.admits_as(&mount.scope.settings)) =>
                    {
                        all.extend(patterns.iter().flat_map(|one| behind(one, &mount.path)));
                    }
                    LocationMatcher::Prefix { path, .. }
                        if path != "/" && !self.is_of_root(location, path) =>
                    {
                        all.extend(
                            of_prefix(path, &mount.path)
                                .iter()
                                .flat_map(|one| below(one, &mount.path)),
                        );
                    }
                    LocationMatcher::Exact(path) if self.is_closed(path) => {
                        all.extend(below(&literal(path), &mount.path));
                    }
                    _ => {}
                }
            }
            all.sort();
            all.dedup();
            let is_all = |one: &String| ["*", "/*"].contains(&one.as_str());
            let path = if mount.path.is_empty() { "/" } else { &mount.path };
            let Some(route) = self.routes.get_mut(path) else { continue };
            route.forbidden = all;
            if route.forbidden.iter().any(is_all) || route.forbidden.len() > FORBIDDEN_MAX {
                route.forbidden = vec!["*".to_owned()];
            }
        }
    }

    /// Returns whether a path of its own responds with an error, or has no route.
    fn is_closed(&self, path: &str) -> bool {
        let of_path = self
            .server
            .locations
            .iter()
            .find(|one| matches!(&one.matcher, LocationMatcher::Exact(known) if known == path));
        of_path.is_some_and(|one| {
            let has_other_root = one.scope.root != self.server.scope.root;
            let has_other_clients =
                !one.scope.settings.admits_as(&self.server.root_scope().settings);
            let is_error =
                matches!(one.scope.answer, Some(NginxAnswer::Text { status: 400.., .. }));
            one.scope.is_closed
                || is_error
                || one.scope.alias.is_some()
                || has_other_root
                || has_other_clients
                || !is_plain(path)
        })
    }
}

/// Returns a path as a pattern that matches it.
fn literal(path: &str) -> String {
    let letter = |one: char| if one.is_ascii_graphic() && !"*?,".contains(one) { one } else { '*' };
    path.chars().map(letter).take(200).collect()
}

/// Returns what a prefix is for: no other folder serves that, neither by its path nor as a
/// fallback. `/admin` is for `/administrator`, too.
fn of_prefix(path: &str, mount: &str) -> Vec<String> {
    if is_plain(path) && path.trim_end_matches('/') == mount {
        return Vec::new();
    }
    vec![format!("{}*", literal(path))]
}

/// Returns a pattern of paths as one of those below a folder, if it is for some of them alone.
fn below(pattern: &str, mount: &str) -> Vec<String> {
    let rest = pattern.strip_prefix(mount).filter(|rest| rest.starts_with('/'));
    rest.map(str::to_owned).into_iter().collect()
}

/// Returns what may follow the path of a folder where a pattern matches the whole.
fn behind(pattern: &str, mount: &str) -> Vec<String> {
    let mut ends: Vec<&str> = Vec::new();
    for at in 0..=pattern.len() {
        let (before, rest) = pattern.split_at(at);
        if is_matched(before, mount.as_bytes()) {
            ends.push(rest);
            // A star goes on behind the folder's path.
            if before.ends_with('*') {
                ends.push(&pattern[at - 1..]);
            }
        }
    }
    let mut all = Vec::new();
    for end in ends {
        // What follows begins with a slash.
        match end.bytes().next() {
            Some(b'/') => all.push(end.to_owned()),
            Some(b'?') => all.push(format!("/{}", &end[1..])),
            Some(b'*') => {
                all.push(end.to_owned());
                if is_matched(end, b"/") {
                    all.push("/".to_owned());
                }
            }
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_pattern_leaves_behind_a_folder_matches_what_it_matches() {
        for pattern in ["*.php", "*.php/*", "/wp-*/x?*", "/a*b", "*/.*", "/wp-admin*", "*p/x"] {
            for mount in ["", "/wp-admin", "/wp-a/x", "/a", "/x.php", "/wp"] {
                for rest in ["/", "/a.php", "/x.php/y", "/b", "/.git/x", "/xy", "/x", "/q/b"] {
                    let whole = format!("{mount}{rest}");
                    if !is_matched(pattern, whole.as_bytes()) {
                        continue;
                    }
                    let patterns = behind(pattern, mount);
                    let found = crate::forbidden::is_forbidden(
                        &patterns,
                        rest.trim_matches('/').as_bytes(),
                        rest == "/",
                    );
                    assert!(found, "{pattern} on {mount} {rest}: {patterns:?}");
                }
            }
        }
    }
}
