//! Servers: where they listen, for which hosts, and which of them can be served together.

use std::collections::BTreeSet;

use super::LeftOuts;
use super::location::{LocationMatcher, NginxLocation};
use super::scope::{NginxAnswer, NginxScope};
use super::settings::GlobalSettings;
use super::syntax::Directive;
use crate::listen::ListenSpec;

/// A listener of a server.
#[derive(Clone, Debug)]
struct ServerListener {
    /// As the setting `listen` takes it, without TLS.
    address: String,
    has_tls: bool,
    is_default: bool,
}

/// A server.
#[derive(Clone, Debug)]
pub(super) struct NginxServer {
    pub(super) directive: Directive,
    /// Hosts, in small letters.
    pub(super) hosts: Vec<String>,
    listeners: Vec<ServerListener>,
    pub(super) scope: NginxScope,
    pub(super) locations: Vec<NginxLocation>,
    pub(super) certificate: Option<String>,
    pub(super) key: Option<String>,
    /// Hosts that are redirected by `if ($host = …)`, and where to.
    redirected: Vec<(String, String)>,
    /// It redirects what comes in clear to https.
    forces_tls: bool,
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
        server.scope.finish(directive, left);
        // Locations inherit all of the server, also what is written behind them.
        for one in all.iter().filter(|one| one.name == "location") {
            server.locations.push(NginxLocation::read(one, &server.scope, left));
        }
        if server.listeners.is_empty() {
            server.listeners.push(ServerListener {
                address: "0.0.0.0:80".to_owned(),
                has_tls: false,
                is_default: false,
            });
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
            ("ssl", ["on"]) => self.listeners.iter_mut().for_each(|one| one.has_tls = true),
            ("if", condition) => self.condition(one, condition, left),
            ("ssl_protocols", _) => settings.compare(one, left),
            _ if settings.take(one, left) => {}
            _ => self.scope.apply(one, left),
        }
    }

    fn listen(&mut self, one: &Directive, args: &[&str], left: &mut LeftOuts) {
        let Some((address, options)) = args.split_first() else {
            return self.scope.close(one, "expected an address", left);
        };
        if options.contains(&"quic") {
            return left.add(one, "there is no HTTP/3: left out");
        }
        let is_port = |text: &str| text.parse::<u16>().is_ok();
        let mut text = match address.strip_prefix("*:") {
            _ if is_port(address) => format!("0.0.0.0:{address}"),
            Some(port) => format!("0.0.0.0:{port}"),
            None if address.starts_with("unix:") => (*address).to_owned(),
            None if address.starts_with('[') && address.ends_with(']') => format!("{address}:80"),
            None if !address.contains(':') => format!("{address}:80"),
            None => (*address).to_owned(),
        };
        if text.starts_with('[') && !options.contains(&"ipv6only=off") {
            text.push_str(" v6only=true");
        }
        if options.contains(&"proxy_protocol") {
            // It needs to know the peers that may send it.
            return self.scope.close(one, "say by proxy-allow-from who sends PROXY headers", left);
        }
        if text.contains(',') || ListenSpec::parse(&text).is_err() {
            return left.add(one, "expected an address and a port: left out");
        }
        self.listeners.push(ServerListener {
            address: text,
            has_tls: options.contains(&"ssl"),
            is_default: options.contains(&"default_server") || options.contains(&"default"),
        });
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
        let of = |one: &NginxLocation| matches!(&one.matcher, LocationMatcher::Exact(known) if known == path);
        self.locations.iter().any(of)
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

    fn is_default(&self) -> bool {
        self.listeners.iter().any(|one| one.is_default)
    }

    fn has_tls(&self) -> bool {
        self.listeners.iter().any(|one| one.has_tls)
    }

    /// Returns whether it does nothing but redirect to https.
    fn only_redirects(&self) -> bool {
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

    /// Returns what tells the listeners of servers apart: 80 and 443 belong together, as do IPv4
    /// and IPv6.
    fn reach(&self) -> BTreeSet<String> {
        let plain = |one: &ServerListener| {
            let address = one.address.split(' ').next().unwrap_or_default();
            let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
            let host = if ["0.0.0.0", "[::]"].contains(&host) { "*" } else { host };
            let port = if ["80", "443"].contains(&port) { "http" } else { port };
            format!("{host}:{port}")
        };
        self.listeners.iter().map(plain).collect()
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

/// The servers that are served together.
pub(super) struct ImportedServers {
    /// For hosts that have no server of their own.
    pub(super) main: NginxServer,
    pub(super) sites: Vec<NginxServer>,
}

/// Returns the servers that can be served together, and sets where they listen. The others are
/// left out: a site is reached by every listener, and theirs are others.
pub(super) fn chosen(
    servers: Vec<NginxServer>,
    settings: &mut GlobalSettings,
    left: &mut LeftOuts,
) -> ImportedServers {
    let (redirects, mut others): (Vec<_>, Vec<_>) =
        servers.into_iter().partition(NginxServer::only_redirects);
    let has_tls = others.iter().any(NginxServer::has_tls);
    let is_plain = |one: &NginxServer| one.listeners.iter().any(|one| !one.has_tls);
    // Redirects of all that comes in clear are a setting; others go where nothing listens.
    let all_redirect = has_tls && !others.iter().any(|one| is_plain(one) && !one.forces_tls);
    settings.redirects_to_https =
        all_redirect && (!redirects.is_empty() || others.iter().any(|one| one.forces_tls));
    for server in &redirects {
        if settings.redirects_to_https {
            settings.listen(server.listeners.iter().map(|one| (&*one.address, false)));
        } else {
            left.add(&server.directive, "a redirect to https beside servers without it: left out");
        }
    }
    for server in others.iter_mut().filter(|one| one.forces_tls) {
        if !settings.redirects_to_https {
            server.scope.is_closed = true;
            left.add(&server.directive, "it redirects to https, others do not: 403");
        }
    }
    if others.is_empty() {
        // Nothing but redirects: they are routes.
        others = redirects;
    }
    let default = others.iter().position(NginxServer::is_default).unwrap_or(0);
    let main = others.remove(default);
    let reach = main.reach();
    let (mut sites, mut taken) = (Vec::new(), main.hosts.clone());
    settings.listen(main.listeners.iter().map(|one| (&*one.address, one.has_tls)));
    sites.extend(redirected(&main, &mut taken));
    for mut server in others {
        if server.reach() != reach {
            left.add(&server.directive, "it listens elsewhere: import it into a file of its own");
            continue;
        }
        server.hosts.retain(|host| !taken.contains(host));
        server.hosts.dedup();
        if server.hosts.is_empty() {
            left.add(&server.directive, "no host of its own leads to it: left out");
            continue;
        }
        taken.extend(server.hosts.iter().cloned());
        settings.listen(server.listeners.iter().map(|one| (&*one.address, one.has_tls)));
        sites.extend(redirected(&server, &mut taken));
        sites.push(server);
    }
    // Hosts that were redirected have sites of their own.
    let own: Vec<String> = sites
        .iter()
        .filter(|one| one.redirected.is_empty())
        .flat_map(|one| one.hosts.clone())
        .collect();
    for site in sites.iter_mut().filter(|one| !one.redirected.is_empty()) {
        site.hosts.retain(|host| !own.contains(host));
    }
    sites.retain(|site| !site.hosts.is_empty());
    ImportedServers { main, sites }
}

/// Returns sites for the hosts that a server redirects.
fn redirected(server: &NginxServer, taken: &mut Vec<String>) -> Vec<NginxServer> {
    let mut sites: Vec<NginxServer> = Vec::new();
    for (host, to) in &server.redirected {
        let is_new = !sites.iter().any(|site| site.hosts.contains(host));
        if !is_new {
            continue;
        }
        taken.push(host.clone());
        let answer = NginxAnswer::Redirect { status: 301, to: to.clone() };
        let scope = NginxScope { answer: Some(answer), ..NginxScope::default() };
        sites.push(NginxServer {
            hosts: vec![host.clone()],
            scope,
            locations: Vec::new(),
            redirected: Vec::new(),
            ..server.clone()
        });
    }
    sites
}
