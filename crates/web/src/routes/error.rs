//! Errors of routes.

use gustnado_access::AccessError;
use gustnado_http::fields::FieldError;

use gustnado_files::FilesError;
use thiserror::Error;

/// Error of routes that cannot be served. `Display` is one line: problem, place, remedy.
#[derive(Error)]
#[non_exhaustive]
pub enum RouteError {
    /// Two paths would match the same requests.
    #[error("the routes {path} and {with} match the same requests; change one of them")]
    Conflict {
        /// The later one.
        path: String,
        /// The earlier one.
        with: String,
    },
    /// A path has two handlers for one method.
    #[error("the route {path} has two handlers for {method}; remove one of them")]
    Repeated {
        /// The path.
        path: String,
        /// The method.
        method: &'static str,
    },
    /// Two routes of a path have different paces.
    #[error("the route {path} has two different paces; set one for all its methods")]
    PaceRepeated {
        /// The path.
        path: String,
    },
    /// Two routes of a path have different limits of handlers.
    #[error("the route {path} has two different limits; set one for all its methods")]
    LimitRepeated {
        /// The path.
        path: String,
    },
    /// A path is not well formed.
    #[error("the route {path:?} is malformed ({reason}); expected /exact, /{{name}} or /{{*rest}}")]
    Malformed {
        /// The path.
        path: String,
        /// The problem.
        reason: String,
    },
    /// The path of a folder has named parts.
    #[error(
        "the folder {path:?} has named parts in its path; give it a path such as /static, beneath \
         which it has all"
    )]
    NamedFolder {
        /// The path.
        path: String,
    },
    /// A host is named twice.
    #[error("the host {host} has two sites; merge their routes")]
    HostRepeated {
        /// Its name.
        host: String,
    },
    /// A handler needs whole bodies, but the policy is to keep none.
    #[error(
        "the route {path} keeps no bodies (body policy stream), but its handler for {method} needs \
         them whole; make it a task that reads them in pieces, or choose memory or spool"
    )]
    NeedsWholeBody {
        /// The path.
        path: String,
        /// The method.
        method: &'static str,
    },
    /// A folder cannot be served.
    #[error("{0}")]
    Folder(FilesError),
    /// The runtime for the services of tower cannot be started.
    #[cfg(feature = "tower")]
    #[error(
        "the tokio runtime for services cannot be started ({error}); raise the limit that the \
         error names, or pass a runtime to `on_tokio`"
    )]
    Tokio {
        /// The system's error.
        error: std::io::Error,
    },
    /// What a page needs cannot be named so.
    #[error("the route {path} has a preload {link:?} that is none: {reason}")]
    Preload {
        /// The route's path.
        path: String,
        /// The link.
        link: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// What routes ask of their clients cannot be asked.
    #[error("{0}")]
    Access(AccessError),
    /// A header field cannot be sent.
    #[error("the header field {name:?} cannot be sent: {error}; change it")]
    Field {
        /// Its name.
        name: String,
        /// The cause.
        error: FieldError,
    },
}
