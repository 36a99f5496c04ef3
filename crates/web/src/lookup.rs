//! From a request to its endpoint.

use std::sync::Arc;

use gustnado_http::head::Head;
use gustnado_http::method::Method;
use gustnado_http::path::CanonicalPath;
use gustnado_tasks::contained;

use crate::middleware::Matcher;
use crate::request::{Request, RequestSource};
use crate::route_cache::RouteCache;
use crate::routes::{EndpointKind, RouteEndpoint, RouteTable};

/// An endpoint, the request if it was built already, and the canonical path if it is needed later.
pub type RouteMatch<'t, 'p> = (&'t RouteEndpoint, Option<Box<Request>>, Option<CanonicalPath<'p>>);

/// Finds the endpoint: matchers first, then paths. Parameters of the path are stored in the
/// request, which is built where it is needed.
///
/// - `method`: the one whose endpoint it is.
pub fn find<'t, 'p>(
    cache: &RouteCache,
    table: &'t RouteTable,
    method: Method,
    (head, bytes): (&'p Head, &'p [u8]),
    origin: RequestSource<'_>,
) -> RouteMatch<'t, 'p> {
    let view = head.on(bytes);
    let Ok(path) = CanonicalPath::of(view.path()) else { return (&table.no_path, None, None) };
    let bare = || Request::bare(&cache.used, head, bytes, origin);
    let mut request = None;
    if !table.matchers().is_empty() {
        let asked = request.insert(bare());
        asked.parts_mut().set_path(path.clone().into_changed());
        let asked: &Request = asked;
        let is_meant = |matcher: &Matcher| contained(|| matcher(asked)).unwrap_or(false);
        let mut matchers = table.matchers().iter();
        if let Some((_, endpoint)) = matchers.find(|(matcher, _)| is_meant(matcher)) {
            return (endpoint, request, None);
        }
    }
    let found = table.find(method, &path);
    let endpoint = found.endpoint;
    if matches!(endpoint.kind, EndpointKind::Files { .. }) {
        return (endpoint, None, Some(path));
    }
    let mut request = request.unwrap_or_else(bare);
    let parts = request.parts_mut();
    if let Some(names) = found.names {
        parts.set_params(Arc::clone(names), found.spans(&path));
        parts.set_keeps_empty(endpoint.options.keeps_empty && found.has_rest);
    }
    drop(found);
    parts.set_path(path.into_changed());
    (endpoint, Some(request), None)
}
