//! How a handshake ended that did not succeed, as it is counted.

/// How a handshake ended that did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeFailure {
    /// The client speaks plain HTTP, and can be told so in plain HTTP.
    Plain,
    /// What the client sent was refused: it was told by an alert, or spoke no TLS.
    Refused,
    /// The time was over.
    Slow,
    /// It was the oldest one of too many.
    Evicted,
    /// The client closed, or the connection was lost.
    Lost,
}
