//! HTTPS as clients see it: handshakes, requests, files and bodies over TLS, and what is refused.

#[macro_use]
#[path = "../harness/mod.rs"]
mod harness;

mod access_log;
mod authority;
#[cfg(feature = "acme")]
mod challenges;
mod client;
mod coalescing;
mod dictionaries;
mod handshakes;
mod own_client;
mod plain;
mod renewal;
mod requests;
mod sites;
mod tunnels;
