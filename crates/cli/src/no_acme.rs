//! Replaces `acme` in a build without that cargo feature: there is no such subcommand.

// No value of the type exists.
pub(crate) use std::convert::Infallible as AcmeAction;

use clap::{ArgMatches, Command};

use crate::arguments::ServeOptions;

/// Returns no subcommand, so help names none.
pub(crate) fn command() -> Option<Command> {
    None
}

/// Returns `None`: no subcommand is this one.
pub(crate) fn read<'a>(_: &str, _: &'a ArgMatches) -> Option<(AcmeAction, &'a ArgMatches)> {
    None
}

/// Never called.
pub(crate) fn run(action: AcmeAction, _: &ServeOptions) -> u8 {
    match action {}
}

/// Prints nothing: no certificate is obtained.
pub(crate) fn print_status(_: &ServeOptions) {}
