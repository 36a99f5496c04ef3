//! Routes: the table of handlers, as configured before the start.

mod access_gate;
mod described;
mod elsewhere;
mod entry;
mod error;
mod fallback;
mod limits;
mod prepared;
mod rules;
mod table;
mod wrapper;

use std::fmt;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gustnado_config::{Headers, RouteTuning, StatusRange};
use gustnado_http::method::Method;
use gustnado_http::status::Status;

use crate::error_page::{ErrorPage, static_page};
use crate::handler::{Handler, HandlerKind, IntoHandler};
use crate::handler_limits::OwnLimit;
use crate::middleware::{Matcher, Middleware};
use crate::request::Request;
use crate::response::{IntoResponse, Response};
use crate::route_pace::RoutePace;

pub use crate::route_options::RouteOptions;
pub use described::DescribedRoute;
pub use entry::{EndpointKind, GatedEndpoint, Passage, RouteEndpoint};
pub use error::RouteError;
#[doc(hidden)]
pub use table::canonical_route;
pub use table::{Pages, RouteTable, Tables, host_name};

/// Routes, middleware and error pages of one site, or a part of one.
///
/// A path is exact (`/hello`), has named parts (`/user/{id}/posts`), or ends in a rest of any
/// length (`/files/{*rest}`), also an empty one: `/files/`. Exact parts take precedence over named
/// ones, and those over a rest. Two routes that would match the same requests are an error at the
/// start, and so is a path that does not begin with a slash.
///
/// The canonical path of a request is compared, segment by segment: `//a/./%62` is `/a/b`, and
/// `/a%2Fb` has one segment. A segment `..` gets 400 before any handler runs.
///
/// A path with a handler for GET also responds to HEAD. Every path responds to OPTIONS, and to
/// other methods with 405 and `Allow` (RFC 9110 §15.5.6).
#[derive(Clone, Default)]
pub struct Routes {
    #[doc(hidden)]
    pub paths: Vec<(String, Route)>,
    #[doc(hidden)]
    pub matchers: Vec<(Matcher, Handler)>,
    /// Host names that share a site, and the site.
    #[doc(hidden)]
    pub hosts: Vec<(Vec<String>, Routes)>,
    #[doc(hidden)]
    pub middleware: Vec<Middleware>,
    #[doc(hidden)]
    pub fallback: Option<Route>,
    /// Served where no route matches.
    #[doc(hidden)]
    pub root: Option<PathBuf>,
    #[doc(hidden)]
    pub pages: Vec<(StatusRange, ErrorPage)>,
    #[doc(hidden)]
    pub fields: Headers,
    #[doc(hidden)]
    pub tuning: RouteTuning,
    /// Paths that take the place of others, before routes are found.
    #[doc(hidden)]
    pub rewrites: Vec<(String, String)>,
}

/// Handlers of one path by method, with its options.
#[derive(Clone, Default)]
pub struct Route {
    #[doc(hidden)]
    pub handlers: Vec<(Method, Handler)>,
    #[doc(hidden)]
    pub any: Option<Handler>,
    #[doc(hidden)]
    pub folder: Option<PathBuf>,
    /// The path that it sends clients to who GET its own, if it does nothing else.
    #[doc(hidden)]
    pub leads_to: Option<String>,
    #[doc(hidden)]
    pub tuning: RouteTuning,
    #[doc(hidden)]
    pub middleware: Vec<Middleware>,
    #[doc(hidden)]
    pub fields: Headers,
    /// What its pages need: values of `Link`, or short for them.
    #[doc(hidden)]
    pub preload: Vec<String>,
    #[doc(hidden)]
    pub options: RouteOptions,
    #[doc(hidden)]
    pub pace: RoutePace,
    /// Its handlers are not counted where their number is limited.
    #[doc(hidden)]
    pub is_exempt: bool,
    /// How many of its handlers run at a time.
    #[doc(hidden)]
    pub limit: Option<OwnLimit>,
}

/// Returns milliseconds from 1 ms to 49 days.
fn bounded_ms(duration: Duration) -> Option<NonZeroU32> {
    NonZeroU32::new(u32::try_from(duration.as_millis()).unwrap_or(u32::MAX).max(1))
}

/// Returns an empty route: `route().get(…).post(…)`.
pub fn route() -> Route {
    Route::default()
}

impl Route {
    /// Handles GET, and HEAD without the content.
    #[must_use]
    pub fn get<F>(self, handler: impl IntoHandler<F>) -> Self {
        self.on(Method::Get, handler)
    }

    /// Handles POST.
    #[must_use]
    pub fn post<F>(self, handler: impl IntoHandler<F>) -> Self {
        self.on(Method::Post, handler)
    }

    /// Handles PUT.
    #[must_use]
    pub fn put<F>(self, handler: impl IntoHandler<F>) -> Self {
        self.on(Method::Put, handler)
    }

    /// Handles PATCH.
    #[must_use]
    pub fn patch<F>(self, handler: impl IntoHandler<F>) -> Self {
        self.on(Method::Patch, handler)
    }

    /// Handles DELETE.
    #[must_use]
    pub fn delete<F>(self, handler: impl IntoHandler<F>) -> Self {
        self.on(Method::Delete, handler)
    }

    /// Handles one method.
    #[must_use]
    pub fn on<F>(mut self, method: Method, handler: impl IntoHandler<F>) -> Self {
        self.handlers.push((method, handler.into_handler()));
        self
    }

    /// Handles all methods without a handler of their own.
    #[must_use]
    pub fn any<F>(mut self, handler: impl IntoHandler<F>) -> Self {
        self.any = Some(handler.into_handler());
        self
    }

    /// Adds middleware to this route; it runs inside the middleware of all routes.
    #[must_use]
    pub fn middleware(mut self, middleware: Middleware) -> Self {
        self.middleware.push(middleware);
        self
    }

    /// Adds a header field to this route's responses that do not have it yet. It takes precedence
    /// over [`Routes::header`]. A field that cannot be sent is an error at the start.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.fields.set(name, value);
        self
    }

    /// Limits how long a request of this route may make no progress, from 1 ms to 49 days: its
    /// body, its response, and also its handler or stream, which otherwise have no limit.
    /// [`Route::body_timeout`] and [`Route::write_timeout`] called after it take precedence.
    ///
    /// A handler that has not responded by then is dropped, and its client gets 503; if the
    /// response has begun, the connection is cut.
    #[must_use]
    pub fn idle_timeout(mut self, silence: Duration) -> Self {
        self.options.idle_ms = bounded_ms(silence);
        self.body_timeout(silence).write_timeout(silence)
    }

    /// Limits how long a request's body may make no progress, in place of `body-timeout`; from 1 ms
    /// to 49 days.
    #[must_use]
    pub fn body_timeout(mut self, silence: Duration) -> Self {
        self.options.body_ms = bounded_ms(silence);
        self
    }

    /// Sets how long a response's content may make no progress, in place of `write-timeout`; from
    /// 1 ms to 49 days. The head still follows `write-timeout`.
    #[must_use]
    pub fn write_timeout(mut self, silence: Duration) -> Self {
        self.options.write_ms = bounded_ms(silence);
        self
    }

    /// Serves a folder beneath the route's path, as [`Routes::files`] does.
    #[must_use]
    pub fn files(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Limits this route's responses on each connection, in bytes per second. Head and content
    /// count.
    ///
    /// The limits of connections, client addresses and the server apply as well: the lowest counts.
    #[must_use]
    pub fn bytes_per_second(mut self, bytes: u64) -> Self {
        self.pace.write = bytes;
        self
    }

    /// Limits this route's responses on all connections together, in bytes per second.
    #[must_use]
    pub fn bytes_per_second_in_all(mut self, bytes: u64) -> Self {
        self.pace.write_in_all = bytes;
        self
    }

    /// Limits the rate at which each connection receives a body for this route, in bytes per
    /// second. The client has to wait with the rest. Bytes that arrived before the route was known
    /// may exceed the limit: at most 32 KiB, and with `io_uring` 256 KiB on a reused connection.
    #[must_use]
    pub fn read_bytes_per_second(mut self, bytes: u64) -> Self {
        self.pace.read = bytes;
        self
    }

    /// Sets how many bytes may pass at once under this route's pace; the default, and the least, is
    /// the burst of [`gustnado_config::Pace`].
    #[must_use]
    pub fn burst(mut self, bytes: u64) -> Self {
        self.pace.burst = bytes;
        self
    }

    /// Sets the least time from a request to the first byte of its response.
    #[must_use]
    pub fn first_byte_delay(mut self, delay: Duration) -> Self {
        self.pace.first_byte_delay = delay;
        self
    }

    /// Limits the bytes of a request's body, in place of `limit-body-bytes`.
    #[must_use]
    pub fn limit_body_bytes(mut self, bytes_max: u64) -> Self {
        self.options.limit_body_bytes = Some(bytes_max);
        self
    }

    /// Sets whether empty segments are dropped in the part that `{*rest}` matches; by default they
    /// are, as elsewhere. With `false`, `/proxy/{*rest}` finds `https://example.org/x` in
    /// `/proxy/https://example.org/x`, and not `https:/example.org/x`.
    ///
    /// The path without empty segments still decides which route matches, and [`Request::path`]
    /// returns it: `/proxy//private/x` is guarded by `/proxy/private/{*rest}`. It has no effect on
    /// folders.
    #[must_use]
    pub fn merge_slashes(mut self, merges: bool) -> Self {
        self.options.keeps_empty = !merges;
        self
    }

    /// Returns the route with its pace as a middleware around the others, and as an option.
    fn with_pace(mut self) -> Self {
        self.options.read = self.pace.read_rate();
        if let Some(pace) = self.pace.of_responses() {
            self.middleware
                .insert(0, Middleware::after(move |_, response| response.set_pace(pace.clone())));
        }
        self
    }
}

impl Routes {
    /// Creates routes without any: every request gets 404.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a route with its options.
    #[must_use]
    pub fn route(mut self, path: &str, route: Route) -> Self {
        let is_folder = route.folder.is_some();
        let path = if is_folder { path.trim_end_matches('/') } else { path };
        self.paths.push((path.to_owned(), route));
        self
    }

    /// Handles GET and HEAD of a path.
    #[must_use]
    pub fn get<F>(self, path: &str, handler: impl IntoHandler<F>) -> Self {
        self.route(path, route().get(handler))
    }

    /// Handles POST of a path.
    #[must_use]
    pub fn post<F>(self, path: &str, handler: impl IntoHandler<F>) -> Self {
        self.route(path, route().post(handler))
    }

    /// Handles PUT of a path.
    #[must_use]
    pub fn put<F>(self, path: &str, handler: impl IntoHandler<F>) -> Self {
        self.route(path, route().put(handler))
    }

    /// Handles DELETE of a path.
    #[must_use]
    pub fn delete<F>(self, path: &str, handler: impl IntoHandler<F>) -> Self {
        self.route(path, route().delete(handler))
    }

    /// Handles every method of a path.
    #[must_use]
    pub fn any<F>(self, path: &str, handler: impl IntoHandler<F>) -> Self {
        self.route(path, route().any(handler))
    }

    /// Serves a folder beneath a path: `/static` serves `/static/` and all that is in it.
    #[must_use]
    pub fn files(self, path: &str, folder: impl Into<PathBuf>) -> Self {
        self.route(path, route().files(folder))
    }

    /// Serves a folder where no route matches. It takes precedence over a fallback.
    #[must_use]
    pub fn root(mut self, folder: impl Into<PathBuf>) -> Self {
        self.root = Some(folder.into());
        self
    }

    /// Adds routes beneath a path, with their own middleware.
    #[must_use]
    pub fn nest(mut self, path: &str, routes: Routes) -> Self {
        let prefix = path.trim_end_matches('/');
        for (below, mut route) in routes.paths {
            route.middleware.splice(0..0, routes.middleware.iter().cloned());
            route.fields = routes.fields.with(&route.fields);
            route.tuning.within(&routes.tuning);
            // A path without a leading slash stays as it is, and is refused at the start.
            let is_whole = below.starts_with('/') || below.is_empty();
            let path = if is_whole { format!("{prefix}{below}") } else { below };
            self.paths.push((path, route));
        }
        self
    }

    /// Handles requests for which `matcher` returns true, before any path is compared. Several
    /// matchers are tried in order.
    #[must_use]
    pub fn matching<F>(
        mut self,
        matcher: impl Fn(&Request) -> bool + Send + Sync + 'static,
        handler: impl IntoHandler<F>,
    ) -> Self {
        self.matchers.push((Arc::new(matcher), handler.into_handler()));
        self
    }

    /// Adds a site for a host. `name` has no port, and its case does not matter; `*.example.org`
    /// matches all names below. A dot at the end of a name, here or in a request, makes no
    /// difference.
    #[must_use]
    pub fn host(self, name: &str, routes: Routes) -> Self {
        self.hosts(&[name], routes)
    }

    /// Adds a site for several hosts.
    #[must_use]
    pub fn hosts(mut self, names: &[impl AsRef<str>], routes: Routes) -> Self {
        let name = |name: &str| name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let names = names.iter().map(|host| name(host.as_ref())).collect();
        self.hosts.push((names, routes));
        self
    }

    /// Adds a header field to all responses that do not have it yet: of files, handlers, and 404. A
    /// field that cannot be sent is an error at the start.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.fields.set(name, value);
        self
    }

    /// Adds middleware around everything, 404 included. Middleware runs in the order of addition.
    #[must_use]
    pub fn middleware(mut self, middleware: Middleware) -> Self {
        self.middleware.push(middleware);
        self
    }

    /// Runs `before` for every request. It returns `Flow::Next`, or a response.
    #[must_use]
    pub fn chain(
        self,
        before: impl Fn(&mut Request) -> crate::middleware::Flow + Send + Sync + 'static,
    ) -> Self {
        self.middleware(Middleware::before(before))
    }

    /// Sets the page for one status of 400 and above, for responses without content.
    #[must_use]
    pub fn error_page<R: IntoResponse>(
        mut self,
        status: Status,
        page: impl Fn(&Request, Status) -> R + Send + Sync + 'static,
    ) -> Self {
        let page = move |request: &Request, status| page(request, status).into_response();
        let code = status.code();
        self.pages.push((StatusRange { first: code, last: code }, Arc::new(page)));
        self
    }

    /// Sets the page for every status of 400 and above that has no page of its own.
    #[must_use]
    pub fn error_pages<R: IntoResponse>(
        mut self,
        page: impl Fn(&Request, Status) -> R + Send + Sync + 'static,
    ) -> Self {
        let page = move |request: &Request, status| page(request, status).into_response();
        self.pages.push((StatusRange::ERRORS, Arc::new(page)));
        self
    }

    /// Sets a page that is the same for every request.
    #[doc(hidden)]
    pub fn static_page(mut self, statuses: StatusRange, file: &Path, content: Bytes) -> Self {
        self.pages.push((statuses, static_page(file, content)));
        self
    }

    /// Returns the number of served folders.
    #[doc(hidden)]
    pub fn folders(&self) -> usize {
        let own = self.paths.iter().filter(|(_, route)| route.folder.is_some()).count();
        let own = own + usize::from(self.root.is_some());
        own + self.hosts.iter().map(|(_, routes)| routes.folders()).sum::<usize>()
    }

    /// Returns whether there are only fields and pages, which a folder can have itself.
    #[doc(hidden)]
    pub fn is_bare(&self) -> bool {
        let has_paths = !self.paths.is_empty() || self.root.is_some();
        let is_handled = has_paths || self.fallback.is_some() || !self.matchers.is_empty();
        let has_more = !self.hosts.is_empty() || !self.middleware.is_empty();
        !is_handled && !has_more
    }
}

impl Clone for Handler {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths: Vec<&str> = self.paths.iter().map(|(path, _)| path.as_str()).collect();
        f.debug_struct("Routes").field("paths", &paths).finish_non_exhaustive()
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let methods: Vec<Method> = self.handlers.iter().map(|(method, _)| *method).collect();
        f.debug_struct("Route").field("methods", &methods).finish_non_exhaustive()
    }
}

/// Returns a handler that responds with a status alone.
pub fn plain_status(status: Status, allow: Option<String>) -> HandlerKind {
    HandlerKind::HeadOnly(Arc::new(move |_| {
        let response = Response::new(status);
        match &allow {
            Some(allow) => response.header("Allow", allow),
            None => response,
        }
    }))
}
