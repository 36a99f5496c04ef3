//! Replaces `acme` in a build without that cargo feature: it obtains no certificates.

use crate::arguments::{AcmeAction, ServeOptions};
use crate::exit;
use crate::output::Console;

/// Says how to get it.
pub(crate) fn run(_: AcmeAction, _: &ServeOptions) -> u8 {
    let line = "acme: this build obtains no certificates; build it with the cargo feature `acme`";
    Console::new(false).error(line);
    exit::USAGE
}

/// Prints nothing.
pub(crate) fn print_status(_: &ServeOptions) {}
