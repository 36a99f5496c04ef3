//! Folders and files: what is found, what is said about it, and what stays out of reach.

#[macro_use]
#[path = "../harness/mod.rs"]
mod harness;

mod application;
mod archives;
mod codings;
mod compressed;
mod file_changes;
mod former_releases;
mod hostile_paths;
mod listings;
mod ranges;
mod serving;
mod tags;
mod targets;
mod uploads;
