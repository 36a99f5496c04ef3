//! Replaces `lab` in a build without that cargo feature: refuses the lab's subcommands with a line
//! that says how to get them.

// This build has no subcommand of the lab, so no value of the type exists.
pub(crate) use std::convert::Infallible as LabSubcommand;
use std::path::Path;

use clap::{ArgMatches, Command};

use crate::usage_error::UsageError;

/// The subcommands of the lab in this build.
pub(crate) const NAMES: &[&str] = &[];

/// The subcommands of other builds.
const ABSENT: [&str; 3] = ["bench", "contest", "contest-member"];

/// Returns no subcommand, so help names none.
pub(crate) fn commands() -> Vec<Command> {
    Vec::new()
}

/// Returns whether this is a subcommand of the lab in this build: never.
pub(crate) fn is_command(_: &str) -> bool {
    false
}

/// Returns the error of a first word that names a subcommand of the lab.
pub(crate) fn usage_error_of(word: &str) -> Option<UsageError> {
    ABSENT.contains(&word).then(|| {
        UsageError::of_usage(format!(
            "{word}: this build has no lab (`bench` and `contest`); for it, in a clone of \
             Gustnado: `cargo install --path crates/cli`"
        ))
    })
}

/// Returns `None`: no subcommand is the lab's.
pub(crate) fn read(_: &str, _: &ArgMatches) -> Option<Result<LabSubcommand, UsageError>> {
    None
}

/// Never called.
pub(crate) fn run(subcommand: LabSubcommand, _: &Path) -> u8 {
    match subcommand {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subcommands_of_the_lab_say_how_to_get_them() {
        for word in ABSENT {
            let error = usage_error_of(word).expect("refused");
            assert_eq!(error.code, crate::exit::USAGE);
            assert!(error.line.starts_with(word), "{}", error.line);
            assert!(error.line.contains("cargo install --path crates/cli"), "{}", error.line);
        }
        assert!(usage_error_of("serve").is_none());
    }
}
