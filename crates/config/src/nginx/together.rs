//! Which servers can be served together.

use std::collections::{BTreeMap, BTreeSet};

use super::LeftOuts;
use super::scope::{NginxAnswer, NginxScope};
use super::server::{NginxServer, ServerListener};
use super::settings::GlobalSettings;
use crate::file_settings::FilePlace;

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
    let (redirects, mut others): (Vec<_>, Vec<_>) =
        servers.into_iter().partition(NginxServer::only_redirects);
    let has_tls = others.iter().any(NginxServer::has_tls);
    // Redirects of all that comes in clear are a setting; others go where nothing listens.
    let all_redirect = has_tls && !others.iter().any(NginxServer::is_plain);
    settings.redirects_to_https =
        all_redirect && (!redirects.is_empty() || others.iter().any(|one| one.forces_tls));
    for server in &redirects {
        if settings.redirects_to_https {
            settings.listen(server.listeners.iter().map(|one| (one.setting().0, false)));
        } else if !others.is_empty() {
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
    let (main, others) = group(others, settings.redirects_to_https, &defaults, left)?;
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
    sites.retain(|site| !site.hosts.is_empty());
    Some(ImportedServers { main, sites })
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

/// Returns where the server for unknown hosts stands, by the reach of each listener.
fn defaults(servers: &[NginxServer]) -> BTreeMap<String, FilePlace> {
    let mut defaults = BTreeMap::new();
    for is_named in [true, false] {
        for server in servers {
            for one in server.listeners.iter().filter(|one| one.is_default || !is_named) {
                defaults.entry(one.reach()).or_insert_with(|| server.directive.place.clone());
            }
        }
    }
    defaults
}

/// Returns the server for unknown hosts, and those that listen where it does: to begin with at the
/// first one that serves something.
fn group(
    servers: Vec<NginxServer>,
    redirects: bool,
    defaults: &BTreeMap<String, FilePlace>,
    left: &mut LeftOuts,
) -> Option<(NginxServer, Vec<NginxServer>)> {
    let serving = || servers.iter().filter(|one| !one.is_empty());
    let is_default = |one: &&NginxServer| one.listeners.iter().any(|one| one.is_default);
    let first = serving().find(is_default).or(serving().next()).or(servers.first())?;
    let reach = first.reach(redirects);
    let (mut group, others): (Vec<_>, Vec<_>) =
        servers.into_iter().partition(|one| one.reach(redirects) == reach);
    for server in &others {
        left.add(&server.directive, "it listens elsewhere: import it into a file of its own");
    }
    let is_main = |one: &NginxServer| {
        reach.iter().all(|listener| defaults.get(listener) == Some(&one.directive.place))
    };
    if let Some(at) = group.iter().position(is_main) {
        return Some((group.remove(at), group));
    }
    // That of nginx is none of these, or there are several.
    let first = group.first()?;
    left.add(&first.directive, "a server that was left out is for hosts without one: 403");
    let scope = NginxScope { is_closed: true, ..NginxScope::default() };
    let main = NginxServer {
        hosts: Vec::new(),
        scope,
        locations: Vec::new(),
        redirected: Vec::new(),
        ..first.clone()
    };
    Some((main, group))
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
