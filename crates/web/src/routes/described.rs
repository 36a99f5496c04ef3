//! What the tables find for a request, in the words of its configuration.

use gustnado_config::AccessSettings;
use gustnado_http::path::CanonicalPath;
use gustnado_http::request::RequestView;

use super::entry::{EndpointKind, RouteEndpoint};
use super::table::{RouteTable, Tables, host_name};

/// What the tables find for a request.
#[derive(Clone, Debug, Default)]
pub struct DescribedRoute {
    /// The host of the site, as configured; `None` is the site of all other hosts.
    pub host: Option<String>,
    /// The target that takes the place of the request's.
    pub rewritten: Option<String>,
    /// The path of the route, as configured; `None`: no route has the path.
    pub route: Option<String>,
    /// What the route asks of its clients; `None` is nothing.
    pub access: Option<AccessSettings>,
}

impl Tables {
    /// Describes what these tables find for a request. Functions that choose requests are not
    /// asked.
    pub fn describe(&self, view: RequestView<'_>) -> DescribedRoute {
        let table = self.of_host(view);
        let host = self.name_of_host(&host_name(view));
        let Ok(path) = CanonicalPath::of(view.path()) else {
            return DescribedRoute { host, ..DescribedRoute::default() };
        };
        let query = view.query().and_then(|query| std::str::from_utf8(query).ok());
        let rewritten = table.rewrites().target(path.as_str(), query);
        let endpoint = match &rewritten {
            None => Some(table.find(view.method(), &path).endpoint),
            Some(target) => find(table, view, target),
        };
        let route = endpoint.and_then(|endpoint| self.path_of(endpoint.options.label));
        DescribedRoute {
            host,
            rewritten,
            route: route.map(str::to_owned),
            access: endpoint.and_then(access_of).cloned(),
        }
    }
}

/// Returns the endpoint of another target.
fn find<'t>(
    table: &'t RouteTable,
    view: RequestView<'_>,
    target: &str,
) -> Option<&'t RouteEndpoint> {
    let path = target.split('?').next().unwrap_or_default();
    let path = CanonicalPath::of(path.as_bytes()).ok()?;
    Some(table.find(view.method(), &path).endpoint)
}

fn access_of(endpoint: &RouteEndpoint) -> Option<&AccessSettings> {
    match &endpoint.kind {
        EndpointKind::Gated(gated) => Some(gated.settings()),
        EndpointKind::Run(_) | EndpointKind::Files { .. } => None,
    }
}
