//! Errors of settings: one line each.

use super::origin::Origin;
use std::fmt;

/// The error of a setting that cannot be used. `Display` is one line: where, expected, found,
/// remedy.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// No setting has this name.
    Unknown {
        /// The name as given.
        name: String,
        /// The name that was probably meant.
        nearest: Option<&'static str>,
    },
    /// The value is not one that this setting takes.
    Value {
        /// Who gave the value.
        origin: Origin,
        /// What the setting takes.
        expected: String,
        /// What was given, shortened to 60 characters.
        found: String,
        /// What to do, ready to be read after a semicolon.
        remedy: String,
    },
}

impl ConfigError {
    /// Returns the process exit code: 2 (usage) for a flag, 78 (`EX_CONFIG`) for what is set
    /// elsewhere.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Value { origin: Origin::Environment(_) | Origin::File { .. }, .. } => 78,
            Self::Unknown { .. } | Self::Value { .. } => 2,
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, nearest: Some(nearest) } => {
                write!(formatter, "no setting is called {name:?}; did you mean {nearest:?}?")
            }
            Self::Unknown { name, nearest: None } => {
                write!(formatter, "no setting is called {name:?}; `gustnado tuning` lists them all")
            }
            Self::Value { origin, expected, found, remedy } => {
                write!(
                    formatter,
                    "{}: expected {expected}, found {found:?}; {remedy}",
                    origin.place()
                )
            }
        }
    }
}

impl std::error::Error for ConfigError {}
