//! Why an operation fails.

use std::io;

use gustnado_http::websocket::Violation;
use gustnado_web::tunnel::TunnelError;
use thiserror::Error;

/// Why nothing more is received.
#[derive(Error)]
#[non_exhaustive]
pub enum WebSocketError {
    /// The peer has broken a rule or a limit. It was told so: the close frame has the code.
    #[error("the peer was refused: {0}")]
    Violation(Violation),
    /// The peer answers no ping, or takes nothing.
    #[error("the peer is silent for too long")]
    TimedOut,
    /// The connection has ended without a close frame.
    #[error("the connection has ended without a close frame")]
    Lost(#[source] Option<io::Error>),
}

/// Why a message is not sent.
#[derive(Clone, Copy, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// The WebSocket is closed, or about to be.
    #[error("the WebSocket is closed")]
    Closed,
    /// More is waiting to be sent than may wait.
    #[error("the peer takes messages more slowly than they are sent")]
    Full,
}

impl From<TunnelError> for WebSocketError {
    fn from(error: TunnelError) -> Self {
        match error {
            TunnelError::TimedOut => Self::TimedOut,
            TunnelError::Broken(error) => Self::Lost(Some(error)),
            _ => Self::Lost(None),
        }
    }
}

gustnado_tasks::debug_as_display!(WebSocketError, SendError);
