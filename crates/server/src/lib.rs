//! Gustnado: a very small, very fast, highly tunable HTTP server, as a library.
//!
//! ```no_run
//! use gustnado::{Request, Response, Server, blocking};
//!
//! fn main() -> gustnado::Result<()> {
//!     Server::new()
//!         // Inline: it runs on the worker.
//!         .get("/hello", |_: &Request| "Hello, world!")
//!         // A light task: it streams back what comes, piece by piece.
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
//! [`Server`] says what is served, and has a method for every setting of [`config`]. What is
//! running is [`Running`]: it can be asked for figures, changed, drained and stopped.
//!
//! A request comes in through [`gustnado_tasks`], is read by [`gustnado_http`], answered by a
//! handler or a [folder](files), and leaves the way it came. The
//! crate-private `conn` is the hub that everything returns to.
#![forbid(unsafe_code)]

mod access_log;
mod app;
mod body;
mod body_channel;
mod build_context;
mod builder;
pub mod config;
mod conn;
mod contained;
#[cfg(doctest)]
mod documents;
mod error_page;
mod fields;
pub mod forms;
mod handler;
mod hooks;
#[cfg(feature = "json")]
mod json;
mod middleware;
mod pace;
mod process;
mod proxies;
mod request;
mod request_head;
mod response;
mod route_cache;
mod route_options;
mod route_pace;
mod routes;
mod server;
mod server_stats;
pub mod site;
mod stats;
mod stats_page;
mod status_page;
pub mod test;
#[cfg(feature = "tower")]
mod tokio_runtime;
#[cfg(feature = "tower")]
mod tower;
mod tunnel;

pub use access_log::FormatError;
#[doc(hidden)]
pub use access_log::unblocked_terminal;
pub use body::{Body, BodyError};
pub use builder::Server;
pub use bytes::Bytes;
#[doc(inline)]
pub use gustnado_client as client;
pub use gustnado_http::fields::FieldError;
pub use gustnado_http::head::Version;
pub use gustnado_http::method::Method;
pub use gustnado_http::status::Status;
pub use gustnado_tasks::{DrainReport, Endpoint};
#[doc(inline)]
pub use gustnado_tcp as protocol;
#[doc(hidden)]
pub use handler::by_length;
pub use handler::{Blocking, Handler, IntoHandler, blocking, form};
pub use hooks::{ClosedConnection, Limit, Refused, Struck, Verdict};
#[cfg(feature = "json")]
pub use json::{JsonError, QueryError};
pub use middleware::{Flow, Middleware, Next};
pub use request::{Cookies, Pairs, ParamError, Request, percent_decoded};
pub use response::{
    AppendError, Appender, Event, ForeignHead, IntoResponse, Replier, Reply, Response, Sent,
    reply_later,
};
#[doc(hidden)]
pub use routes::canonical_route;
pub use routes::{Route, RouteError, Routes, route};
pub use server::{Drain, IntoListener, Reloaded, Running, StartError, probe_io_uring, start};
#[doc(hidden)]
pub use stats::counters_reference;
pub use stats::{Stats, WorkerStats};
pub use stats_page::stats_page;
#[cfg(feature = "tower")]
pub use tower::{ClientInfo, ServiceError, Tower, tower};
pub use tunnel::{Tunnel, TunnelError};

/// Light tasks: futures on the server's own workers. Handlers of the task kind are some, and may
/// start others.
pub mod task {
    pub use gustnado_tasks::{
        Closed, Dump, Either, Either3, Group, JoinError, JoinHandle, Receiver, RecvTimeoutError,
        SendTimeoutError, Sender, Sleep, SpawnError, Spawner, TaskInfo, TaskState, TryRecvError,
        TrySendError, WaitsOn, block_on, charge_step, dump, mailbox, select_all, select2, select3,
        sleep, spawn, spawn_detached, spawn_named, timeout, yield_now,
    };
}

/// A worker on the thread of a loop that is not the server's: see [`Server::start_driven`].
pub mod driven {
    pub use gustnado_tasks::{Alert, Driven, Ready, Turned, Wants};
}

/// Folders as they are served.
pub mod files {
    pub use gustnado_files::{FileFailures, FileOptions, Files, FilesError};
}

/// What starting a server comes to.
pub type Result<T> = std::result::Result<T, StartError>;

gustnado_tasks::debug_as_display!(
    StartError,
    RouteError,
    FormatError,
    BodyError,
    ParamError,
    AppendError,
    TunnelError,
    forms::FormError,
    test::TestError,
);
#[cfg(feature = "json")]
gustnado_tasks::debug_as_display!(JsonError, QueryError);
