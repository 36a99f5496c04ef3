//! HTTP/1.x bytes to messages and back (RFC 9110, RFC 9112), without I/O.
#![forbid(unsafe_code)]
