//! Both ends of compressed messages, for the fuzz target of them.

use gustnado_http::websocket::deflate::{DeflateAgreed, DeflateOptions};
use gustnado_http::websocket::reader::Role;

use crate::deflate::Deflate;

/// The longest message that either end takes.
pub const MESSAGE_BYTES_MAX: u64 = 10_000;

/// A server and a client that have agreed on compression.
pub struct DeflateEnds {
    server: Deflate,
    client: Deflate,
}

impl DeflateEnds {
    /// - `window_bits`: the largest window, 9 to 15.
    ///
    /// # Panics
    /// If they do not agree.
    pub fn new(keeps_context: bool, window_bits: u8) -> Self {
        let wanted = DeflateOptions { keeps_context, window_bits_max: window_bits };
        let offer = &b"permessage-deflate; client_max_window_bits"[..];
        let agreed = DeflateAgreed::choose([offer], wanted).expect("it can be met");
        Self {
            server: Deflate::new(agreed, Role::Server, 0),
            client: Deflate::new(agreed, Role::Client, 0),
        }
    }

    /// Compresses a message at the server; `None`: it would not be shorter.
    pub fn compress(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        self.server.compress(message)
    }

    /// Inflates it at the client.
    ///
    /// # Errors
    /// The code of the close frame.
    pub fn inflate_own(&mut self, message: &[u8]) -> Result<Vec<u8>, u16> {
        self.client.inflate(message, MESSAGE_BYTES_MAX).map_err(|violation| violation.code.0)
    }

    /// Inflates what a client has sent, at the server.
    ///
    /// # Errors
    /// As [`DeflateEnds::inflate_own`].
    pub fn inflate(&mut self, message: &[u8]) -> Result<Vec<u8>, u16> {
        self.server.inflate(message, MESSAGE_BYTES_MAX).map_err(|violation| violation.code.0)
    }
}
