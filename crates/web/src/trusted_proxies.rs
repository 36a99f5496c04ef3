//! Trusted proxies, and the address of the client behind them.
//!
//! Every proxy on the way appends to the right of the fields. So they are read from the right: each
//! entry was written by the proxy behind it, the last one by the connection's own peer. The first
//! address that is not a trusted proxy is the client's; everything to its left may be forged.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

use gustnado_http::forwarded::{self, Element};
use gustnado_http::request::RequestView;
use gustnado_tasks::Endpoint;

use gustnado_config::Networks;

use gustnado_config::{Config, ForwardedFields};

/// Trusted proxies, and the fields that are read from them.
#[derive(Debug)]
pub struct TrustedProxies {
    trusted: Networks,
    fields: ForwardedFields,
}

/// The last hop on the way from the client that trusted proxies vouch for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Hop {
    /// `None`: the connection's peer.
    address: Option<SocketAddr>,
    /// The number of entries to the right of its own.
    behind: usize,
    /// Whether a trusted proxy has named who asked it by something that is not an address.
    asked_by_unknown: bool,
}

impl TrustedProxies {
    /// Returns the trusted proxies of a configuration; `None` if there are none.
    pub fn of(config: &Config) -> Option<Arc<Self>> {
        // Malformed networks were refused at the start.
        let trusted = Networks::of(&config.forwarded_allow_ips).unwrap_or_default();
        let trusted_proxies = Self { trusted, fields: config.forwarded_fields };
        (!trusted_proxies.trusted.is_empty()).then(|| Arc::new(trusted_proxies))
    }

    /// Returns whether a peer is one of them.
    pub fn trusts(&self, peer: &Endpoint) -> bool {
        self.trusted.has(peer)
    }

    /// Returns the address of the client of a request that came from `peer`. Without a port in the
    /// field it has port 0.
    pub fn client(&self, head: RequestView<'_>, peer: Endpoint) -> Endpoint {
        self.hop(head, &peer).address.map_or(peer, Endpoint::Tcp)
    }

    /// Returns the same, but `None` where a trusted proxy does not say who asked it: then the last
    /// known proxy is not the client, and has rights of its own.
    pub fn known_client(&self, head: RequestView<'_>, peer: Endpoint) -> Option<Endpoint> {
        let hop = self.hop(head, &peer);
        (!hop.asked_by_unknown).then(|| hop.address.map_or(peer, Endpoint::Tcp))
    }

    /// Returns the hop that is the client.
    fn hop(&self, head: RequestView<'_>, peer: &Endpoint) -> Hop {
        match self.fields {
            _ if !self.trusted.has(peer) => Hop::default(),
            ForwardedFields::XForwarded => self.walk_entries(head),
            ForwardedFields::Forwarded => self.walk_elements(&elements(head)),
        }
    }

    /// Returns the scheme of the client's request: `http` or `https`. `None` if no trusted proxy
    /// reports it.
    pub fn scheme(&self, head: RequestView<'_>, peer: &Endpoint) -> Option<&'static str> {
        match self.fields {
            _ if !self.trusted.has(peer) => None,
            ForwardedFields::XForwarded => {
                let behind = self.walk_entries(head).behind;
                forwarded::scheme(entry(head, "x-forwarded-proto", behind)?)
            }
            ForwardedFields::Forwarded => forwarded::scheme(&self.walked_to(head)?.proto?),
        }
    }

    /// Returns the host of the client's request, with its port if that is not the scheme's default.
    /// `None` if no trusted proxy reports it.
    pub fn host<'h>(&self, head: RequestView<'h>, peer: &Endpoint) -> Option<Cow<'h, str>> {
        match self.fields {
            _ if !self.trusted.has(peer) => None,
            ForwardedFields::XForwarded => {
                let behind = self.walk_entries(head).behind;
                let entry_of = |name| entry(head, name, behind);
                let host = entry_of("x-forwarded-host").and_then(forwarded::host);
                let port = entry_of("x-forwarded-port").and_then(forwarded::port);
                let scheme = entry_of("x-forwarded-proto").and_then(forwarded::scheme);
                let Some(port) = port else { return host.map(Cow::Borrowed) };
                let host = match host {
                    Some(host) => host,
                    None => forwarded::host(head.host()?)?,
                };
                Some(with_port(host, port, scheme.unwrap_or("http")))
            }
            ForwardedFields::Forwarded => {
                let host = self.walked_to(head)?.host?;
                Some(match host {
                    Cow::Borrowed(host) => Cow::Borrowed(forwarded::host(host)?),
                    Cow::Owned(host) => Cow::Owned(forwarded::host(&host)?.to_owned()),
                })
            }
        }
    }

    fn walk_entries(&self, head: RequestView<'_>) -> Hop {
        let entries = entries(head, "x-forwarded-for");
        self.walk(entries.iter().rev().map(|entry| forwarded::node(entry)))
    }

    fn walk_elements(&self, elements: &[Element<'_>]) -> Hop {
        let address = |element: &Element<'_>| forwarded::node(element.from.as_deref()?);
        self.walk(elements.iter().rev().map(address))
    }

    /// Returns the element added by the trusted proxy that the client connected to.
    fn walked_to<'h>(&self, head: RequestView<'h>) -> Option<Element<'h>> {
        let mut elements = elements(head);
        let behind = self.walk_elements(&elements).behind;
        let place = elements.len().checked_sub(1 + behind)?;
        Some(elements.swap_remove(place))
    }

    /// Walks from the nearest to the first address that is not trusted, or to the last. An entry
    /// that is not an address ends the walk.
    fn walk(&self, addresses: impl Iterator<Item = Option<SocketAddr>>) -> Hop {
        let mut hop = Hop::default();
        for (behind, address) in addresses.enumerate() {
            let Some(address) = address else {
                hop.asked_by_unknown = true;
                break;
            };
            hop = Hop { address: Some(address), behind, asked_by_unknown: false };
            if !self.trusted.has_ip(address.ip()) {
                break;
            }
        }
        hop
    }
}

/// Returns all entries of a field, of all its lines.
fn entries<'h>(head: RequestView<'h>, name: &str) -> Vec<&'h [u8]> {
    let lines = head.fields().filter(|field| field.0.eq_ignore_ascii_case(name.as_bytes()));
    lines.flat_map(|field| forwarded::entries(field.1)).collect()
}

/// Returns the entry that was added together with the one of X-Forwarded-For that has `behind` to
/// its right. If a proxy overwrites the field, there are fewer: then it is the first.
fn entry<'h>(head: RequestView<'h>, name: &str, behind: usize) -> Option<&'h [u8]> {
    let entries = entries(head, name);
    let place = entries.len().saturating_sub(1 + behind);
    entries.get(place).copied()
}

/// Returns all elements of Forwarded from the last malformed line on, which is one that says
/// nothing.
fn elements(head: RequestView<'_>) -> Vec<Element<'_>> {
    let mut all = Vec::new();
    for (name, value) in head.fields() {
        if !name.eq_ignore_ascii_case(b"forwarded") {
            continue;
        }
        match forwarded::elements(value) {
            Some(elements) => all.extend(elements),
            None => all = vec![Element::default()],
        }
    }
    all
}

/// Returns a host with a port, if it has none yet and the port is not the scheme's default.
fn with_port<'h>(host: &'h str, port: u16, scheme: &str) -> Cow<'h, str> {
    let usual = if scheme == "https" { 443 } else { 80 };
    let behind_address = host.rsplit(']').next().unwrap_or(host);
    if port == usual || behind_address.contains(':') {
        return Cow::Borrowed(host);
    }
    Cow::Owned(format!("{host}:{port}"))
}

#[cfg(test)]
mod tests;
