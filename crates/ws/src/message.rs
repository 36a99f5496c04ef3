//! What is received and sent.

use bytes::Bytes;
use gustnado_http::websocket::{CloseCode, MessageKind};

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebSocketMessage {
    /// A text.
    Text(String),
    /// Bytes.
    Binary(Vec<u8>),
}

impl WebSocketMessage {
    /// Returns what it is.
    pub fn kind(&self) -> MessageKind {
        match self {
            Self::Text(_) => MessageKind::Text,
            Self::Binary(_) => MessageKind::Binary,
        }
    }

    /// Returns its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Binary(bytes) => bytes,
        }
    }

    /// Returns its bytes, which are not copied.
    pub fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.into_bytes(),
            Self::Binary(bytes) => bytes,
        }
    }

    /// Returns its text, if it is one.
    pub fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }
}

impl From<&str> for WebSocketMessage {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for WebSocketMessage {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&[u8]> for WebSocketMessage {
    fn from(bytes: &[u8]) -> Self {
        Self::Binary(bytes.to_vec())
    }
}

impl From<Vec<u8>> for WebSocketMessage {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Binary(bytes)
    }
}

/// A piece of a message, which may be cut anywhere, also within a character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessagePiece {
    /// What the message is.
    pub kind: MessageKind,
    /// Its bytes; they may be none.
    pub bytes: Bytes,
    /// The message ends behind it.
    pub is_last: bool,
}

/// What a close frame says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloseFrame {
    /// The code; [`CloseCode::NO_STATUS`] if there was none, [`CloseCode::ABNORMAL`] if there was
    /// no close frame.
    pub code: CloseCode,
    /// A text for a log.
    pub reason: String,
}
