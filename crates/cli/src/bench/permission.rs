//! Permission to load a host: only loopback is allowed without `--i-own-this-host`.

use crate::exit;
use crate::usage_error::UsageError;
use gustnado_lab::plan::{LoadPlan, RequestSpec};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// Checks every address that the plan would connect to.
///
/// - `permitted`: whether `--i-own-this-host` was given.
///
/// # Errors
/// A URL without a host, a host without an address, or an address that is not loopback.
pub(super) fn check(plan: &LoadPlan, permitted: bool) -> Result<(), UsageError> {
    if plan.unix_socket.is_some() {
        return Ok(());
    }
    for ask in &plan.requests {
        let addresses = addresses(ask)?;
        let foreign = addresses.iter().find(|address| !is_loopback(address.ip()));
        if let Some(address) = foreign.filter(|_| !permitted) {
            return Err(UsageError::of_usage(format!(
                "{}: {} is not this machine's loopback, and load can harm others; if the host is \
                 yours, add --i-own-this-host",
                ask.url,
                address.ip()
            )));
        }
    }
    Ok(())
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// The targets, or all addresses of the URL's host.
fn addresses(ask: &RequestSpec) -> Result<Vec<SocketAddr>, UsageError> {
    if !ask.targets.is_empty() {
        return Ok(ask.targets.clone());
    }
    let (host, port) = host_and_port(&ask.url).ok_or_else(|| {
        UsageError::of_usage(format!(
            "{}: expected http://HOST[:PORT]/PATH or https://…, with a host",
            ask.url
        ))
    })?;
    let unknown = |why: String| UsageError {
        line: format!("{}: no address of {host} is known{why}", ask.url),
        code: exit::FAILED,
    };
    let found = (host, port).to_socket_addrs().map_err(|error| unknown(format!(": {error}")))?;
    let found: Vec<SocketAddr> = found.collect();
    if found.is_empty() { Err(unknown(String::new())) } else { Ok(found) }
}

/// `http://[::1]:8080/a` is (`::1`, 8080).
fn host_and_port(url: &str) -> Option<(&str, u16)> {
    let ports = [("https", 443), ("wss", 443), ("http", 80), ("ws", 80)];
    let (scheme, rest) = url.split_once("://")?;
    let (_, usual) = ports.into_iter().find(|(name, _)| *name == scheme)?;
    let authority = rest.split(['/', '?', '#']).next()?;
    // The part before an @ is a user, never a host.
    let authority = authority.rsplit('@').next()?;
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, behind) = rest.split_once(']')?;
            (host, if behind.is_empty() { None } else { Some(behind.strip_prefix(':')?) })
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port =
        port.filter(|port| !port.is_empty()).map_or(Some(usual), |port| port.parse().ok())?;
    (!host.is_empty()).then_some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_url_is_found() {
        for (url, expected) in [
            ("http://127.0.0.1:8080/", Some(("127.0.0.1", 8080))),
            ("http://localhost", Some(("localhost", 80))),
            ("http://localhost:/x", Some(("localhost", 80))),
            ("http://[::1]:81?x", Some(("::1", 81))),
            ("http://[::1]", Some(("::1", 80))),
            ("https://a/", Some(("a", 443))),
            ("https://a:80/", Some(("a", 80))),
            ("ws://a/", Some(("a", 80))),
            ("wss://a/", Some(("a", 443))),
            ("ftp://a/", None),
            ("http://127.0.0.1@example.org/", Some(("example.org", 80))),
            ("http://example.org/@127.0.0.1", Some(("example.org", 80))),
            ("http://x:70000/", None),
            ("http://[::1", None),
            ("http:///", None),
        ] {
            assert_eq!(host_and_port(url), expected, "{url}");
        }
    }

    #[test]
    fn loopback_in_any_form_is_loopback() {
        for (text, expected) in [
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("::ffff:10.0.0.1", false),
            ("0.0.0.0", false),
            ("192.0.2.1", false),
        ] {
            assert_eq!(is_loopback(text.parse().expect(text)), expected, "{text}");
        }
    }
}
