//! Gustnado: a very small, very fast, highly tunable HTTP server, as a library.
//!
//! ```no_run
//! use gustnado::{Request, Response, Server, blocking};
//!
//! fn main() -> gustnado::Result<()> {
//!     Server::new()
//!         // Inline: it runs on the worker.
//!         .get("/hello", |_: &Request| "Hello, world!")
//!         // A light task: it streams the body back.
//!         .post("/echo", async |request: Request| Response::stream(request.into_body()))
//!         // On the thread pool: it may hold its thread.
//!         .get("/report/{year}", blocking(|request: Request| report(&request.param("year"))))
//!         .files("/static", "./public")
//!         .workers(4)
//!         .listen("127.0.0.1:3456")?
//!         .run()
//! }
//!
//! fn report(year: &str) -> String {
//!     format!("A long calculation about {year}.")
//! }
//! ```
//!
//! [`Server`] declares the routes, and has a method for every setting of [`config`]. A started
//! server is a [`Running`], which has counters and can be reloaded, drained and stopped.
#![forbid(unsafe_code)]

mod builder;
pub mod config;
pub mod control;
#[cfg(doctest)]
mod documents;
mod explain;
mod privileges;
mod server;
pub mod site;
mod status_page;
pub mod test;

pub use builder::Server;
pub use bytes::Bytes;
pub use explain::{
    AskError, AskedRequest, ExplainError, Explanation, PresentedCertificate, RefusalReason,
};
#[doc(inline)]
pub use gustnado_access::{AccessError, UrlKeys, signed_url, signed_url_for};
#[doc(hidden)]
pub use gustnado_access::{HashKind, hash_password};
#[cfg(feature = "acme")]
#[doc(inline)]
pub use gustnado_acme::AcmeStatus;
#[doc(inline)]
pub use gustnado_app::hooks::{
    ClosedConnection, ConnectionFault, Limit, LimitAction, LimitEvent, Refused,
};
#[doc(inline)]
pub use gustnado_client as client;
pub use gustnado_http::fields::FieldError;
pub use gustnado_http::head::Version;
pub use gustnado_http::method::Method;
#[doc(inline)]
pub use gustnado_http::proxy::{ProxyInfo, ProxyTls};
pub use gustnado_http::status::Status;
#[doc(inline)]
pub use gustnado_observe::access_log::FormatError;
#[doc(hidden)]
pub use gustnado_observe::access_log::unblocked_terminal;
#[doc(inline)]
pub use gustnado_observe::last_reload::LastReload;
#[doc(hidden)]
pub use gustnado_observe::stats::counters_reference;
#[doc(inline)]
pub use gustnado_observe::stats::{Stats, WorkerStats};
pub use gustnado_tasks::{DrainReport, Endpoint};
#[doc(inline)]
pub use gustnado_tcp as protocol;
#[doc(inline)]
pub use gustnado_tls::TlsInfo;
#[cfg(feature = "tls-any")]
#[doc(inline)]
pub use gustnado_tls::{CertificateSummary, TlsEnd, TlsEndError, TlsSettingsError, TlsVersion};
#[doc(hidden)]
pub use gustnado_web::admission::overloaded;
#[doc(inline)]
pub use gustnado_web::body::{Body, BodyError};
#[doc(hidden)]
pub use gustnado_web::body_channel::Collected;
#[doc(inline)]
pub use gustnado_web::forms;
#[doc(inline)]
pub use gustnado_web::handler::{Blocking, Handler, IntoHandler, blocking, form};
#[doc(hidden)]
pub use gustnado_web::handler::{by_length, head_only, on_threads};
#[doc(hidden)]
pub use gustnado_web::handler_limits::{AdmissionChain, Permits};
#[cfg(feature = "json")]
#[doc(inline)]
pub use gustnado_web::json::{JsonError, QueryError};
#[doc(inline)]
pub use gustnado_web::metrics_page::metrics_page;
#[doc(inline)]
pub use gustnado_web::middleware::{Flow, Middleware, Next};
#[doc(hidden)]
pub use gustnado_web::request::KeptRequest;
#[doc(inline)]
pub use gustnado_web::request::{Cookies, Pairs, ParamError, Request, percent_decoded};
#[doc(inline)]
pub use gustnado_web::response::{
    AppendError, Appender, Event, ForeignHead, IntoResponse, Replier, Reply, Response, Sent,
    reply_later,
};
#[doc(hidden)]
pub use gustnado_web::routes::canonical_route;
#[doc(inline)]
pub use gustnado_web::routes::{Route, RouteError, Routes, route};
#[doc(hidden)]
pub use gustnado_web::spool::{Spool, SpoolShare};
#[doc(inline)]
pub use gustnado_web::stats_page::stats_page;
#[cfg(feature = "tower")]
#[doc(inline)]
pub use gustnado_web::tower::{ClientInfo, ServiceError, Tower, tower};
pub use gustnado_web::trailers::RequestTrailers;
#[doc(inline)]
pub use gustnado_web::tunnel::{Tunnel, TunnelError};
pub use privileges::UserError;
#[cfg(feature = "tls-any")]
pub use server::TlsFront;
pub use server::{
    Drain, IntoListener, Reloaded, Running, StartError, drop_privileges, probe_io_uring, start,
};

/// Light tasks: futures on the server's own workers. Task handlers are light tasks, and may start
/// others.
pub mod task {
    pub use gustnado_tasks::{
        Closed, Dump, Either, Either3, Group, JoinError, JoinHandle, Receiver, RecvTimeoutError,
        SendTimeoutError, Sender, Sleep, SpawnError, Spawner, TaskInfo, TaskState, TryRecvError,
        TrySendError, WaitsOn, block_on, charge_step, dump, mailbox, select_all, select2, select3,
        sleep, spawn, spawn_detached, spawn_named, timeout, yield_now,
    };
}

/// A worker on the thread of a loop of the program's: see [`Server::start_driven`].
pub mod driven {
    pub use gustnado_tasks::{Driven, ReactorWaker, Turned, Wants, WatchEvent};
}

/// `WebSocket`s: see [`websocket()`](websocket::websocket).
pub mod websocket {
    #[doc(inline)]
    pub use gustnado_ws::{
        CloseCode, CloseFrame, DeflateOptions, MessageKind, MessagePiece, OpenError, Origins,
        RecvResult, SendError, SlowPeer, Subscription, Topic, Violation, WebSocket,
        WebSocketAcceptor, WebSocketEndpoint, WebSocketError, WebSocketMessage, WebSocketOffer,
        WebSocketReceiver, WebSocketRequest, WebSocketSender, websocket,
    };
}

/// Served folders.
pub mod files {
    pub use gustnado_files::{
        FileFailures, FileOptions, Files, FilesError, LookedUpFile, LookupReason, LookupStep,
        LookupTrace, TriedEntry,
    };
}

/// Result of starting a server.
pub type Result<T> = std::result::Result<T, StartError>;

gustnado_tasks::debug_as_display!(StartError, UserError, test::TestError);
