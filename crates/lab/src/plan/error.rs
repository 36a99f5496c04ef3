//! Errors of a plan.

use std::error::Error;
use std::fmt;
use std::io;

use gustnado_tls::ConnectorError;

/// A mistake in a plan, with its remedy.
#[derive(Debug)]
#[non_exhaustive]
pub enum PlanError {
    /// There is no request or no end, or a number is out of range.
    Wrong(String),
    /// A request that cannot be sent.
    Request {
        /// Its URL.
        url: String,
        /// The mistake.
        why: String,
    },
    /// A host that cannot be resolved.
    Unknown {
        /// Its name.
        host: String,
        /// The system's error.
        error: io::Error,
    },
    /// A host without an address of the sources' family.
    Family {
        /// Its name.
        host: String,
    },
    /// The settings of TLS are of no use.
    Tls(ConnectorError),
    /// More connections than local ports.
    Ports {
        /// Connections to one target.
        connections: u64,
        /// Local addresses that they need.
        sources: u64,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong(what) => f.write_str(what),
            Self::Request { url, why } => write!(f, "{url}: {why}"),
            Self::Unknown { host, error } => {
                write!(f, "the host {host} cannot be looked up: {error}")
            }
            Self::Family { host } => write!(
                f,
                "the host {host} has no address of the family of the source addresses; give \
                 sources of the other family, or another URL"
            ),
            Self::Tls(error) => error.fmt(f),
            Self::Ports { connections, sources } => write!(
                f,
                "{connections} connections to one address need {sources} local addresses, for \
                 each has a limited number of ports; on loopback use --source 127.0.0.0/24"
            ),
        }
    }
}

impl Error for PlanError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unknown { error, .. } => Some(error),
            _ => None,
        }
    }
}
