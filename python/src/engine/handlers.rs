//! Handlers as Python describes them, made routes of the engine.

use std::sync::Arc;

use pyo3::prelude::*;

use gustnado::config::BodyPolicy;
use gustnado::websocket::{Origins, WebSocketEndpoint};
use gustnado::{Method, Routes};

use crate::call::{CallContext, PyHandler, SocketHandler, interned, name_of};

/// A handler, as `gustnado._routes` describes it: method (none: all), path, function, whether it
/// takes the request, the named parts of the path that it takes, whether slashes are merged,
/// whether it is exempt from the limit of handlers, how many of its path run at a time (0: any
/// number), where bodies are kept (none: as set), whether it is a coroutine function, and what its
/// pages need.
pub(super) type HandlerSpec = (
    Option<String>,
    String,
    Py<PyAny>,
    bool,
    Vec<String>,
    bool,
    bool,
    usize,
    Option<String>,
    bool,
    Vec<String>,
);

/// A handler of `WebSocket`s, as `gustnado._routes` describes it: path, function, the named parts
/// of the path that it takes, whether slashes are merged, what is called before the handshake is
/// answered and whether that is a coroutine function, subprotocols, origins (none: the same host;
/// `*`: all), and the most bytes of a message.
pub(super) type SocketSpec = (
    String,
    Py<PyAny>,
    Vec<String>,
    bool,
    Option<(Py<PyAny>, bool)>,
    Vec<String>,
    Vec<String>,
    Option<u64>,
);

/// Adds handlers to routes.
///
/// - `usual_policy`: where bodies are kept, unless a handler says otherwise.
pub(super) fn add(
    py: Python<'_>,
    mut routes: Routes,
    (handlers, sockets): (Vec<HandlerSpec>, Vec<SocketSpec>),
    usual_policy: Option<BodyPolicy>,
    context: &Arc<CallContext>,
) -> PyResult<Routes> {
    let mut sockets = socket_handlers(py, sockets, context);
    for handler in handlers {
        let (
            method,
            path,
            function,
            takes_request,
            params,
            merges,
            is_exempt,
            limit,
            body,
            is_coroutine,
            preload,
        ) = handler;
        let policy = body.map(|name| policy_of(&name)).transpose()?;
        let method = method.map(|name| method_of(&name)).transpose()?;
        let reads_whole = takes_request && !is_coroutine;
        check_policy(method, &path, reads_whole, policy.or(usual_policy))?;
        // A path may have a page and a WebSocket.
        let takes_get = matches!(method, None | Some(Method::Get));
        let socket = sockets.iter_mut().find(|socket| takes_get && socket.path == path);
        let socket = socket.map(|socket| {
            socket.has_page = true;
            Arc::clone(&socket.handler)
        });
        let context = Arc::clone(context);
        let handler =
            PyHandler::new(function, takes_request, params, is_coroutine, context, socket);
        let place = (&*path, merges, is_exempt, limit);
        routes = Arc::new(handler).add_to(routes, method, place, (policy, preload));
    }
    for socket in sockets.into_iter().filter(|socket| !socket.has_page) {
        routes = socket.handler.add_to(routes, &socket.path, socket.merges);
    }
    Ok(routes)
}

/// A handler of `WebSocket`s at its path.
struct SocketRoute {
    path: String,
    merges: bool,
    handler: Arc<SocketHandler>,
    /// Another handler of GET passes requests on to it.
    has_page: bool,
}

fn socket_handlers(
    py: Python<'_>,
    sockets: Vec<SocketSpec>,
    context: &Arc<CallContext>,
) -> Vec<SocketRoute> {
    let route = |spec: SocketSpec| {
        let (path, function, params, merges, guard, subprotocols, origins, message_bytes_max) =
            spec;
        let names: Vec<&str> = subprotocols.iter().map(String::as_str).collect();
        let mut endpoint = WebSocketEndpoint::undecided().subprotocols(&names);
        endpoint = match &*origins {
            [] => endpoint,
            [all] if all == "*" => endpoint.origins(Origins::Any),
            _ => endpoint.origins(Origins::Also(origins)),
        };
        if let Some(bytes) = message_bytes_max {
            endpoint = endpoint.message_bytes_max(bytes).frame_bytes_max(bytes);
        }
        let handler = SocketHandler {
            name: name_of(function.bind(py)),
            params: interned(py, params),
            function,
            guard,
            endpoint,
            context: Arc::clone(context),
        };
        SocketRoute { path, merges, handler: Arc::new(handler), has_page: false }
    };
    sockets.into_iter().map(route).collect()
}

/// Returns a body policy by its name.
pub(super) fn policy_of(name: &str) -> PyResult<BodyPolicy> {
    let place = BodyPolicy::NAMES.iter().position(|known| *known == name);
    place.map(|place| BodyPolicy::ALL[place]).ok_or_else(|| {
        let text = format!("expected the body policy stream, memory or spool, found {name:?}");
        pyo3::exceptions::PyValueError::new_err(text)
    })
}

/// Checks that a function is not called with bodies that are not kept for it.
fn check_policy(
    method: Option<Method>,
    path: &str,
    reads_whole: bool,
    policy: Option<BodyPolicy>,
) -> PyResult<()> {
    let has_content = !matches!(method, Some(Method::Get | Method::Head | Method::Options));
    if policy != Some(BodyPolicy::Stream) || !reads_whole || !has_content {
        return Ok(());
    }
    Err(pyo3::exceptions::PyValueError::new_err(format!(
        "the route {path} keeps no bodies (body policy stream), but its plain function gets them \
         whole; make it a coroutine function that says `request.stream()`, or choose memory or \
         spool"
    )))
}

fn method_of(name: &str) -> PyResult<Method> {
    let method = Method::from_token(name.as_bytes());
    method.filter(|method| *method != Method::Connect).ok_or_else(|| {
        let text = match method {
            Some(_) => "expected a method such as GET, found CONNECT, which requests a tunnel: \
                        there are none here; leave it out"
                .to_owned(),
            None => format!("expected a method such as GET, found {name:?}; correct it"),
        };
        pyo3::exceptions::PyValueError::new_err(text)
    })
}
