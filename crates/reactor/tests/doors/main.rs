//! Ring and epoll complete alike: each behaviour over real sockets, once through each door.

#![forbid(unsafe_code)]

#[macro_use]
mod door;

mod accepting;
mod bytes;
mod closing;
mod connecting;
mod endpoints;
mod files;
mod handles;
mod names;
mod waking;
mod wheel;
