//! Lookup of routes by host, path and method, without a lock and without an allocation.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use foldhash::fast::RandomState;
use gustnado_access::{AccessError, Rewrites};
use gustnado_config::StatusRange;
use gustnado_config::config_file::Rewrite;
use gustnado_http::hosts::HostMap;
use gustnado_http::method::Method;
use gustnado_http::path::CanonicalPath;
use gustnado_http::path::pattern::{before_rest, path_names, pattern};
use gustnado_http::request::RequestView;
use gustnado_http::status::Status;
use matchit::{InsertError, Params, Router};

use super::access_gate::AccessGate;
use super::entry::{EndpointKind, PathEntry, RouteEndpoint};
use super::error::RouteError;
use super::prepared::PreparedRoute;
use super::wrapper::{self, EndpointWrapper, check_policy};
use super::{Route, RouteOptions, Routes, plain_status};
use crate::build_context::BuildContext;
use crate::error_page::ErrorPage;
use crate::handler::HandlerKind;
use crate::middleware::Matcher;
use crate::route_pace::RoutePace;
use gustnado_files::Files;

/// Endpoints and pages of a site, by host.
pub struct Tables {
    /// A number that is unique in this process.
    pub number: u64,
    /// There is another table than `rest`.
    has_hosts: bool,
    hosts: HostMap<Arc<RouteTable>, RandomState>,
    rest: Arc<RouteTable>,
    /// The context that they were built in.
    pub build: BuildContext,
}

/// Endpoints and pages of one host.
pub struct RouteTable {
    /// The paths without names, found by one comparison or hash.
    exact: HashMap<Box<[u8]>, usize, RandomState>,
    router: Router<usize>,
    paths: Vec<PathEntry>,
    matchers: Vec<(Matcher, RouteEndpoint)>,
    rewrites: Rewrites,
    fallback: PathEntry,
    /// The folder, if it serves every request: the usual case of a file server, which compares no
    /// path.
    pub only_folder: Option<Arc<Files>>,
    /// The endpoint for paths without a canonical form: 400.
    pub no_path: RouteEndpoint,
    pub pages: Pages,
    /// Paths of routes as configured, by their labels.
    labels: Vec<(u32, String)>,
}

/// The route of a request, and the named parts of its path.
pub struct FoundRoute<'t, 'p> {
    pub endpoint: &'t RouteEndpoint,
    pub names: Option<&'t Arc<[Box<str>]>>,
    /// The last of them is a rest of any length.
    pub has_rest: bool,
    params: Option<Params<'t, 'p>>,
}

/// Pages for errors.
#[derive(Clone, Default)]
pub struct Pages {
    own: Vec<(StatusRange, ErrorPage)>,
    /// Those of the settings, where there are none of its own.
    usual: Arc<[(StatusRange, ErrorPage)]>,
}

impl Tables {
    /// Builds the tables of routes.
    ///
    /// # Errors
    /// [`RouteError`].
    pub fn new(routes: &Routes, build: &BuildContext) -> Result<Self, RouteError> {
        let base = EndpointWrapper::base_gate(routes, build)?;
        let mut hosts = HostMap::default();
        for (names, of_host) in &routes.hosts {
            let table = Arc::new(RouteTable::new(of_host, Some(routes), &base, build)?);
            for name in names {
                if hosts.set(name, Arc::clone(&table)) {
                    return Err(RouteError::HostRepeated { host: name.clone() });
                }
            }
        }
        let rest = Arc::new(RouteTable::new(routes, None, &base, build)?);
        #[cfg(feature = "tower")]
        if let Some(error) = build.tokio.failure() {
            return Err(RouteError::Tokio { error });
        }
        let has_hosts = !hosts.is_empty();
        Ok(Self { number: fresh_number(), has_hosts, hosts, rest, build: build.clone() })
    }

    /// Returns the table for a request's host.
    #[inline]
    pub fn of_host(&self, view: RequestView<'_>) -> &Arc<RouteTable> {
        if self.has_hosts { self.find_host(view) } else { &self.rest }
    }

    /// Returns the path of a route by its [label](super::RouteOptions::label).
    pub fn path_of(&self, label: u32) -> Option<&str> {
        let mut labels = self.hosts.values().chain([&self.rest]).flat_map(|table| &table.labels);
        labels.find(|(of, _)| *of == label).map(|(_, path)| &**path)
    }

    /// Returns the name by which a host has a site of its own.
    pub(super) fn name_of_host(&self, host: &str) -> Option<String> {
        self.hosts.name_of(host)
    }

    fn find_host(&self, view: RequestView<'_>) -> &Arc<RouteTable> {
        self.hosts.get(&host_name(view)).unwrap_or(&self.rest)
    }
}

fn fresh_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// Returns the name of a request's host in lower case, without its port; empty without one.
pub fn host_name(view: RequestView<'_>) -> String {
    let host = view.host().and_then(|host| std::str::from_utf8(host).ok()).unwrap_or("");
    let name = without_port(host);
    // A name may end in the root's dot (RFC 1034 §3.1): it is the same host.
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// Returns a host without its port; an IPv6 address keeps its brackets.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

impl RouteTable {
    fn new(
        routes: &Routes,
        outer: Option<&Routes>,
        base: &Arc<AccessGate>,
        build: &BuildContext,
    ) -> Result<Self, RouteError> {
        let wrapper = EndpointWrapper::new(outer, routes, base, build)?;
        let plain_route = wrapper.prepare(Route::default(), build)?;
        let plain = |kind: HandlerKind| wrapper.endpoint(kind, &plain_route, build);
        let mut table = Self {
            exact: HashMap::default(),
            router: Router::new(),
            paths: Vec::new(),
            matchers: Vec::new(),
            rewrites: compiled(&routes.rewrites)?,
            only_folder: None,
            fallback: PathEntry::all(&plain(plain_status(Status::NOT_FOUND, None))),
            no_path: EndpointWrapper::refusal(
                plain_status(Status::BAD_REQUEST, None),
                &plain_route,
                build,
            ),
            pages: Pages { own: routes.pages.clone(), usual: Arc::clone(&build.error_pages) },
            labels: Vec::new(),
        };
        if let Some(fallback) = &routes.fallback {
            let mut fallback = fallback.clone();
            fallback.options.label = table.label("the fallback");
            wrapper::check_route("the fallback", &fallback, build)?;
            let fallback = wrapper.prepare(fallback, build)?;
            table.fallback = wrapper.fallback(&fallback, build)?;
        }
        if let Some(root) = &routes.root {
            let route = Route { folder: Some(root.clone()), ..Route::default() };
            let endpoints = wrapper.folder(root, "", &wrapper.prepare(route, build)?, build)?;
            if let EndpointKind::Files { files, .. } = &endpoints.usual.kind
                && endpoints.uploads.is_none()
                && routes.paths.is_empty()
                && routes.matchers.is_empty()
                && routes.rewrites.is_empty()
            {
                table.only_folder = Some(Arc::clone(files));
            }
            table.fallback = endpoints.entry();
        }
        for (matcher, handler) in &routes.matchers {
            check_policy("of a matcher", None, [(None, handler)], build)?;
            let endpoint = plain(handler.0.clone());
            table.matchers.push((Arc::clone(matcher), endpoint));
        }
        table.add_paths(routes, &wrapper, build)?;
        Ok(table)
    }

    fn add_paths(
        &mut self,
        routes: &Routes,
        wrapper: &EndpointWrapper,
        build: &BuildContext,
    ) -> Result<(), RouteError> {
        // Added last, so that they replace no other route.
        let mut empty_rests = Vec::new();
        for MergedRoute { path, mut route, own } in merged(&routes.paths)? {
            route.options.label = self.label(&path);
            wrapper::check_route(&path, &route, build)?;
            let prepared = wrapper.prepare(route, build)?;
            if let Some(folder) = &prepared.route.folder {
                self.add_folder(&path, folder, &prepared, wrapper, build)?;
            } else {
                let entry = PathEntry::new(&path, &prepared.route, |method, kind| {
                    let own = own.iter().find(|(of, _)| *of == method);
                    let own = own.map(|(_, options)| prepared.with_options(options));
                    wrapper.endpoint(kind, own.as_ref().unwrap_or(&prepared), build)
                });
                let pattern = canonical_route(&path)?;
                if let Some(before) = before_rest(&pattern) {
                    empty_rests.push((before.to_owned(), self.paths.len()));
                }
                self.add(&path, pattern, entry)?;
            }
        }
        for (pattern, index) in empty_rests {
            match self.router.insert(&pattern, index) {
                // A route of that very path takes precedence.
                Ok(()) | Err(InsertError::Conflict { .. }) => {}
                Err(error) => {
                    return Err(RouteError::Malformed { path: pattern, reason: error.to_string() });
                }
            }
        }
        Ok(())
    }

    /// Returns a label for a route, unique in this process.
    fn label(&mut self, path: &str) -> u32 {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let label = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        self.labels.push((label, path.to_owned()));
        label
    }

    /// - `path`: as configured.
    /// - `pattern`: in canonical form.
    fn add(&mut self, path: &str, pattern: String, mut entry: PathEntry) -> Result<(), RouteError> {
        let index = self.paths.len();
        if entry.names.is_none() && !pattern.contains(['{', '}']) {
            entry.pattern = pattern.as_bytes().into();
            self.exact.insert(entry.pattern.clone(), index);
        }
        self.router.insert(pattern, index).map_err(|error| match error {
            InsertError::Conflict { with } => RouteError::Conflict { path: path.to_owned(), with },
            error => RouteError::Malformed { path: path.to_owned(), reason: error.to_string() },
        })?;
        self.paths.push(entry);
        Ok(())
    }

    fn add_folder(
        &mut self,
        path: &str,
        folder: &Path,
        route: &PreparedRoute,
        wrapper: &EndpointWrapper,
        build: &BuildContext,
    ) -> Result<(), RouteError> {
        if !path_names(path).is_empty() {
            return Err(RouteError::NamedFolder { path: path.to_owned() });
        }
        let pattern = if path.is_empty() { String::new() } else { canonical_route(path)? };
        let base = pattern.trim_end_matches('/');
        let endpoints = wrapper.folder(folder, base, route, build)?;
        let mut patterns = vec![format!("{base}/"), format!("{base}/{{*rest}}")];
        if !base.is_empty() {
            patterns.push(base.to_owned());
        }
        for pattern in patterns {
            self.add(path, pattern, endpoints.entry())?;
        }
        Ok(())
    }

    /// Returns the endpoint for a path that equals an exact route. Routes are canonical, so a path
    /// that equals one is canonical too; [`RouteTable::find`] handles all others.
    ///
    /// - `recent`: the last one found: the next request often has the same path, and comparing is
    ///   cheaper than hashing.
    #[inline]
    pub fn find_exact(
        &self,
        method: Method,
        path: &[u8],
        recent: &Cell<usize>,
    ) -> Option<&RouteEndpoint> {
        let entry = match self.paths.get(recent.get()) {
            Some(entry) if *entry.pattern == *path => entry,
            _ => {
                let index = *self.exact.get(path)?;
                recent.set(index);
                &self.paths[index]
            }
        };
        Some(entry.endpoint(method))
    }

    /// Returns the route for a request.
    pub fn find<'t, 'p>(
        &'t self,
        method: Method,
        path: &'p CanonicalPath<'_>,
    ) -> FoundRoute<'t, 'p> {
        let Ok(found) = self.router.at(path.as_str()) else {
            let endpoint = self.fallback(method);
            return FoundRoute { endpoint, names: None, has_rest: false, params: None };
        };
        let entry = &self.paths[*found.value];
        let names = entry.names.as_ref();
        let params = names.is_some().then_some(found.params);
        let has_rest = entry.has_rest;
        FoundRoute { endpoint: entry.endpoint(method), names, has_rest, params }
    }

    /// Returns the endpoint for requests that no path matches.
    pub fn fallback(&self, method: Method) -> &RouteEndpoint {
        self.fallback.endpoint(method)
    }

    /// Returns whether no path is looked up before the one that was sent.
    #[inline]
    pub fn is_exact_first(&self) -> bool {
        self.matchers.is_empty() && self.rewrites.is_empty()
    }

    /// Returns the paths that take the place of others.
    pub fn rewrites(&self) -> &Rewrites {
        &self.rewrites
    }

    /// Returns the functions that run before any path is compared.
    pub fn matchers(&self) -> &[(Matcher, RouteEndpoint)] {
        &self.matchers
    }
}

fn compiled(rewrites: &[(String, String)]) -> Result<Rewrites, RouteError> {
    let failed = |reason| RouteError::Access(AccessError::Rule(format!("rewrite: {reason}")));
    let read = rewrites.iter().map(|(from, to)| Rewrite::new(from, to).map_err(failed));
    Rewrites::new(&read.collect::<Result<Vec<_>, _>>()?).map_err(RouteError::Access)
}

/// The routes of one path.
struct MergedRoute {
    path: String,
    route: Route,
    /// Options of handlers that are not of the first route, by their methods; `None` is of any.
    own: Vec<(Option<Method>, RouteOptions)>,
}

/// Merges routes of the same path.
fn merged(paths: &[(String, Route)]) -> Result<Vec<MergedRoute>, RouteError> {
    let mut all: Vec<MergedRoute> = Vec::new();
    for (path, route) in paths {
        let known = all.iter_mut().find(|known| known.path == *path);
        let Some(MergedRoute { route: known, own, .. }) = known else {
            all.push(MergedRoute { path: path.clone(), route: route.clone(), own: Vec::new() });
            continue;
        };
        let repeated = route
            .handlers
            .iter()
            .find(|(method, _)| known.handlers.iter().any(|(other, _)| other == method));
        if let Some((method, _)) = repeated {
            return Err(RouteError::Repeated {
                path: path.clone(),
                method: method.as_str().unwrap_or("other methods"),
            });
        }
        let has_fields = !route.fields.is_empty();
        let is_special = !route.middleware.is_empty() || has_fields || !route.tuning.is_empty();
        if route.folder.is_some() || known.folder.is_some() || is_special {
            return Err(RouteError::Conflict { path: path.clone(), with: path.clone() });
        }
        let is_new = |link: &&String| !known.preload.contains(link);
        let links: Vec<String> = route.preload.iter().filter(is_new).cloned().collect();
        known.preload.extend(links);
        if route.pace != RoutePace::default() {
            if known.pace != RoutePace::default() && known.pace != route.pace {
                return Err(RouteError::PaceRepeated { path: path.clone() });
            }
            known.pace = route.pace;
        }
        match (known.limit, route.limit) {
            (Some(one), Some(other)) if one.running_max != other.running_max => {
                return Err(RouteError::LimitRepeated { path: path.clone() });
            }
            (one, other) => known.limit = one.or(other),
        }
        known.is_exempt |= route.is_exempt;
        known.options.body_policy = known.options.body_policy.or(route.options.body_policy);
        known.options.keeps_empty |= route.options.keeps_empty;
        own.extend(wrapper::handlers_of(route).map(|(method, _)| (method, route.options)));
        known.handlers.extend(route.handlers.iter().cloned());
        if known.any.is_some() && route.any.is_some() {
            return Err(RouteError::Repeated { path: path.clone(), method: "any method" });
        }
        known.any = route.any.clone().or(known.any.take());
    }
    Ok(all)
}

impl<'p> FoundRoute<'_, 'p> {
    /// Returns the positions of the named parts in the path that was looked up.
    pub fn spans(&self, path: &'p CanonicalPath<'_>) -> impl Iterator<Item = (u32, u32)> {
        let path = path.as_str();
        let start = path.as_ptr().addr();
        let number = |at| u32::try_from(at).expect("a head is at most 65,535 bytes long");
        let found = self.params.iter().flat_map(Params::iter).map(move |(_, value)| {
            let at = value.as_ptr().addr() - start;
            (number(at), number(at + value.len()))
        });
        // A rest that is empty is no part of what was found.
        let names = self.names.map_or(0, |names| names.len());
        let end = number(path.len());
        found.chain(std::iter::repeat((end, end))).take(names)
    }
}

impl Pages {
    /// Returns the page for a status: that for the fewest statuses, and of those the last.
    pub fn of(&self, status: Status) -> Option<&ErrorPage> {
        let of = |pages: &[(StatusRange, ErrorPage)]| {
            let found = pages.iter().enumerate().rev();
            let found = found.filter(|(_, (range, _))| range.has(status.code()));
            found.min_by_key(|(_, (range, _))| range.last - range.first).map(|(at, _)| at)
        };
        match of(&self.own) {
            Some(at) => Some(&self.own[at].1),
            None => of(&self.usual).map(|at| &self.usual[at].1),
        }
    }
}

/// Returns a route's path in the canonical form that request paths are compared in. The Python
/// package compares routes with it.
///
/// # Errors
/// [`RouteError::Malformed`]
#[doc(hidden)]
pub fn canonical_route(path: &str) -> Result<String, RouteError> {
    pattern(path).map_err(|reason| RouteError::Malformed { path: path.to_owned(), reason })
}

#[cfg(test)]
mod tests;
