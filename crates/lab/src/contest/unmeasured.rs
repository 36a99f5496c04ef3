//! Reasons why a run has no result.

use super::file::ContenderSpec;
use crate::record::Fate;

/// The reason why a run has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unmeasured {
    /// The contest was stopped.
    Interrupted,
    /// The contender's fate.
    Fate(Fate),
}

/// Returns a failure with its reason.
pub(super) fn failed(why: impl Into<String>) -> Unmeasured {
    Unmeasured::Fate(Fate::Failed(why.into()))
}

/// Returns what is to be said of a contender whose program is missing.
pub(super) fn not_installed(contender: &ContenderSpec, found: &str) -> Unmeasured {
    let remedy = match contender.install.as_str() {
        "" => "install it, or correct the command in the file".to_owned(),
        install => format!("to install it: {install}"),
    };
    Unmeasured::Fate(Fate::NotInstalled(format!("{found}; {remedy}")))
}
