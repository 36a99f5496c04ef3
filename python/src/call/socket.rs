//! Opens a WebSocket for a handler in Python, and runs the handler.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use gustnado::websocket::{CloseCode, WebSocketAcceptor, WebSocketEndpoint, WebSocketOffer};
use gustnado::{KeptRequest, Reply, Request, Response, Routes, Status, reply_later, route};

use super::{CallContext, CallResult, Starter, coroutine, named_parts};
use crate::errors::FaultOrigin;
use crate::request::PyRequest;
use crate::response;
use crate::websocket::{LinkEnd, Pump, PyWebSocket, SocketLink, SocketRequest, SocketStarter};

/// A handler of `WebSocket`s.
pub(crate) struct SocketHandler {
    /// A coroutine function of the WebSocket, and of named parts of the path.
    pub(crate) function: Py<PyAny>,
    pub(crate) params: Vec<(String, Py<PyString>)>,
    /// Called with the request before the handshake is answered: what it returns is the response,
    /// unless that is `None`. And whether it is a coroutine function.
    pub(crate) guard: Option<(Py<PyAny>, bool)>,
    pub(crate) endpoint: WebSocketEndpoint<()>,
    pub(crate) context: Arc<CallContext>,
    /// Its name in the log.
    pub(crate) name: String,
}

/// A handshake that the guard has let pass, or is about to.
struct OfferedSocket {
    offer: WebSocketOffer,
    request: SocketRequest,
    named: Option<Py<PyDict>>,
}

impl SocketHandler {
    /// Adds it to routes, as a handler of GET.
    pub(crate) fn add_to(self: Arc<Self>, routes: Routes, path: &str, merges: bool) -> Routes {
        let endpoint = self.endpoint.clone();
        let handler = endpoint.with_acceptor(move |acceptor| {
            let handler = Arc::clone(&self);
            move |request: Request| Arc::clone(&handler).respond(request, acceptor.clone())
        });
        routes.route(path, route().merge_slashes(merges).on(gustnado::Method::Get, handler))
    }

    pub(crate) async fn respond(
        self: Arc<Self>,
        request: Request,
        acceptor: WebSocketAcceptor,
    ) -> Response {
        let offer = match acceptor.offer(&request) {
            Ok(offer) => offer,
            Err(refusal) => return refusal,
        };
        let begun = Python::attach(|py| {
            let begun = self.begin(py, offer, request);
            begun.unwrap_or_else(|error| {
                CallResult::Responded(self.context.failed(py, &error, &self.name))
            })
        });
        match begun {
            CallResult::Responded(response) => response,
            CallResult::Later(reply) => reply.await,
        }
    }

    fn begin(
        self: &Arc<Self>,
        py: Python<'_>,
        offer: WebSocketOffer,
        request: Request,
    ) -> PyResult<CallResult> {
        let named = named_parts(py, &self.params, &request)?.map(Bound::unbind);
        let Some((guard, waits)) = &self.guard else {
            let made = |request| Py::new(py, PyRequest::new(request, None, None));
            let request = match KeptRequest::new(request) {
                Ok(kept) => SocketRequest::Kept(kept),
                Err(request) => SocketRequest::Made(made(request)?),
            };
            return Ok(CallResult::Responded(self.accept(OfferedSocket { offer, request, named })));
        };
        let request = Bound::new(py, PyRequest::new(request, None, None))?;
        let made = SocketRequest::Made(request.clone().unbind());
        let offered = OfferedSocket { offer, request: made, named };
        let returned = guard.bind(py).call1((request,))?;
        if *waits {
            return self.begin_later(offered, &returned);
        }
        Ok(CallResult::Responded(self.decide(offered, Ok(returned))))
    }

    /// Runs a guard that is a coroutine.
    fn begin_later(
        self: &Arc<Self>,
        offered: OfferedSocket,
        guard: &Bound<'_, PyAny>,
    ) -> PyResult<CallResult> {
        let running = self.starter().start(guard)?;
        if let Some(returned) = coroutine::result(&running.task).transpose() {
            return Ok(CallResult::Responded(self.decide(offered, returned)));
        }
        let (replier, reply): (_, Reply) = reply_later();
        let handler = Arc::clone(self);
        let then = move |_: Python<'_>, returned: PyResult<Bound<'_, PyAny>>| {
            replier.respond(handler.decide(offered, returned));
        };
        self.starter().when_done(running, then)?;
        Ok(CallResult::Later(reply))
    }

    /// Opens the WebSocket, or responds with what the guard has returned.
    fn decide(
        self: &Arc<Self>,
        offered: OfferedSocket,
        returned: PyResult<Bound<'_, PyAny>>,
    ) -> Response {
        match returned {
            Ok(value) if value.is_none() => self.accept(offered),
            Ok(value) => {
                let py = value.py();
                let response = response::of(&value, self.context.to_json.bind(py));
                response.unwrap_or_else(|error| self.context.failed(py, &error, &self.name))
            }
            Err(error) => Python::attach(|py| self.context.failed(py, &error, &self.name)),
        }
    }

    fn starter(&self) -> &Starter {
        self.context.starter.as_ref().expect("a server with coroutine functions has a loop")
    }

    fn socket_starter(&self) -> &SocketStarter {
        let starter = self.context.socket_starter.as_ref();
        starter.expect("a server with coroutine functions has a loop")
    }

    /// Returns the response that opens the WebSocket, upon which the handler is called.
    fn accept(self: &Arc<Self>, offered: OfferedSocket) -> Response {
        let OfferedSocket { offer, request, named } = offered;
        let subprotocol = offer.subprotocol().map(Box::from);
        let link = self.socket_starter().link();
        let (handler, link_end) = (Arc::clone(self), LinkEnd::new(&link));
        let socket = PyWebSocket::new(Arc::clone(&link), request, subprotocol);
        offer.accept(Response::new(Status::UPGRADE_REQUIRED), move |opened| {
            let pump = Pump::new(link_end, opened);
            Python::attach(|py| handler.run(py, &link, socket, named.as_ref()));
            pump
        })
    }

    /// Calls the handler, and runs its first step.
    fn run(
        self: &Arc<Self>,
        py: Python<'_>,
        link: &Arc<SocketLink>,
        socket: PyWebSocket,
        named: Option<&Py<PyDict>>,
    ) {
        let counted = self.context.running_sockets.begin();
        let named = named.map(|named| named.bind(py));
        let started = Bound::new(py, socket)
            .and_then(|socket| self.function.bind(py).call((socket,), named))
            .and_then(|coroutine| self.socket_starter().start(self.starter(), &coroutine, link));
        let started = match started {
            Ok(started) => started,
            Err(error) => return self.end(py, link, Some(&error)),
        };
        if let Some(ended) = coroutine::result(&started.0.task).transpose() {
            return self.end(py, link, ended.err().as_ref());
        }
        let (handler, of_task) = (Arc::clone(self), Arc::clone(link));
        let then = move |py: Python<'_>, ended: PyResult<Bound<'_, PyAny>>| {
            handler.end(py, &of_task, ended.err().as_ref());
            drop(counted);
        };
        if let Err(error) = self.socket_starter().when_done(self.starter(), started, then) {
            self.end(py, link, Some(&error));
        }
    }

    /// Closes the WebSocket behind its handler.
    fn end(&self, py: Python<'_>, link: &SocketLink, error: Option<&PyErr>) {
        if let Some(error) = error {
            let fault = FaultOrigin::of_peer(link.is_loss_known());
            let what = format!("{} has failed", self.name);
            self.context.reporter.report_as(py, Some(error), &what, fault);
        }
        let code = if error.is_some() { CloseCode::INTERNAL_ERROR } else { CloseCode::NORMAL };
        link.close(code, "");
    }
}
