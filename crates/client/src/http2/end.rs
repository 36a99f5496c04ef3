//! Why a connection has ended.

use std::io;

use gustnado_http::h2::{ErrorCode, H2Error};

/// Why a connection has ended.
#[derive(Clone, Debug)]
pub(crate) enum ConnectionEnd {
    /// The server has closed it.
    Closed,
    /// The kernel's error.
    Broken(io::ErrorKind, String),
    /// The server has broken a rule.
    Protocol(H2Error),
    /// The server has said so, with a code.
    GoAway(ErrorCode),
    /// The worker is ending.
    Ending,
}
