//! A request that is asked about: a method and a URL, fields, and a client.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use gustnado_http::method::Method;
use thiserror::Error;

/// The first bytes of a PROXY header of version 2, and its version with the command.
const PROXY_START: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21";
/// What such a header says of a client that speaks TLS: type, length, flags, not verified.
const PROXY_TLS: &[u8] = &[0x20, 0, 5, 1, 0, 0, 0, 1];

/// A request that is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedRequest {
    method: Method,
    is_https: bool,
    /// The host, with its port if it was given.
    host: String,
    target: String,
    fields: Vec<(String, Vec<u8>)>,
    client: IpAddr,
}

/// Why a text is no request that can be asked about.
#[derive(Clone, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskError {
    /// It has no URL.
    #[error("expected a method and a URL, found {found:?}; write GET https://example.org/a.html")]
    NoUrl {
        /// The text.
        found: String,
    },
    /// Its method is not one that can be asked with.
    #[error(
        "expected GET, HEAD, POST, PUT, DELETE, OPTIONS or PATCH in capital letters, found \
             {found:?}; write it so"
    )]
    Method {
        /// The first word.
        found: String,
    },
    /// Its URL is not one of http or https with a host.
    #[error(
        "expected a URL such as https://example.org/a.html, found {found:?}; write the scheme \
             and the host, as browsers do"
    )]
    Url {
        /// The second word.
        found: String,
    },
    /// It is no header field.
    #[error(
        "expected a header field such as Accept: text/html, found {found:?}; write a colon \
             behind the name"
    )]
    Field {
        /// The text.
        found: String,
    },
}

gustnado_tasks::debug_as_display!(AskError);

impl AskedRequest {
    /// Reads a method and a URL: `GET https://example.org/a/b.js`; without a method it is GET. The
    /// client is on this machine, see [`AskedRequest::from`].
    ///
    /// # Errors
    /// [`AskError`].
    pub fn parse(text: &str) -> Result<Self, AskError> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let (method, url) = match words[..] {
            [method, url] => (method, url),
            [url] if url.contains("://") => ("GET", url),
            _ => return Err(AskError::NoUrl { found: text.to_owned() }),
        };
        let named = Method::ALL.into_iter().find(|known| known.as_str() == Some(method));
        let method = match named {
            Some(method) if !matches!(method, Method::Connect | Method::Trace) => method,
            _ => return Err(AskError::Method { found: method.to_owned() }),
        };
        let wrong = || AskError::Url { found: url.to_owned() };
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        let is_https = scheme.eq_ignore_ascii_case("https");
        if !is_https && !scheme.eq_ignore_ascii_case("http") {
            return Err(wrong());
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let (host, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
        let is_target = |byte: u8| byte.is_ascii_graphic();
        if host.is_empty() || !host.bytes().all(is_host) || !rest.bytes().all(is_target) {
            return Err(wrong());
        }
        let slash = if rest.starts_with('/') { "" } else { "/" };
        let target = format!("{slash}{rest}");
        let client = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let host = host.to_owned();
        Ok(Self { method, is_https, host, target, fields: Vec::new(), client })
    }

    /// Adds a header field: `Accept-Encoding: br`.
    ///
    /// # Errors
    /// [`AskError::Field`].
    pub fn field(mut self, text: &str) -> Result<Self, AskError> {
        let wrong = || AskError::Field { found: text.to_owned() };
        let (name, value) = text.split_once(':').ok_or_else(wrong)?;
        let (name, value) = (name.trim(), value.trim());
        if gustnado_http::fields::check_field(name, value.as_bytes()).is_err() {
            return Err(wrong());
        }
        if name.eq_ignore_ascii_case("host") {
            value.clone_into(&mut self.host);
        } else {
            self.fields.push((name.to_owned(), value.as_bytes().to_vec()));
        }
        Ok(self)
    }

    /// Sets the address of the client; by default it is 127.0.0.1.
    #[must_use]
    pub fn from(mut self, client: IpAddr) -> Self {
        self.client = client;
        self
    }

    /// Returns whether it comes by https.
    pub fn is_https(&self) -> bool {
        self.is_https
    }

    /// Returns the address of the client.
    pub fn client(&self) -> IpAddr {
        self.client
    }

    /// Returns the host, with its port if it has one.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the method.
    pub fn method(&self) -> Method {
        self.method
    }

    /// Returns path and query.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Returns the header fields.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// Returns its head, as HTTP/1.1 sends it.
    pub(super) fn head(&self) -> Vec<u8> {
        let method = self.method.as_str().unwrap_or("GET");
        let line = format!("{method} {} HTTP/1.1\r\nHost: {}\r\n", self.target, self.host);
        let mut head = line.into_bytes();
        for (name, value) in self.fields() {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value);
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        head
    }

    /// Returns the PROXY header by which the server learns where the client is, and whether it
    /// speaks TLS.
    pub(super) fn proxy_header(&self) -> Vec<u8> {
        let port = if self.is_https { 443_u16 } else { 80 };
        let source = SocketAddr::new(self.client, 50_000);
        let mut rest = Vec::new();
        let family = match source.ip() {
            IpAddr::V4(ip) => {
                rest.extend_from_slice(&ip.octets());
                rest.extend_from_slice(&Ipv4Addr::LOCALHOST.octets());
                0x11
            }
            IpAddr::V6(ip) => {
                rest.extend_from_slice(&ip.octets());
                rest.extend_from_slice(&std::net::Ipv6Addr::LOCALHOST.octets());
                0x21
            }
        };
        rest.extend_from_slice(&source.port().to_be_bytes());
        rest.extend_from_slice(&port.to_be_bytes());
        if self.is_https {
            rest.extend_from_slice(PROXY_TLS);
        }
        let length = u16::try_from(rest.len()).expect("a few bytes");
        [PROXY_START, &[family], &length.to_be_bytes(), &rest].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gustnado_http::head::Decoded;
    use gustnado_http::proxy::{Ends, decode};

    #[test]
    fn a_method_and_a_url_are_a_request() {
        let asked = |text: &str| AskedRequest::parse(text).expect("well formed");
        let one = asked("PUT HTTPS://Example.org:8443/a%20b?x=1#part");
        let parts = (one.method(), one.is_https(), one.host(), one.target());
        assert_eq!(parts, (Method::Put, true, "Example.org:8443", "/a%20b?x=1"));
        let short = asked("http://[::1]?q");
        let parts = (short.method(), short.is_https(), short.host(), short.target());
        assert_eq!(parts, (Method::Get, false, "[::1]", "/?q"));
        for (text, part) in [
            ("", "expected a method and a URL"),
            ("GET", "expected a method and a URL"),
            ("GET /a", "write the scheme and the host"),
            ("GET https://a.org/ HTTP/1.1", "expected a method and a URL"),
            ("get https://a.org/", "capital letters"),
            ("CONNECT https://a.org/", "capital letters"),
            ("GET ftp://a.org/", "expected a URL such as"),
            ("GET https:///a", "expected a URL such as"),
            ("GET https://user@a.org/", "expected a URL such as"),
            ("GET https://a.org/\u{fc}", "expected a URL such as"),
        ] {
            let error = AskedRequest::parse(text).expect_err(text).to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn fields_are_checked_and_a_host_is_that_of_the_request() {
        let asked = AskedRequest::parse("GET http://a.org/").expect("well formed");
        let asked = asked.field("Accept:  text/html ").and_then(|one| one.field("host: b.org"));
        let asked = asked.expect("well formed");
        let expected = "GET / HTTP/1.1\r\nHost: b.org\r\nAccept: text/html\r\n\r\n";
        assert_eq!(String::from_utf8_lossy(&asked.head()), expected);
        for wrong in ["Accept", "A b: c", ": x", "X: a\r\nY: b", ""] {
            assert!(asked.clone().field(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_server_learns_client_and_scheme() {
        for (url, ip, has_tls) in
            [("http://a.org/", "192.0.2.7", false), ("https://a.org/", "2001:db8::7", true)]
        {
            let ip: IpAddr = ip.parse().expect("an address");
            let asked = AskedRequest::parse(url).expect("well formed").from(ip);
            let bytes = asked.proxy_header();
            let Ok(Decoded::Done(header)) = decode(&bytes) else { panic!("{url}: {bytes:?}") };
            assert_eq!(header.len, bytes.len());
            let Ends::Inet { source, .. } = header.ends else { panic!("{:?}", header.ends) };
            assert_eq!(source.ip(), ip);
            assert_eq!(header.info.is_some_and(|info| info.tls.is_some()), has_tls, "{url}");
        }
    }
}
