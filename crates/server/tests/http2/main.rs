//! HTTP/2 as clients see it, frame by frame (RFC 9113): requests and answers, windows, urgencies,
//! bodies, errors, floods, and how a connection ends.

#[macro_use]
#[path = "../harness/mod.rs"]
mod harness;

mod bodies;
mod ending;
mod errors;
mod floods;
mod handlers;
mod heads;
mod hints;
mod limits;
mod logs;
mod memory;
mod opening;
mod pace;
mod pings;
mod places;
mod requests;
mod slow_line;
mod trailers;
mod tunnel_ends;
mod tunnel_memory;
mod tunnels;
mod urgencies;
mod windows;

use gustnado::config::Config;
use harness::{Folder, Setup};

/// A server that takes HTTP/2 in clear, with times that only a test strikes.
fn in_clear(setup: Setup) -> Config {
    Config { h2c: true, ..setup.patient_config() }
}

/// The same with a folder.
fn of_folder(setup: Setup, folder: &Folder) -> Config {
    Config { root: Some(folder.root()), ..in_clear(setup) }
}
