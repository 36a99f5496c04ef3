//! A client of HTTP/1.1 and HTTP/2 on the same engine, with and without TLS: small, for handlers
//! that call other servers, and for measuring this one.
//!
//! ```no_run
//! # mod gustnado { pub use gustnado_client as client; }
//! use gustnado::client::{Client, ClientError, ClientOptions};
//!
//! async fn relay(client: &Client) -> Result<String, ClientError> {
//!     let mut response = client.get("http://127.0.0.1:8080/hello").send().await?;
//!     assert_eq!(response.status(), 200);
//!     response.text(64 * 1024).await
//! }
//!
//! let client = Client::new(ClientOptions::default());
//! # let _ = relay(&client);
//! ```
//!
//! A request runs inside a task of the engine: in an async handler, in what it spawns, or, on a
//! plain thread, inside `block_on`. Its connection belongs to the worker it runs on, so **each
//! worker thread keeps connections of its own**: the bounds of the pool count per thread, and an
//! response is read (or dropped) on the worker that sent the request. Where workers share their
//! tasks, any of them will do, and a connection is kept by the one on which its response ended.
//!
//! A request is awaited by the task itself. It may be one of several futures that `select` or
//! `timeout` look after; but a combinator that keeps wakers of its own (as `FuturesUnordered` does)
//! would not hear that bytes have come: give each request a task there.
//!
//! What it does: keeps connections and uses them again, sends and receives bodies as streams in
//! both directions at once, reads trailers and interim responses, keeps a time-out on every wait.
//! What it leaves to its caller: redirects, cookies, caching, content codings, proxies. There
//! is no limit on requests at a time, for each is a task of its caller.
//!
//! A kept connection may be closed by the server at the very moment it is used again. A request
//! that found nothing but the end is sent once more on a fresh connection, if that does no harm:
//! its method is idempotent (RFC 9110 §9.2.2) and its body can be sent twice. That is the only
//! retry by HTTP/1.1. A POST is safe from this with [`ClientRequest::alone`].
//!
//! Over https, servers that choose HTTP/2 are asked by it: one connection of a worker carries as
//! many requests at once as the server allows. A request that such a server says it has not looked
//! at (RFC 9113 §8.7) is sent again, whatever its method, unless its body is a stream. A response
//! that is dropped ends its stream, and not the connection. [`ClientOptions::http2`] decides.
#![forbid(unsafe_code)]

mod call;
mod connect;
mod error;
mod exchange;
mod http1_body;
mod http2;
mod http2_use;
mod pool;
mod request;
mod response;
#[cfg(feature = "tls")]
mod tls;
mod total;
mod upload;
mod url;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use gustnado_http::method::Method;
use gustnado_tasks::BlockingPool;
#[cfg(feature = "tls")]
use gustnado_tasks::Lock;
#[cfg(feature = "tls")]
use gustnado_tls::TlsConnector;

pub use error::{ClientError, TimeoutPhase, UrlError};
#[cfg(feature = "tls")]
pub use gustnado_tls::{ConnectTlsError, ConnectorError, ConnectorSettings, TlsInfo, Trust};
pub use http2_use::Http2Use;
pub use request::ClientRequest;
pub use response::{ClientResponse, ClientResponseBody};

use http2::Http2Pool;
use pool::IdlePools;

gustnado_tasks::debug_as_display!(ClientError, UrlError);

/// Threads that look up names, and look-ups that may wait for one.
const RESOLVER_THREADS_MAX: usize = 2;
const RESOLVER_JOBS_MAX: usize = 64;

/// Options of a client. Every wait has its time-out, and everything kept has its bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// Longest time to look up a name and connect. Default: 10 seconds.
    pub connect_timeout: Duration,
    /// Longest time from the request's last byte to the whole head of the response, interim
    /// responses included. Default: 30 seconds.
    pub head_timeout: Duration,
    /// Longest time without any byte while a body is sent or received. Time that the caller takes
    /// to send or to read bytes does not count. Default: 30 seconds.
    pub idle_timeout: Duration,
    /// Longest time for all of it, body included; `None` for no such limit, which is the default.
    pub total_timeout: Option<Duration>,
    /// Longest time to wait for `100 Continue` before the body is sent all the same (RFC 9110
    /// §10.1.1). Default: 1 second.
    pub continue_timeout: Duration,
    /// Time for which an idle connection is kept. Best is shorter than the server keeps it.
    /// Default: 15 seconds.
    pub keep_timeout: Duration,
    /// Unused connections kept for one host, on each worker; 0 keeps none. Default: 8.
    pub kept_per_host_max: usize,
    /// Unused connections kept in all, on each worker; 0 keeps none. Default: 64.
    pub kept_max: usize,
    /// Bytes of a response's head: 1 to 65,535; its trailers keep the same limit. Default: 32 KiB.
    pub head_bytes_max: usize,
    /// Field lines in a response's head, and again in its trailers. Default: 128.
    pub fields_max: usize,
    /// The address that TCP connections come from; port 0 lets the kernel pick one. Default: the
    /// kernel's choice.
    pub source: Option<SocketAddr>,
    /// The value of User-Agent (RFC 9110 §10.1.5); empty for none. Default: `gustnado/` and the
    /// version.
    pub user_agent: String,
    /// How it uses HTTP/2. Default: with https servers that choose it by ALPN.
    pub http2: Http2Use,
    /// Of https: whom it trusts, and what it shows of itself. Default: the system's authorities,
    /// and no certificate.
    #[cfg(feature = "tls")]
    pub tls: ConnectorSettings,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            head_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(30),
            total_timeout: None,
            continue_timeout: Duration::from_secs(1),
            keep_timeout: Duration::from_secs(15),
            kept_per_host_max: 8,
            kept_max: 64,
            head_bytes_max: 32 << 10,
            fields_max: 128,
            source: None,
            user_agent: concat!("gustnado/", env!("CARGO_PKG_VERSION")).to_owned(),
            http2: Http2Use::default(),
            #[cfg(feature = "tls")]
            tls: ConnectorSettings::default(),
        }
    }
}

/// An HTTP client: what its requests have in common. Cloning it is cheap, and clones share their
/// connections; dropping the last one closes those that are not in use.
#[derive(Clone)]
pub struct Client {
    shared: Arc<ClientShared>,
}

struct ClientShared {
    options: ClientOptions,
    pool: IdlePools,
    http2: Http2Pool,
    /// Looking a name up blocks. Its threads start with the first name and end when idle.
    resolver: BlockingPool,
    /// What takes up connections by TLS. It is made for the first one: it reads files.
    #[cfg(feature = "tls")]
    connector: Lock<Option<Arc<TlsConnector>>>,
    /// The same for connections that are to go on in another protocol, by HTTP/1.1.
    #[cfg(feature = "tls")]
    old_connector: Lock<Option<Arc<TlsConnector>>>,
}

impl Client {
    /// Creates a client without connections. It starts nothing.
    pub fn new(options: ClientOptions) -> Self {
        let (pool, http2) = (IdlePools::new(&options), Http2Pool::new(&options));
        let resolver = BlockingPool::new(RESOLVER_THREADS_MAX, RESOLVER_JOBS_MAX);
        let shared = ClientShared {
            options,
            pool,
            http2,
            resolver,
            #[cfg(feature = "tls")]
            connector: Lock::default(),
            #[cfg(feature = "tls")]
            old_connector: Lock::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Creates a GET request (RFC 9110 §9.3.1).
    ///
    /// - `url`: `http://host[:port]/path?query` or `https://…`, percent-encoded. Sending returns
    ///   the error of a malformed one.
    pub fn get(&self, url: &str) -> ClientRequest {
        self.request(Method::Get, url)
    }

    /// Creates a POST request (RFC 9110 §9.3.3); see [`Client::get`].
    pub fn post(&self, url: &str) -> ClientRequest {
        self.request(Method::Post, url)
    }

    /// Creates a request with any method (RFC 9110 §9) but CONNECT; see [`Client::get`].
    pub fn request(&self, method: Method, url: &str) -> ClientRequest {
        ClientRequest::new(Arc::clone(&self.shared), method, url)
    }

    /// Returns the client's options.
    pub fn options(&self) -> &ClientOptions {
        &self.shared.options
    }

    /// Returns the number of idle connections that the running thread keeps.
    pub fn connections_kept(&self) -> usize {
        self.shared.pool.idle_here() + self.shared.http2.idle_here()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

/// Whole milliseconds, as workers count time.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX >> 1)
}
