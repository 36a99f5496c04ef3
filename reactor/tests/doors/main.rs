//! Ring and epoll complete alike: each behaviour over real sockets, once through each door.

#[macro_use]
mod door;

mod accepting;
mod bytes;
mod closing;
mod connecting;
mod endpoints;
mod files;
mod names;
mod waking;
mod wheel;
