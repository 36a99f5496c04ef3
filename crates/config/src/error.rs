//! Errors of settings: one line each.

use super::origin::Origin;
use thiserror::Error;

/// The error of a setting that cannot be used. `Display` is one line: where, expected, found,
/// remedy.
#[derive(Clone, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// No setting has this name.
    #[error("no setting is called {name:?}; {}", remedy(*.nearest))]
    Unknown {
        /// The name as given.
        name: String,
        /// The name that was probably meant.
        nearest: Option<&'static str>,
    },
    /// A site or a route cannot have this setting.
    #[error("{name:?} is the server's alone: a route has none of its own; set it for the server")]
    NotOfRoute {
        /// The setting's name.
        name: &'static str,
    },
    /// The value is not one that this setting takes.
    #[error("{}: expected {expected}, found {found:?}; {remedy}", .origin.place())]
    Value {
        /// The origin of the value.
        origin: Origin,
        /// Description of the values that the setting takes.
        expected: String,
        /// The value as given, shortened to 60 characters.
        found: String,
        /// The remedy, ready to be read after a semicolon.
        remedy: String,
    },
}

impl ConfigError {
    /// Returns the process exit code: 2 (usage) for a flag, 78 (`EX_CONFIG`) for what is set
    /// elsewhere.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Value { origin: Origin::Environment(_) | Origin::File { .. }, .. } => 78,
            Self::Unknown { .. } | Self::NotOfRoute { .. } | Self::Value { .. } => 2,
        }
    }
}

fn remedy(nearest: Option<&str>) -> String {
    match nearest {
        Some(nearest) => format!("did you mean {nearest:?}?"),
        None => "`gustnado tuning` lists them all".to_owned(),
    }
}
