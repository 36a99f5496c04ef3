//! Gustnado: a very small, very fast, highly tunable HTTP server, as a library.
//!
//! ```no_run
//! use gustnado::config::Config;
//!
//! let config = Config { root: Some("./public".into()), port: 8080, ..Config::default() };
//! let server = gustnado::start(config).expect("the port is free and the folder is there");
//! println!("serving at {}", server.addresses()[0]);
//! let report = server.drain(std::time::Duration::from_secs(10));
//! println!("{} connections had to be cut", report.cut);
//! ```
//!
//! A request comes in through [`gustnado_tasks`], is read by [`gustnado_http`], answered by the
//! site (a [folder](files) or the [built-in page](default_site)), and leaves the way it came. The
//! crate-private `conn` is the hub that everything returns to.
#![forbid(unsafe_code)]

mod app;
mod body;
mod builder;
mod chain;
pub mod client;
pub mod config;
mod conn;
pub mod default_site;
mod fields;
pub mod files;
pub mod forms;
mod handler;
mod hooks;
mod pace;
pub mod protocol;
pub mod reply;
mod request;
mod response;
mod routes;
mod server;
pub mod site;
mod stats;
pub mod test;
#[cfg(feature = "tower")]
mod tower;

pub use body::{Body, BodyError};
pub use builder::Server;
pub use bytes::Bytes;
pub use chain::{Flow, Link, Next};
pub use gustnado_http::answer::FieldError;
pub use gustnado_http::head::Version;
pub use gustnado_http::method::Method;
pub use gustnado_http::status::Status;
pub use gustnado_tasks::Endpoint;
pub use handler::{Blocking, Handler, IntoHandler, blocking, form};
pub use hooks::{ClosedConnection, Limit, Struck, Verdict};
pub use request::{Cookies, Pairs, Request, percent_decoded};
pub use response::{AppendError, Appender, Event, IntoResponse, Response, Sent};
pub use routes::{Route, RouteError, Routes, route};
pub use server::{DrainReport, Reloaded, Running, StartError, probe_io_uring, start};
pub use stats::{Stats, WorkerStats, stats_page};
#[cfg(feature = "tower")]
pub use tower::{ServiceError, Tower, tower};

/// Light tasks: futures on the server's own workers. Handlers of the task kind are some, and may
/// start others.
pub mod task {
    pub use gustnado_tasks::{
        Closed, Dump, Either, Either3, Group, JoinError, JoinHandle, Receiver, RecvTimeoutError,
        SendTimeoutError, Sender, Sleep, SpawnError, Spawner, TaskInfo, TaskState, TryRecvError,
        TrySendError, WaitsOn, block_on, dump, mailbox, select_all, select2, select3, sleep, spawn,
        spawn_detached, spawn_named, timeout, yield_now,
    };
}

/// What starting a server comes to.
pub type Result<T> = std::result::Result<T, StartError>;
