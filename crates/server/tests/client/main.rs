//! The HTTP client of the library, against our own server and against scripts.

#[macro_use]
#[path = "../harness/mod.rs"]
mod harness;

mod connections;
mod http2;
mod messages;
mod script;
mod websocket;
