//! Routes made ready: found by host, path and method, without a lock and without an allocation.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};

use foldhash::fast::RandomState;
use gustnado_http::answer::FieldError;
use gustnado_http::method::Method;
use gustnado_http::request::Request as View;
use gustnado_http::status::Status;
use gustnado_tasks::BlockingPool;
use matchit::{InsertError, Params, Router};

use super::around::{self, Around};
use super::{Matcher, Page, Route, RouteOptions, Routes, path, plain_status};
use crate::app::App;
use crate::chain::Runnable;
use crate::files::{FileOptions, Files, FilesError, Folders};
use crate::handler::Kind;
use crate::pace::RoutePace;

/// Everything a site answers with, by host.
pub(crate) struct Tables {
    hosts: HashMap<String, Arc<Table>, RandomState>,
    /// Names that stand for all below them, each with its leading dot; the longest first.
    suffixes: Vec<(String, Arc<Table>)>,
    rest: Arc<Table>,
    pool: BlockingPool,
}

/// Everything one host answers with.
pub(crate) struct Table {
    /// The paths without names, which need no walk: the quickest way to most handlers.
    exact: HashMap<Box<[u8]>, usize, RandomState>,
    router: Router<usize>,
    paths: Vec<PathEntry>,
    matchers: Vec<(Matcher, Endpoint)>,
    fallback: Endpoint,
    pub(crate) pages: Pages,
}

/// What one path answers, by method.
struct PathEntry {
    by_method: [Option<Endpoint>; Method::ALL.len()],
    any: Option<Endpoint>,
    options: Endpoint,
    not_allowed: Endpoint,
    names: Option<Arc<[Box<str>]>>,
    /// The path as requests spell it, if it is exact; else empty, which no request's path is.
    pattern: Box<[u8]>,
}

/// What a request comes to.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) does: EndpointDoes,
    pub(crate) options: RouteOptions,
    /// Whether a request's body is kept for it, rather than thrown away.
    pub(crate) reads_body: bool,
}

#[derive(Clone)]
pub(crate) enum EndpointDoes {
    Run(Runnable),
    /// Serves a folder; so many bytes of the path are the route's.
    Files {
        files: Arc<Files>,
        mounted_at: usize,
    },
}

/// A route that was found, and the named parts of the path.
pub(crate) struct Found<'t, 'p> {
    pub(crate) endpoint: &'t Endpoint,
    pub(crate) names: Option<&'t Arc<[Box<str>]>>,
    params: Option<Params<'t, 'p>>,
}

/// Pages for errors.
#[derive(Clone, Default)]
pub(crate) struct Pages(Vec<(Option<Status>, Page)>);

/// What routes are made ready with.
#[derive(Clone)]
pub(crate) struct Means {
    pub(crate) pool: BlockingPool,
    pub(crate) files: FileOptions,
    /// The server, once it runs.
    pub(crate) app: Arc<OnceLock<Weak<App>>>,
    #[cfg(feature = "tower")]
    pub(crate) tokio: Arc<crate::tower::Tokio>,
    pub(crate) folders: Folders,
    /// Ready field lines that every answer of the server has anyway.
    pub(crate) common: Arc<[u8]>,
}

impl Means {
    pub(crate) fn new(pool: BlockingPool, files: FileOptions) -> Self {
        Self {
            pool,
            files,
            app: Arc::default(),
            #[cfg(feature = "tower")]
            tokio: Arc::default(),
            folders: Folders::default(),
            common: Arc::from([]),
        }
    }
}

impl Tables {
    /// Makes routes ready.
    ///
    /// # Errors
    /// [`RouteError`].
    pub(crate) fn new(routes: &Routes, means: &Means) -> Result<Self, RouteError> {
        let mut hosts = HashMap::with_hasher(RandomState::default());
        let mut suffixes = Vec::new();
        for (names, of_host) in &routes.hosts {
            let table = Arc::new(Table::new(of_host, Some(routes), means)?);
            for name in names {
                let table = Arc::clone(&table);
                let is_repeated = match name.strip_prefix('*') {
                    Some(suffix) => {
                        let is_repeated = suffixes.iter().any(|(other, _)| other == suffix);
                        suffixes.push((suffix.to_owned(), table));
                        is_repeated
                    }
                    None => hosts.insert(name.clone(), table).is_some(),
                };
                if is_repeated {
                    return Err(RouteError::HostRepeated { host: name.clone() });
                }
            }
        }
        suffixes.sort_by_key(|(suffix, _)| std::cmp::Reverse(suffix.len()));
        let rest = Arc::new(Table::new(routes, None, means)?);
        #[cfg(feature = "tower")]
        if let Some(error) = means.tokio.failure() {
            return Err(RouteError::Tokio { error });
        }
        Ok(Self { hosts, suffixes, rest, pool: means.pool.clone() })
    }

    /// Where what blocks is run.
    pub(crate) fn pool(&self) -> &BlockingPool {
        &self.pool
    }

    /// The table for a request's host.
    pub(crate) fn of_host(&self, view: View<'_>) -> &Arc<Table> {
        if self.hosts.is_empty() && self.suffixes.is_empty() {
            return &self.rest;
        }
        let host = view.host().and_then(|host| std::str::from_utf8(host).ok()).unwrap_or("");
        let name = without_port(host).to_ascii_lowercase();
        let by_suffix = || self.suffixes.iter().find(|(suffix, _)| name.ends_with(suffix.as_str()));
        let found = self.hosts.get(&name).or_else(|| by_suffix().map(|(_, table)| table));
        found.unwrap_or(&self.rest)
    }
}

/// A host without its port; an IPv6 address keeps its brackets.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

impl Table {
    fn new(routes: &Routes, outer: Option<&Routes>, means: &Means) -> Result<Self, RouteError> {
        let around = Around::new(outer, routes)?;
        let plain = |kind: Kind| around.endpoint(kind, &Route::default(), means);
        let mut table = Self {
            exact: HashMap::default(),
            router: Router::new(),
            paths: Vec::new(),
            matchers: Vec::new(),
            fallback: plain(plain_status(Status::NOT_FOUND, None)),
            pages: Pages(routes.pages.clone()),
        };
        if let Some(fallback) = &routes.fallback {
            table.fallback = plain(fallback.0.clone());
        }
        if let Some(root) = &routes.root {
            table.fallback = around.folder(root, 0, &Route::default(), means)?;
        }
        for (matcher, handler) in &routes.matchers {
            let endpoint = plain(handler.0.clone());
            table.matchers.push((Arc::clone(matcher), endpoint));
        }
        for (path, route) in merged(&routes.paths)? {
            let route = route.with_pace();
            around::check(&route.fields)?;
            if let Some(folder) = &route.folder {
                table.add_folder(&path, folder, &route, &around, means)?;
            } else {
                let entry =
                    PathEntry::new(&path, &route, |kind| around.endpoint(kind, &route, means));
                table.add(&path, entry)?;
            }
        }
        Ok(table)
    }

    fn add(&mut self, path: &str, mut entry: PathEntry) -> Result<(), RouteError> {
        let index = self.paths.len();
        let pattern = path::pattern(path);
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
        route: &Route,
        around: &Around,
        means: &Means,
    ) -> Result<(), RouteError> {
        let mounted_at = path::pattern(path).len();
        let endpoint = around.folder(folder, mounted_at, route, means)?;
        let own = if path.is_empty() { "/" } else { path };
        for path in [own.to_owned(), format!("{path}/{{*rest}}")] {
            self.add(&path, PathEntry::all(&endpoint))?;
        }
        if !path.is_empty() {
            self.add(&format!("{path}/"), PathEntry::all(&endpoint))?;
        }
        Ok(())
    }

    /// The handler for a path that a route names exactly, as it was sent.
    ///
    /// - `recent`: the caller's memory of the last one found: the next request often asks for the
    ///   same, and comparing is cheaper than hashing.
    #[inline]
    pub(crate) fn find_exact(
        &self,
        method: Method,
        path: &[u8],
        recent: &Cell<usize>,
    ) -> Option<&Endpoint> {
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

    /// The route for a request.
    ///
    /// - `path`: its path in normal form.
    pub(crate) fn find<'t, 'p>(&'t self, method: Method, path: &'p str) -> Found<'t, 'p> {
        let Ok(found) = self.router.at(path) else {
            return Found { endpoint: &self.fallback, names: None, params: None };
        };
        let entry = &self.paths[*found.value];
        let names = entry.names.as_ref();
        let params = names.is_some().then_some(found.params);
        Found { endpoint: entry.endpoint(method), names, params }
    }

    /// The functions that are asked before any path.
    pub(crate) fn matchers(&self) -> &[(Matcher, Endpoint)] {
        &self.matchers
    }
}

/// Routes of the same path are one.
fn merged(paths: &[(String, Route)]) -> Result<Vec<(String, Route)>, RouteError> {
    let mut all: Vec<(String, Route)> = Vec::new();
    for (path, route) in paths {
        let Some((_, known)) = all.iter_mut().find(|(other, _)| other == path) else {
            all.push((path.clone(), route.clone()));
            continue;
        };
        let repeated = route
            .handlers
            .iter()
            .find(|(method, _)| known.handlers.iter().any(|(other, _)| other == method));
        if let Some((method, _)) = repeated {
            return Err(RouteError::Repeated { path: path.clone(), method: method.as_str() });
        }
        let is_special = !route.links.is_empty() || !route.fields.is_empty();
        if route.folder.is_some() || known.folder.is_some() || is_special {
            return Err(RouteError::Conflict { path: path.clone(), with: path.clone() });
        }
        if route.pace != RoutePace::default() {
            if known.pace != RoutePace::default() && known.pace != route.pace {
                return Err(RouteError::PaceRepeated { path: path.clone() });
            }
            known.pace = route.pace;
        }
        known.handlers.extend(route.handlers.iter().cloned());
        known.any = route.any.clone().or(known.any.take());
    }
    Ok(all)
}

impl PathEntry {
    fn new(path: &str, route: &Route, endpoint: impl Fn(Kind) -> Endpoint) -> Self {
        let allow = allow(route);
        let mut entry = Self {
            by_method: [const { None }; Method::ALL.len()],
            any: route.any.as_ref().map(|handler| endpoint(handler.0.clone())),
            options: endpoint(plain_status(Status::NO_CONTENT, Some(allow.clone()))),
            not_allowed: endpoint(plain_status(Status::METHOD_NOT_ALLOWED, Some(allow))),
            names: names(path),
            pattern: Box::default(),
        };
        for (method, handler) in &route.handlers {
            entry.by_method[*method as usize] = Some(endpoint(handler.0.clone()));
        }
        entry
    }

    /// The same for all methods.
    fn all(endpoint: &Endpoint) -> Self {
        Self {
            by_method: [const { None }; Method::ALL.len()],
            any: Some(endpoint.clone()),
            options: endpoint.clone(),
            not_allowed: endpoint.clone(),
            names: None,
            pattern: Box::default(),
        }
    }

    #[inline]
    fn endpoint(&self, method: Method) -> &Endpoint {
        let by_method = |method: Method| self.by_method[method as usize].as_ref();
        let own = by_method(method);
        let own = if method == Method::Head { own.or_else(|| by_method(Method::Get)) } else { own };
        match own.or(self.any.as_ref()) {
            Some(endpoint) => endpoint,
            None if method == Method::Options => &self.options,
            None => &self.not_allowed,
        }
    }
}

/// What a path answers, for `Allow` (RFC 9110 §10.2.1).
fn allow(route: &Route) -> String {
    let has = |wanted: Method| route.handlers.iter().any(|(method, _)| *method == wanted);
    let is_allowed = |method: &Method| match method {
        Method::Head => has(Method::Head) || has(Method::Get),
        Method::Options => true,
        method => has(*method),
    };
    let methods: Vec<&str> = Method::ALL
        .iter()
        .filter(|method| is_allowed(method))
        .map(|method| method.as_str())
        .collect();
    methods.join(", ")
}

/// The names in a path, in order.
fn names(path: &str) -> Option<Arc<[Box<str>]>> {
    let names: Vec<Box<str>> = path_names(path).into_iter().map(String::into).collect();
    (!names.is_empty()).then(|| names.into())
}

/// The same, one by one.
pub(crate) fn path_names(path: &str) -> Vec<String> {
    let parts = path.replace("{{", "").replace("}}", "");
    let names = parts.split('{').skip(1).filter_map(|part| part.split_once('}'));
    names.map(|(name, _)| name.trim_start_matches('*').to_owned()).collect()
}

impl<'p> Found<'_, 'p> {
    /// Where the named parts are in the path that was looked up.
    pub(crate) fn spans(&self, path: &'p str) -> impl Iterator<Item = (u32, u32)> {
        let start = path.as_ptr().addr();
        self.params.iter().flat_map(Params::iter).map(move |(_, value)| {
            let at = value.as_ptr().addr() - start;
            let number = |at| u32::try_from(at).expect("a head is at most 65,535 bytes long");
            (number(at), number(at + value.len()))
        })
    }
}

impl Pages {
    /// The page for a status: its own, or the one for all.
    pub(crate) fn of(&self, status: Status) -> Option<&Page> {
        let of = |wanted| self.0.iter().rev().find(|(of, _)| *of == wanted).map(|(_, page)| page);
        of(Some(status)).or_else(|| of(None))
    }
}

/// Why routes cannot be served. `Display` is one line: what, where, remedy.
#[derive(Debug)]
#[non_exhaustive]
pub enum RouteError {
    /// Two paths would answer the same requests.
    Conflict {
        /// The later one.
        path: String,
        /// The earlier one.
        with: String,
    },
    /// A path has two handlers for one method.
    Repeated {
        /// The path.
        path: String,
        /// The method.
        method: &'static str,
    },
    /// A path has two different paces.
    PaceRepeated {
        /// The path.
        path: String,
    },
    /// A path is not well formed.
    Malformed {
        /// The path.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A host is named twice.
    HostRepeated {
        /// Its name.
        host: String,
    },
    /// A folder cannot be served.
    Folder(FilesError),
    /// The runtime for the services of tower cannot be started.
    #[cfg(feature = "tower")]
    Tokio {
        /// What the system says.
        error: std::io::Error,
    },
    /// A header field cannot be sent.
    Field {
        /// Its name.
        name: String,
        /// What is wrong with it.
        error: FieldError,
    },
    /// The server was started without routes.
    NoRoutes,
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict { path, with } => write!(
                f,
                "the routes {path} and {with} would answer the same requests; change one of them"
            ),
            Self::Repeated { path, method } => {
                write!(f, "the route {path} has two handlers for {method}; remove one of them")
            }
            Self::PaceRepeated { path } => write!(
                f,
                "the route {path} is given two different paces; say one, for all its methods"
            ),
            Self::Malformed { path, reason } => write!(
                f,
                "the route {path} is not well formed ({reason}); expected /exact, /{{name}} or \
                 /{{*rest}}"
            ),
            Self::HostRepeated { host } => {
                write!(f, "the host {host} is named twice; put its routes together")
            }
            Self::Folder(error) => error.fmt(f),
            #[cfg(feature = "tower")]
            Self::Tokio { error } => write!(
                f,
                "the tokio runtime for services cannot be started ({error}); raise the limit that \
                 it names, or give the services a runtime with `on_tokio`"
            ),
            Self::Field { name, error } => {
                write!(f, "the header field {name:?} cannot be sent: {error}; take another one")
            }
            Self::NoRoutes => {
                f.write_str("the server was started without routes, for a folder or its own page")
            }
        }
    }
}

impl std::error::Error for RouteError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Request;
    use std::hint::black_box;
    use std::time::Instant;

    const ROUTES: usize = 1_000;

    /// Half of the paths are exact, half have a named part.
    fn path_of(at: usize, name: &str) -> String {
        match at % 2 {
            0 => format!("/area/{}/section/page{at}", at % 50),
            _ => format!("/area/{}/section{at}/{name}/detail", at % 50),
        }
    }

    fn thousand_routes() -> Tables {
        let routes = (0..ROUTES).fold(Routes::new(), |routes, at| {
            routes.get(&path_of(at, "{id}"), move |_: &Request| at.to_string())
        });
        let files = FileOptions { hidden: false, cache_bytes: 0, workers: 1, threads: 0 };
        let means = Means::new(BlockingPool::new(1, 1), files);
        Tables::new(&routes, &means).expect("no two paths are alike")
    }

    fn find<'t>(table: &'t Table, path: &str, recent: &Cell<usize>) -> &'t Endpoint {
        let exact = table.find_exact(Method::Get, path.as_bytes(), recent);
        exact.unwrap_or_else(|| table.find(Method::Get, path).endpoint)
    }

    #[test]
    fn each_of_a_thousand_routes_is_found() {
        let (tables, recent) = (thousand_routes(), Cell::new(0));
        for at in 0..ROUTES {
            let endpoint = find(&tables.rest, &path_of(at, "7"), &recent);
            let EndpointDoes::Run(Runnable::Inline(handler)) = &endpoint.does else {
                panic!("all are inline");
            };
            let mut request = crate::request::tests::of("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
            assert_eq!(
                handler(&mut request).content().map(|all| all.to_vec()),
                Some(at.to_string().into_bytes())
            );
        }
    }

    /// `cargo test --release -p gustnado --lib -- --ignored --nocapture a_thousand_routes`
    #[test]
    #[ignore = "it measures: no test asserts a time"]
    fn how_long_it_takes_to_find_one_of_a_thousand_routes() {
        const ROUNDS: usize = 2_000;
        let (tables, recent) = (thousand_routes(), Cell::new(0));
        for (what, first) in [("exact", 0), ("with a named part", 1)] {
            let paths: Vec<String> =
                (first..ROUTES).step_by(2).map(|at| path_of(at, "1234")).collect();
            let began = Instant::now();
            for path in (0..ROUNDS).flat_map(|_| &paths) {
                black_box(find(&tables.rest, black_box(path), &recent));
            }
            let each = began.elapsed() / u32::try_from(ROUNDS * paths.len()).expect("a million");
            println!("{what}: {each:?}");
        }
    }
}
