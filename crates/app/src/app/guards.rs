//! What requests have to meet before they are routed.

use std::sync::Arc;

use gustnado_config::Config;
use gustnado_tasks::Endpoint;
use gustnado_tls::{AcmeChallenges, TlsAcceptor};

use super::Openings;

/// The port of https where no listener tells another one.
const HTTPS_PORT: u16 = 443;

/// What requests have to meet before they are routed. Few servers want anything.
#[derive(Clone, Debug)]
pub struct Guards {
    /// The port of https that plain requests are sent to, if they are.
    pub https_port: Option<u16>,
    /// Knows what hosts want of their clients' certificates, if any host wants one.
    pub policies: Option<Arc<TlsAcceptor>>,
    /// Answers to the challenges of a certificate authority.
    pub challenges: Option<Arc<AcmeChallenges>>,
}

impl Guards {
    /// Returns what the settings want; `None`: nothing.
    ///
    /// - `has_proxies`: proxies are trusted, so they may report that a request came early.
    pub(super) fn of(config: &Config, openings: &Openings, has_proxies: bool) -> Option<Arc<Self>> {
        let https_port = config.https_redirect.then(|| https_port(openings));
        let policies = openings.tls().filter(|tls| tls.has_policies()).cloned();
        let challenges = openings.tls().and_then(|tls| tls.challenges()).cloned();
        let is_wanted =
            https_port.is_some() || policies.is_some() || challenges.is_some() || has_proxies;
        is_wanted.then(|| Arc::new(Self { https_port, policies, challenges }))
    }
}

/// Returns the port of the first listener with TLS. Another process may have port 443.
fn https_port(openings: &Openings) -> u16 {
    let of_tls = openings.own.iter().filter(|(_, opening)| opening.tls.is_some());
    let ports = of_tls.filter_map(|((endpoint, _), _)| match endpoint {
        Endpoint::Tcp(address) if address.port() > 0 => Some(address.port()),
        _ => None,
    });
    ports.min_by_key(|port| *port != HTTPS_PORT).unwrap_or(HTTPS_PORT)
}
