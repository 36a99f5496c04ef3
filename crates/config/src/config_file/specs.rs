//! Sites, routes and pages for errors, as a configuration file declares them.

use std::path::PathBuf;

use bytes::Bytes;
use gustnado_http::method::Method;
use gustnado_http::status::Status;

use super::redirect::Template;
use super::rewrite::Rewrite;
use crate::TlsClientAuth;
use crate::access::{HeaderRule, StatusRange};
use crate::deploys::CacheRule;
use crate::file_settings::{FilePlace, FileSetting};
use crate::headers::Headers;

/// A site: the routes of some hosts.
#[derive(Debug, Clone, Default)]
pub struct SiteSpec {
    /// Its line, and the file that has it.
    pub place: FilePlace,
    /// In small letters, without a port.
    pub hosts: Vec<String>,
    /// The folder that is served where no route matches.
    pub root: Option<PathBuf>,
    /// Its certificate, if it has one of its own.
    pub tls: Option<SiteTls>,
    /// Settings of its routes, in place of the server's.
    pub settings: Vec<FileSetting>,
    /// Rules for the `Cache-Control` of files, before the server's.
    pub cache: Vec<CacheRule>,
    /// Headers of its responses.
    pub headers: Headers,
    /// Rules of header fields; those of the file are [its own](super::ConfigFile::header_rules).
    pub header_rules: Vec<HeaderRule>,
    /// Other paths for requests, before their routes are found.
    pub rewrites: Vec<Rewrite>,
    /// In the order of the file.
    pub routes: Vec<RouteSpec>,
    /// One for a status at most.
    pub pages: Vec<ErrorPageSpec>,
}

/// What a site has of its own for TLS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SiteTls {
    /// Its certificate, each issuer behind it, in PEM.
    pub cert: PathBuf,
    /// Its private key, in PEM; `None` is in the file of the certificate.
    pub key: Option<PathBuf>,
    /// Whether its clients have to present a certificate.
    pub client_auth: TlsClientAuth,
    /// The authorities that may have issued those, in PEM.
    pub client_ca: Option<PathBuf>,
    /// Lists of those that are revoked, in PEM.
    pub client_crl: Option<PathBuf>,
}

/// A route of a site.
#[derive(Debug, Clone)]
pub struct RouteSpec {
    /// Its line, and the file that has it.
    pub place: FilePlace,
    /// `/exact`, `/{name}` or `/{*rest}`.
    pub path: String,
    /// The action for its requests.
    pub action: RouteAction,
    /// None is all of them.
    pub methods: Vec<Method>,
    /// Whether repeated slashes of a request's path count as one.
    pub merge_slashes: bool,
    /// Settings in place of the site's.
    pub settings: Vec<FileSetting>,
    /// Rules for the `Cache-Control` of files, before the site's.
    pub cache: Vec<CacheRule>,
    /// Headers of its responses.
    pub headers: Headers,
    /// Rules of header fields.
    pub header_rules: Vec<HeaderRule>,
    /// What its pages need: values of `Link`.
    pub preload: Vec<String>,
}

/// The action of a route.
#[derive(Debug, Clone)]
pub enum RouteAction {
    /// Files beneath a folder.
    Folder(PathBuf),
    /// A redirect, with parts of the request's path.
    Redirect {
        /// Where it leads.
        to: Template,
        /// 301, 302, 303, 307 or 308.
        status: Status,
    },
    /// A text.
    Text {
        /// The content.
        text: String,
        /// 2xx, 4xx or 5xx.
        status: Status,
        /// Its `Content-Type`.
        content_type: String,
    },
}

/// A page for statuses of 400 and above.
#[derive(Debug, Clone)]
pub struct ErrorPageSpec {
    /// Its line, and the file that has it.
    pub place: FilePlace,
    /// The statuses that it is for. Where several pages are for one, that for the fewest counts.
    pub statuses: StatusRange,
    /// Where its content was read.
    pub file: PathBuf,
    /// The content of the file.
    pub content: Bytes,
}
