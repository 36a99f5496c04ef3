//! Which servers can be served together.

use std::collections::{BTreeMap, BTreeSet};

use super::LeftOuts;
use super::scope::{NginxAnswer, NginxScope};
use super::server::{NginxServer, ServerListener};
use super::settings::GlobalSettings;
use super::syntax::Directive;

/// The servers that are served together.
pub(super) struct ImportedServers {
    /// For hosts that have no server of their own.
    pub(super) main: NginxServer,
    pub(super) sites: Vec<NginxServer>,
}

/// Returns the servers that can be served together, and sets where they listen; `None`: there are
/// none. The others are left out: a site is reached by every listener, and theirs are others.
pub(super) fn chosen(
    mut servers: Vec<NginxServer>,
    settings: &mut GlobalSettings,
    left: &mut LeftOuts,
) -> Option<ImportedServers> {
    servers.retain(|server| {
        let listens = !server.listeners.is_empty();
        if !listens {
            left.add(&server.directive, "it listens nowhere that can be taken over: left out");
        }
        listens
    });
    share_options(&mut servers);
    let defaults = defaults(&servers);
    redirect_to_https(&mut servers, settings, left);
    let ServerGroup { main, others, closed } =
        ServerGroup::of(servers, settings.redirects_to_https, &defaults, left)?;
    settings.listen(main.listeners.iter().map(ServerListener::setting));
    let (mut sites, mut taken) = (Vec::new(), main.hosts.clone());
    sites.extend(redirected(&main, &mut taken));
    for mut server in others {
        let hosts = std::mem::take(&mut server.hosts);
        for host in hosts {
            if !taken.contains(&host) {
                taken.push(host.clone());
                server.hosts.push(host);
            }
        }
        if server.hosts.is_empty() {
            left.add(&server.directive, "no host of its own leads to it: left out");
            continue;
        }
        settings.listen(server.listeners.iter().map(ServerListener::setting));
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
    for mut site in closed {
        site.hosts.retain(|host| !taken.contains(host));
        taken.extend(site.hosts.iter().cloned());
        sites.push(site);
    }
    sites.retain(|site| !site.hosts.is_empty());
    sites.extend(among_patterns(&main, &sites));
    Some(ImportedServers { main, sites })
}

/// Returns a site for the hosts of the main server that a pattern of another one matches.
fn among_patterns(main: &NginxServer, sites: &[NginxServer]) -> Option<NginxServer> {
    let mut hosts = main.hosts.clone();
    let others = || sites.iter().flat_map(|site| &site.hosts);
    let is_matched = |host: &String| {
        let mut ends = others().filter_map(|other| other.strip_prefix('*'));
        ends.any(|end| host.ends_with(end)) && others().all(|other| other != host)
    };
    hosts.retain(is_matched);
    let is_some = !hosts.is_empty();
    is_some.then(|| NginxServer { hosts, redirected: Vec::new(), ..main.clone() })
}

/// Makes a setting of redirects to https where all that comes in clear is redirected. Otherwise
/// they are servers like others, and what cannot be redirected alone is closed.
fn redirect_to_https(
    servers: &mut Vec<NginxServer>,
    settings: &mut GlobalSettings,
    left: &mut LeftOuts,
) {
    let others = || servers.iter().filter(|one| !one.only_redirects());
    let all_redirect = others().any(NginxServer::has_tls) && !others().any(NginxServer::is_plain);
    let has_redirects = servers.iter().any(NginxServer::only_redirects);
    settings.redirects_to_https =
        all_redirect && (has_redirects || others().any(|one| one.forces_tls));
    if settings.redirects_to_https {
        // Others go where nothing listens.
        for server in servers.extract_if(.., |one| one.only_redirects()) {
            settings.listen(server.listeners.iter().map(|one| (one.setting().0, false)));
        }
        return;
    }
    for server in servers.iter_mut().filter(|one| one.forces_tls) {
        server.scope.is_closed = true;
        left.add(&server.directive, "it redirects to https, others do not: 403");
    }
}

/// Gives all listeners of an address what one of them says of it.
fn share_options(servers: &mut [NginxServer]) {
    let all = servers.iter().flat_map(|one| &one.listeners);
    let of = |is_it: fn(&ServerListener) -> bool| -> BTreeSet<String> {
        all.clone().filter(|one| is_it(one)).map(|one| one.address.clone()).collect()
    };
    let (with_tls, dual) = (of(|one| one.has_tls), of(|one| one.is_dual));
    for one in servers.iter_mut().flat_map(|one| &mut one.listeners) {
        one.has_tls |= with_tls.contains(&one.address);
        one.is_dual |= dual.contains(&one.address);
    }
}

/// Returns the server for unknown hosts, by the reach of each listener. A line may have several.
fn defaults(servers: &[NginxServer]) -> BTreeMap<String, Directive> {
    let mut defaults = BTreeMap::new();
    for is_named in [true, false] {
        for server in servers {
            for one in server.listeners.iter().filter(|one| one.is_default || !is_named) {
                defaults.entry(one.reach()).or_insert_with(|| server.directive.clone());
            }
        }
    }
    defaults
}

/// Servers that listen at the same addresses.
struct ServerGroup {
    /// For unknown hosts.
    main: NginxServer,
    others: Vec<NginxServer>,
    /// Those that were left out, closed: a listener of the group is for their hosts as well.
    closed: Vec<NginxServer>,
}

impl ServerGroup {
    /// Returns the servers that listen where the first one does that serves something.
    fn of(
        servers: Vec<NginxServer>,
        redirects: bool,
        defaults: &BTreeMap<String, Directive>,
        left: &mut LeftOuts,
    ) -> Option<Self> {
        let first = first_of(&servers)?;
        let (reach, ports) = (first.reach(redirects), first.ports(redirects));
        let (mut others, left_out): (Vec<_>, Vec<_>) =
            servers.into_iter().partition(|one| one.reach(redirects) == reach);
        let mut closed = Vec::new();
        for server in left_out {
            let why = if server.only_redirects() {
                "a redirect to https beside servers without it: left out"
            } else {
                "it listens elsewhere: import it into a file of its own"
            };
            left.add(&server.directive, why);
            if !server.hosts.is_empty() && !ports.is_disjoint(&server.ports(redirects)) {
                left.add(&server.directive, "its hosts get 403: they reach the others' listeners");
                let hosts = server.hosts.clone();
                closed.push(NginxServer { hosts, certificate: None, ..closed_as(&server) });
            }
        }
        let is_main = |one: &NginxServer| {
            reach.iter().all(|listener| defaults.get(listener) == Some(&one.directive))
        };
        if let Some(at) = others.iter().position(is_main) {
            return Some(Self { main: others.remove(at), others, closed });
        }
        // That of nginx is none of these, or there are several.
        let first = others.first()?;
        left.add(&first.directive, "a server that was left out is for hosts without one: 403");
        Some(Self { main: closed_as(first), others, closed })
    }
}

/// Returns the server whose listeners are taken over: the default one of those that serve
/// something, or else their first.
fn first_of(servers: &[NginxServer]) -> Option<&NginxServer> {
    let redirects = || servers.iter().filter(|one| one.only_redirects());
    let others = || servers.iter().filter(|one| !one.only_redirects());
    let serving = || others().filter(|one| !one.is_empty());
    let is_default = |one: &&NginxServer| one.listeners.iter().any(|one| one.is_default);
    let first = serving().find(is_default).or(serving().next());
    first.or(redirects().find(is_default)).or(redirects().next()).or(others().next())
}

/// Returns a server for no hosts that serves nothing, where another one listens.
fn closed_as(server: &NginxServer) -> NginxServer {
    NginxServer {
        hosts: Vec::new(),
        scope: NginxScope { is_closed: true, ..NginxScope::default() },
        locations: Vec::new(),
        redirected: Vec::new(),
        ..server.clone()
    }
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
