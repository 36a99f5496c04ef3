//! The library inside a program: routes, handlers, forms, hooks, and the loop of somebody else.

#[macro_use]
#[path = "../harness/mod.rs"]
mod harness;

#[cfg(feature = "json")]
mod arena;
mod driven;
mod examples;
mod forms;
mod handlers;
mod hooks;
mod middleware;
mod peers;
mod program;
mod reading;
mod routes;
#[cfg(feature = "json")]
mod values;
