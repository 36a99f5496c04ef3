//! HTTP/1.1 as clients see it: messages, bodies, connections that live on or end, and their times.

#[macro_use]
#[path = "../harness/mod.rs"]
mod harness;

mod bodies;
mod compressed;
mod concurrency;
mod fault;
mod half_close;
mod keep_alive;
mod large_bodies;
mod pipelining;
mod posts;
mod probe;
mod requests;
mod route_times;
mod spooled_bodies;
mod streams;
mod timeouts;
mod trailers;
mod upgrades;
