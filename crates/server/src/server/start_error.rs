//! Errors at the start of a server.

use std::io;
use std::path::PathBuf;

use gustnado_tasks::Endpoint;

use gustnado_files::FilesError;
use gustnado_observe::access_log::{FormatError, LogError};
use gustnado_web::routes::RouteError;
use rustix::io::Errno;
use thiserror::Error;

use crate::privileges::UserError;

/// Error at the start of a server. `Display` is one line: problem, place, remedy.
#[derive(Error)]
#[non_exhaustive]
pub enum StartError {
    /// The host is neither an address nor a known name.
    #[error(
        "{host}: no such address ({error}); give an address such as 127.0.0.1, or 0.0.0.0 for all"
    )]
    Host {
        /// The text as given.
        host: String,
        /// The resolver's error.
        #[source]
        error: io::Error,
    },
    /// A peer in a list is neither an address nor a network.
    #[error("--{setting} {text}: no address and no network; give 192.0.2.1, 10.0.0.0/8, unix or *")]
    Network {
        /// The setting's name.
        setting: &'static str,
        /// The text as given.
        text: String,
    },
    /// PROXY headers are required, but no peer is allowed to send them.
    #[error("{ANY_PROXY}")]
    AnyProxy,
    /// The folder cannot be served.
    #[error("{0}")]
    Folder(#[source] FilesError),
    /// A page for errors cannot be used.
    #[error("error-page {text}: {reason}")]
    ErrorPage {
        /// The text as given.
        text: String,
        /// What was expected, what was found, the remedy.
        reason: String,
    },
    /// The routes cannot be served.
    #[error("{0}")]
    Routes(RouteError),
    /// The process cannot change to the user of the settings.
    #[error("{0}")]
    User(#[source] UserError),
    /// The owner of a Unix socket is unknown.
    #[error(
        "uds-owner {text}: expected a user and a group of this machine, found none called so; \
         `getent passwd` and `getent group` list them"
    )]
    Owner {
        /// The text as given.
        text: String,
    },
    /// A listener is to speak TLS, and there is no certificate.
    #[error(
        "{endpoint}: TLS needs a certificate; give --tls-cert FILE and --tls-key FILE, in PEM, or \
         leave https:// out"
    )]
    NoCertificate {
        /// The listener.
        endpoint: Endpoint,
    },
    /// The certificate, its key or another setting of TLS is of no use.
    #[cfg(feature = "tls-any")]
    #[error("{0}")]
    Tls(#[source] gustnado_tls::TlsSettingsError),
    /// Certificates of clients are wanted, and of no authority.
    #[error(
        "tls-client-auth: expected tls-client-ca FILE too, the authorities of clients' \
         certificates in PEM; give it, or leave tls-client-auth out"
    )]
    NoClientCa,
    /// Plain HTTP would tell browsers to use https only, which they must not be told there.
    #[error(
        "hsts: {endpoint} is plain HTTP, which must not send it (RFC 6797); add https-redirect, or \
         forwarded-allow-ips for a proxy that speaks TLS, or leave that listener out"
    )]
    HstsInPlain {
        /// The listener.
        endpoint: Endpoint,
    },
    /// HTTP/1 is not to be served, and a listener speaks nothing else.
    #[error(
        "http1: expected HTTP/2 on every listener, found none on {endpoint}; add {setting}, or \
         leave http1 in"
    )]
    NoHttp {
        /// The listener.
        endpoint: Endpoint,
        /// What would bring HTTP/2 there.
        setting: &'static str,
    },
    /// The settings of certificates from an authority, or their folder, cannot be used.
    #[error("acme: {text}")]
    Acme {
        /// What was expected, what was found, the remedy.
        text: String,
    },
    /// This build obtains no certificates.
    #[error(
        "acme: this build obtains no certificates; build it with the cargo feature `acme`, or give \
         --tls-cert"
    )]
    NoAcme,
    /// This build has no TLS.
    #[error(
        "{endpoint}: this build has no TLS; build it with the cargo feature `tls`, or leave \
         https:// and --tls-cert out"
    )]
    NoTls {
        /// The listener.
        endpoint: Endpoint,
    },
    /// The access log cannot be opened.
    #[error(
        "--access-log {}: cannot be written: {error}; choose a file in a folder that you may write \
         to, or - for standard output",
        .path.display()
    )]
    AccessLog {
        /// The place.
        path: PathBuf,
        /// The kernel's error.
        #[source]
        error: io::Error,
    },
    /// The folder for request bodies cannot be written to.
    #[error(
        "--body-spool {}: cannot be written: {error}; choose a folder that you may write to, on a \
         disk with free space",
        .path.display()
    )]
    BodySpool {
        /// The folder.
        path: PathBuf,
        /// The kernel's error.
        #[source]
        error: io::Error,
    },
    /// The format of the access log is invalid.
    #[error("--access-log-format: {0}")]
    AccessLogFormat(#[source] FormatError),
    /// Another process listens there.
    #[error(
        "cannot listen on {endpoint}: another process listens there; end it, or {}",
        other(.endpoint)
    )]
    InUse {
        /// The place.
        endpoint: Endpoint,
    },
    /// The endpoint is configured twice.
    #[error("cannot listen on {endpoint} twice; leave one of them out")]
    Twice {
        /// The place.
        endpoint: Endpoint,
    },
    /// There is a file of another kind at the path of a Unix socket.
    #[error(
        "cannot listen on unix:{0}: a file that is no socket is there; remove {0}, or choose \
         another path",
        .path.display()
    )]
    NotSocket {
        /// The file.
        path: PathBuf,
    },
    /// The user has no permission to listen there.
    #[error("cannot listen on {endpoint}: not permitted; {}", permitted(.endpoint))]
    Denied {
        /// The place.
        endpoint: Endpoint,
    },
    /// Listening failed otherwise.
    #[error("cannot listen on {endpoint}: {}", remedy(.endpoint, .error))]
    Listen {
        /// The place.
        endpoint: Endpoint,
        /// The kernel's error.
        #[source]
        error: io::Error,
    },
    /// The server is shutting down, so it cannot be reloaded.
    #[error("the server is shutting down; start it again")]
    Ending,
    /// Signal handlers could not be installed.
    #[error("cannot listen to signals: {error}; use `drain` and `stop` in place of `run`")]
    Signals {
        /// The kernel's error.
        #[source]
        error: io::Error,
    },
    /// A worker thread could not be started.
    #[error(
        "cannot start a worker thread: {error}; lower --workers, or raise the limits that \
         `gustnado doctor` shows"
    )]
    Worker {
        /// The kernel's error.
        #[source]
        error: io::Error,
    },
}

impl From<LogError> for StartError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Format(error) => Self::AccessLogFormat(error),
            LogError::File { path, error } => Self::AccessLog { path, error },
        }
    }
}

impl StartError {
    pub(super) fn from_bind(endpoint: Endpoint, error: io::Error) -> Self {
        match (error.kind(), &endpoint) {
            (io::ErrorKind::AddrInUse, Endpoint::Unix(path)) if is_other_file(path) => {
                Self::NotSocket { path: path.clone() }
            }
            (io::ErrorKind::AddrInUse, _) => Self::InUse { endpoint },
            (io::ErrorKind::PermissionDenied, _) => Self::Denied { endpoint },
            _ => Self::Listen { endpoint, error },
        }
    }

    pub(super) fn from_spool((path, error): (PathBuf, io::Error)) -> Self {
        Self::BodySpool { path, error }
    }

    pub(super) fn from_workers(error: gustnado_tasks::WorkersStartError) -> Self {
        match error {
            gustnado_tasks::WorkersStartError::Thread(error) => Self::Worker { error },
            other => Self::Worker { error: io::Error::other(other.to_string()) },
        }
    }

    /// Returns the endpoint, if listening on it failed.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        match self {
            Self::InUse { endpoint }
            | Self::Denied { endpoint }
            | Self::Listen { endpoint, .. } => Some(endpoint),
            _ => None,
        }
    }

    /// Returns the exit code of the process: 78 (`EX_CONFIG`) if only another configuration can
    /// help, else 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Host { .. }
            | Self::Network { .. }
            | Self::AnyProxy
            | Self::Twice { .. }
            | Self::NotSocket { .. }
            | Self::Folder(_)
            | Self::Routes(_)
            | Self::User(_)
            | Self::Owner { .. }
            | Self::AccessLog { .. }
            | Self::BodySpool { .. }
            | Self::NoCertificate { .. }
            | Self::NoClientCa
            | Self::HstsInPlain { .. }
            | Self::NoHttp { .. }
            | Self::NoTls { .. }
            | Self::AccessLogFormat(_) => 78,
            #[cfg(feature = "tls-any")]
            Self::Tls(_) => 78,
            _ => 1,
        }
    }
}

/// It names the setting in each place where settings are made.
const ANY_PROXY: &str = "--proxy-protocol: expected the proxies whose PROXY header is believed, \
    found none; set --proxy-allow-from 10.0.0.1 (GUSTNADO_PROXY_ALLOW_FROM=10.0.0.1, \
    proxy-allow-from = \"10.0.0.1\" in a file, .proxy_allow_from(&[\"10.0.0.1\"]) in Rust, \
    proxy_allow_from=\"10.0.0.1\" in Python), a network, unix, or * where only proxies can connect";

/// Returns the remedy where another process listens.
fn other(endpoint: &Endpoint) -> &'static str {
    match endpoint {
        Endpoint::Unix(_) => "choose another path",
        _ => "take another port with --port (0 picks a free one)",
    }
}

/// Returns the remedy where the user may not listen.
fn permitted(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Tcp(address) => format!(
            "ports below 1024 need privileges: take --port {} or give the binary \
             CAP_NET_BIND_SERVICE",
            u32::from(address.port()) + 8000
        ),
        _ => "choose a folder that you may write to".to_owned(),
    }
}

/// Returns the kernel's error, and the remedy.
fn remedy(endpoint: &Endpoint, error: &io::Error) -> String {
    match (endpoint, error.kind()) {
        (Endpoint::Unix(path), io::ErrorKind::NotFound) => {
            let folder = path.parent().unwrap_or(path).display();
            format!("there is no such folder; create it with `mkdir -p {folder}`")
        }
        (Endpoint::Unix(_), _) => format!("{error}; choose another path"),
        (Endpoint::Inherited(_), _) => {
            format!("{error}; it has to be a listening socket that this process was started with")
        }
        (Endpoint::Tcp(_), io::ErrorKind::AddrNotAvailable) => {
            "no interface of this machine has that address; `ip address` lists those it has, and \
             0.0.0.0 is all of them"
                .to_owned()
        }
        (Endpoint::Tcp(_), _) if error.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => {
            "this machine has no such interface; `ip link` lists those it has".to_owned()
        }
        (Endpoint::Tcp(_), _) => format!("{error}; give an address of this machine with --host"),
    }
}

/// Returns whether a file other than a socket exists there.
fn is_other_file(path: &std::path::Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::symlink_metadata(path).is_ok_and(|found| !found.file_type().is_socket())
}
