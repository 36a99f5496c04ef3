//! Errors of mailboxes. Each error of sending gives the value back.

use std::fmt;

/// The receiver has gone, or has closed the mailbox: here is the value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Closed<T>(pub T);

impl<T> fmt::Debug for Closed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Closed")
    }
}

impl<T> fmt::Display for Closed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the mailbox is closed")
    }
}

impl<T> std::error::Error for Closed<T> {}

/// The error of a value that was not sent at once.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrySendError<T> {
    /// There is no room now, or others wait for it.
    Full(T),
    /// The receiver has gone, or has closed the mailbox.
    Closed(T),
}

impl<T> TrySendError<T> {
    /// Returns the value that was not sent.
    pub fn into_value(self) -> T {
        match self {
            Self::Full(value) | Self::Closed(value) => value,
        }
    }
}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full",
            Self::Closed(_) => "Closed",
        })
    }
}

impl<T> fmt::Display for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "the mailbox is full",
            Self::Closed(_) => "the mailbox is closed",
        })
    }
}

impl<T> std::error::Error for TrySendError<T> {}

/// The error of a value that was not sent in time.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendTimeoutError<T> {
    /// There was no room for as long as it was waited for.
    TimedOut(T),
    /// The receiver has gone, or has closed the mailbox.
    Closed(T),
}

impl<T> SendTimeoutError<T> {
    /// Returns the value that was not sent.
    pub fn into_value(self) -> T {
        match self {
            Self::TimedOut(value) | Self::Closed(value) => value,
        }
    }
}

impl<T> fmt::Debug for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut(_) => "TimedOut",
            Self::Closed(_) => "Closed",
        })
    }
}

impl<T> fmt::Display for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut(_) => "the mailbox stayed full",
            Self::Closed(_) => "the mailbox is closed",
        })
    }
}

impl<T> std::error::Error for SendTimeoutError<T> {}

/// The error of a mailbox without a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TryRecvError {
    /// There is none now.
    Empty,
    /// There will be none any more: all senders have gone, or the mailbox was closed.
    Closed,
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the mailbox is empty",
            Self::Closed => "the mailbox is empty and closed",
        })
    }
}

impl std::error::Error for TryRecvError {}

/// The error of a mailbox without a value in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecvTimeoutError {
    /// None came for as long as it was waited for.
    TimedOut,
    /// There will be none any more: all senders have gone, or the mailbox was closed.
    Closed,
}

impl fmt::Display for RecvTimeoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "the mailbox stayed empty",
            Self::Closed => "the mailbox is empty and closed",
        })
    }
}

impl std::error::Error for RecvTimeoutError {}
