//! Servers: where they listen, and for which hosts.

use std::collections::BTreeSet;

use super::LeftOuts;
use super::location::{LocationMatcher, NginxLocation};
use super::scope::{NginxAnswer, NginxScope};
use super::settings::GlobalSettings;
use super::syntax::Directive;
use crate::listen::ListenSpec;

/// A listener of a server.
#[derive(Clone, Debug)]
pub(super) struct ServerListener {
    /// As the setting `listen` takes it, without TLS.
    pub(super) address: String,
    pub(super) has_tls: bool,
    pub(super) is_default: bool,
    /// An address of IPv6 that takes IPv4 as well.
    pub(super) is_dual: bool,
}

impl ServerListener {
    /// Returns what tells listeners apart: IPv4 and IPv6 belong together.
    pub(super) fn reach(&self) -> String {
        let (host, port) = self.address.rsplit_once(':').unwrap_or((&self.address, ""));
        let host = if ["0.0.0.0", "[::]"].contains(&host) { "*" } else { host };
        let scheme = if self.has_tls { "https" } else { "http" };
        format!("{scheme}://{host}:{port}")
    }

    /// Returns it as the setting `listen` takes it, and whether it speaks TLS.
    pub(super) fn setting(&self) -> (String, bool) {
        let is_only = self.address.starts_with('[') && !self.is_dual;
        let options = if is_only { " v6only=true" } else { "" };
        (format!("{}{options}", self.address), self.has_tls)
    }
}

/// A server.
#[derive(Clone, Debug)]
pub(super) struct NginxServer {
    pub(super) directive: Directive,
    /// Hosts, in small letters.
    pub(super) hosts: Vec<String>,
    pub(super) listeners: Vec<ServerListener>,
    /// It says where it listens, whether that can be taken over or not.
    pub(super) has_listen: bool,
    pub(super) scope: NginxScope,
    pub(super) locations: Vec<NginxLocation>,
    pub(super) certificate: Option<String>,
    pub(super) key: Option<String>,
    /// Hosts that are redirected by `if ($host = …)`, and where to.
    pub(super) redirected: Vec<(String, String)>,
    /// It redirects what comes in clear to https.
    pub(super) forces_tls: bool,
}

impl NginxServer {
    /// Reads a server.
    pub(super) fn read(
        directive: &Directive,
        http: &NginxScope,
        settings: &mut GlobalSettings,
        left: &mut LeftOuts,
    ) -> Self {
        let mut server = Self {
            directive: directive.clone(),
            hosts: Vec::new(),
            listeners: Vec::new(),
            has_listen: false,
            scope: http.inner(),
            locations: Vec::new(),
            certificate: None,
            key: None,
            redirected: Vec::new(),
            forces_tls: false,
        };
        let all: Vec<&Directive> = directive.block.iter().flatten().collect();
        for one in all.iter().filter(|one| one.name != "location") {
            server.take(one, settings, left);
        }
        // It is for all listeners, also those behind it.
        if all.iter().any(|one| one.name == "ssl" && one.args() == ["on"]) {
            server.listeners.iter_mut().for_each(|one| one.has_tls = true);
        }
        server.scope.check_types(directive, |_| true, left);
        server.scope.finish(directive, directive.block.as_deref().unwrap_or_default(), left);
        // Locations inherit all of the server, also what is written behind them.
        for one in all.iter().filter(|one| one.name == "location") {
            server.locations.push(NginxLocation::read(one, &server.scope, left));
        }
        if !server.has_listen {
            let address = "0.0.0.0:80".to_owned();
            let listener =
                ServerListener { address, has_tls: false, is_default: false, is_dual: false };
            server.listeners.push(listener);
        }
        server
    }

    fn take(&mut self, one: &Directive, settings: &mut GlobalSettings, left: &mut LeftOuts) {
        match (&*one.name, &one.args()[..]) {
            ("listen", args) => self.listen(one, args, left),
            ("server_name", names) => self.names(one, names, left),
            ("ssl_certificate", [path]) if !path.contains('$') => {
                self.certificate.get_or_insert_with(|| (*path).to_owned());
            }
            ("ssl_certificate_key", [path]) if !path.contains('$') => {
                self.key.get_or_insert_with(|| (*path).to_owned());
            }
            ("ssl", ["on"]) => {}
            ("if", condition) => self.condition(one, condition, left),
            ("ssl_protocols", _) => settings.compare(one, left),
            _ if settings.take(one, left) => {}
            _ => self.scope.apply(one, left),
        }
    }

    fn listen(&mut self, one: &Directive, args: &[&str], left: &mut LeftOuts) {
        self.has_listen = true;
        let Some((address, options)) = args.split_first() else {
            return self.scope.close(one, "expected an address", left);
        };
        if options.contains(&"quic") {
            return left.add(one, "there is no HTTP/3: left out");
        }
        let is_port = |text: &str| text.parse::<u16>().is_ok();
        let address = match address.strip_prefix("*:") {
            _ if is_port(address) => format!("0.0.0.0:{address}"),
            Some(port) => format!("0.0.0.0:{port}"),
            None if address.starts_with("unix:") => (*address).to_owned(),
            None if address.starts_with('[') && address.ends_with(']') => format!("{address}:80"),
            None if !address.contains(':') => format!("{address}:80"),
            None => (*address).to_owned(),
        };
        if options.contains(&"proxy_protocol") {
            // It needs to know the peers that may send it.
            return self.scope.close(one, "say by proxy-allow-from who sends PROXY headers", left);
        }
        let listener = ServerListener {
            address,
            has_tls: options.contains(&"ssl"),
            is_default: options.contains(&"default_server") || options.contains(&"default"),
            is_dual: options.contains(&"ipv6only=off"),
        };
        if listener.address.contains([',', ' '])
            || ListenSpec::parse(&listener.setting().0).is_err()
        {
            return left.add(one, "expected an address and a port: left out");
        }
        self.listeners.push(listener);
    }

    fn names(&mut self, one: &Directive, names: &[&str], left: &mut LeftOuts) {
        for name in names {
            let name = name.to_ascii_lowercase();
            let all = match name.strip_prefix('.') {
                Some(below) => vec![below.to_owned(), format!("*.{below}")],
                None => vec![name],
            };
            for name in all {
                if is_host(&name) {
                    self.hosts.push(name);
                } else if !["_", "", "\"\""].contains(&&*name) {
                    left.add(one, &format!("{name} is no host that a site can have: left out"));
                }
            }
        }
    }

    /// Reads `if ($host = www.example.org) { return 301 … }`, and `if ($scheme = http)`.
    fn condition(&mut self, one: &Directive, condition: &[&str], left: &mut LeftOuts) {
        let condition = condition.join(" ");
        let words: Vec<&str> =
            condition.trim_start_matches('(').trim_end_matches(')').split_whitespace().collect();
        let block: Vec<&Directive> = one.block.iter().flatten().collect();
        let to = match &block[..] {
            [only] if only.name == "return" => match &only.args()[..] {
                ["301" | "302" | "307" | "308", to] => Some((*to).to_owned()),
                _ => None,
            },
            _ => None,
        };
        match (&words[..], to) {
            (["$host" | "$http_host", "=", host], Some(to)) if is_host(host) => {
                self.redirected.push((host.to_ascii_lowercase(), to));
            }
            (
                ["$scheme", "=", "http"] | ["$scheme", "!=", "https"] | ["$https", "=", ""],
                Some(to),
            ) if is_same_host(&to, &self.hosts) => {
                self.forces_tls = true;
            }
            _ => self.scope.close(one, "this condition is not understood", left),
        }
    }

    /// Returns the only host of the server, if it has one that is no pattern.
    pub(super) fn host(&self) -> Option<&str> {
        match &self.hosts[..] {
            [host] if !host.starts_with('*') => Some(host),
            _ => None,
        }
    }

    /// Returns what the paths without another location are served by.
    pub(super) fn root_scope(&self) -> &NginxScope {
        let mut roots = self.locations.iter().filter(|one| one.prefix() == Some("/"));
        roots.next().map_or(&self.scope, |one| &one.scope)
    }

    /// Returns whether it has a location for a prefix.
    pub(super) fn has_prefix(&self, path: &str) -> bool {
        self.locations.iter().any(|one| one.prefix() == Some(path))
    }

    /// Returns whether it has a location for a path of its own.
    pub(super) fn has_exact(&self, path: &str) -> bool {
        self.locations.iter().any(|one| match &one.matcher {
            LocationMatcher::Exact(known) => known == path,
            _ => false,
        })
    }

    /// Returns whether a request for a path comes to a deeper location than that of `prefix`.
    pub(super) fn has_deeper(&self, prefix: &str, path: &str) -> bool {
        let mut prefixes = self.locations.iter().filter_map(NginxLocation::prefix);
        let is_deeper = |one: &str| one.len() > prefix.len() && path.starts_with(one);
        path != prefix && self.has_exact(path) || prefixes.any(is_deeper)
    }

    /// Returns the directive of a location's path, or of the server.
    pub(super) fn directive_of(&self, path: &str) -> Directive {
        let is_it = |one: &&NginxLocation| match &one.matcher {
            LocationMatcher::Exact(known) | LocationMatcher::Prefix { path: known, .. } => {
                known == path
            }
            _ => false,
        };
        let found = self.locations.iter().find(is_it);
        found.map_or(&self.directive, |one| &one.directive).clone()
    }

    pub(super) fn has_tls(&self) -> bool {
        self.listeners.iter().any(|one| one.has_tls)
    }

    /// Returns whether it does nothing but redirect to https.
    pub(super) fn only_redirects(&self) -> bool {
        let same = |to: &String| is_same_host(to, &self.hosts);
        let is_redirect = |scope: &NginxScope| match (scope.rewrites.first(), &scope.answer) {
            (Some(rewrite), _) => rewrite.is_of_all() && same(&rewrite.to),
            (None, Some(NginxAnswer::Redirect { to, .. })) => same(to),
            _ => false,
        };
        let has_rewrites = !self.scope.rewrites.is_empty();
        let is_end =
            matches!(self.scope.answer, None | Some(NginxAnswer::Text { status: 404, .. }));
        let is_challenge = |one: &NginxLocation| match &one.matcher {
            LocationMatcher::Prefix { path, .. } => path.starts_with("/.well-known/"),
            _ => false,
        };
        let mut others = self.locations.iter().filter(|one| !is_challenge(one));
        let of_location = |one: &NginxLocation| match &one.matcher {
            LocationMatcher::Prefix { path, .. } => path == "/" && is_redirect(&one.scope),
            _ => false,
        };
        let by_hosts = !self.redirected.is_empty()
            && self
                .redirected
                .iter()
                .all(|(host, to)| is_same_host(to, std::slice::from_ref(host)));
        if self.has_tls() || self.scope.is_closed {
            return false;
        }
        is_redirect(&self.scope)
            || by_hosts && is_end && !has_rewrites && self.locations.is_empty()
            || !self.scope.responds()
                && self.locations.iter().any(of_location)
                && others.all(of_location)
    }

    /// Returns what tells its listeners from those of other servers.
    ///
    /// - `redirects`: what comes in clear is redirected, for all servers.
    pub(super) fn reach(&self, redirects: bool) -> BTreeSet<String> {
        self.serving_listeners(redirects).map(ServerListener::reach).collect()
    }

    /// Returns the ports of those listeners, or the paths of sockets.
    pub(super) fn ports(&self, redirects: bool) -> BTreeSet<String> {
        let port = |one: &ServerListener| one.address.rsplit(':').next().map(str::to_owned);
        self.serving_listeners(redirects).filter_map(port).collect()
    }

    fn serving_listeners(&self, redirects: bool) -> impl Iterator<Item = &ServerListener> {
        let counts = move |one: &&ServerListener| one.has_tls || !(redirects && self.has_tls());
        self.listeners.iter().filter(counts)
    }

    /// Returns whether it serves nothing.
    pub(super) fn is_empty(&self) -> bool {
        let is_error = matches!(self.scope.answer, Some(NginxAnswer::Text { status: 400.., .. }));
        self.scope.is_closed || is_error && self.scope.rewrites.is_empty()
    }

    /// Returns whether something of it is served in clear.
    pub(super) fn is_plain(&self) -> bool {
        self.listeners.iter().any(|one| !one.has_tls) && !self.forces_tls && !self.is_empty()
    }
}

/// Returns whether a text is a host as a site has it.
fn is_host(name: &str) -> bool {
    let rest = name.strip_prefix("*.").unwrap_or(name);
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_part = |part: &str| !part.is_empty() && part.len() <= 63;
    rest != "_" && rest.len() <= 253 && rest.bytes().all(letter) && rest.split('.').all(is_part)
}

/// Returns whether a target is the same path of the same host by https.
fn is_same_host(to: &str, hosts: &[String]) -> bool {
    let Some(rest) = to.strip_prefix("https://") else { return false };
    let rest = rest.trim_end_matches('?');
    let Some(host) = rest.strip_suffix("$request_uri").or_else(|| rest.strip_suffix("$uri")) else {
        return false;
    };
    ["$host", "$http_host", "$server_name"].contains(&host)
        || hosts.len() == 1 && hosts.iter().any(|known| known == host)
}
