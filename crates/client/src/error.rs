//! Errors of requests that got no response, or not a whole one.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use gustnado_http::body::BodyDecodeError;
use gustnado_http::fields::FieldError;
use gustnado_http::h2::{ErrorCode, H2Error};
use gustnado_http::method::Method;
use gustnado_http::response::ResponseError;
use gustnado_tasks::Endpoint;
#[cfg(feature = "tls")]
use gustnado_tls::{ConnectTlsError, ConnectorError};

pub use super::url::UrlError;

/// Errors of requests that got no response, or not a whole one. `Display` is one line: what, where,
/// remedy.
///
/// A status like 404 or 500 is a response, not an error.
#[non_exhaustive]
pub enum ClientError {
    /// The running thread is no worker, so it has no sockets.
    NoWorker,
    /// The URL cannot be requested.
    Url {
        /// The URL; without its user information, if that is what is wrong.
        url: String,
        /// The cause.
        error: UrlError,
    },
    /// A method that is not sent: CONNECT, or TRACE with a body (RFC 9110 §9.3.8).
    Method(Method),
    /// A field that cannot be sent.
    Field {
        /// Its name.
        name: String,
        /// The cause.
        error: FieldError,
    },
    /// The host has no address.
    Resolve {
        /// The host.
        host: Arc<str>,
        /// The resolver's error.
        error: io::Error,
    },
    /// No connection was made.
    Connect {
        /// The last address that was tried.
        to: Endpoint,
        /// The kernel's error.
        error: io::Error,
    },
    /// A time-out of [`super::ClientOptions`] or of the request has passed.
    Timeout {
        /// The phase that timed out.
        waiting: TimeoutPhase,
        /// The host.
        host: Arc<str>,
        /// The time-out.
        after: Duration,
    },
    /// The connection broke before the response was whole.
    Broken {
        /// The host.
        host: Arc<str>,
        /// The kernel's error.
        error: io::Error,
    },
    /// The server closed before the response's head was whole.
    Closed {
        /// The host.
        host: Arc<str>,
        /// Bytes of the head that came.
        received: usize,
    },
    /// The response's head is no HTTP/1.1, or past a limit.
    Head {
        /// The host.
        host: Arc<str>,
        /// The cause.
        error: ResponseError,
    },
    /// The server switched to a protocol that was not requested (RFC 9110 §15.2.2).
    Switched {
        /// The host.
        host: Arc<str>,
    },
    /// More interim responses than are taken.
    TooManyInterim {
        /// The host.
        host: Arc<str>,
        /// The most that are accepted.
        limit: usize,
    },
    /// The response's body is misframed.
    Body {
        /// The host.
        host: Arc<str>,
        /// The cause.
        error: BodyDecodeError,
    },
    /// The server closed before the response's body was whole (RFC 9112 §8).
    Truncated {
        /// The host.
        host: Arc<str>,
        /// Bytes of the body that came.
        received: u64,
    },
    /// The response's body is longer than the caller takes.
    TooLong {
        /// The limit that the caller gave.
        limit_bytes: usize,
    },
    /// The response's body is no UTF-8.
    NotText,
    /// The stream of the request's body failed.
    Source(io::Error),
    /// The stream of the request's body is shorter or longer than it was said to be.
    SourceLength {
        /// Bytes that were announced.
        announced: u64,
        /// Bytes that the stream gave, as far as it was read.
        given: u64,
    },
    /// The settings of TLS are of no use.
    #[cfg(feature = "tls")]
    TlsSettings(ConnectorError),
    /// No connection by TLS was made.
    #[cfg(feature = "tls")]
    Tls {
        /// The host.
        host: Arc<str>,
        /// The cause.
        error: ConnectTlsError,
    },
    /// The server, asked by HTTP/2, has ended the request before its response was whole.
    Reset {
        /// The host.
        host: Arc<str>,
        /// Why (RFC 9113 §7).
        code: ErrorCode,
    },
    /// What the server sent breaks the rules of HTTP/2, or is past a limit.
    Http2 {
        /// The host.
        host: Arc<str>,
        /// What is wrong.
        error: H2Error,
    },
    /// The server has not chosen HTTP/2 by ALPN, and the client speaks nothing else.
    NoHttp2 {
        /// The host.
        host: Arc<str>,
    },
    /// The server, asked by HTTP/2, does not take CONNECT with a protocol (RFC 8441 §3).
    NoProtocols {
        /// The host.
        host: Arc<str>,
    },
    /// The worker that the request runs on is ending.
    Ending,
}

/// The wait that a time-out has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutPhase {
    /// The name and the connection.
    Connect,
    /// The whole head of the response, once the request was sent.
    Head,
    /// The next bytes of a body, either way.
    Bytes,
    /// The end of it all.
    Total,
}

impl ClientError {
    /// Returns whether a time-out has passed.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Timeout { .. })
    }
}

impl fmt::Display for TimeoutPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "no connection (connect_timeout)",
            Self::Head => "no whole response head (head_timeout)",
            Self::Bytes => "no progress (idle_timeout)",
            Self::Total => "not finished (total_timeout)",
        })
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoWorker => f.write_str(
                "a request needs a worker's sockets: send it from a handler or a task, or inside \
                 block_on",
            ),
            Self::Url { url, error } => write!(f, "cannot ask {url:?}: {error}"),
            Self::Method(Method::Connect) => f.write_str("tunnels are not supported: no CONNECT"),
            Self::Method(method) => match method.as_str() {
                Some(name) => write!(f, "a {name} request must not have a body"),
                None => f.write_str("expected a method with a name, found Method::Other; name it"),
            },
            Self::Field { name, .. } => write!(f, "cannot send the field {name:?}"),
            Self::Resolve { host, .. } => {
                write!(f, "{host} has no address: check the name and the resolver")
            }
            Self::Connect { to, .. } => {
                write!(f, "cannot connect to {to}: check that a server listens there")
            }
            Self::Timeout { waiting, host, after } => {
                write!(f, "{host}: {waiting} within {after:?}: raise it, or look at the server")
            }
            Self::Broken { host, .. } => write!(f, "{host}: the connection broke"),
            Self::Closed { host, received: 0 } => {
                write!(f, "{host}: closed without a response; send it again if twice does no harm")
            }
            Self::Closed { host, received } => {
                write!(f, "{host}: closed after {received} bytes of the response's head")
            }
            Self::Head { host, .. } => write!(f, "{host}: the response cannot be read"),
            Self::Switched { host } => {
                write!(f, "{host}: switched protocols, though nobody had asked for it")
            }
            Self::TooManyInterim { host, limit } => {
                write!(f, "{host}: more than {limit} interim responses")
            }
            Self::Body { host, .. } => write!(f, "{host}: the response's body cannot be read"),
            Self::Truncated { host, received } => {
                write!(f, "{host}: closed after {received} bytes of the body, before its end")
            }
            Self::TooLong { limit_bytes } => write!(
                f,
                "the response's body is longer than {limit_bytes} bytes: read it piece by piece, \
                 or raise the limit"
            ),
            Self::NotText => f.write_str("the response's body is no UTF-8: read it as bytes"),
            Self::Source(_) => f.write_str("the stream of the request's body failed"),
            Self::SourceLength { announced, given } => write!(
                f,
                "the stream of the request's body gave {given} bytes, not {announced} as announced"
            ),
            #[cfg(feature = "tls")]
            Self::TlsSettings(_) => f.write_str("the client's settings of TLS cannot be used"),
            #[cfg(feature = "tls")]
            Self::Tls { host, error } => write!(f, "{host}: no TLS: {error}"),
            Self::Reset { host, code } => {
                write!(f, "{host}: the server has ended the request with {}", code.name())
            }
            Self::Http2 { host, .. } => write!(f, "{host}: the response breaks HTTP/2"),
            Self::NoHttp2 { host } => write!(
                f,
                "{host}: the server does not speak HTTP/2: it has not chosen h2 by ALPN; let the \
                 client speak HTTP/1.1, too (http2)"
            ),
            Self::NoProtocols { host } => {
                write!(f, "{host}: no tunnels by HTTP/2 (RFC 8441): ask it by HTTP/1.1")
            }
            Self::Ending => f.write_str("the worker is ending"),
        }
    }
}

impl Error for ClientError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Resolve { error, .. }
            | Self::Connect { error, .. }
            | Self::Broken { error, .. }
            | Self::Source(error) => Some(error),
            Self::Field { error, .. } => Some(error),
            Self::Head { error, .. } => Some(error),
            Self::Body { error, .. } => Some(error),
            Self::Http2 { error, .. } => Some(error),
            #[cfg(feature = "tls")]
            Self::TlsSettings(error) => Some(error),
            _ => None,
        }
    }
}
