//! Calls a handler in Python and converts what it returns.

mod socket;

use std::sync::Arc;

use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use gustnado::config::BodyPolicy;
use gustnado::{
    IntoResponse, Method, Reply, Response, Routes, Status, head_only, reply_later, route,
};

use crate::coroutine::{self, Starter};
use crate::errors::{ErrorReporter, FaultOrigin};
use crate::request::PyRequest;
use crate::websocket::{RunningCalls, SocketStarter};
use crate::{hang_watch, response, tunnel};
pub(crate) use socket::SocketHandler;

/// Shared context of all handlers.
pub(crate) struct CallContext {
    /// Starts coroutines; `None` without a loop.
    starter: Option<Starter>,
    /// The same of `WebSocket`s.
    socket_starter: Option<SocketStarter>,
    reporter: ErrorReporter,
    /// Formats a dictionary or list as JSON.
    to_json: Py<PyAny>,
    /// The limit of bodies was set, and is that of coroutine functions, too, which have no default.
    has_body_limit: bool,
    /// Of how many `WebSocket`s the handlers run.
    running_sockets: RunningCalls,
}

/// Default limit of a body that is read into memory for a plain function.
const READ_BYTES_MAX: u64 = 1 << 20;

impl CallContext {
    /// Converts `gustnado._routes.CallContext`.
    ///
    /// - `has_body_limit`: `limit-body-bytes` was set.
    pub(crate) fn of(source: &Bound<'_, PyAny>, has_body_limit: bool) -> PyResult<Self> {
        let event_loop = source.getattr("loop")?;
        let event_loop = Some(event_loop).filter(|event_loop| !event_loop.is_none());
        Ok(Self {
            starter: event_loop.as_ref().map(Starter::new).transpose()?,
            socket_starter: event_loop.as_ref().map(SocketStarter::new).transpose()?,
            reporter: ErrorReporter(source.getattr("on_error")?.unbind()),
            to_json: source.getattr("to_json")?.unbind(),
            has_body_limit,
            running_sockets: RunningCalls::default(),
        })
    }

    /// Returns of how many `WebSocket`s the handlers run.
    pub(crate) fn running_sockets(&self) -> usize {
        self.running_sockets.count()
    }

    /// Reports the exception of a handler and returns 500; the client gets no details.
    pub(crate) fn failed(&self, py: Python<'_>, error: &PyErr, what: &str) -> Response {
        self.reporter.report(py, Some(error), &format!("{what} has failed"));
        Response::new(Status::INTERNAL_SERVER_ERROR)
    }
}

/// A handler in Python.
pub(crate) struct PyHandler {
    function: Py<PyAny>,
    takes_request: bool,
    /// The named parts of the path that it takes, each also as a Python string.
    params: Vec<(String, Py<PyString>)>,
    is_coroutine: bool,
    context: Arc<CallContext>,
    /// Its name in the log.
    name: String,
    /// Takes requests for `WebSocket`s at the same path.
    socket: Option<Arc<SocketHandler>>,
}

/// The result of a call.
enum CallResult {
    Responded(Response),
    Later(Reply),
}

impl PyHandler {
    pub(crate) fn new(
        function: Py<PyAny>,
        takes_request: bool,
        params: Vec<String>,
        is_coroutine: bool,
        context: Arc<CallContext>,
        socket: Option<Arc<SocketHandler>>,
    ) -> Self {
        let (params, name) =
            Python::attach(|py| (interned(py, params), name_of(function.bind(py))));
        Self { function, takes_request, params, is_coroutine, context, name, socket }
    }

    /// Adds it to routes. A plain function that does not take the request runs inline, and no body
    /// is kept for it.
    pub(crate) fn add_to(
        self: Arc<Self>,
        routes: Routes,
        method: Option<Method>,
        (path, merges, is_exempt, handlers_max): (&str, bool, bool, usize),
        (policy, preload): (Option<BodyPolicy>, Vec<String>),
    ) -> Routes {
        let mut place = route().merge_slashes(merges).exempt(is_exempt);
        place = place.limit_concurrency(handlers_max);
        if let Some(policy) = policy {
            place = place.body_policy(policy);
        }
        for link in preload {
            place = place.preload(&link);
        }
        if self.is_coroutine && !self.context.has_body_limit {
            // It reads at its own pace, and the client waits.
            place = place.limit_body_bytes(u64::MAX);
        }
        let place = if let Some(socket) = self.socket.clone() {
            let endpoint = socket.endpoint.clone();
            let handler = endpoint.with_acceptor(move |acceptor| {
                let (handler, socket) = (Arc::clone(&self), Arc::clone(&socket));
                move |request: gustnado::Request| {
                    let (handler, socket) = (Arc::clone(&handler), Arc::clone(&socket));
                    let acceptor = acceptor.clone();
                    async move {
                        if tunnel::is_websocket(&request) {
                            socket.respond(request, acceptor).await
                        } else {
                            handler.respond(request).await
                        }
                    }
                }
            });
            match method {
                Some(method) => place.on(method, handler),
                None => tunnel::refused_by(place).any(handler),
            }
        } else if self.takes_request || self.is_coroutine {
            let handler = move |request: gustnado::Request| Arc::clone(&self).respond(request);
            match method {
                Some(method) => place.on(method, handler),
                None => tunnel::refused_by(place).any(handler),
            }
        } else {
            let handler = move |request: &gustnado::Request| self.respond_at_once(request);
            let handler = head_only(handler);
            match method {
                Some(method) => place.on(method, handler),
                None => tunnel::refused_by(place).any(handler),
            }
        };
        routes.route(path, place)
    }

    fn respond_at_once(&self, request: &gustnado::Request) -> Response {
        if tunnel::is_websocket(request) {
            return tunnel::no_websocket(request);
        }
        Python::attach(|py| {
            hang_watch::note_call(py);
            let named = named_parts(py, &self.params, request);
            let returned = named.and_then(|named| self.function.bind(py).call((), named.as_ref()));
            self.to_response(py, returned, None)
        })
    }

    async fn respond(self: Arc<Self>, mut request: gustnado::Request) -> Response {
        if tunnel::is_websocket(&request) {
            return tunnel::no_websocket(&request);
        }
        let mut body = None;
        if !self.is_coroutine {
            match request.body_mut().bytes(usize::MAX).await {
                Ok(bytes) => body = Some(bytes),
                Err(error) => return error.into_response(),
            }
        }
        match Python::attach(|py| self.begin(py, request, body)) {
            CallResult::Responded(response) => response,
            CallResult::Later(reply) => reply.await,
        }
    }

    fn begin(
        self: &Arc<Self>,
        py: Python<'_>,
        request: gustnado::Request,
        body: Option<Bytes>,
    ) -> CallResult {
        hang_watch::note_call(py);
        let mut request_object = None;
        let returned = named_parts(py, &self.params, &request).and_then(|named| {
            let function = self.function.bind(py);
            if self.takes_request {
                let read_max = (!self.context.has_body_limit).then_some(READ_BYTES_MAX);
                let request =
                    request_object.insert(Bound::new(py, PyRequest::new(request, body, read_max))?);
                function.call((&*request,), named.as_ref())
            } else {
                function.call(PyTuple::empty(py), named.as_ref())
            }
        });
        match (returned, &self.context.starter) {
            (Ok(coroutine), Some(starter)) if self.is_coroutine => {
                self.follow(py, starter, &coroutine, request_object.as_ref())
            }
            (returned, _) => {
                CallResult::Responded(self.to_response(py, returned, request_object.as_ref()))
            }
        }
    }

    /// Runs a coroutine as a task of the loop, its first step at once.
    fn follow(
        self: &Arc<Self>,
        py: Python<'_>,
        starter: &Starter,
        coroutine: &Bound<'_, PyAny>,
        request_object: Option<&Bound<'_, PyRequest>>,
    ) -> CallResult {
        let responded =
            |returned| CallResult::Responded(self.to_response(py, returned, request_object));
        let running_task = match starter.start(coroutine) {
            Ok(running_task) => running_task,
            Err(error) => return responded(Err(error)),
        };
        match coroutine::result(&running_task.task) {
            Ok(Some(returned)) => responded(Ok(returned)),
            Err(error) => responded(Err(error)),
            Ok(None) => {
                let (replier, reply) = reply_later();
                let lost = running_task.task.clone().unbind();
                replier.on_lost(move || {
                    Python::attach(|py| {
                        if let Err(error) = lost.call_method0(py, pyo3::intern!(py, "cancel")) {
                            error.write_unraisable(py, None);
                        }
                    });
                });
                let (handler, of_task) = (
                    Arc::clone(self),
                    request_object.map(|request_object| request_object.clone().unbind()),
                );
                let to_response = move |py: Python<'_>, returned: PyResult<Bound<'_, PyAny>>| {
                    let request_object =
                        of_task.as_ref().map(|request_object| request_object.bind(py));
                    replier.respond(handler.to_response(py, returned, request_object));
                };
                match starter.when_done(running_task, to_response) {
                    Ok(()) => CallResult::Later(reply),
                    Err(error) => responded(Err(error)),
                }
            }
        }
    }

    /// Converts the value or exception of a handler to a response. If the handler got a broken
    /// body, that explains its exception: the status is the body's, and the fault the client's.
    fn to_response(
        &self,
        py: Python<'_>,
        returned: PyResult<Bound<'_, PyAny>>,
        request_object: Option<&Bound<'_, PyRequest>>,
    ) -> Response {
        let response =
            returned.and_then(|value| response::of(&value, self.context.to_json.bind(py)));
        response.unwrap_or_else(|error| {
            match request_object.and_then(|request_object| request_object.get().broken()) {
                Some(broken) => {
                    let what = format!("{}: {broken}", self.name);
                    self.context.reporter.report_as(py, Some(&error), &what, FaultOrigin::Peers);
                    Response::new(broken.status()).close()
                }
                None => self.context.failed(py, &error, &self.name),
            }
        })
    }
}

/// Returns names also as Python strings.
pub(crate) fn interned(py: Python<'_>, names: Vec<String>) -> Vec<(String, Py<PyString>)> {
    let interned = |name: String| {
        let interned = PyString::intern(py, &name).unbind();
        (name, interned)
    };
    names.into_iter().map(interned).collect()
}

/// Returns a function's name in the log.
pub(crate) fn name_of(function: &Bound<'_, PyAny>) -> String {
    let name = function.getattr("__qualname__");
    name.map_or_else(|_| "a handler".to_owned(), |name| name.to_string())
}

/// Returns the named parts of the path that a handler takes.
fn named_parts<'py>(
    py: Python<'py>,
    params: &[(String, Py<PyString>)],
    request: &gustnado::Request,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    if params.is_empty() {
        return Ok(None);
    }
    let named = PyDict::new(py);
    for (name, key) in params {
        named.set_item(key, request.param(name))?;
    }
    Ok(Some(named))
}
