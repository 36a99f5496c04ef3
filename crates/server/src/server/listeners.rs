//! Listeners of a server.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use gustnado_config::{ListenSpec, Networks};
use gustnado_tasks::{BoxTask, Endpoint, ListenOptions, ListenerHandle, Workers};

use super::StartError;
use crate::builder::Server;
use crate::config::Config;
use crate::privileges;
use gustnado_app::app::{AppHandle, ConnectionOpening, Http2Opening, ListenerKey, Openings};
use gustnado_h1 as conn;
use gustnado_tcp::first_address;
use gustnado_tls::TlsAcceptor;

/// The open listeners of a server.
#[derive(Default)]
pub(super) struct Listeners(Vec<OpenListener>);

struct OpenListener {
    /// As configured: port 0 is not yet resolved.
    plan: ListenerPlan,
    listening: ListenerHandle,
}

/// One listener of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListenerPlan {
    pub(super) endpoint: Endpoint,
    /// Its place among those with the same endpoint.
    nth: usize,
    options: ListenOptions,
    proxies: ProxyRule,
    has_tls: bool,
}

/// A listener's rule about PROXY headers.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ProxyRule {
    /// That of the settings.
    Usual,
    /// None is read.
    Off,
    /// One is required, of these networks.
    From(Networks),
}

impl ListenerPlan {
    fn key(&self) -> ListenerKey {
        (self.endpoint.clone(), self.nth)
    }
}

impl Listeners {
    /// Begins to listen.
    pub(super) fn open(
        &mut self,
        workers: &Workers,
        plan: ListenerPlan,
        current: &Arc<AppHandle>,
    ) -> Result<(), StartError> {
        let (current, key) = (Arc::clone(current), plan.key());
        let serve = Box::new(move |connection| {
            let app = current.app();
            let opening = app.openings.of(&key);
            if app.connections_per_client > 0 {
                return Box::pin(conn::serve_limited(connection, app, opening)) as BoxTask;
            }
            Box::pin(conn::serve(connection, app, opening))
        });
        let failed = |error| StartError::from_bind(plan.endpoint.clone(), error);
        let listening = workers.listen_with(&plan.endpoint, &plan.options, false, serve);
        self.0.push(OpenListener { listening: listening.map_err(failed)?, plan });
        Ok(())
    }

    pub(super) fn listens_on(&self, endpoint: &Endpoint) -> bool {
        self.0.iter().any(|listener| listener.plan.endpoint == *endpoint)
    }

    /// Returns whether any of these listens already with other options, which its sockets keep.
    pub(super) fn keeps_options(&self, plans: &[ListenerPlan]) -> bool {
        let is_other = |open: &OpenListener, plan: &ListenerPlan| {
            open.plan.endpoint == plan.endpoint && open.plan.options != plan.options
        };
        plans.iter().any(|plan| self.0.iter().any(|open| is_other(open, plan)))
    }

    /// Adds listeners opened during a reload.
    pub(super) fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    /// Stops all other listeners; open connections stay open. Returns the stopped endpoints.
    pub(super) fn keep_only(&mut self, plans: &[ListenerPlan]) -> Vec<Endpoint> {
        let is_kept =
            |open: &OpenListener| plans.iter().any(|plan| plan.endpoint == open.plan.endpoint);
        let (kept, gone): (Vec<_>, Vec<_>) = self.0.drain(..).partition(is_kept);
        self.0 = kept;
        let stop = |listener: OpenListener| {
            listener.listening.stop();
            listener.listening.endpoint().clone()
        };
        gone.into_iter().map(stop).collect()
    }

    /// Takes over an inherited socket. Returns whether there is one.
    pub(super) fn take_over(&self, endpoint: &Endpoint) -> bool {
        let found = self.0.iter().find(|listener| listener.plan.endpoint == *endpoint);
        found.inspect(|listener| listener.listening.take_over()).is_some()
    }

    /// Returns the socket options that the kernel refused.
    pub(super) fn refused(&self) -> Vec<String> {
        let mut refused: Vec<String> =
            self.0.iter().flat_map(|listener| listener.listening.refused().to_vec()).collect();
        refused.dedup();
        refused
    }

    pub(super) fn addresses(&self) -> Vec<Endpoint> {
        self.0.iter().map(|listener| listener.listening.endpoint().clone()).collect()
    }

    /// Returns which of them speak TLS, in the same order.
    pub(super) fn has_tls(&self) -> Vec<bool> {
        self.0.iter().map(|listener| listener.plan.has_tls).collect()
    }

    /// Stops all of them, and removes the files of Unix sockets.
    pub(super) fn stop(&mut self) {
        self.keep_only(&[]);
    }
}

/// When names of listeners become addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameLookup {
    Now,
    /// Where the server starts, which may be another machine: until then any address stands for
    /// them. Nothing waits for a network.
    AtStart,
}

/// Returns the listeners of a configuration.
pub(super) fn plans(server: &Server, names: NameLookup) -> Result<Vec<ListenerPlan>, StartError> {
    let config = &server.config;
    if config.listen.is_empty() {
        let endpoint = match &config.uds {
            Some(path) => Endpoint::Unix(path.clone()),
            None => tcp(&config.host, config.port, names)?,
        };
        return Ok(vec![plan(server, endpoint, &ListenSpec::default())?]);
    }
    let mut plans: Vec<ListenerPlan> = Vec::new();
    for text in &config.listen {
        let spec = spec(text)?;
        let mut plan = plan(server, endpoint(&spec.address, names)?, &spec)?;
        plan.nth = plans.iter().filter(|known| known.endpoint == plan.endpoint).count();
        // Port 0 picks another free port each time, so it may repeat.
        // Two names may become two addresses.
        let is_unknown = names == NameLookup::AtStart && is_name(&spec.address);
        let is_any = match plan.endpoint {
            Endpoint::Tcp(address) => address.port() == 0 || is_unknown,
            _ => false,
        };
        if !is_any && plan.nth > 0 {
            return Err(StartError::Twice { endpoint: plan.endpoint });
        }
        plans.push(plan);
    }
    Ok(plans)
}

/// Returns what connections begin with, for each listener.
///
/// - `tls`: takes the handshakes of those with TLS.
pub(super) fn openings(
    config: &Config,
    plans: &[ListenerPlan],
    tls: Option<&Arc<TlsAcceptor>>,
) -> Openings {
    // The start has already refused malformed networks.
    let networks = || Networks::of(&config.proxy_allow_from).unwrap_or_default();
    let http2 = (config.http2 || config.h2c)
        .then_some(Http2Opening { serve: gustnado_h2::serve, in_clear: config.h2c });
    let usual_proxies = config.proxy_protocol.then(networks).map(Arc::new);
    let opening = |plan: &ListenerPlan| {
        let proxies = match &plan.proxies {
            ProxyRule::Usual => usual_proxies.clone(),
            ProxyRule::Off => None,
            ProxyRule::From(networks) => Some(Arc::new(networks.clone())),
        };
        ConnectionOpening { proxies, tls: tls.filter(|_| plan.has_tls).cloned() }
    };
    // Most servers have one listener, or several that are alike: those are not looked up.
    let is_alike =
        |plan: &ListenerPlan| plan.proxies == plans[0].proxies && plan.has_tls == plans[0].has_tls;
    if plans.iter().all(is_alike) {
        let usual = plans.first().map(opening).unwrap_or_default();
        return Openings { usual, own: Vec::new(), http2 };
    }
    let own = plans.iter().map(|plan| (plan.key(), opening(plan))).collect();
    Openings { usual: ConnectionOpening::default(), own, http2 }
}

/// Refuses settings that some listener cannot follow.
fn check(config: &Config, plans: &[ListenerPlan]) -> Result<(), StartError> {
    // A proxy in front may speak https for it.
    let is_plain = |plan: &&ListenerPlan| !plan.has_tls && config.forwarded_allow_ips.is_empty();
    if !config.hsts.is_zero()
        && !config.https_redirect
        && let Some(plan) = plans.iter().find(is_plain)
    {
        return Err(StartError::HstsInPlain { endpoint: plan.endpoint.clone() });
    }
    let has_http2 = |plan: &ListenerPlan| if plan.has_tls { config.http2 } else { config.h2c };
    if !config.http1
        && let Some(plan) = plans.iter().find(|plan| !has_http2(plan))
    {
        let setting = if plan.has_tls { "http2" } else { "h2c" };
        return Err(StartError::NoHttp { endpoint: plan.endpoint.clone(), setting });
    }
    Ok(())
}

/// Returns what takes the handshakes, where a listener has TLS.
pub(super) fn tls_acceptor(
    server: &Server,
    plans: &[ListenerPlan],
) -> Result<Option<Arc<TlsAcceptor>>, StartError> {
    check(&server.config, plans)?;
    match plans.iter().find(|plan| plan.has_tls) {
        Some(plan) => super::tls::acceptor(server, &plan.endpoint).map(Some),
        None => Ok(None),
    }
}

fn plan(
    server: &Server,
    endpoint: Endpoint,
    spec: &ListenSpec,
) -> Result<ListenerPlan, StartError> {
    let config = &server.config;
    let mut options = config.worker_plan(1).listen_options();
    options.defer_accept = spec.defer_accept.unwrap_or(options.defer_accept);
    let bind = &mut options.bind;
    bind.backlog = spec.backlog.unwrap_or(bind.backlog);
    (bind.v6only, bind.freebind, bind.device) = (spec.v6only, spec.freebind, spec.device.clone());
    if endpoint.socket_file().is_some() {
        bind.mode = spec.mode.or_else(|| u32::from_str_radix(&config.uds_mode, 8).ok());
        let owner = spec.owner.as_deref().unwrap_or(&config.uds_owner);
        if !owner.is_empty() {
            let unknown = || StartError::Owner { text: owner.to_owned() };
            bind.owner = privileges::owner(owner).ok_or_else(unknown)?;
        }
    }
    let proxies = proxy_rule(config, spec)?;
    let has_tls = spec.tls.unwrap_or(has_certificate(server));
    Ok(ListenerPlan { endpoint, nth: 0, options, proxies, has_tls })
}

/// Returns whether a listener speaks plain HTTP.
pub(super) fn has_plain(plans: &[ListenerPlan]) -> bool {
    plans.iter().any(|plan| !plan.has_tls)
}

/// Returns whether there is anything to speak TLS with.
fn has_certificate(server: &Server) -> bool {
    let config = &server.config;
    config.tls_cert.is_some() || !config.acme.is_empty() || !server.site_tls.is_empty()
}

/// Returns a listener's rule about PROXY headers.
fn proxy_rule(config: &Config, spec: &ListenSpec) -> Result<ProxyRule, StartError> {
    if spec.proxy_protocol.is_none() && spec.proxy_allow_from.is_empty() {
        return Ok(ProxyRule::Usual);
    }
    if !spec.proxy_protocol.unwrap_or(config.proxy_protocol) {
        return Ok(ProxyRule::Off);
    }
    let own = Some(&spec.proxy_allow_from).filter(|own| !own.is_empty());
    let texts = own.unwrap_or(&config.proxy_allow_from);
    if texts.is_empty() {
        return Err(StartError::AnyProxy);
    }
    let wrong =
        |text: &str| StartError::Network { setting: "proxy-allow-from", text: text.to_owned() };
    Ok(ProxyRule::From(Networks::of(texts).map_err(wrong)?))
}

fn spec(text: &str) -> Result<ListenSpec, StartError> {
    let failed = |problem| StartError::Host {
        host: text.to_owned(),
        error: io::Error::new(io::ErrorKind::InvalidInput, problem),
    };
    ListenSpec::parse(text).map_err(failed)
}

/// Parses the address of a listener: `127.0.0.1:80`, `[::1]:80`, `localhost:80`,
/// `unix:/run/site.sock`, `unix:@name` or `fd:3`. What is behind it is left out.
pub(crate) fn endpoint_of(text: &str) -> Result<Endpoint, StartError> {
    endpoint(&spec(text)?.address, NameLookup::Now)
}

fn endpoint(text: &str, names: NameLookup) -> Result<Endpoint, StartError> {
    if let Some(path) = text.strip_prefix("unix:") {
        return Ok(Endpoint::Unix(path.into()));
    }
    if let Some(number) = text.strip_prefix("fd:").and_then(|number| number.parse().ok()) {
        return Ok(Endpoint::Inherited(number));
    }
    let parts = text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let Some((host, port)) = parts else {
        let error = io::Error::new(io::ErrorKind::InvalidInput, "it has no port");
        return Err(StartError::Host { host: text.to_owned(), error });
    };
    tcp(host.trim_start_matches('[').trim_end_matches(']'), port, names)
}

/// Returns whether an address has the name of a host.
fn is_name(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_err()
}

/// What stands for an address that is not known yet.
const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

fn tcp(host: &str, port: u16, names: NameLookup) -> Result<Endpoint, StartError> {
    if names == NameLookup::AtStart && host.parse::<IpAddr>().is_err() {
        let is_local = host.eq_ignore_ascii_case("localhost");
        let ip = if is_local { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { ANY };
        return Ok(Endpoint::Tcp(SocketAddr::new(ip, port)));
    }
    let unknown = |error| StartError::Host { host: host.to_owned(), error };
    first_address((host, port)).map(Endpoint::Tcp).map_err(unknown)
}

#[cfg(test)]
mod tests {
    use crate::Server;

    #[test]
    fn a_check_looks_up_no_name_and_refuses_what_no_machine_understands() {
        let check = |listener: &str| Server::new().listen_on(&[listener]).check();
        check("no-such-host.invalid:80").expect("another machine may know it");
        for listener in ["127.0.0.1:80 nonsense", "no-port", "127.0.0.1:80 mode=660"] {
            assert!(check(listener).is_err(), "{listener}");
        }
        let twice = Server::new().listen_on(&["127.0.0.1:80", "127.0.0.1:80"]).check();
        assert!(twice.is_err());
    }
}
