//! What an operator sets and sees: addresses, configuration files, limits, logs, counters, the end.

#[macro_use]
#[path = "../harness/mod.rs"]
mod harness;

mod access;
mod access_flood;
mod access_log;
mod access_log_pace;
mod access_log_start;
mod body_limits;
mod burst;
mod client_limit;
mod descriptors;
mod eviction;
mod growing;
mod handler_kinds;
mod handler_limit;
mod header_rules;
mod held;
mod idle;
mod kernel_memory;
mod limits;
mod listeners;
mod pace;
mod proxies;
mod proxy_tlvs;
mod schedulers;
mod server_pages;
mod shutdown;
mod signed_urls;
mod site_file;
mod socket_tuning;
mod sockets;
mod statistics;
