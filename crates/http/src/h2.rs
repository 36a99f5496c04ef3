//! HTTP/2 (RFC 9113), without I/O: frames, header compression, streams, windows, budgets.
//!
//! What lives here: the server's side of a connection ([`H2Connection`]) and the client's
//! ([`H2Client`]), which take bytes and the time and give events and bytes. They know nothing of
//! HTTP/1: a head is put together from its fields, and encoded from its own. What does not: what is
//! done about a request, and when.

mod budget;
mod client;
mod connection;
mod error;
mod flow;
pub mod frame;
pub mod hpack;
mod incoming;
mod outgoing;
mod payloads;
mod priority;
mod request_head;
mod stream;
#[cfg(test)]
mod tests;

pub use budget::GlitchLimits;
pub use client::{ClientStream, H2Client, H2ClientEvent, H2ClientLimits, PreparedBlock};
pub use connection::{H2Connection, H2Event, H2Limits, H2Scratch, Step};
pub use error::{ErrorCode, Flood, H2Error};
pub use frame::{FRAME_HEADER_BYTES, StreamId};
pub use priority::Priority;
pub use request_head::HeadLimit;
pub use stream::Stream;
