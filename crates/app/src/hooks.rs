//! Hooks of a program for rare events: a reached limit, a closed connection. A server without hooks
//! pays nothing for them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use gustnado_http::request::RequestView;
use gustnado_http::status::Status;
use gustnado_tasks::Endpoint;

use gustnado_web::request_head::as_text;
use gustnado_web::response::Response;

/// A limit that can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// Time for a connection's first byte: `first-request-timeout`.
    FirstRequest,
    /// Time for a whole head: `header-timeout`.
    Head,
    /// Time between two requests: `timeout-keep-alive`.
    KeepAlive,
    /// A body that is silent or slow: `body-timeout` and `body-rate-min`, or those of its route.
    Body,
    /// A reader that is silent or slow: `write-timeout` and `write-rate-min`, or those of its
    /// route.
    Write,
    /// A client that sends no more and waits for a handler: `half-close-timeout`.
    HalfClose,
    /// A handler or a stream that is silent: `Route::idle_timeout`.
    Idle,
    /// Bytes of a head: `limit-head-bytes`.
    HeadBytes,
    /// Bytes of a target: `limit-target-bytes`.
    TargetBytes,
    /// Lines of a head: `limit-header-fields`.
    HeaderFields,
    /// Bytes of a body: `limit-body-bytes`, or that of its route.
    BodyBytes,
}

impl Limit {
    /// Returns the name of its setting.
    pub fn name(self) -> &'static str {
        match self {
            Self::FirstRequest => "first-request-timeout",
            Self::Head => "header-timeout",
            Self::KeepAlive => "timeout-keep-alive",
            Self::Body => "body-timeout",
            Self::Write => "write-timeout",
            Self::HalfClose => "half-close-timeout",
            Self::Idle => "idle_timeout",
            Self::HeadBytes => "limit-head-bytes",
            Self::TargetBytes => "limit-target-bytes",
            Self::HeaderFields => "limit-header-fields",
            Self::BodyBytes => "limit-body-bytes",
        }
    }

    /// Returns whether it is a time-out, which can be extended; sizes cannot.
    pub fn is_time(self) -> bool {
        !matches!(self, Self::HeadBytes | Self::TargetBytes | Self::HeaderFields | Self::BodyBytes)
    }
}

/// A limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitEvent<'a> {
    /// The limit.
    pub limit: Limit,
    /// Its setting: milliseconds, bytes or lines.
    pub configured: u64,
    /// The value that was reached: for a time-out, the bytes received or sent so far; for a size,
    /// the announced size or the bytes so far. Lines are not counted beyond the limit.
    pub reached: u64,
    /// The request's target as it was sent, where it is known.
    pub target: Option<&'a str>,
    /// Requests of this connection so far, including this one if its head is complete.
    pub requests: u32,
}

impl<'a> LimitEvent<'a> {
    #[doc(hidden)]
    pub fn new(
        limit: Limit,
        (configured, reached): (u64, u64),
        target: Option<&'a str>,
        requests: u32,
    ) -> Self {
        Self { limit, configured, reached, target, requests }
    }
}

/// The decision of a hook about a reached limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LimitAction {
    /// Close the connection, after a response with the matching status if one can still be sent.
    #[default]
    Close,
    /// Extends the time by this, at least a millisecond, and calls the hook again then. For a size
    /// this counts as [`LimitAction::Close`].
    Wait(Duration),
}

/// A connection that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClosedConnection {
    /// Requests with a complete head.
    pub requests: u32,
    /// Time that it was open, in whole milliseconds; wraps after 49 days.
    pub lasted: Duration,
    /// The worker that it ended on.
    pub worker: Option<usize>,
}

impl ClosedConnection {
    #[doc(hidden)]
    pub fn new(requests: u32, lasted: Duration, worker: Option<usize>) -> Self {
        Self { requests, lasted, worker }
    }
}

/// A request that the server refuses before any handler or middleware: its head is malformed or
/// past a limit, its body is too large, or it arrives too slowly.
#[derive(Clone, Copy)]
pub struct Refused<'a> {
    status: Status,
    request: Option<RequestView<'a>>,
}

impl<'a> Refused<'a> {
    #[doc(hidden)]
    pub fn new(status: Status, request: Option<RequestView<'a>>) -> Self {
        Self { status, request }
    }

    /// Returns the status of the refusal: 400, 408, 413, 414, 417, 421, 425, 431, 501 or 505.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Returns its method as it was sent, if its head was complete.
    pub fn method(&self) -> Option<&'a str> {
        self.request.map(|view| as_text(view.method_token()))
    }

    /// Returns its target as it was sent, if its head was complete.
    pub fn target(&self) -> Option<&'a str> {
        self.request.map(|view| as_text(view.target()))
    }

    /// Returns the first value of a header field, if the head was complete and the value is text:
    /// `Origin`, `X-Request-Id`.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        str::from_utf8(self.request?.field(name)?).ok()
    }
}

impl fmt::Debug for Refused<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused").field("status", &self.status).finish_non_exhaustive()
    }
}

/// An error that ended an HTTP/2 connection (RFC 9113 §5.4.1). Mostly its client has broken a rule.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ConnectionFault<'a> {
    /// Where the client is; `None` where that is not known.
    pub peer: Option<&'a Endpoint>,
    /// The name of the code that the client was sent: `PROTOCOL_ERROR`.
    pub code: &'a str,
    /// The sentence that the client was sent.
    pub reason: &'a str,
}

impl<'a> ConnectionFault<'a> {
    #[doc(hidden)]
    pub fn new(peer: Option<&'a Endpoint>, code: &'a str, reason: &'a str) -> Self {
        Self { peer, code, reason }
    }
}

impl fmt::Display for ConnectionFault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.peer {
            Some(peer) => write!(f, "{peer}: {}: {}", self.code, self.reason),
            None => write!(f, "an unknown client: {}: {}", self.code, self.reason),
        }
    }
}

type OnFault = dyn Fn(&ConnectionFault<'_>) + Send + Sync;
type OnRefusal = dyn Fn(&Refused<'_>, &mut Response) + Send + Sync;
type OnLimit = dyn Fn(&LimitEvent<'_>) -> LimitAction + Send + Sync;
type OnClosed = dyn Fn(&ClosedConnection) + Send + Sync;

/// The hooks of one server.
#[derive(Clone, Default)]
pub struct Hooks {
    pub limit: Option<Arc<OnLimit>>,
    pub closed: Option<Arc<OnClosed>>,
    pub refusal: Option<Arc<OnRefusal>>,
    pub fault: Option<Arc<OnFault>>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("on_limit", &self.limit.is_some())
            .field("on_closed", &self.closed.is_some())
            .field("on_refusal", &self.refusal.is_some())
            .field("on_connection_error", &self.fault.is_some())
            .finish()
    }
}
