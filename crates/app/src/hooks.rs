//! What a program may have called when something rare happens: a limit strikes, a connection ends.
//! Servers without such calls pay nothing for them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use gustnado_http::request::Request as View;
use gustnado_http::status::Status;

use gustnado_web::request_head::as_text;
use gustnado_web::response::Response;

/// A limit that can strike.
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
    /// A handler or a stream that has had nothing to say: `Route::idle_timeout`.
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
    /// The setting that it is of.
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

    /// Whether more time would help: not so for a size.
    pub fn is_time(self) -> bool {
        !matches!(self, Self::HeadBytes | Self::TargetBytes | Self::HeaderFields | Self::BodyBytes)
    }
}

/// A limit that has struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitEvent<'a> {
    /// Which one.
    pub limit: Limit,
    /// What it was set to: milliseconds, bytes or lines.
    pub configured: u64,
    /// How far it had come: for a time, the bytes that were here or had left; for a size, what was
    /// announced, or had come until it struck (lines are not counted further than the limit).
    pub reached: u64,
    /// The request's target as it was sent, where it is known.
    pub target: Option<&'a str>,
    /// Requests of this connection so far, this one included if its head has come.
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

/// What is to become of whoever a limit has struck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LimitAction {
    /// What always becomes of it: a status that says so where there is still a place for one, and
    /// the connection's end.
    #[default]
    Close,
    /// It has so much more time, at least a millisecond; then it is asked again. A size takes this
    /// for [`LimitAction::Close`].
    Wait(Duration),
}

/// A connection that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClosedConnection {
    /// Requests whose heads had come whole.
    pub requests: u32,
    /// How long it was open. (It is counted in milliseconds, and up to 49 days.)
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

/// A request that the server refuses by itself: one whose head breaks the rules or a limit, whose
/// body is too large, or that comes too slowly. No handler and no link of a chain sees it.
#[derive(Clone, Copy)]
pub struct Refused<'a> {
    status: Status,
    request: Option<View<'a>>,
}

impl<'a> Refused<'a> {
    #[doc(hidden)]
    pub fn new(status: Status, request: Option<View<'a>>) -> Self {
        Self { status, request }
    }

    /// What it is refused with: 400, 408, 413, 414, 417, 431, 501 or 505.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Its method as it was sent, where its head was whole.
    pub fn method(&self) -> Option<&'a str> {
        self.request.map(|view| as_text(view.method_token()))
    }

    /// Its target as it was sent, where its head was whole.
    pub fn target(&self) -> Option<&'a str> {
        self.request.map(|view| as_text(view.target()))
    }

    /// The first value of a header field, where its head was whole and the value is text: `Origin`,
    /// `X-Request-Id`.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        str::from_utf8(self.request?.field(name)?).ok()
    }
}

impl fmt::Debug for Refused<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused").field("status", &self.status).finish_non_exhaustive()
    }
}

type OnRefusal = dyn Fn(&Refused<'_>, &mut Response) + Send + Sync;
type OnLimit = dyn Fn(&LimitEvent<'_>) -> LimitAction + Send + Sync;
type OnClosed = dyn Fn(&ClosedConnection) + Send + Sync;

/// The calls of one server.
#[derive(Clone, Default)]
pub struct Hooks {
    pub limit: Option<Arc<OnLimit>>,
    pub closed: Option<Arc<OnClosed>>,
    pub refusal: Option<Arc<OnRefusal>>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("on_limit", &self.limit.is_some())
            .field("on_closed", &self.closed.is_some())
            .field("on_refusal", &self.refusal.is_some())
            .finish()
    }
}
