//! Why an operation on a connection fails.

use std::fmt;
use std::io;

/// The reason why an operation on a connection did not come to its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The connection's deadline has come.
    TimedOut,
    /// The server is ending.
    Ending,
    /// Others wait for a connection, and this one may be idle for long. It can be used on.
    GiveWay,
    /// Memory is short, and of all connections this one holds the most for the longest.
    Cut,
    /// The peer has gone, or the network failed.
    Broken(io::Error),
    /// A file is shorter than it was said to be; part of it has been sent.
    FileTruncated,
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("the deadline has come"),
            Self::Ending => f.write_str("the server is ending"),
            Self::GiveWay => f.write_str("other connections wait for this one's slot"),
            Self::Cut => f.write_str("memory is short"),
            Self::Broken(_) => f.write_str("the connection broke"),
            Self::FileTruncated => f.write_str("the file became shorter while it was sent"),
        }
    }
}

impl std::error::Error for ConnectionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Broken(error) => Some(error),
            _ => None,
        }
    }
}
