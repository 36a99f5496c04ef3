//! HTTP/2 (RFC 9113), without I/O: frames, header compression, streams, windows, budgets.
//!
//! What lives here: the server's side of a connection ([`H2Connection`]), which takes bytes and the
//! time and gives events and bytes. It knows nothing of HTTP/1: a request's head is put together
//! from its fields, and a response's head is encoded from its own. What does not: what is done
//! about a request, and when.

mod budget;
mod connection;
mod error;
pub mod frame;
pub mod hpack;
mod priority;
mod request_head;
mod stream;
#[cfg(test)]
mod tests;

pub use budget::GlitchLimits;
pub use connection::{H2Connection, H2Event, H2Limits, H2Scratch, Step};
pub use error::{ErrorCode, Flood, H2Error};
pub use priority::Priority;
pub use stream::{Stream, StreamId};
