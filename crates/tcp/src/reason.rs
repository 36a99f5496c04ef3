//! The reason that a connection ended.

use std::fmt;
use std::io;

/// The reason that a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The peer closed it in order.
    Done,
    /// This side closed it in order, with all it had written on its way.
    Closed,
    /// The peer reset it, or the network failed: what was written last may not have arrived.
    Lost(io::ErrorKind),
    /// This side gave it up, with what was pending.
    Aborted,
    /// Nothing moved for too long.
    TimedOut,
    /// This side wrote more than may be pending; the connection was given up.
    Overrun,
    /// A callback panicked.
    Panicked,
    /// The engine stops.
    Ended,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("the peer closed the connection"),
            Self::Closed => f.write_str("this side closed the connection"),
            Self::Lost(kind) => write!(f, "the connection was lost: {kind}"),
            Self::Aborted => f.write_str("this side gave the connection up"),
            Self::TimedOut => f.write_str("nothing moved for too long"),
            Self::Overrun => f.write_str("more was written than may be pending"),
            Self::Panicked => f.write_str("a callback panicked"),
            Self::Ended => f.write_str("the engine stops"),
        }
    }
}
