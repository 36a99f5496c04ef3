//! CONNECT (RFC 9110 §9.3.6): no Python application is asked for a tunnel.

use gustnado::{Method, Request, Response, Route, Status};

const ALLOW: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// Whether a request asks for a tunnel.
pub(crate) fn is_wanted(request: &Request) -> bool {
    request.method() == Method::Connect
}

/// The answer to it. The connection ends: what its client sends next may not be HTTP.
pub(crate) fn refusal() -> Response {
    Response::new(Status::METHOD_NOT_ALLOWED).header("Allow", ALLOW).close()
}

/// Refuses it at a path whose handler takes all methods. (As a task, which waits for no body.)
pub(crate) fn refused_by(route: Route) -> Route {
    route.on(Method::Connect, |_: Request| async { refusal() })
}
