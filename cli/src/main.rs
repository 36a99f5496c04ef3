//! The gustnado command.
#![forbid(unsafe_code)]
fn main() {}
