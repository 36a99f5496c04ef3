//! What all connections of a server share: the routes in force, limits, times, hooks, pace, drain
//! and reload.
//!
//! What lives here: [`App`](app::App), which a connection holds, and how another one takes its
//! place. What does not: the loop of a connection.
//!
//! A part of `gustnado`, which promises nothing of its own.
#![forbid(unsafe_code)]
#![doc(hidden)]

pub mod app;
pub mod hooks;
pub mod pace;
