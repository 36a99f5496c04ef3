//! Errors of routes.

use std::fmt;

use gustnado_http::fields::FieldError;

use gustnado_files::FilesError;

/// Error of routes that cannot be served. `Display` is one line: problem, place, remedy.
#[non_exhaustive]
pub enum RouteError {
    /// Two paths would match the same requests.
    Conflict {
        /// The later one.
        path: String,
        /// The earlier one.
        with: String,
    },
    /// A path has two handlers for one method.
    Repeated {
        /// The path.
        path: String,
        /// The method.
        method: &'static str,
    },
    /// Two routes of a path have different paces.
    PaceRepeated {
        /// The path.
        path: String,
    },
    /// A path is not well formed.
    Malformed {
        /// The path.
        path: String,
        /// The problem.
        reason: String,
    },
    /// A host is named twice.
    HostRepeated {
        /// Its name.
        host: String,
    },
    /// A folder cannot be served.
    Folder(FilesError),
    /// The runtime for the services of tower cannot be started.
    #[cfg(feature = "tower")]
    Tokio {
        /// The system's error.
        error: std::io::Error,
    },
    /// A header field cannot be sent.
    Field {
        /// Its name.
        name: String,
        /// What is wrong with it.
        error: FieldError,
    },
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict { path, with } => write!(
                f,
                "the routes {path} and {with} match the same requests; change one of them"
            ),
            Self::Repeated { path, method } => {
                write!(f, "the route {path} has two handlers for {method}; remove one of them")
            }
            Self::PaceRepeated { path } => {
                write!(f, "the route {path} has two different paces; set one for all its methods")
            }
            Self::Malformed { path, reason } => write!(
                f,
                "the route {path:?} is malformed ({reason}); expected /exact, /{{name}} or /{{*rest}}"
            ),
            Self::HostRepeated { host } => {
                write!(f, "the host {host} has two sites; merge their routes")
            }
            Self::Folder(error) => error.fmt(f),
            #[cfg(feature = "tower")]
            Self::Tokio { error } => write!(
                f,
                "the tokio runtime for services cannot be started ({error}); raise the limit that \
                 the error names, or pass a runtime to `on_tokio`"
            ),
            Self::Field { name, error } => {
                write!(f, "the header field {name:?} cannot be sent: {error}; change it")
            }
        }
    }
}

impl std::error::Error for RouteError {}
