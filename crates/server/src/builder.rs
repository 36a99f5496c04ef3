//! Builder of a server: routes, settings, addresses.

mod access;
mod folder_settings;
mod settings;

use std::path::PathBuf;
use std::sync::Arc;

use gustnado_http::status::Status;

use crate::config::{Config, ConfigError, Machine, Origin, Settings};
use gustnado_app::hooks::{
    ClosedConnection, ConnectionFault, Hooks, LimitAction, LimitEvent, Refused,
};
use gustnado_config::Headers;
use gustnado_config::config_file::SiteTls;
use gustnado_web::handler::IntoHandler;
use gustnado_web::middleware::{Flow, Middleware};
use gustnado_web::request::Request;
use gustnado_web::response::{IntoResponse, Response};
use gustnado_web::routes::{Route, Routes};
use gustnado_ws::WebSocket;

/// Builder of a server.
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
    pub(crate) routes: Routes,
    pub(crate) config: Config,
    /// Header fields of every response, those to refused requests included.
    pub(crate) fields: Headers,
    /// Those that the routes add, since a site or a route has others in their place; refusals have
    /// them, too.
    pub(crate) overridden: Headers,
    /// Serves the built-in page where there is nothing else.
    pub(crate) or_built_in: bool,
    /// Certificates of hosts that have some of their own.
    pub(crate) site_tls: Vec<(Vec<String>, SiteTls)>,
    pub(crate) hooks: Hooks,
}

/// Routes: each method does the same as its namesake in [`Routes`].
impl Server {
    /// Creates a server without routes, with the default of every setting.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces all routes so far.
    ///
    /// The setting `root`, if set, is served where no route matches.
    pub fn routes(mut self, routes: Routes) -> Self {
        self.routes = routes;
        self
    }

    fn with(mut self, change: impl FnOnce(Routes) -> Routes) -> Self {
        self.routes = change(self.routes);
        self
    }

    /// Gives hosts a certificate of their own, presented to clients that ask for them. Others get
    /// that of the setting [`tls_cert`](Config::tls_cert).
    ///
    /// - `hosts`: `example.org`, or `*.example.org` for all below it, as in [`Routes::hosts`].
    pub fn site_tls(mut self, hosts: &[impl AsRef<str>], tls: SiteTls) -> Self {
        let hosts = hosts.iter().map(|host| host.as_ref().to_ascii_lowercase()).collect();
        self.site_tls.push((hosts, tls));
        self
    }

    /// Adds a route: see [`Routes::route`].
    pub fn route(self, path: &str, route: Route) -> Self {
        self.with(|routes| routes.route(path, route))
    }

    /// Adds a handler for GET: see [`Routes::get`].
    pub fn get<F>(self, path: &str, handler: impl IntoHandler<F>) -> Self {
        self.with(|routes| routes.get(path, handler))
    }

    /// Adds an endpoint that opens a WebSocket for each request, and hands it to `handler`: as
    /// [`Server::get`] with [`websocket()`](crate::websocket::websocket).
    ///
    /// ```
    /// use gustnado::Server;
    /// use gustnado::websocket::WebSocket;
    ///
    /// let server = Server::new().websocket("/echo", async |mut socket: WebSocket| {
    ///     while let Ok(Some(message)) = socket.recv().await {
    ///         _ = socket.send(message).await;
    ///     }
    /// });
    /// ```
    pub fn websocket<F, A>(self, path: &str, handler: F) -> Self
    where
        F: Fn(WebSocket) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = ()> + Send + 'static,
    {
        self.get(path, gustnado_ws::websocket(handler))
    }

    /// Adds a handler for POST: see [`Routes::post`].
    pub fn post<F>(self, path: &str, handler: impl IntoHandler<F>) -> Self {
        self.with(|routes| routes.post(path, handler))
    }

    /// Adds a handler for PUT: see [`Routes::put`].
    pub fn put<F>(self, path: &str, handler: impl IntoHandler<F>) -> Self {
        self.with(|routes| routes.put(path, handler))
    }

    /// Adds a handler for DELETE: see [`Routes::delete`].
    pub fn delete<F>(self, path: &str, handler: impl IntoHandler<F>) -> Self {
        self.with(|routes| routes.delete(path, handler))
    }

    /// Adds a handler for every method: see [`Routes::any`].
    pub fn any<F>(self, path: &str, handler: impl IntoHandler<F>) -> Self {
        self.with(|routes| routes.any(path, handler))
    }

    /// Serves a folder below a path: see [`Routes::files`].
    pub fn files(self, path: &str, folder: impl Into<PathBuf>) -> Self {
        self.with(|routes| routes.files(path, folder))
    }

    /// Puts routes below a path: see [`Routes::nest`].
    pub fn nest(self, path: &str, below: Routes) -> Self {
        self.with(|routes| routes.nest(path, below))
    }

    /// Puts routes behind a condition: see [`Routes::matching`].
    pub fn matching<F>(
        self,
        matcher: impl Fn(&Request) -> bool + Send + Sync + 'static,
        handler: impl IntoHandler<F>,
    ) -> Self {
        self.with(|routes| routes.matching(matcher, handler))
    }

    /// Adds the routes of a host: see [`Routes::host`].
    pub fn host(self, name: &str, of_host: Routes) -> Self {
        self.with(|routes| routes.host(name, of_host))
    }

    /// Adds middleware: see [`Routes::middleware`].
    pub fn middleware(self, middleware: Middleware) -> Self {
        self.with(|routes| routes.middleware(middleware))
    }

    /// Runs a function before every request: see [`Routes::chain`].
    pub fn chain(self, before: impl Fn(&mut Request) -> Flow + Send + Sync + 'static) -> Self {
        self.with(|routes| routes.chain(before))
    }

    /// Sets the handler of requests that no route matches: see [`Routes::fallback`].
    pub fn fallback<F>(self, handler: impl IntoHandler<F>) -> Self {
        self.with(|routes| routes.fallback(handler))
    }

    /// Sets the route of requests that no other matches: see [`Routes::fallback_route`].
    pub fn fallback_route(self, route: Route) -> Self {
        self.with(|routes| routes.fallback_route(route))
    }

    /// Puts a handler below a path: see [`Routes::mount`].
    pub fn mount(self, path: &str, route: Route) -> Self {
        self.with(|routes| routes.mount(path, route))
    }

    /// Puts a tower service below a path: see [`Routes::service`].
    #[cfg(feature = "tower")]
    pub fn service<F>(self, path: &str, service: impl IntoHandler<F>) -> Self {
        self.with(|routes| routes.service(path, service))
    }

    /// Sets the page of a status: see [`Routes::error_page`].
    pub fn error_page<R: IntoResponse>(
        self,
        status: Status,
        page: impl Fn(&Request, Status) -> R + Send + Sync + 'static,
    ) -> Self {
        self.with(|routes| routes.error_page(status, page))
    }

    /// Sets the pages of several statuses: see [`Routes::error_pages`].
    pub fn error_pages<R: IntoResponse>(
        self,
        page: impl Fn(&Request, Status) -> R + Send + Sync + 'static,
    ) -> Self {
        self.with(|routes| routes.error_pages(page))
    }
}

/// Settings. Each setting has a method of its own as well, named in `docs/tuning.md`.
impl Server {
    /// Adds a header field to every response, those to refused requests included. Routes and sites
    /// can have fields of their own: see [`Routes::header`]. A field that cannot be sent is an
    /// error at the start.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.fields.set(name, value);
        self
    }

    /// Creates the server that [`crate::start`] starts: a folder, or the built-in page.
    pub fn of_config(config: Config) -> Self {
        Self::new().config(config).or_built_in()
    }

    pub(crate) fn or_built_in(mut self) -> Self {
        self.or_built_in = true;
        self
    }

    /// Sets one setting from text, as on the command line: `set("header-timeout", "5s")`.
    ///
    /// # Errors
    /// [`ConfigError`]: there is no such setting, or it does not accept the value.
    pub fn set(mut self, name: &str, value: &str) -> Result<Self, ConfigError> {
        let mut settings = Settings::default();
        settings.config = self.config;
        settings.set(name, value.as_ref(), Origin::Flag(name.to_owned()))?;
        self.config = settings.config;
        Ok(self)
    }

    /// Leaves this server its part of `max-memory`, as one of several processes that serve alike.
    /// Call it after the settings.
    #[doc(hidden)]
    pub fn share_memory(mut self, processes: usize) -> Self {
        if processes > 1 {
            self.config.max_memory = Machine::read().memory_share(&self.config, processes);
        }
        self
    }

    /// Replaces all settings; settings made later take precedence.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Changes any setting.
    pub fn tune(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Calls `hook` when a limit is exceeded; its return value may extend a time-out. It runs on
    /// the worker, so it should not wait. The last hook set replaces earlier ones.
    ///
    /// ```
    /// use std::time::Duration;
    /// use gustnado::{Limit, Server, LimitEvent, LimitAction};
    ///
    /// let server = Server::new().on_limit(|event: &LimitEvent<'_>| match event.limit {
    ///     Limit::Body if event.reached > 1_000_000 => LimitAction::Wait(Duration::from_secs(30)),
    ///     _ => LimitAction::Close,
    /// });
    /// # drop(server);
    /// ```
    pub fn on_limit(
        mut self,
        hook: impl Fn(&LimitEvent<'_>) -> LimitAction + Send + Sync + 'static,
    ) -> Self {
        self.hooks.limit = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` when a connection has ended, for any cause. It runs on the worker, so it should
    /// not wait. The last hook set replaces earlier ones.
    pub fn on_closed(mut self, hook: impl Fn(&ClosedConnection) + Send + Sync + 'static) -> Self {
        self.hooks.closed = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` for each error that ends an HTTP/2 connection: a client that breaks a rule, or
    /// floods the server. It is for debugging: nothing is wrong with the server. The hook runs on
    /// the worker, so it should not wait. The last hook set replaces earlier ones.
    ///
    /// ```
    /// use gustnado::{ConnectionFault, Server};
    ///
    /// let server = Server::new().on_connection_error(|fault: &ConnectionFault<'_>| {
    ///     eprintln!("{fault}");
    /// });
    /// # drop(server);
    /// ```
    pub fn on_connection_error(
        mut self,
        hook: impl Fn(&ConnectionFault<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.hooks.fault = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` when the server itself refuses a request, with the response about to be sent.
    /// The hook can add fields that middleware adds elsewhere, such as CORS fields and a request
    /// id. It runs on the worker, so it should not wait. The last hook set replaces earlier ones.
    ///
    /// For headers that are the same in every response use [`Server::header`]. Requests that no
    /// route matches pass through the middleware of [`Server::middleware`].
    ///
    /// ```
    /// use gustnado::{Refused, Response, Server};
    ///
    /// let server = Server::new().on_refusal(|refused: &Refused<'_>, response: &mut Response| {
    ///     if let Some(origin) = refused.header("origin") {
    ///         _ = response.try_header("Access-Control-Allow-Origin", origin);
    ///     }
    /// });
    /// # drop(server);
    /// ```
    pub fn on_refusal(
        mut self,
        hook: impl Fn(&Refused<'_>, &mut Response) + Send + Sync + 'static,
    ) -> Self {
        self.hooks.refusal = Some(Arc::new(hook));
        self
    }
}
