//! Bytes of HTTP/1, HTTP/2 and WebSocket to messages and back, without I/O (RFC 9110, RFC 9112,
//! RFC 9113, RFC 7541, RFC 6455).
//!
//! What lives here: for a server, the request head ([`head`], seen through [`request`]), its body
//! ([`body`], [`multipart`]), what proxies say of it ([`forwarded`], [`proxy`]) and the response
//! ([`response_writer`], [`chunk`]); for a client, the request that it sends ([`request_writer`])
//! and the response that it reads ([`response`]); the list of fields that both make messages with
//! ([`fields`]); and the words they are made of. What does not: sockets, clocks, threads, files.
//! Every decoder takes bytes and returns a verdict; "need more" is a verdict and not an error.
#![forbid(unsafe_code)]

pub mod body;
pub mod chunk;
pub mod content_coding;
pub mod credentials;
pub mod date;
pub mod dictionary;
mod ends;
pub mod etag;
pub mod fields;
pub mod forwarded;
pub mod h2;
pub mod head;
pub mod hosts;
pub mod limits;
pub mod media_type;
pub mod method;
pub mod multipart;
pub mod path;
pub mod precondition;
pub mod proxy;
pub mod range;
pub mod request;
pub mod request_writer;
pub mod response;
pub mod response_writer;
pub mod status;
mod syntax;
mod target;
pub mod websocket;
