//! HTTP/1.x bytes to messages and back (RFC 9110, RFC 9112), without I/O.
//!
//! What lives here: the request head ([`head`], seen through [`request`]), the request body
//! ([`body`]), the answer ([`answer`], [`chunk`]) and the words they are made of. What does not:
//! sockets, clocks, threads, files. Every decoder takes bytes and returns a verdict; "need more" is
//! a verdict and not an error.
#![forbid(unsafe_code)]

pub mod answer;
pub mod body;
pub mod chunk;
pub mod date;
pub mod etag;
pub mod head;
pub mod limits;
pub mod method;
pub mod precondition;
pub mod range;
pub mod request;
pub mod status;
mod syntax;
mod target;
