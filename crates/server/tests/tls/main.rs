//! HTTPS as clients see it: handshakes, requests, files and bodies over TLS, and what is refused.

#[macro_use]
#[path = "../harness/mod.rs"]
mod harness;

mod access_log;
mod authority;
mod client;
mod handshakes;
mod plain;
mod renewal;
mod requests;
mod sites;
mod tunnels;
