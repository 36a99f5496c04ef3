//! Routes for requests that no path matches, and options beyond a path.

use std::time::Duration;

use gustnado_config::{BodyPolicy, ConfigError, OwnSetting, RouteSettings};

use super::{Route, Routes, route};
use crate::handler::IntoHandler;

#[cfg(feature = "tower")]
use super::RouteOptions;

#[cfg(feature = "tower")]
impl RouteOptions {
    /// Returns these options, with the handler's where the route has none.
    pub fn or(self, handler: Self) -> Self {
        Self {
            limit_body_bytes: self.limit_body_bytes.or(handler.limit_body_bytes),
            body_policy: self.body_policy.or(handler.body_policy),
            half_close_ms: self.half_close_ms.or(handler.half_close_ms),
            takes_asterisk: self.takes_asterisk || handler.takes_asterisk,
            takes_connect: self.takes_connect || handler.takes_connect,
            ..self
        }
    }
}

impl Route {
    /// Changes settings for this route alone, in place of the site's and the server's.
    ///
    /// ```
    /// use gustnado::config::Listing;
    /// use gustnado::{Server, route};
    ///
    /// let releases = route().files("./releases").tune(|settings| settings.listing = Listing::On);
    /// let server = Server::new().route("/releases", releases);
    /// # drop(server);
    /// ```
    #[must_use]
    pub fn tune(mut self, change: impl Fn(&mut RouteSettings) + Send + Sync + 'static) -> Self {
        self.tuning.add(change);
        self
    }

    /// Sets a setting of this route by its name, as a `[[route]]` of a configuration file has it:
    /// `set("archives", "zip")`. The names are those of [`RouteSettings`], with `-` for `_`.
    ///
    /// # Errors
    /// No setting has this name, or it is the server's alone, or it does not take the value.
    pub fn set(self, name: &str, value: &str) -> Result<Self, ConfigError> {
        let setting = OwnSetting::new(name, value)?;
        Ok(self.tune(move |settings| setting.tune(settings)))
    }

    /// Sets where the whole bodies of this route's requests are kept, in place of `body-policy`: in
    /// memory, or from 1 MiB on in temporary files; or nowhere, for handlers that read them in
    /// pieces. With [`BodyPolicy::Stream`] an inline or blocking handler for a method whose
    /// requests have content is an error at the start.
    #[must_use]
    pub fn body_policy(mut self, policy: BodyPolicy) -> Self {
        self.options.body_policy = Some(policy);
        self
    }

    /// Names what this route's pages need, so that browsers load it while the handler still works:
    /// in early hints (103, RFC 8297) to a GET, and as `Link` of a response of 200 or 304. It may
    /// be called several times.
    ///
    /// No hints are sent where the response is ready at once, as it says the same: from an inline
    /// handler, or a file in the cache. In a folder the links are those of its HTML pages. The
    /// setting `early-hints` says which clients of HTTP/1.1 get them.
    ///
    /// - `link`: `/app.css; as=style`, short for `</app.css>; rel=preload; as=style`; or any value
    ///   of `Link` (RFC 8288 §3). One that is none is an error at the start.
    #[must_use]
    pub fn preload(mut self, link: &str) -> Self {
        self.preload.push(link.to_owned());
        self
    }

    /// Sets how long a handler of this route may continue once its client has shut its sending
    /// side, in place of `half-close-timeout`; up to 49 days. With zero the handler is dropped at
    /// once, because a client that has closed looks the same as one that only shut its sending
    /// side.
    #[must_use]
    pub fn half_close_timeout(mut self, timeout: Duration) -> Self {
        self.options.half_close_ms = Some(timeout.as_millis().try_into().unwrap_or(u32::MAX));
        self
    }

    /// Sets whether the route, as a [fallback](Routes::fallback_route), also handles `OPTIONS *`,
    /// which is about the server as a whole (RFC 9110 §9.3.7). By default the server responds with
    /// 204 and `Allow`.
    #[must_use]
    pub fn server_wide(mut self, handles: bool) -> Self {
        self.options.takes_asterisk = handles;
        self
    }

    /// Sets whether the route, as a [fallback](Routes::fallback_route), also gets CONNECT, which
    /// requests a tunnel (RFC 9110 §9.3.6): see [`Response::tunnel`](crate::Response::tunnel). By
    /// default the server responds with 405 and closes.
    #[must_use]
    pub fn takes_connect(mut self, takes: bool) -> Self {
        self.options.takes_connect = takes;
        self
    }
}

impl Routes {
    /// Changes settings for these routes, in place of the server's. A [route](Route::tune) may
    /// change them again.
    #[must_use]
    pub fn tune(mut self, change: impl Fn(&mut RouteSettings) + Send + Sync + 'static) -> Self {
        self.tuning.add(change);
        self
    }

    /// Puts another path in place of a request's, before its route is found: `/blog/{*rest}` is
    /// served as `/articles/{rest}`. The query is kept, unless the new path has one. Of several
    /// rewrites the first that matches is applied, once. Access logs have the path that was sent.
    /// One that is not well formed is an error at the start.
    ///
    /// ```
    /// use gustnado::{Request, Routes};
    ///
    /// let routes = Routes::new()
    ///     .rewrite("/blog/{*rest}", "/articles/{rest}")
    ///     .get("/articles/{name}", |request: &Request| request.param("name").into_owned());
    /// # drop(routes);
    /// ```
    #[must_use]
    pub fn rewrite(mut self, from: &str, to: &str) -> Self {
        self.rewrites.push((from.to_owned(), to.to_owned()));
        self
    }

    /// Handles requests that no route matches, in place of 404.
    #[must_use]
    pub fn fallback<F>(self, handler: impl IntoHandler<F>) -> Self {
        self.fallback_route(route().any(handler))
    }

    /// Handles them by a route with its options: limits, middleware, header fields, handlers by
    /// method.
    #[must_use]
    pub fn fallback_route(mut self, route: Route) -> Self {
        self.fallback = Some(route);
        self
    }

    /// Mounts a route at a path and everything beneath it: `/api` is `/api`, `/api/` and
    /// `/api/users/7`. Its handlers see the whole path.
    #[must_use]
    pub fn mount(self, path: &str, route: Route) -> Self {
        let path = path.trim_end_matches('/');
        let own = if path.is_empty() { self } else { self.route(path, route.clone()) };
        own.route(&format!("{path}/"), route.clone()).route(&format!("{path}/{{*rest}}"), route)
    }
}
