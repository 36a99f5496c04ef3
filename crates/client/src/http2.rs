//! Requests by HTTP/2: many on one connection.
//!
//! A connection is driven by a task of its own on the worker that made it. Requests write into what
//! it sends next and wait for what it receives, under one lock; each stream has another one for
//! what has come of its response. A request is never polled by the driver, so a slow caller holds
//! nothing but its window.

mod connection;
mod driver;
mod exchange;
mod pool;
mod slot;

pub(super) use connection::Http2Connection;
pub(super) use driver::start;
pub(super) use exchange::{Http2Exchange, Http2Head};
pub(super) use pool::{Http2Pool, Place};

/// How a client uses HTTP/2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Http2Use {
    /// Never.
    Never,
    /// With servers that choose it by ALPN (RFC 9113 §3.2), which needs https. Others are asked by
    /// HTTP/1.1.
    #[default]
    ByAlpn,
    /// Always: https servers have to choose it, and http ones are known to speak it (prior
    /// knowledge, RFC 9113 §3.3).
    Always,
}

/// The name of HTTP/2 in ALPN.
#[cfg(feature = "tls")]
pub(super) const H2: &[u8] = b"h2";
