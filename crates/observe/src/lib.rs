//! The outside view of a server: its counters, its exchanges and its access log.
//!
//! What lives here: every counter, declared once (`stats`), the record of a request and what has
//! left of its response (`exchange`), the log's lines (`access_log`), and the interface of pages
//! about the server (`server_stats`). What does not: the pages themselves, which
//! are handlers.
//!
//! A part of `gustnado`, without a stable API of its own.
#![forbid(unsafe_code)]
#![doc(hidden)]

pub mod access_log;
pub mod certificate_end;
pub mod exchange;
pub mod last_reload;
pub mod process;
pub mod server_stats;
pub mod stats;

gustnado_tasks::debug_as_display!(access_log::FormatError);
