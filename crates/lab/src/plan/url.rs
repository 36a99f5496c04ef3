//! Parses a URL into the host to connect to and the target to request (RFC 9110 §4.2.1).

use super::PlanError;

/// Port of a URL without one.
const PORT: u16 = 80;
/// Port of an https URL without one.
const TLS_PORT: u16 = 443;

/// The parts of a URL of http or https.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UrlParts<'a> {
    /// As written; an IPv6 address in its brackets.
    host: &'a str,
    port: u16,
    is_tls: bool,
    /// Path and query.
    rest: &'a str,
}

impl<'a> UrlParts<'a> {
    /// Splits a URL. The writer of a request checks its parts.
    pub(crate) fn parse(url: &'a str) -> Result<Self, PlanError> {
        let wrong = |why: &str| PlanError::Request { url: url.to_owned(), why: why.to_owned() };
        let (is_tls, rest) = match url.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("ws") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("wss") => (true, rest),
            _ => return Err(wrong("it must start with http:// or https://")),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(wrong("names and passwords go into an Authorization field instead"));
        }
        let bracket = authority.rfind(']').map_or(0, |at| at + 1);
        let (host, port) = match authority[bracket..].find(':') {
            None => (authority, ""),
            Some(colon) => (&authority[..bracket + colon], &authority[bracket + colon + 1..]),
        };
        let number = if port.is_empty() { Some(default_port(is_tls)) } else { port.parse().ok() };
        let port = number.filter(|port| *port > 0);
        let port = port.ok_or_else(|| wrong("the port must be a number from 1 to 65535"))?;
        if host.is_empty() {
            return Err(wrong("it names no host"));
        }
        Ok(Self { host, port, is_tls, rest })
    }

    /// The host for name resolution: an IPv6 address without brackets.
    pub(crate) fn host(&self) -> &'a str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Whether it is asked by TLS.
    pub(crate) fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// The request target in origin-form (RFC 9112 §3.2.1).
    pub(crate) fn target(&self) -> String {
        let slash = if self.rest.starts_with('/') { "" } else { "/" };
        format!("{slash}{}", self.rest)
    }

    /// The value of Host.
    pub(crate) fn authority(&self) -> String {
        match self.port {
            port if port == default_port(self.is_tls) => self.host.to_owned(),
            port => format!("{}:{port}", self.host),
        }
    }
}

fn default_port(is_tls: bool) -> u16 {
    if is_tls { TLS_PORT } else { PORT }
}

#[cfg(test)]
mod tests {
    use super::UrlParts;

    #[test]
    fn the_parts_are_told_apart() {
        for (url, host, port, authority, target) in [
            ("http://a", "a", 80, "a", "/"),
            ("HTTP://a:80/b?c#d", "a", 80, "a", "/b?c"),
            ("http://[::1]:81?x", "::1", 81, "[::1]:81", "/?x"),
            ("https://a", "a", 443, "a", "/"),
            ("https://a:80/", "a", 80, "a:80", "/"),
            ("ws://a/b", "a", 80, "a", "/b"),
            ("wss://a", "a", 443, "a", "/"),
        ] {
            let parsed = UrlParts::parse(url).expect(url);
            assert_eq!((parsed.host(), parsed.port()), (host, port), "{url}");
            assert_eq!((parsed.authority(), parsed.target()), (authority.into(), target.into()));
        }
    }

    #[test]
    fn what_cannot_be_asked_for_is_refused() {
        for url in ["a", "ftp://a/", "http://", "http://:81/", "http://a:0/", "http://u@a/"] {
            assert!(UrlParts::parse(url).is_err(), "{url}");
        }
    }
}
