//! Requests by HTTP/2: many on one connection.
//!
//! A connection is driven by a task of its own on the worker that made it. Requests write into what
//! it sends next and wait for what it receives, under one lock; each stream has another one for
//! what has come of its response. A request is never polled by the driver, so a slow caller holds
//! nothing but its window.

mod connection;
mod driver;
mod end;
mod exchange;
mod pool;
mod slot;

pub(super) use connection::Http2Connection;
pub(super) use driver::start;
pub(super) use exchange::{Http2Exchange, Http2Head};
pub(super) use pool::{Http2Pool, Place};
