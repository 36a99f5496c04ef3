//! Why an operation fails.

use std::io;

use gustnado_client::ClientError;
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
    /// The peer answers no ping or no close frame, or takes nothing.
    #[error("the peer is silent for too long")]
    TimedOut,
    /// The connection has ended without a close frame.
    #[error("the connection has ended without a close frame")]
    Lost(#[source] Option<io::Error>),
}

/// Why a client's WebSocket is not opened.
#[derive(Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The request has got no response.
    #[error("the request for a WebSocket has failed")]
    Request(#[from] ClientError),
    /// The server has responded otherwise.
    #[error("the server opens no WebSocket: it has sent {status}")]
    Refused {
        /// The status.
        status: u16,
    },
    /// The response breaks a rule of the handshake.
    #[error("the server's handshake is none: {0}")]
    Handshake(&'static str),
    /// There was no response in time.
    #[error("the server has not responded in time")]
    TimedOut,
    /// The worker ends.
    #[error("the worker is ending")]
    Ending,
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

gustnado_tasks::debug_as_display!(OpenError, WebSocketError, SendError);
