//! WebSocket frames and messages (RFC 6455), without I/O.
//!
//! [`MessageReader`] turns received bytes into pieces of messages and control frames, in place: a
//! connection that waits holds its few fields and no buffer. [`write()`] makes frames. What the
//! handshake negotiates about compression is in [`deflate`]; compressing itself is not here.

pub mod close;
pub mod deflate;
pub mod frame;
pub mod mask;
pub mod reader;
#[cfg(test)]
mod tests;
pub mod utf8;

pub use close::{CloseCode, CloseReason, Violation};
pub use frame::{Opcode, WebSocketHeader, write};
pub use reader::{MessageKind, MessageReader, ReadLimits, Role, WebSocketEvent, WebSocketPiece};
pub use utf8::Utf8Check;
