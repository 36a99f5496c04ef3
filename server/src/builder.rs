//! A server as a program says it: routes, settings, an address.

use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::sync::Arc;

use gustnado_http::status::Status;

use crate::chain::{Flow, Link};
use crate::config::{Config, Io, SchedulerKind};
use crate::handler::IntoHandler;
use crate::hooks::{ClosedConnection, Hooks, Struck, Verdict};
use crate::request::Request;
use crate::response::IntoResponse;
use crate::routes::{Route, Routes};
use crate::server::{Running, StartError, start_routes};

/// A server to be.
///
/// ```no_run
/// use gustnado::{Request, Server};
///
/// fn main() -> gustnado::Result<()> {
///     Server::new()
///         .get("/hello", |_: &Request| "Hello, world!")
///         .files("/static", "./public")
///         .listen("127.0.0.1:3456")?
///         .run()
/// }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "it serves nothing before `listen`"]
pub struct Server {
    routes: Routes,
    config: Config,
    hooks: Hooks,
}

/// Routes: each of these does what its namesake of [`Routes`] does.
impl Server {
    /// A server without routes, and with the default of every setting.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes routes that were put together elsewhere, in place of all so far.
    pub fn routes(mut self, routes: Routes) -> Self {
        self.routes = routes;
        self
    }

    fn with(mut self, change: impl FnOnce(Routes) -> Routes) -> Self {
        self.routes = change(self.routes);
        self
    }

    /// [`Routes::route`]
    pub fn route(self, path: &str, route: Route) -> Self {
        self.with(|routes| routes.route(path, route))
    }

    /// [`Routes::get`]
    pub fn get<F>(self, path: &str, handler: impl IntoHandler<F>) -> Self {
        self.with(|routes| routes.get(path, handler))
    }

    /// [`Routes::post`]
    pub fn post<F>(self, path: &str, handler: impl IntoHandler<F>) -> Self {
        self.with(|routes| routes.post(path, handler))
    }

    /// [`Routes::put`]
    pub fn put<F>(self, path: &str, handler: impl IntoHandler<F>) -> Self {
        self.with(|routes| routes.put(path, handler))
    }

    /// [`Routes::delete`]
    pub fn delete<F>(self, path: &str, handler: impl IntoHandler<F>) -> Self {
        self.with(|routes| routes.delete(path, handler))
    }

    /// [`Routes::any`]
    pub fn any<F>(self, path: &str, handler: impl IntoHandler<F>) -> Self {
        self.with(|routes| routes.any(path, handler))
    }

    /// [`Routes::files`]
    pub fn files(self, path: &str, folder: impl Into<PathBuf>) -> Self {
        self.with(|routes| routes.files(path, folder))
    }

    /// [`Routes::nest`]
    pub fn nest(self, path: &str, below: Routes) -> Self {
        self.with(|routes| routes.nest(path, below))
    }

    /// [`Routes::matching`]
    pub fn matching<F>(
        self,
        matcher: impl Fn(&Request) -> bool + Send + Sync + 'static,
        handler: impl IntoHandler<F>,
    ) -> Self {
        self.with(|routes| routes.matching(matcher, handler))
    }

    /// [`Routes::host`]
    pub fn host(self, name: &str, of_host: Routes) -> Self {
        self.with(|routes| routes.host(name, of_host))
    }

    /// [`Routes::link`]
    pub fn link(self, link: Link) -> Self {
        self.with(|routes| routes.link(link))
    }

    /// [`Routes::chain`]
    pub fn chain(self, before: impl Fn(&mut Request) -> Flow + Send + Sync + 'static) -> Self {
        self.with(|routes| routes.chain(before))
    }

    /// [`Routes::fallback`]
    pub fn fallback<F>(self, handler: impl IntoHandler<F>) -> Self {
        self.with(|routes| routes.fallback(handler))
    }

    /// [`Routes::service`]
    #[cfg(feature = "tower")]
    pub fn service<F>(self, path: &str, service: impl IntoHandler<F>) -> Self {
        self.with(|routes| routes.service(path, service))
    }

    /// [`Routes::error_page`]
    pub fn error_page<R: IntoResponse>(
        self,
        status: Status,
        page: impl Fn(&Request, Status) -> R + Send + Sync + 'static,
    ) -> Self {
        self.with(|routes| routes.error_page(status, page))
    }

    /// [`Routes::error_pages`]
    pub fn error_pages<R: IntoResponse>(
        self,
        page: impl Fn(&Request, Status) -> R + Send + Sync + 'static,
    ) -> Self {
        self.with(|routes| routes.error_pages(page))
    }
}

/// Settings.
impl Server {
    /// All settings at once; those that are made later count more.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Changes any setting.
    pub fn tune(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Worker threads; 0 is as many as there are processors for it.
    pub fn workers(self, workers: usize) -> Self {
        self.tune(|config| config.workers = workers)
    }

    /// Where connections live and which worker may run them.
    pub fn scheduler(self, scheduler: SchedulerKind) -> Self {
        self.tune(|config| config.scheduler = scheduler)
    }

    /// Connection slots per worker, for the schedulers `pool` and `pool-shared`; 0 is as many as
    /// fit.
    pub fn slots(self, slots: usize) -> Self {
        self.tune(|config| config.slots = slots)
    }

    /// Which interface of the kernel carries the operations.
    pub fn io(self, io: Io) -> Self {
        self.tune(|config| config.io = io)
    }

    /// Calls `hook` when a limit strikes, and does what it says: of a time there may be more. It
    /// runs on the worker, so it should not wait. The last one counts.
    ///
    /// ```
    /// use std::time::Duration;
    /// use gustnado::{Limit, Server, Struck, Verdict};
    ///
    /// let server = Server::new().on_limit(|struck: &Struck<'_>| match struck.limit {
    ///     Limit::Body if struck.reached > 1_000_000 => Verdict::Wait(Duration::from_secs(30)),
    ///     _ => Verdict::Close,
    /// });
    /// # drop(server);
    /// ```
    pub fn on_limit(
        mut self,
        hook: impl Fn(&Struck<'_>) -> Verdict + Send + Sync + 'static,
    ) -> Self {
        self.hooks.on_limit = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` whenever a connection has ended, in whichever way. It runs on the worker, so it
    /// should not wait. The last one counts.
    pub fn on_closed(mut self, hook: impl Fn(&ClosedConnection) + Send + Sync + 'static) -> Self {
        self.hooks.on_closed = Some(Arc::new(hook));
        self
    }

    /// Starts to serve.
    ///
    /// - `address`: `127.0.0.1:3456`, `[::1]:80`, `localhost:0` (0 picks a free port), or
    ///   `unix:/run/site.sock`.
    ///
    /// # Errors
    /// [`StartError`]: one line that says what is wrong, where, and what helps.
    pub fn listen(mut self, address: &str) -> Result<Running, StartError> {
        if let Some(path) = address.strip_prefix("unix:") {
            self.config.uds = Some(PathBuf::from(path));
        } else {
            let unknown = |error| StartError::Host { host: address.to_owned(), error };
            let mut addresses = address.to_socket_addrs().map_err(unknown)?;
            let found = addresses.next().ok_or_else(|| {
                let kind = std::io::ErrorKind::NotFound;
                unknown(std::io::Error::new(kind, "the name has no address"))
            })?;
            self.config.host = found.ip().to_string();
            self.config.port = found.port();
        }
        self.start()
    }

    /// Starts to serve where the settings say.
    ///
    /// # Errors
    /// As [`Server::listen`].
    pub fn start(self) -> Result<Running, StartError> {
        start_routes(self.config, &self.routes, self.hooks)
    }
}
