//! Client for tests of handlers, which sends requests to routes without a server.
//!
//! ```
//! use gustnado::test::TestClient;
//! use gustnado::{Request, Routes};
//!
//! let routes = Routes::new()
//!     .get("/hello/{name}", |request: &Request| format!("Hello, {}!", request.param("name")));
//! let client = TestClient::new(&routes);
//! let response = client.get("/hello/Ann").header("Accept", "text/plain").send();
//! assert_eq!((response.status(), &*response.text()), (200, "Hello, Ann!"));
//! ```
//!
//! Each request has its own connection, a pair of sockets inside this process. The calling thread
//! serves both ends while it waits for the response: there is no port, and no thread except those
//! of [`crate::blocking`] handlers. The response comes from the code that serves real connections:
//! routes, middleware, error pages, folders, streams, limits, panics.
//!
//! What it does not show: accepting and draining, requests that share a connection or compete for a
//! worker, requests that no well-behaved client sends, and `io_uring` (the thread uses epoll).
//! [`Request::peer`](crate::Request::peer) is a Unix socket without a name.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io, str};

use bytes::Bytes;
use gustnado_config::{Headers, Networks};
use gustnado_http::method::Method;
use gustnado_http::response::ResponseView;
use gustnado_tasks::{Connection, block_on, spawn_detached};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use thiserror::Error;

use crate::client::{self, ClientError, ClientOptions};
use crate::config::{Config, EarlyHints};
use crate::server::{blocking_pool, lines};
use gustnado_app::app::{self, App, AppHandle, ConnectionOpening, Openings, ServerShared};
use gustnado_app::hooks::Hooks;
use gustnado_files::{FileOptions, Folders};
use gustnado_h1 as conn;
use gustnado_observe::server_stats::ServerStats;
use gustnado_web::build_context::BuildContext;
use gustnado_web::handler_limits::LimitContext;
use gustnado_web::routes::{RouteError, Routes, Tables};

/// Time-out of one request, and limit of the bytes of a response's content.
const TIMEOUT: Duration = Duration::from_secs(30);
const RESPONSE_BYTES_MAX: usize = 256 << 20;

/// Client that sends requests to routes as over a network.
#[derive(Clone)]
pub struct TestClient {
    app: Arc<App>,
    client: client::Client,
    /// The PROXY header that each connection begins with; empty is none.
    proxy_header: Arc<[u8]>,
}

impl TestClient {
    /// Creates a client of routes that are served with the default of every setting, but that it
    /// gets early hints.
    ///
    /// # Panics
    /// If the routes cannot be served. The panic has the error.
    pub fn new(routes: &Routes) -> Self {
        let config = Config { early_hints: EarlyHints::Always, ..Config::default() };
        Self::with_config(routes, &config)
            .unwrap_or_else(|error| panic!("the routes cannot be served: {error}"))
    }

    /// Creates a client of routes that are served with these settings: limits, time-outs, the
    /// blocking pool. Addresses and the number of workers are ignored.
    ///
    /// # Errors
    /// [`RouteError`]: the routes cannot be served.
    pub fn with_config(routes: &Routes, config: &Config) -> Result<Self, RouteError> {
        let folders = Folders::default();
        let shared = ServerShared::new(1, config.scheduler.as_str(), folders.counts());
        shared.set_lines(lines(config, &Headers::default()));
        shared.handler_limits.set(config);
        let limits = LimitContext::new(&shared.handler_limits, config);
        let files = FileOptions {
            settings: config.routes.clone(),
            cache_bytes: config.cache_bytes,
            counts: Arc::clone(&shared.handler_limits.compression),
            ..FileOptions::default()
        };
        let mut build = BuildContext::new(blocking_pool(config), limits, files);
        build.uploads = Some(gustnado_web::uploads::handler);
        build.folders = folders;
        build.server = Some(Arc::clone(&shared) as Arc<dyn ServerStats>);
        shared.spool.set(config);
        (build.body_policy, build.spool) = (config.body_policy, Arc::clone(&shared.spool));
        let tables = Tables::new(routes, &build)?;
        let current = AppHandle::new(|current| {
            App::new(
                config,
                Arc::new(tables),
                (Hooks::default(), None),
                shared,
                current,
                Openings::default(),
            )
        });
        Ok(Self::of(current.app(), Vec::new()))
    }

    /// Creates a client of a server, which learns by a PROXY header where the client is.
    pub(crate) fn through_proxy(app: &Arc<App>, header: Vec<u8>) -> Self {
        Self::of(Arc::clone(app), header)
    }

    fn of(app: Arc<App>, proxy_header: Vec<u8>) -> Self {
        let options = ClientOptions {
            total_timeout: Some(TIMEOUT),
            user_agent: String::new(),
            ..ClientOptions::default()
        };
        Self { app, client: client::Client::new(options), proxy_header: proxy_header.into() }
    }

    /// Creates a GET request. `target` is the path with its query, percent-encoded: `/a%20b?x=1`.
    pub fn get(&self, target: &str) -> TestRequest {
        self.request(Method::Get, target)
    }

    /// Creates a POST request; see [`TestClient::get`].
    pub fn post(&self, target: &str) -> TestRequest {
        self.request(Method::Post, target)
    }

    /// Creates a PUT request; see [`TestClient::get`].
    pub fn put(&self, target: &str) -> TestRequest {
        self.request(Method::Put, target)
    }

    /// Creates a DELETE request; see [`TestClient::get`].
    pub fn delete(&self, target: &str) -> TestRequest {
        self.request(Method::Delete, target)
    }

    /// Creates a request with any method but CONNECT; see [`TestClient::get`].
    pub fn request(&self, method: Method, target: &str) -> TestRequest {
        TestRequest::new(self.clone(), method, target)
    }

    /// Connects inside this process, and starts serving.
    fn connect(&self) -> io::Result<Connection> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (near, far): (OwnedFd, OwnedFd) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let mut opening = ConnectionOpening::default();
        if !self.proxy_header.is_empty() {
            let all = Networks::of(&["*".to_owned()]).unwrap_or_default();
            opening.proxies = Some(Arc::new(all));
            // A few bytes fit into the socket's buffer.
            rustix::io::write(&near, &self.proxy_header)?;
        }
        let (near, far) = (Connection::adopt(near)?, Connection::adopt(far)?);
        let serving = conn::serve(far, Arc::clone(&self.app), opening);
        spawn_detached(serving).map_err(|_| io::Error::other("no task slot is left"))?;
        Ok(near)
    }
}

impl fmt::Debug for TestClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TestClient")
    }
}

/// A request, put together step by step and then sent.
#[must_use = "a request does nothing before it is sent"]
#[derive(Debug)]
pub struct TestRequest {
    client: TestClient,
    method: Method,
    target: String,
    host: String,
    fields: Vec<(String, Vec<u8>)>,
    body: Option<Bytes>,
}

impl TestRequest {
    fn new(client: TestClient, method: Method, target: &str) -> Self {
        let (target, host) = (target.to_owned(), "localhost".to_owned());
        Self { client, method, target, host, fields: Vec::new(), body: None }
    }

    /// Adds a header field. Those that frame the message are set by the client.
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.fields.push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    /// Sets the host, with its port if it is not 80; by default it is `localhost`.
    pub fn host(mut self, host: &str) -> Self {
        host.clone_into(&mut self.host);
        self
    }

    /// Sets the body.
    pub fn body(mut self, bytes: impl Into<Bytes>) -> Self {
        self.body = Some(bytes.into());
        self
    }

    /// Sets the pairs of a form as the body, as browsers send them
    /// (`application/x-www-form-urlencoded`).
    pub fn form(self, pairs: &[(&str, &str)]) -> Self {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        self.header("Content-Type", "application/x-www-form-urlencoded").body(body)
    }

    /// Sends the request, and waits for the whole response. For plain `#[test]` functions: inside a
    /// task, use [`TestRequest::send_async`].
    ///
    /// # Panics
    /// If there is no whole response: [`TestRequest::try_send`] returns the cause.
    pub fn send(self) -> TestResponse {
        let request = format!("{} {}", self.method.as_str().unwrap_or("?"), self.target);
        self.try_send().unwrap_or_else(|error| panic!("no response to {request}: {error}"))
    }

    /// Does the same as [`TestRequest::send`] for requests that may fail: by a stream, by a limit.
    ///
    /// # Errors
    /// [`TestError`]: there is no complete response, no socket, or the thread cannot wait.
    pub fn try_send(self) -> Result<TestResponse, TestError> {
        block_on(async {
            let response = self.send_async().await;
            // The next request on this thread may go to another server.
            app::forget();
            response
        })
        .unwrap_or_else(|error| Err(TestError::Thread(error.to_string())))
    }

    /// Sends the request, and waits for the whole response: inside a task.
    ///
    /// # Errors
    /// [`TestError`]: there is no complete response, or no socket.
    pub async fn send_async(self) -> Result<TestResponse, TestError> {
        let mut response = self.open().await?;
        let body = response.bytes(RESPONSE_BYTES_MAX).await?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let trailers = response.trailers().map_or_else(Vec::new, |trailers| {
            trailers.map(|(name, value)| (name.to_owned(), text(value))).collect()
        });
        let fields =
            response.headers().map(|(name, value)| (name.to_owned(), value.to_vec())).collect();
        let interim = response.interim().map(ResponseView::status).collect();
        Ok(TestResponse { status: response.status(), fields, body, trailers, interim })
    }

    /// Sends the request, and waits for the head of the response: inside a task, to read a stream.
    ///
    /// # Errors
    /// [`TestError`]: there is no head of a response, or no socket.
    pub async fn open(self) -> Result<client::ClientResponse, TestError> {
        let Self { client, method, target, host, fields, body } = self;
        if gustnado_tasks::worker().is_none() {
            return Err(ClientError::NoWorker.into());
        }
        let url = format!("http://{host}{target}");
        let mut request = client.client.request(method, &url);
        for (name, value) in fields {
            request = request.header(&name, value);
        }
        if let Some(body) = body {
            request = request.body(body);
        }
        let connection = client.connect().map_err(TestError::Connect)?;
        Ok(request.accept_trailers().send_over(connection).await?)
    }
}

/// A whole response.
#[derive(Clone, PartialEq, Eq)]
pub struct TestResponse {
    status: u16,
    fields: Vec<(String, Vec<u8>)>,
    body: Bytes,
    trailers: Vec<(String, String)>,
    interim: Vec<u16>,
}

impl TestResponse {
    /// Returns the status code.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns the first value of a header field; the case of the name does not matter. `None` also
    /// if the value is not UTF-8.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .and_then(|(_, value)| str::from_utf8(value).ok())
    }

    /// Returns all header fields in order: name and value.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// Returns the content.
    pub fn bytes(&self) -> &Bytes {
        &self.body
    }

    /// Returns the content as text in UTF-8; other bytes become U+FFFD.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the trailer fields (RFC 9110 §6.5).
    pub fn trailers(&self) -> &[(String, String)] {
        &self.trailers
    }

    /// Returns the status codes of the interim responses that preceded it (RFC 9110 §15.2).
    pub fn interim(&self) -> &[u16] {
        &self.interim
    }
}

impl fmt::Debug for TestResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.status)?;
        for (name, value) in self.headers() {
            write!(f, "\n{name}: {}", value.escape_ascii())?;
        }
        write!(f, "\n\n{}", self.text())
    }
}

/// Error of a test request.
#[derive(Error)]
#[non_exhaustive]
pub enum TestError {
    /// The connection was cut, the response is malformed, or it took 30 seconds.
    #[error(transparent)]
    Request(#[from] ClientError),
    /// No pair of sockets could be opened.
    #[error("no pair of sockets could be opened: {0}")]
    Connect(#[source] io::Error),
    /// The thread cannot wait for it: inside a task, use [`TestRequest::send_async`].
    #[error("{0}; inside a task, use `send_async().await`")]
    Thread(String),
}
