//! The subcommands of the lab: load generation and contests. A build without the cargo feature
//! `lab` has `no_lab` in this place, with the same functions.

use std::ffi::OsString;
use std::path::Path;

use clap::{ArgMatches, Command};

use crate::refusal::Refusal;
use crate::{bench, contest};

/// The names of the subcommands that a person may call.
pub(crate) const NAMES: &[&str] = &["bench", "contest"];

/// What a person asked of the lab.
#[derive(Debug)]
pub(crate) enum Order {
    /// Load a server, or merge what came of it.
    Bench(bench::Job),
    /// Measure servers side by side.
    Contest(Box<contest::arguments::Asked>),
    /// Become a server of a contest: who holds it, and the command.
    ContestMember(i32, Vec<OsString>),
}

/// Returns the subcommands with their flags.
pub(crate) fn commands() -> Vec<Command> {
    vec![bench::command(), contest::arguments::command(), contest::arguments::member()]
}

/// Whether this is a subcommand of the lab, hidden or not.
pub(crate) fn is_command(word: &str) -> bool {
    NAMES.contains(&word) || word == "contest-member"
}

/// Returns why a first word is refused that names a subcommand of the lab: here, never.
pub(crate) fn refuse(_: &str) -> Option<Refusal> {
    None
}

/// Reads the flags of the subcommand `name`; `None` if it is not the lab's.
///
/// # Errors
/// The first flag that is not understood, in one line.
pub(crate) fn read(name: &str, flags: &ArgMatches) -> Option<Result<Order, Refusal>> {
    match name {
        "bench" => Some(bench::read(flags).map(Order::Bench)),
        "contest" => Some(Ok(Order::Contest(Box::new(contest::arguments::read(flags))))),
        "contest-member" => {
            let (parent, words) = contest::arguments::read_member(flags);
            Some(Ok(Order::ContestMember(parent, words)))
        }
        _ => None,
    }
}

/// Does what was asked, and returns the exit code.
///
/// - `program`: the path of the command, which a contest starts as load generator.
pub(crate) fn run(order: Order, program: &Path) -> u8 {
    match order {
        Order::Bench(job) => bench::run(job),
        Order::Contest(asked) => contest::run(*asked, program),
        Order::ContestMember(parent, words) => contest::member::run((parent, words)),
    }
}
