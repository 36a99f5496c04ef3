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
pub mod config;
mod conn;
pub mod default_site;
pub mod files;
pub mod reply;
mod server;
mod stats;

pub use app::Handler;
pub use gustnado_tasks::Endpoint;
pub use server::{DrainReport, Running, StartError, probe_io_uring, start, start_with};
pub use stats::Stats;
