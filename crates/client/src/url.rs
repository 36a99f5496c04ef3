//! The parts of a URL: the host to connect to, and the target (RFC 9110 §4.2.1).
//!
//! Only the parts are told apart here. Whether they are well formed is checked where they are
//! written: [`gustnado_http::request_writer::RequestWriter::start`].

use std::error::Error;
use std::fmt;

/// The port of an http URL that names none.
const PORT: u16 = 80;
/// The port of an https URL that names none.
const TLS_PORT: u16 = 443;

/// The parts of a URL of http or https.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ParsedUrl<'a> {
    /// The host in lower case; an IPv6 address in its brackets.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) is_tls: bool,
    /// Path and query, as they were given. Empty, or a query alone, where the URL has no path.
    rest: &'a str,
}

impl<'a> ParsedUrl<'a> {
    /// Splits a URL into its parts. What stands behind a `#` is for the client alone (RFC 9110
    /// §4.2.5) and is left out.
    pub(super) fn parse(url: &'a str) -> Result<Self, UrlError> {
        let (scheme, rest) = url.split_once("://").ok_or(UrlError::Scheme)?;
        let is_tls = scheme.eq_ignore_ascii_case("https");
        if is_tls && cfg!(not(feature = "tls")) {
            return Err(UrlError::Tls);
        }
        if !is_tls && !scheme.eq_ignore_ascii_case("http") {
            return Err(UrlError::Scheme);
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(UrlError::UserInformation);
        }
        let (host, port) = split_port(authority, default_port(is_tls))?;
        if host.is_empty() {
            return Err(UrlError::Host);
        }
        Ok(Self { host: host.to_ascii_lowercase(), port, is_tls, rest })
    }

    /// Returns the request target in origin-form (RFC 9112 §3.2.1).
    pub(super) fn target(&self) -> String {
        let slash = if self.rest.starts_with('/') { "" } else { "/" };
        format!("{slash}{}", self.rest)
    }

    /// Returns the value of Host: without the port where that goes without saying (RFC 9110
    /// §4.2.3).
    pub(super) fn authority(&self) -> String {
        match self.port {
            port if port == default_port(self.is_tls) => self.host.clone(),
            port => format!("{}:{port}", self.host),
        }
    }
}

fn default_port(is_tls: bool) -> u16 {
    if is_tls { TLS_PORT } else { PORT }
}

/// `host [":" port]`; an empty port is the default one.
fn split_port(authority: &str, default: u16) -> Result<(&str, u16), UrlError> {
    let literal_end = authority.rfind(']').map_or(0, |at| at + 1);
    let Some(colon) = authority[literal_end..].find(':') else { return Ok((authority, default)) };
    let (host, port) = authority.split_at(literal_end + colon);
    let digits = &port[1..];
    if digits.is_empty() {
        return Ok((host, default));
    }
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let port = digits.parse().ok().filter(|port| is_number && *port > 0).ok_or(UrlError::Port)?;
    Ok((host, port))
}

/// An error in a URL.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum UrlError {
    /// It does not start with `http://` or `https://`.
    Scheme,
    /// It starts with `https://`, and this build has no TLS.
    Tls,
    /// There is a name or a password before the host (RFC 9110 §4.2.4).
    UserInformation,
    /// The host is missing or malformed.
    Host,
    /// The port is not a number from 1 to 65,535.
    Port,
    /// Path or query hold a byte that must be percent-encoded.
    Target,
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheme => "it must start with http:// or https://",
            Self::Tls => "this build has no TLS; build it with the feature tls",
            Self::UserInformation => {
                "it holds a name or a password; send them in an Authorization field instead"
            }
            Self::Host => "the host must be a name or an address (IPv6 in brackets)",
            Self::Port => "the port must be a number from 1 to 65535",
            Self::Target => "spaces, quotes and letters beyond ASCII must be percent-encoded",
        })
    }
}

impl Error for UrlError {}

#[cfg(test)]
mod tests {
    use super::{ParsedUrl, UrlError};

    #[test]
    fn the_parts_are_told_apart() {
        for (url, authority, port, target) in [
            ("http://a", "a", 80, "/"),
            ("HTTP://A.Example/B?C#d", "a.example", 80, "/B?C"),
            ("http://a:80/", "a", 80, "/"),
            ("http://a:/", "a", 80, "/"),
            ("http://a:8080?x=/y", "a:8080", 8080, "/?x=/y"),
            ("http://[::1]:81/a:b", "[::1]:81", 81, "/a:b"),
            ("http://[2001:DB8::1]", "[2001:db8::1]", 80, "/"),
            ("http://a#/b", "a", 80, "/"),
            ("http://a//b/../c", "a", 80, "//b/../c"),
            ("http://a/b@c", "a", 80, "/b@c"),
        ] {
            let parsed = ParsedUrl::parse(url).expect(url);
            assert_eq!(parsed.authority(), authority, "{url}");
            assert_eq!((parsed.port, parsed.target().as_str()), (port, target), "{url}");
        }
    }

    #[cfg(feature = "tls")]
    #[test]
    fn https_has_its_own_port() {
        for (url, authority, port) in
            [("https://a", "a", 443), ("HTTPS://a:443", "a", 443), ("https://a:80", "a:80", 80)]
        {
            let parsed = ParsedUrl::parse(url).expect(url);
            assert_eq!((parsed.authority().as_str(), parsed.port), (authority, port), "{url}");
            assert!(parsed.is_tls, "{url}");
        }
    }

    #[test]
    fn each_bad_url_has_its_error() {
        for (url, error) in [
            ("", UrlError::Scheme),
            ("a/b", UrlError::Scheme),
            ("//a/b", UrlError::Scheme),
            ("ftp://a/", UrlError::Scheme),
            ("http:/a", UrlError::Scheme),
            ("http://u:p@a/", UrlError::UserInformation),
            ("http:///b", UrlError::Host),
            ("http://:80/", UrlError::Host),
            ("http://a:b/", UrlError::Port),
            ("http://a:0/", UrlError::Port),
            ("http://a:+1/", UrlError::Port),
            ("http://a:65536/", UrlError::Port),
            ("http://a:1:2/", UrlError::Port),
        ] {
            assert_eq!(ParsedUrl::parse(url), Err(error), "{url}");
        }
    }
}
