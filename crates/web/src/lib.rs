//! Requests and responses as programs see them, and the way from one to the other: routes,
//! middleware, handlers.
//!
//! What lives here: [`Request`](request::Request) and [`Response`](response::Response) with their
//! bodies and forms, the tables that find a handler (`routes`), and `middleware` around it. What
//! does not: bytes on a connection, which a protocol's crate writes.
//!
//! A part of `gustnado`, without a stable API of its own.
#![forbid(unsafe_code)]
#![doc(hidden)]

pub mod admission;
pub mod body;
pub mod body_channel;
pub mod build_context;
mod compression;
pub mod disk_job;
pub mod encoders;
pub mod error_page;
pub mod fields;
pub mod forms;
pub mod handler;
pub mod handler_limits;
#[cfg(feature = "json")]
pub mod json;
#[doc(hidden)]
pub mod lookup;
pub mod metrics_page;
pub mod middleware;
pub mod page_guard;
pub mod preload;
pub mod prepared;
pub mod request;
pub mod request_head;
pub mod response;
pub mod route_cache;
pub mod route_options;
pub mod route_pace;
pub mod routes;
pub mod server_context;
pub mod spool;
pub mod stats_page;
#[cfg(feature = "tower")]
pub mod tokio_runtime;
#[cfg(feature = "tower")]
pub mod tower;
pub mod trailers;
pub mod trusted_proxies;
pub mod tunnel;
pub mod uploads;

gustnado_tasks::debug_as_display!(
    routes::RouteError,
    body::BodyError,
    request::ParamError,
    response::AppendError,
    tunnel::TunnelError,
    forms::FormError,
);
#[cfg(feature = "json")]
gustnado_tasks::debug_as_display!(json::JsonError, json::QueryError);
