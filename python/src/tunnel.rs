//! Refuses CONNECT (RFC 9110 §9.3.6), and WebSocket upgrades (RFC 6455) where nothing takes them,
//! before an application sees them.

use gustnado::{Method, Request, Response, Route, Status, Version};

use crate::errors::warn;

const ALLOW: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// Returns the response to a request for a tunnel or a WebSocket; `None` to every other request.
pub(crate) fn refuse(request: &Request) -> Option<Response> {
    if is_websocket(request) {
        return Some(no_websocket(request));
    }
    refuse_connect(request)
}

/// Returns the response to a request for a tunnel that is no WebSocket; `None` to every other
/// request.
pub(crate) fn refuse_connect(request: &Request) -> Option<Response> {
    if request.method() != Method::Connect {
        return None;
    }
    // One that names a path is of HTTP/2, where it is a stream of its own (RFC 8441).
    Some(if request.wants_upgrade() { Response::new(Status::NOT_IMPLEMENTED) } else { refusal() })
}

/// Returns the response to CONNECT. It closes the connection, since what the client sends next may
/// not be HTTP.
fn refusal() -> Response {
    Response::new(Status::METHOD_NOT_ALLOWED).header("Allow", ALLOW).close()
}

/// Refuses CONNECT at a path whose handler takes all methods. As a task, it waits for no body.
pub(crate) fn refused_by(route: Route) -> Route {
    route.on(Method::Connect, |_: Request| async { refusal() })
}

/// Returns whether a request is for a WebSocket.
pub(crate) fn is_websocket(request: &Request) -> bool {
    let may_be = matches!(request.method(), Method::Get | Method::Connect);
    may_be && request.wants_protocol("websocket")
}

/// Returns the response to it, and logs it, because its client shows an empty page at best. It
/// names the supported protocol (RFC 9110 §15.5.22), for which HTTP/2 has no field.
#[cold]
pub(crate) fn no_websocket(request: &Request) -> Response {
    let is_http2 = request.version() == Version::Http2;
    let status = if is_http2 { Status::NOT_IMPLEMENTED } else { Status::UPGRADE_REQUIRED };
    let line = format!(
        "{} {} requests a WebSocket, and there is none: {}",
        request.method_str(),
        request.target(),
        status.code()
    );
    warn(&line);
    let response = Response::new(status);
    if is_http2 { response } else { response.header("Upgrade", "HTTP/1.1") }
}
