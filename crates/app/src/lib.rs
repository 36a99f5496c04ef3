//! The state that all connections of a server share: the routes in force, limits, time-outs, hooks,
//! pace, drain and reload.
//!
//! What lives here: [`App`](app::App), which a connection holds, and its replacement by a reload.
//! What does not: the loop of a connection.
//!
//! A part of `gustnado`, without a stable API of its own.
#![forbid(unsafe_code)]
#![doc(hidden)]

pub mod app;
pub mod bodies;
pub mod client_key;
pub mod client_slots;
pub mod hooks;
pub mod pace;
