//! ASGI 3 applications: their scope, and what they receive and send.

mod callee;
mod exchange;
mod message;
mod scope;
mod socket;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use gustnado::websocket::{Origins, WebSocketAcceptor, WebSocketEndpoint, WebSocketOffer};
use gustnado::{Reply, Request, Response, Routes, Status, route};

use crate::awaitables::ReadyNone;
use crate::coroutine::{self, StartedTask, Starter};
use crate::errors::{ErrorReporter, FaultOrigin};
use crate::request_template::RequestTemplate;
use crate::tunnel;
use crate::websocket::{RunningCalls, SocketRun, SocketStarter};
use callee::AsgiCallee;
use exchange::AsgiExchange;
use scope::RootPath;
use socket::AsgiSocket;

/// An ASGI application.
#[pyclass(frozen, module = "gustnado._gustnado")]
pub(crate) struct Asgi(Arc<AsgiApp>);

struct AsgiApp {
    app: Py<PyAny>,
    event_loop: Py<PyAny>,
    starter: Starter,
    socket_starter: SocketStarter,
    /// The common part of all scopes.
    template: RequestTemplate,
    root: RootPath,
    /// State of its lifespan, for the requests.
    state: Option<Py<PyDict>>,
    reporter: ErrorReporter,
    done: Py<ReadyNone>,
    /// The application gets requests for `WebSocket`s as such.
    has_sockets: bool,
    /// How many of its calls wait, those of `WebSocket`s among them.
    running_calls: RunningCalls,
}

#[pymethods]
impl Asgi {
    /// - `app`: a coroutine function of scope, receive and send.
    /// - `event_loop`: the loop that runs it.
    /// - `template`: the common part of all scopes.
    /// - `root_path`: whole segments that are not part of the application's paths.
    /// - `state`: copied into each scope.
    /// - `on_error`: called with an exception, or none, and a line about the request.
    /// - `websockets`: whether the application gets requests for `WebSocket`s as such.
    #[new]
    #[pyo3(signature = (app, event_loop, template, root_path, state, on_error, websockets = true))]
    fn new(
        app: Py<PyAny>,
        event_loop: &Bound<'_, PyAny>,
        template: Py<PyDict>,
        root_path: String,
        state: Option<Py<PyDict>>,
        on_error: Py<PyAny>,
        websockets: bool,
    ) -> PyResult<Self> {
        let (starter, reporter) = (Starter::new(event_loop)?, ErrorReporter(on_error));
        let socket_starter = SocketStarter::new(event_loop)?;
        let done = Py::new(event_loop.py(), ReadyNone)?;
        let (event_loop, root) = (event_loop.clone().unbind(), RootPath::new(root_path));
        let template = RequestTemplate::new(template);
        let (has_sockets, running_calls) = (websockets, RunningCalls::default());
        let app = AsgiApp {
            app,
            event_loop,
            starter,
            socket_starter,
            template,
            root,
            state,
            reporter,
            done,
            has_sockets,
            running_calls,
        };
        Ok(Self(Arc::new(app)))
    }

    /// Returns how many calls of the application run: a call goes on after its response.
    fn running_calls(&self) -> usize {
        self.0.running_calls.count()
    }
}

impl Asgi {
    /// Adds the application to routes, as the fallback.
    pub(crate) fn add_to(&self, routes: Routes) -> Routes {
        let app = Arc::clone(&self.0);
        // Applications check origins themselves: they know which pages are theirs.
        let endpoint = WebSocketEndpoint::undecided().origins(Origins::Any);
        let handler = endpoint.with_acceptor(move |acceptor| {
            let app = Arc::clone(&app);
            move |request: Request| match app.asked(&request, &acceptor) {
                Ok(offer) => AsgiCall::Requested(Arc::clone(&app), Box::new((request, offer))),
                Err(refusal) => AsgiCall::Refused(refusal),
            }
        });
        routes.fallback_route(route().any(handler).server_wide(true))
    }
}

/// The response of an application, which is called with the first poll.
enum AsgiCall {
    Refused(Response),
    Requested(Arc<AsgiApp>, Box<(Request, Option<WebSocketOffer>)>),
    Waiting(Reply),
    Over,
}

impl Future for AsgiCall {
    type Output = Response;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response> {
        let mut reply = match std::mem::replace(&mut *self, Self::Over) {
            Self::Requested(app, asked) => {
                let (request, offer) = *asked;
                let begun = Python::attach(|py| match offer {
                    None => app.begin(app.exchange(py, request)),
                    Some(offer) => app.begin(app.socket(py, request, offer)),
                });
                match begun {
                    Ok(response) => return Poll::Ready(response),
                    Err(reply) => reply,
                }
            }
            Self::Refused(refusal) => return Poll::Ready(refusal),
            Self::Waiting(reply) => reply,
            Self::Over => unreachable!("it has answered"),
        };
        let polled = Pin::new(&mut reply).poll(context);
        *self = Self::Waiting(reply);
        polled
    }
}

/// An exchange or a WebSocket, and its scope.
type AsgiCallOf<'py, T> = PyResult<(Bound<'py, T>, Bound<'py, PyDict>)>;

impl AsgiApp {
    /// Returns the handshake of a request for a WebSocket; `None` for others.
    ///
    /// # Errors
    /// The response to a request that the application does not get.
    fn asked(
        &self,
        request: &Request,
        acceptor: &WebSocketAcceptor,
    ) -> Result<Option<WebSocketOffer>, Response> {
        let refusal = match self.has_sockets {
            true if tunnel::is_websocket(request) => return acceptor.offer(request).map(Some),
            true => tunnel::refuse_connect(request),
            false => tunnel::refuse(request),
        };
        refusal.map_or(Ok(None), Err)
    }

    fn exchange<'py>(&self, py: Python<'py>, request: Request) -> AsgiCallOf<'py, AsgiExchange> {
        let state = self.state.as_ref().map(|state| state.bind(py));
        let scope = scope::make(py, &self.template, &self.root, state, &request)?;
        let (done, pause) = (self.done.clone_ref(py), self.starter.pause().clone_ref(py));
        let exchange = AsgiExchange::new(request, self.event_loop.clone_ref(py), done, pause);
        Ok((Bound::new(py, exchange)?, scope))
    }

    fn socket<'py>(
        &self,
        py: Python<'py>,
        request: Request,
        offer: WebSocketOffer,
    ) -> AsgiCallOf<'py, AsgiSocket> {
        let state = self.state.as_ref().map(|state| state.bind(py));
        let scope = scope::make_of_socket(py, &self.template, &self.root, state, &request)?;
        let (done, pause) = (self.done.clone_ref(py), self.starter.pause().clone_ref(py));
        let link = self.socket_starter.link();
        let socket = AsgiSocket::new((request, offer), link, done, pause);
        Ok((Bound::new(py, socket)?, scope))
    }

    /// Calls the application. Returns its response, or the reply to wait for.
    fn begin<T: AsgiCallee>(self: &Arc<Self>, call: AsgiCallOf<'_, T>) -> Result<Response, Reply> {
        let started = call.and_then(|(callee, scope)| Ok((self.start(&callee, &scope)?, callee)));
        let (started, callee) = match started {
            Ok(started) => started,
            Err(error) => {
                let what = "the application could not be called";
                return Ok(Python::attach(|py| self.failed(py, &error, what)));
            }
        };
        let py = callee.py();
        let (started, run) = started;
        let ended = coroutine::result(&started.task).transpose();
        let is_running = ended.is_none();
        if let Some(ended) = ended {
            self.end(&callee, ended.err());
        } else {
            let counted = self.running_calls.begin();
            let (app, of_task) = (Arc::clone(self), callee.clone().unbind());
            let then = move |py: Python<'_>, ended: PyResult<Bound<'_, PyAny>>| {
                app.end(of_task.bind(py), ended.err());
                drop(counted);
            };
            let noted = match run {
                Some(run) => self.socket_starter.when_done(&self.starter, (started, run), then),
                None => self.starter.when_done(started, then),
            };
            if let Err(error) = noted {
                self.reporter.report(py, Some(&error), "the application's end will not be seen");
            }
        }
        match T::take_response(&callee) {
            Some(response) => Ok(response),
            None if is_running => T::wait(&callee).map_or_else(
                |error| Ok(self.failed(py, &error, "the application's response cannot be awaited")),
                Err,
            ),
            None => Ok(Response::new(Status::INTERNAL_SERVER_ERROR)),
        }
    }

    fn failed(&self, py: Python<'_>, error: &PyErr, what: &str) -> Response {
        self.reporter.report(py, Some(error), what);
        Response::new(Status::INTERNAL_SERVER_ERROR)
    }

    /// Runs the application's first step.
    fn start<'py, T: AsgiCallee>(
        &self,
        callee: &Bound<'py, T>,
        scope: &Bound<'py, PyDict>,
    ) -> PyResult<(StartedTask<'py>, Option<Bound<'py, SocketRun>>)> {
        let py = callee.py();
        let receive = callee.as_any().getattr(intern!(py, "receive"))?;
        let send = callee.as_any().getattr(intern!(py, "send"))?;
        let coroutine = self.app.bind(py).call1((scope, receive, send))?;
        match T::link(callee) {
            Some(link) => {
                let started = self.socket_starter.start(&self.starter, &coroutine, link)?;
                Ok((started.0, Some(started.1)))
            }
            None => Ok((self.starter.start(&coroutine)?, None)),
        }
    }

    /// Handles the application's end: reports its exception, and completes its response.
    fn end<T: AsgiCallee>(&self, callee: &Bound<'_, T>, error: Option<PyErr>) {
        let py = callee.py();
        let owed = T::end(callee, error.is_some());
        if error.is_none() && owed.is_none() {
            return;
        }
        let asked = T::name(callee);
        match (error, owed) {
            (Some(error), _) => {
                let fault = FaultOrigin::of_peer(T::knows_loss(callee));
                self.reporter.report_as(py, Some(&error), &format!("{asked} has failed"), fault);
            }
            (None, Some(owed)) => {
                self.reporter.report(py, None, &format!("{asked}: the application {owed}"));
            }
            (None, None) => {}
        }
    }
}
