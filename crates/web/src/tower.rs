//! A `tower::Service` as a handler: an axum `Router`, or any other service that takes an
//! [`http::Request`] and returns an [`http::Response`].
//!
//! Only this file and those below it use the types of the crate `http`. A request is converted when
//! its service is called, and a response as soon as it is returned.

mod client_info;
mod pipe;
mod request;
mod response;
mod upgrade;

use std::fmt;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll, Waker, ready};
use std::time::Duration;

use gustnado_http::status::Status;
use tower_service::Service;

use crate::body::Body;
use gustnado_tasks::Endpoint;

use crate::handler::{
    Handler, HandlerFuture, HandlerKind, IntoHandler, ReusableCall, TaskFn, form,
};
use crate::request::Request;
use crate::response::{IntoResponse, Response};
use crate::route_options::RouteOptions;
use crate::routes::{Routes, route};
use crate::tokio_runtime::{Context, Tokio};

pub use crate::body::ServiceError;

pub use client_info::ClientInfo;
use response::RequestTraits;
use upgrade::PendingUpgrade;

type OnError = dyn Fn(ServiceError) -> Response + Send + Sync;

/// Adds values to the extensions of a request.
type Extend = dyn Fn(&Request, &mut http::Extensions) + Send + Sync;

/// A service that handles requests: see [`tower`].
#[derive(Clone)]
pub struct Tower<S> {
    service: S,
    runtime: Runtime,
    on_error: Option<Arc<OnError>>,
    extend: Vec<Arc<Extend>>,
    options: RouteOptions,
}

/// The tokio runtime that a service runs in.
#[derive(Clone)]
enum Runtime {
    /// The server's own.
    Own,
    Given(tokio::runtime::Handle),
    Nothing,
}

/// Makes a handler of a `tower::Service`, such as an axum `Router`.
///
/// ```
/// use axum::{Router, routing::get};
/// use gustnado::{Server, tower};
///
/// let app = Router::new().route("/", get(async || "Hello, world!"));
/// let server = Server::new().fallback(tower(app));
/// # let running = server.listen("127.0.0.1:0").expect("a free port");
/// # running.stop();
/// ```
///
/// A `Router` alone is not a handler, and neither is the result of its `into_make_service`: the
/// compiler says so, and names `tower(app)`.
///
/// ```compile_fail,E0277
/// gustnado::Server::new().fallback(axum::Router::<()>::new());
/// ```
///
/// ```compile_fail,E0277
/// let make = axum::Router::<()>::new().into_make_service();
/// gustnado::Server::new().fallback(gustnado::tower(make));
/// ```
///
/// The service is cloned for each request, polled until it is ready, and called, all on the worker
/// that has the connection. When the client goes, its future is dropped. A service that fails gives
/// 500: see [`Tower::on_error`].
///
/// It runs inside a tokio runtime, so that `tokio::spawn`, timers, reqwest and sqlx work. The
/// runtime has two threads, which start and end with the server. See [`Tower::on_tokio`].
pub fn tower<S>(service: S) -> Tower<S> {
    // The service has its own limits; a client that closed is treated as gone, as hyper does; and
    // requests about the server as a whole go to the service.
    let options = RouteOptions {
        half_close_ms: Some(0),
        takes_asterisk: true,
        takes_connect: true,
        ..RouteOptions::default()
    };
    Tower { service, runtime: Runtime::Own, on_error: None, extend: Vec::new(), options }
}

impl<S> Tower<S> {
    /// Runs the service inside this runtime in place of the server's own, e.g. so that the program
    /// and the service share a pool of database connections. The runtime has to outlive the server,
    /// and to have threads of its own: the flavor `current_thread` is an error at the start.
    #[must_use]
    pub fn on_tokio(self, handle: tokio::runtime::Handle) -> Self {
        Self { runtime: Runtime::Given(handle), ..self }
    }

    /// Runs the service outside of any tokio runtime. Nothing is started for it.
    #[must_use]
    pub fn without_tokio(self) -> Self {
        Self { runtime: Runtime::Nothing, ..self }
    }

    /// Adds a [`ClientInfo`] to the extensions of each request, which an axum handler takes as
    /// `Extension<ClientInfo>`. It is made for every request, used or not.
    #[must_use]
    pub fn with_client_info(self) -> Self {
        self.extend_with(|request, extensions| _ = extensions.insert(ClientInfo::of(request)))
    }

    /// Adds to the extensions of each request over TCP the value that `make` returns for the peer's
    /// address. For axum's extractor `ConnectInfo<SocketAddr>` that is its own constructor:
    ///
    /// ```
    /// use axum::{Router, extract::ConnectInfo, routing::get};
    /// use gustnado::{Server, tower};
    /// use std::net::SocketAddr;
    ///
    /// async fn hello(ConnectInfo(peer): ConnectInfo<SocketAddr>) -> String {
    ///     format!("Hello, {peer}!")
    /// }
    ///
    /// let app = Router::new().route("/", get(hello));
    /// let server = Server::new().fallback(tower(app).with_connect_info(ConnectInfo));
    /// # drop(server);
    /// ```
    ///
    /// As with axum, this is the peer, which may be a proxy: [`ClientInfo`] has the client.
    #[must_use]
    pub fn with_connect_info<T: Clone + Send + Sync + 'static>(
        self,
        make: impl Fn(SocketAddr) -> T + Send + Sync + 'static,
    ) -> Self {
        self.extend_with(move |request, extensions| {
            if let Some(Endpoint::Tcp(peer)) = request.peer() {
                extensions.insert(make(peer));
            }
        })
    }

    fn extend_with(
        mut self,
        extend: impl Fn(&Request, &mut http::Extensions) + Send + Sync + 'static,
    ) -> Self {
        self.extend.push(Arc::new(extend));
        self
    }

    /// Limits the bytes of a request's body. By default the service decides, unless the setting
    /// `limit-body-bytes` is not at its default; a limit of the route takes precedence over both.
    ///
    /// A longer announced body gets 413 before the service is called. A chunked body fails past the
    /// limit with `http_body_util::LengthLimitError`, which axum maps to 413.
    #[must_use]
    pub fn limit_body_bytes(mut self, bytes_max: u64) -> Self {
        self.options.limit_body_bytes = Some(bytes_max);
        self
    }

    /// Sets how long the service may run once its client has shut its sending side. The default is
    /// zero, as in hyper: the client is treated as gone, and the future is dropped at once. With
    /// more, a client may shut its sending side and wait for the response.
    #[must_use]
    pub fn half_close_timeout(mut self, timeout: Duration) -> Self {
        self.options = route().half_close_timeout(timeout).options.or(self.options);
        self
    }

    /// Sets the response for a service that fails, in place of 500: e.g. 503 for a full
    /// `tower::load_shed`.
    #[must_use]
    pub fn on_error<R: IntoResponse>(
        self,
        response: impl Fn(ServiceError) -> R + Send + Sync + 'static,
    ) -> Self {
        let response = move |error| response(error).into_response();
        Self { on_error: Some(Arc::new(response)), ..self }
    }
}

impl<S, B> IntoHandler<form::ServiceForm> for Tower<S>
where
    S: Service<http::Request<Body>, Response = http::Response<B>> + Clone + Send + Sync + 'static,
    S: Service<http::Request<Body>, Error: Into<ServiceError>, Future: Send>,
    B: http_body::Body<Data: Send> + Send + 'static,
{
    fn into_handler(self) -> Handler {
        let options = self.options;
        let make: Arc<crate::handler::ServiceFn> = Arc::new(move |tokio: &Tokio| {
            let context = match &self.runtime {
                Runtime::Own => tokio.context(),
                Runtime::Given(handle) => tokio.given(handle),
                Runtime::Nothing => Context::Nothing,
            };
            let shared = Arc::new(MountedService { tower: self.clone(), context });
            let handler: Arc<TaskFn> = Arc::new(move |request| {
                let mut place = ServiceCall::new(Arc::clone(&shared));
                place.start(request);
                HandlerFuture::Reusable(Box::new(place))
            });
            handler
        });
        Handler(HandlerKind::Service(make, options))
    }
}

/// A service that is part of a server's routes, and the runtime around it.
struct MountedService<S> {
    tower: Tower<S>,
    context: Context,
}

impl<S> MountedService<S> {
    fn failed(&self, error: ServiceError) -> Response {
        match &self.tower.on_error {
            Some(response) => response(error),
            None => Response::new(Status::INTERNAL_SERVER_ERROR),
        }
    }
}

/// Memory for calls of a service, one after the other.
struct ServiceCall<S: Service<http::Request<Body>>> {
    shared: Arc<MountedService<S>>,
    step: ServiceStep<S::Response>,
    /// The service's own future, in memory that the next request reuses.
    future: Pin<Box<Option<S::Future>>>,
    traits: RequestTraits,
    /// The upgrade that the request offers.
    upgrade: Option<Box<PendingUpgrade>>,
}

/// Stage of a call.
enum ServiceStep<R> {
    /// The service was called; its future runs.
    Called,
    /// It was not ready.
    Waiting(Pin<Box<dyn Future<Output = Result<R, ServiceError>> + Send>>),
    /// The response was made without calling the service.
    Responded(Option<Response>),
}

impl<S> ServiceCall<S>
where
    S: Service<http::Request<Body>, Error: Into<ServiceError>, Future: Send>,
    S: Clone + Send + Sync + 'static,
{
    fn new(shared: Arc<MountedService<S>>) -> Self {
        Self {
            shared,
            step: ServiceStep::Responded(None),
            future: Box::pin(None),
            traits: RequestTraits::default(),
            upgrade: None,
        }
    }

    /// Calls the service at once if it is ready.
    fn call(&mut self, request: Request) -> ServiceStep<S::Response> {
        let mut extensions = http::Extensions::new();
        self.shared.tower.extend.iter().for_each(|extend| extend(&request, &mut extensions));
        self.upgrade = PendingUpgrade::of(&request, &mut extensions).map(Box::new);
        let Some((mut request, traits)) = request::convert(request) else {
            return ServiceStep::Responded(Some(Response::new(Status::BAD_REQUEST)));
        };
        self.traits = traits;
        *request.extensions_mut() = extensions;
        let _entered = self.shared.context.enter();
        let mut service = self.shared.tower.service.clone();
        // A service that is not ready is polled again with a waker, in `call_when_ready`.
        match service.poll_ready(&mut task::Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => {
                self.future.set(Some(service.call(request)));
                ServiceStep::Called
            }
            Poll::Ready(Err(error)) => {
                ServiceStep::Responded(Some(self.shared.failed(error.into())))
            }
            Poll::Pending => ServiceStep::Waiting(Box::pin(call_when_ready(service, request))),
        }
    }
}

async fn call_when_ready<S: Service<http::Request<Body>, Error: Into<ServiceError>>>(
    mut service: S,
    request: http::Request<Body>,
) -> Result<S::Response, ServiceError> {
    let ready = poll_fn(|waking| service.poll_ready(waking)).await;
    ready.map_err(Into::into)?;
    service.call(request).await.map_err(Into::into)
}

impl<S, B> ReusableCall for ServiceCall<S>
where
    S: Service<http::Request<Body>, Response = http::Response<B>> + Clone + Send + Sync + 'static,
    S: Service<http::Request<Body>, Error: Into<ServiceError>, Future: Send>,
    B: http_body::Body<Data: Send> + Send + 'static,
{
    fn start(&mut self, request: Request) {
        self.step = self.call(request);
    }

    fn poll(&mut self, waking: &mut task::Context<'_>) -> Poll<Response> {
        let Self { shared, step, future, traits, upgrade } = self;
        shared.context.poll(waking, |waking| {
            let returned = match step {
                ServiceStep::Called => {
                    let future = future.as_mut().as_pin_mut().expect("polled until it is ready");
                    ready!(future.poll(waking)).map_err(Into::into)
                }
                ServiceStep::Waiting(future) => ready!(future.as_mut().poll(waking)),
                ServiceStep::Responded(response) => {
                    return Poll::Ready(response.take().expect("polled until it is ready"));
                }
            };
            future.set(None);
            *step = ServiceStep::Responded(None);
            let upgrade = upgrade.take();
            Poll::Ready(match returned {
                Ok(returned) => match response::switched(&returned, *traits, upgrade) {
                    Some(response) => response,
                    None => response::convert(returned, *traits, &shared.context, waking),
                },
                Err(error) => shared.failed(error),
            })
        })
    }
}

/// Destructors may need the runtime, for example to return connections to their pools.
impl<S: Service<http::Request<Body>>> Drop for ServiceCall<S> {
    fn drop(&mut self) {
        if self.future.is_some() || matches!(self.step, ServiceStep::Waiting(_)) {
            let _entered = self.shared.context.enter();
            self.future.set(None);
            self.step = ServiceStep::Responded(None);
        }
    }
}

impl Routes {
    /// Mounts a service at a path and everything beneath it, for every method: `/api` is `/api`,
    /// `/api/` and `/api/users/7`.
    ///
    /// The service sees the whole path, so an axum `Router` is built with
    /// `Router::new().nest("/api", …)`. For requests that no route matches, use
    /// [`Routes::fallback`]. For limits and middleware of its own, use `mount("/api",
    /// route().any(service)…)`.
    #[must_use]
    pub fn service<F>(self, path: &str, service: impl IntoHandler<F>) -> Self {
        self.mount(path, route().any(service))
    }
}

impl<S: fmt::Debug> fmt::Debug for Tower<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tower").field(&self.service).finish()
    }
}
