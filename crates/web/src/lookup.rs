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
/// request, which is built where it is needed. Where another path takes the place of the request's,
/// all of that is about the other one.
///
/// - `method`: the one whose endpoint it is.
pub fn find<'t, 'p>(
    cache: &RouteCache,
    table: &'t RouteTable,
    method: Method,
    asked: (&'p Head, &'p [u8]),
    origin: RequestSource<'_>,
) -> RouteMatch<'t, 'p> {
    match if table.rewrites().is_empty() { Rewritten::Not } else { rewritten(table, asked) } {
        Rewritten::Not => find_path(cache, table, method, asked, origin),
        Rewritten::To(to) => {
            let (head, bytes) = &*to;
            let (endpoint, mut request, path) =
                find_path(cache, table, method, (head, bytes), origin);
            // Its gate may ask whether the URL is signed, which is the one that was sent.
            if let (EndpointKind::Gated(_), Some(request)) = (&endpoint.kind, &mut request) {
                keep_sent(request, asked);
            }
            (endpoint, request, path.map(CanonicalPath::into_owned))
        }
        Rewritten::Nowhere => (&table.no_path, None, None),
    }
}

/// What rewrites make of a request.
enum Rewritten {
    Not,
    To(Box<(Head, Vec<u8>)>),
    /// Its new path cannot be served.
    Nowhere,
}

#[cold]
fn rewritten(table: &RouteTable, (head, bytes): (&Head, &[u8])) -> Rewritten {
    let view = head.on(bytes);
    let Ok(path) = CanonicalPath::of(view.path()) else { return Rewritten::Not };
    let query = view.query().and_then(|query| std::str::from_utf8(query).ok());
    let Some(target) = table.rewrites().target(path.as_str(), query) else {
        return Rewritten::Not;
    };
    match head.with_target(bytes, &target) {
        Some(to) => Rewritten::To(Box::new(to)),
        None => Rewritten::Nowhere,
    }
}

fn keep_sent(request: &mut Request, (head, bytes): (&Head, &[u8])) {
    let view = head.on(bytes);
    if let Ok(path) = CanonicalPath::of(view.path()) {
        request.parts_mut().set_sent(path.into_owned(), view.query().unwrap_or_default());
    }
}

/// Finds the endpoint of the path that a request has.
fn find_path<'t, 'p>(
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
