//! The HTTP client of the library, against our own server and against scripts.

#[macro_use]
#[path = "../harness/mod.rs"]
mod harness;

mod connections;
mod messages;
mod script;
