//! The subcommands of the lab: load generation and contests. Without the cargo feature `lab`, the
//! module `no_lab` with the same functions replaces this one.

use std::ffi::OsString;
use std::path::Path;

use clap::{ArgMatches, Command};

use crate::usage_error::UsageError;
use crate::{bench, contest};

/// The visible subcommands.
pub(crate) const NAMES: &[&str] = &["bench", "contest"];

/// A subcommand of the lab.
#[derive(Debug)]
pub(crate) enum LabSubcommand {
    /// Loads a server, or merges results.
    Bench(bench::BenchSubcommand),
    /// Measures servers side by side.
    Contest(Box<contest::arguments::ContestSubcommand>),
    /// Becomes a server of a contest: the parent process and the command.
    ContestMember(i32, Vec<OsString>),
}

/// Returns the subcommands with their flags.
pub(crate) fn commands() -> Vec<Command> {
    vec![bench::command(), contest::arguments::command(), contest::arguments::member()]
}

/// Returns whether this is a subcommand of the lab, hidden or not.
pub(crate) fn is_command(word: &str) -> bool {
    NAMES.contains(&word) || word == "contest-member"
}

/// Returns the error of a first word that names an absent subcommand; here, never.
pub(crate) fn usage_error_of(_: &str) -> Option<UsageError> {
    None
}

/// Reads the flags of the subcommand `name`; `None` if it is not the lab's.
///
/// # Errors
/// The first mistake, in one line.
pub(crate) fn read(name: &str, flags: &ArgMatches) -> Option<Result<LabSubcommand, UsageError>> {
    match name {
        "bench" => Some(bench::read(flags).map(LabSubcommand::Bench)),
        "contest" => Some(Ok(LabSubcommand::Contest(Box::new(contest::arguments::read(flags))))),
        "contest-member" => {
            let (parent, words) = contest::arguments::read_member(flags);
            Some(Ok(LabSubcommand::ContestMember(parent, words)))
        }
        _ => None,
    }
}

/// Runs the subcommand and returns the exit code.
///
/// - `program`: the path of the command, which a contest starts as load generator.
pub(crate) fn run(subcommand: LabSubcommand, program: &Path) -> u8 {
    match subcommand {
        LabSubcommand::Bench(subcommand) => bench::run(subcommand),
        LabSubcommand::Contest(options) => contest::run(*options, program),
        LabSubcommand::ContestMember(parent, words) => contest::member::run((parent, words)),
    }
}
