//! Ring and epoll complete alike: each behaviour over real sockets, once on each backend.

#![forbid(unsafe_code)]

#[macro_use]
mod harness;

mod accepting;
mod addrs;
mod bytes;
mod closing;
mod connecting;
mod endpoints;
mod files;
mod handles;
mod large;
mod waking;
mod wheel;
