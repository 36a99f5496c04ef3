//! How a handshake ended that did not succeed, as it is counted.

/// How a handshake ended that did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeFailure {
    /// The client speaks plain HTTP, and can be told so in plain HTTP.
    Plain,
    /// What the client sent was refused: it was told by an alert, or spoke no TLS.
    Refused(HandshakeRefusal),
    /// The time was over.
    Slow,
    /// It was the oldest one of too many.
    Evicted,
    /// The client closed, or the connection was lost.
    Lost,
}

/// Why a handshake was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeRefusal {
    /// The first bytes are neither TLS nor HTTP.
    NotTls,
    /// No site has the name that the client asks for.
    UnknownName,
    /// There is no version, cipher, group or protocol that both have.
    Incompatible,
    /// The client has no certificate where one is required, or a wrong one.
    ClientCertificate,
    /// The client ended it by an alert: most of them do not trust the server's certificate.
    Alert,
    /// Anything else: messages that are malformed, too long, or come out of order.
    Malformed,
}
