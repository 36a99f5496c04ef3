//! The origin of a setting's value.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// No layer gave one.
    Default,
    /// A line of a configuration file.
    File {
        /// The file as it was named.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Variables of the environment whose values are in it (`${NAME}`).
        variables: Arc<[String]>,
    },
    /// The environment variable of this name.
    Environment(String),
    /// The flag or argument of this name.
    Flag(String),
}

impl Origin {
    /// Returns the name alone, as a message begins with it.
    pub(super) fn place(&self) -> Cow<'_, str> {
        match self {
            Self::Default => "default".into(),
            Self::File { path, line, .. } => format!("{}:{line}", path.display()).into(),
            Self::Environment(name) | Self::Flag(name) => name.into(),
        }
    }

    /// Returns its rank: the higher one takes precedence.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::Default => 0,
            Self::File { .. } => 1,
            Self::Environment(_) => 2,
            Self::Flag(_) => 3,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::File { variables, .. } => {
                write!(formatter, "file {}", self.place())?;
                variables.iter().try_for_each(|name| write!(formatter, ", environment {name}"))
            }
            Self::Environment(name) => write!(formatter, "environment {name}"),
            Self::Flag(name) if name.starts_with("--") => write!(formatter, "flag {name}"),
            Self::Flag(name) => write!(formatter, "argument {name}"),
        }
    }
}
