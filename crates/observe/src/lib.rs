//! What is seen of a server from outside: its counters and its access log.
//!
//! What lives here: every counter, declared once (`stats`), what a page about the server asks of it
//! (`server_stats`), and the lines that are written of requests (`access_log`). What does not: the
//! pages themselves, which are handlers.
//!
//! A part of `gustnado`, which promises nothing of its own.
#![forbid(unsafe_code)]
#![doc(hidden)]

pub mod access_log;
pub mod process;
pub mod server_stats;
pub mod stats;

gustnado_tasks::debug_as_display!(access_log::FormatError);
