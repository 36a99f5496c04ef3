//! A server as a program says it: routes, settings, an address.

mod settings;

use std::path::PathBuf;
use std::sync::Arc;

use gustnado_http::status::Status;

use crate::config::{Config, ConfigError, Origin, Settings};
use gustnado_app::hooks::{ClosedConnection, Hooks, LimitAction, LimitEvent, Refused};
use gustnado_config::Headers;
use gustnado_web::handler::IntoHandler;
use gustnado_web::middleware::{Flow, Middleware};
use gustnado_web::request::Request;
use gustnado_web::response::{IntoResponse, Response};
use gustnado_web::routes::{Route, Routes};

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
    pub(crate) routes: Routes,
    pub(crate) config: Config,
    /// Header fields of every answer, those to bad requests included.
    pub(crate) fields: Headers,
    /// Serves the built-in page where there is nothing else.
    pub(crate) or_built_in: bool,
    pub(crate) hooks: Hooks,
}

/// Routes: each of these does what its namesake of [`Routes`] does.
impl Server {
    /// A server without routes, and with the default of every setting.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes routes that were put together elsewhere, in place of all so far.
    ///
    /// The setting `root`, if it has a value, is served where no route answers.
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

    /// [`Routes::middleware`]
    pub fn middleware(self, middleware: Middleware) -> Self {
        self.with(|routes| routes.middleware(middleware))
    }

    /// [`Routes::chain`]
    pub fn chain(self, before: impl Fn(&mut Request) -> Flow + Send + Sync + 'static) -> Self {
        self.with(|routes| routes.chain(before))
    }

    /// [`Routes::fallback`]
    pub fn fallback<F>(self, handler: impl IntoHandler<F>) -> Self {
        self.with(|routes| routes.fallback(handler))
    }

    /// [`Routes::fallback_route`]
    pub fn fallback_route(self, route: Route) -> Self {
        self.with(|routes| routes.fallback_route(route))
    }

    /// [`Routes::mount`]
    pub fn mount(self, path: &str, route: Route) -> Self {
        self.with(|routes| routes.mount(path, route))
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

/// Settings. Each of them has a method besides these, named in `docs/tuning.md`.
impl Server {
    /// Adds a header field to every answer, also to those that refuse a request. (Routes and sites
    /// can have some of their own: [`Routes::header`].) What cannot be sent is an error at the
    /// start.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.fields.set(name, value);
        self
    }

    /// What [`crate::start`] serves: a folder, or the built-in page.
    pub fn of_config(config: Config) -> Self {
        Self::new().config(config).or_built_in()
    }

    pub(crate) fn or_built_in(mut self) -> Self {
        self.or_built_in = true;
        self
    }

    /// Gives one setting a value, both as a person would write them: `set("header-timeout", "5s")`.
    ///
    /// # Errors
    /// The value is not one that the setting takes, or there is no such setting.
    pub fn set(mut self, name: &str, value: &str) -> Result<Self, ConfigError> {
        let mut settings = Settings::default();
        settings.config = self.config;
        settings.set(name, value.as_ref(), Origin::Flag(name.to_owned()))?;
        self.config = settings.config;
        Ok(self)
    }

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
        hook: impl Fn(&LimitEvent<'_>) -> LimitAction + Send + Sync + 'static,
    ) -> Self {
        self.hooks.limit = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` whenever a connection has ended, in whichever way. It runs on the worker, so it
    /// should not wait. The last one counts.
    pub fn on_closed(mut self, hook: impl Fn(&ClosedConnection) + Send + Sync + 'static) -> Self {
        self.hooks.closed = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` when the server refuses a request by itself, with the response that is about to
    /// be sent: where it adds what middleware adds to all others, such as CORS fields and a request
    /// id. It runs on the worker, so it should not wait. The last one counts.
    ///
    /// (Headers that are the same in every response: [`Server::header`]. What no route answers
    /// passes the middleware of [`Server::middleware`].)
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
