//! Routes of a server: what its locations become.

use std::collections::BTreeSet;
use std::path::PathBuf;

use gustnado_http::path::pattern::before_rest;

use super::caches::fields_of;
use super::imported::{ImportedAction, ImportedRoute, ImportedRoutes};
use super::location::{LocationMatcher, NginxLocation};
use super::mounts::FolderMount;
use super::rewrites::{self, RewriteRoute};
use super::scope::{NginxAnswer, NginxScope};
use super::server::NginxServer;
use super::syntax::Directive;
use super::target::{is_plain, target};
use super::{LeftOuts, caches};

/// Names of programs, which are never served as text where programs are run.
const PROGRAMS: [&str; 9] =
    ["*.php*", "*.phtml", "*.phar", "*.inc", "*.py", "*.pl", "*.cgi", "*.rb", "*.lua"];
/// Why a redirect is left out.
const OF_FOLDER: &str = "a folder has the path of a redirect: 404";
/// The most patterns of a folder; with more it is closed.
const FORBIDDEN_MAX: usize = 500;

/// Returns the routes of a server.
pub(super) fn of(server: &NginxServer, left: &mut LeftOuts) -> ImportedRoutes {
    let mut building = RouteBuilding {
        server,
        routes: ImportedRoutes::new(),
        folders: Vec::new(),
        redirects: Vec::new(),
        shared: BTreeSet::new(),
        shared_files: BTreeSet::new(),
        closed: BTreeSet::new(),
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
    building.root(left);
    building.locations(left);
    building.forbid();
    building.put_redirects(left);
    if building.routes.is_empty() {
        left.add(
            &server.directive,
            "it serves nothing that can be taken over: it responds with 403",
        );
        building.close("/", true);
    }
    building.routes
}

struct RouteBuilding<'s> {
    server: &'s NginxServer,
    routes: ImportedRoutes,
    folders: Vec<FolderMount>,
    /// Those of the server itself, which come before its locations.
    redirects: Vec<RewriteRoute>,
    /// Prefixes that are served from the folder of another one.
    shared: BTreeSet<String>,
    /// Exact paths that are.
    shared_files: BTreeSet<String>,
    /// Paths that respond with 403, without those beneath them.
    closed: BTreeSet<String>,
}

impl RouteBuilding<'_> {
    /// Adds what the server itself says, for paths without a location.
    fn root(&mut self, left: &mut LeftOuts) {
        let has_root = self.server.locations.iter().any(|one| one.prefix() == Some("/"));
        let scope = &self.server.scope;
        if self.redirects.iter().any(|one| one.covers("/", true)) {
            // Nothing is left.
        } else if scope.answer.is_some() {
            self.answer("/", scope, left);
        } else if !has_root && let Some(root) = &scope.root {
            self.folder(("", false), root.clone(), (scope, &self.server.directive), left);
        }
    }

    /// Adds all locations. Of two prefixes nginx takes the longer one: so do routes, and a route
    /// that is there is not replaced. Folders come from the outside in, as inner ones may be part
    /// of outer ones.
    fn locations(&mut self, left: &mut LeftOuts) {
        let all = &self.server.locations;
        let is_prefix = |one: &&NginxLocation| one.prefix().is_some();
        let (mut prefixes, others): (Vec<_>, Vec<_>) = all.iter().partition(is_prefix);
        prefixes.sort_by_key(|one| one.prefix().map(str::len));
        // Beside `/a/`, `/a` is for that path alone, and for names that no folder serves.
        let (mut alone, mut folders) = (Vec::new(), Vec::new());
        for location in prefixes.into_iter().rev() {
            let path = location.prefix().unwrap_or_default();
            if self.server.has_prefix(&format!("{path}/")) {
                left.add(&location.directive, "it is for that path alone: another one has a slash");
                alone.extend((!self.server.has_exact(path)).then_some((location, path)));
            } else if self.before_serving(location, (path, true), left) {
                match &location.scope.answer {
                    Some(_) => self.answer(path, &location.scope, left),
                    None => folders.push((location, path)),
                }
            }
        }
        for (location, path) in folders.into_iter().rev() {
            self.prefix(location, path, left);
        }
        for location in others {
            match &location.matcher {
                LocationMatcher::Exact(path) => alone.push((location, path)),
                LocationMatcher::Expression(patterns) => self.expression(location, patterns, left),
                LocationMatcher::Named | LocationMatcher::Prefix { .. } => {}
            }
        }
        for (location, path) in alone.into_iter().rev() {
            if self.before_serving(location, (path, false), left) {
                self.exact(location, path, left);
            }
        }
    }

    /// Notes what is not served of what an expression is for.
    fn expression(&mut self, location: &NginxLocation, patterns: &[String], left: &mut LeftOuts) {
        let scope = &location.scope;
        if !location.serves_as(&self.server.scope) {
            if !scope.is_closed {
                left.add(&location.directive, "what it matches is not served: 404");
            }
            return;
        }
        let is_dressed = scope.is_dressed_as(self.server.root_scope());
        if !is_dressed && !caches::are_all_of(self.server, location) {
            left.add(&location.directive, "its files are served without what it sets for them");
        }
        for mount in
            self.folders.iter().filter(|mount| !mount.serves_as(location, &self.server.scope))
        {
            if !mount.of_expression(patterns).is_empty() {
                let path = &mount.path;
                let why = format!("what it matches is not served beneath {path}/: 404");
                left.add(&location.directive, &why);
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
        for RewriteRoute { path: of, action } in redirects {
            // A request for it does not come here, if another location is for it.
            if !self.server.has_deeper(path, before_rest(&of).unwrap_or(&of)) {
                let is_put = self.put(&of, action, scope);
                if !is_put && self.is_of_folder(&of) {
                    left.add(&location.directive, OF_FOLDER);
                }
            }
        }
        is_left
    }

    fn prefix(&mut self, location: &NginxLocation, path: &str, left: &mut LeftOuts) {
        let scope = &location.scope;
        if let Some(outer) = self.outer(location, path) {
            if !scope.is_dressed_as(&outer.scope) {
                left.add(&location.directive, "it is served without the fields that it adds");
            }
            self.shared.insert(path.to_owned());
            return;
        }
        let is_file_too = |alias: &PathBuf| is_file(&alias.to_string_lossy());
        if is_file(path) && scope.alias.as_ref().is_none_or(is_file_too) {
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
            let mount = (path.trim_end_matches('/'), location.is_strong());
            self.folder(mount, folder, (scope, &location.directive), left);
        } else {
            left.add(&location.directive, "it has no folder: it responds with 403");
            self.close(path, true);
        }
    }

    /// Returns the folder that a location is served from with all else of it: the location says
    /// nothing of its own, or is for a single file, which has no route.
    fn outer(&self, location: &NginxLocation, path: &str) -> Option<&FolderMount> {
        let mount = FolderMount::of(&self.folders, path)?;
        let scope = &location.scope;
        let is_alike =
            is_file(path) && mount.has_files_of(scope) || scope.is_dressed_as(&mount.scope);
        let has_expressions = location.is_strong() || !mount.is_strong;
        let is_part = mount.scope.is_folder_as(scope) && is_alike && has_expressions;
        (path != "/" && is_part && !self.leaves_out(mount, path, false)).then_some(mount)
    }

    /// Returns whether a folder leaves a location out, as it is within another prefix.
    fn leaves_out(&self, mount: &FolderMount, path: &str, is_exact: bool) -> bool {
        let prefixes = self.server.locations.iter().filter_map(NginxLocation::prefix);
        let mut others = prefixes.filter(|one| path.starts_with(one) && (is_exact || *one != path));
        others.any(|one| one != "/" && !self.shared.contains(one) && mount.of_prefix(one).is_some())
    }

    fn exact(&mut self, location: &NginxLocation, path: &str, left: &mut LeftOuts) {
        let scope = &location.scope;
        if let Some(answer) = &scope.answer {
            if let Some(action) = self.action(answer, scope, (path, "")) {
                if !self.put(path, action, scope) {
                    left.add(&location.directive, "a folder has that path: 404");
                }
            } else {
                left.add(&location.directive, "its target is not understood: 403");
                self.close(path, false);
            }
            return;
        }
        // A file of a folder is served from there, if it is to the same clients.
        let mount = FolderMount::of(&self.folders, path);
        let has_it =
            |one: &&FolderMount| one.has_files_of(scope) && !self.leaves_out(one, path, true);
        let Some(mount) = mount.filter(has_it) else {
            left.add(&location.directive, "a single file has no route: it responds with 403");
            return self.close(path, false);
        };
        if !scope.is_dressed_as(&mount.scope) {
            left.add(&location.directive, "it is served without the fields that it adds");
        }
        self.shared_files.insert(path.to_owned());
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
                let kind = scope.text_type();
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
            if self.routes.get(&path).is_none_or(|route| !route.is_folder()) {
                self.routes.remove(&path);
            }
            if !self.put(&path, action, &self.server.scope) {
                left.add(&self.server.directive, OF_FOLDER);
                let path = path.trim_end_matches('/');
                let path = if path.is_empty() { "/" } else { path };
                if let Some(route) = self.routes.get_mut(path) {
                    route.forbidden.push("/".to_owned());
                }
            }
        }
    }

    /// Adds a route, and returns whether no other one has its path.
    fn put(&mut self, path: &str, action: ImportedAction, scope: &NginxScope) -> bool {
        // What is closed stays so.
        if self.routes.contains_key(path) || self.is_of_folder(path) {
            return false;
        }
        let route = ImportedRoute::of(action, fields_of(scope, false));
        self.routes.insert(path.to_owned(), route);
        true
    }

    /// Returns whether a folder has the path of a route.
    fn is_of_folder(&self, path: &str) -> bool {
        let base = path.strip_suffix("/{*rest}").or_else(|| path.strip_suffix('/'));
        self.folders.iter().any(|mount| mount.path == base.unwrap_or(path))
    }

    /// Lets a path respond with 403.
    fn close(&mut self, path: &str, is_prefix: bool) {
        let text = "403 Forbidden".to_owned();
        let action = ImportedAction::Text { text, status: 403, kind: None };
        let base = path.trim_end_matches('/');
        let mut paths = vec![path.to_owned()];
        if is_prefix {
            // `/a/{*rest}` is `/a/` as well.
            paths.retain(|path| !path.ends_with('/'));
            paths.push(format!("{base}/{{*rest}}"));
        } else {
            self.closed.insert(path.to_owned());
        }
        for path in paths {
            // A folder leaves it out.
            if self.routes.get(&path).is_none_or(|route| !route.is_folder()) {
                self.routes.remove(&path);
                self.put(&path, action.clone(), &NginxScope::default());
            }
        }
    }

    /// Adds a folder.
    ///
    /// - `of`: its scope, and what has that.
    fn folder(
        &mut self,
        (mount, is_strong): (&str, bool),
        folder: PathBuf,
        (scope, of): (&NginxScope, &Directive),
        left: &mut LeftOuts,
    ) {
        let path = if mount.is_empty() { "/" } else { mount };
        if self.folders.iter().any(|one| one.path == mount)
            || self.routes.contains_key(&format!("{mount}/{{*rest}}"))
        {
            return left.add(of, "another location has the path of its folder: left out");
        }
        let own = [path.to_owned(), format!("{mount}/")];
        let has_redirect = own.iter().any(|path| self.routes.remove(path).is_some());
        if has_redirect {
            left.add(of, OF_FOLDER);
        }
        left.folders.push((Directive { block: None, ..of.clone() }, folder.clone()));
        let (try_files, spa) = scope.try_files_beneath(mount);
        let route = ImportedRoute {
            listing: scope.listing,
            index: scope.index.clone(),
            try_files,
            spa,
            settings: scope.settings.lines(),
            cache: caches::rules(self.server, scope, is_strong),
            forbidden: if has_redirect { vec!["/".to_owned()] } else { Vec::new() },
            ..ImportedRoute::of(ImportedAction::Folder(folder), fields_of(scope, true))
        };
        self.routes.insert(path.to_owned(), route);
        self.folders.push(FolderMount { path: mount.to_owned(), is_strong, scope: scope.clone() });
    }

    /// Leaves out of each folder what other locations are for.
    fn forbid(&mut self) {
        let scopes = self.server.locations.iter().map(|one| &one.scope);
        let runs_programs = scopes.chain([&self.server.scope]).any(|scope| scope.runs_programs);
        for mount in &self.folders {
            let (mut all, mut of_files): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
            if runs_programs {
                all.extend(PROGRAMS.map(str::to_owned));
            }
            for location in &self.server.locations {
                match &location.matcher {
                    LocationMatcher::Expression(patterns)
                        if !mount.serves_as(location, &self.server.scope) =>
                    {
                        all.extend(mount.of_expression(patterns));
                    }
                    LocationMatcher::Prefix { path, .. }
                        if path != "/" && !self.shared.contains(path) =>
                    {
                        all.extend(mount.of_prefix(path));
                    }
                    LocationMatcher::Exact(path) if self.is_apart(location, path, mount) => {
                        of_files.extend(mount.of_exact(path));
                        let folder = path.rfind('/').map_or(path.as_str(), |at| &path[..=at]);
                        if mount.lists() && mount.has_index(path) {
                            // nginx refuses the index, and lists nothing in its place.
                            of_files.extend(mount.of_exact(folder));
                        }
                    }
                    _ => {}
                }
            }
            let is_all = |one: &String| ["*", "/*"].contains(&one.as_str());
            let path = if mount.path.is_empty() { "/" } else { &mount.path };
            let Some(route) = self.routes.get_mut(path) else { continue };
            if mount.lists() && mount.loses_index(&all) {
                route.listing = Some(false);
            }
            all.append(&mut of_files);
            all.append(&mut route.forbidden);
            all.sort();
            all.dedup();
            route.forbidden = all;
            if route.forbidden.iter().any(is_all) || route.forbidden.len() > FORBIDDEN_MAX {
                route.forbidden = vec!["*".to_owned()];
            }
        }
    }

    /// Returns whether a folder leaves out what an exact location is for. A route for that path is
    /// enough, unless the folder comes to the file by another path, or has that path itself.
    fn is_apart(&self, location: &NginxLocation, path: &str, mount: &FolderMount) -> bool {
        let is_error =
            matches!(location.scope.answer, Some(NginxAnswer::Text { status: 400.., .. }));
        let has_route = location.scope.responds() && !is_error && !self.closed.contains(path);
        let is_met = mount.has_index(path) || path.strip_suffix('/') == Some(&mount.path);
        !self.shared_files.contains(path) && (!has_route || is_met)
    }
}

/// Returns whether the path of a prefix is that of a file, by its name.
fn is_file(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.contains('.'))
}
