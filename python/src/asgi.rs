//! ASGI 3 applications: their scope, and what they receive and send.

mod awaitables;
mod exchange;
mod message;
mod scope;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use gustnado::{Reply, Request, Response, Routes, Status, route};

use crate::coroutine::{self, StartedTask, Starter};
use crate::errors::{ErrorReporter, FaultOrigin};
use crate::request_template::RequestTemplate;
use crate::tunnel;
use awaitables::ReadyNone;
use exchange::AsgiExchange;
use scope::RootPath;

/// An ASGI application.
#[pyclass(frozen, module = "gustnado._gustnado")]
pub(crate) struct Asgi(Arc<AsgiApp>);

struct AsgiApp {
    app: Py<PyAny>,
    event_loop: Py<PyAny>,
    starter: Starter,
    /// The common part of all scopes.
    template: RequestTemplate,
    root: RootPath,
    /// State of its lifespan, for the requests.
    state: Option<Py<PyDict>>,
    reporter: ErrorReporter,
    done: Py<ReadyNone>,
}

#[pymethods]
impl Asgi {
    /// - `app`: a coroutine function of scope, receive and send.
    /// - `event_loop`: the loop that runs it.
    /// - `template`: the common part of all scopes.
    /// - `root_path`: whole segments that are not part of the application's paths.
    /// - `state`: copied into each scope.
    /// - `on_error`: called with an exception, or none, and a line about the request.
    #[new]
    fn new(
        app: Py<PyAny>,
        event_loop: &Bound<'_, PyAny>,
        template: Py<PyDict>,
        root_path: String,
        state: Option<Py<PyDict>>,
        on_error: Py<PyAny>,
    ) -> PyResult<Self> {
        let (starter, reporter) = (Starter::new(event_loop)?, ErrorReporter(on_error));
        let done = Py::new(event_loop.py(), ReadyNone)?;
        let (event_loop, root) = (event_loop.clone().unbind(), RootPath::new(root_path));
        let template = RequestTemplate::new(template);
        let app = AsgiApp { app, event_loop, starter, template, root, state, reporter, done };
        Ok(Self(Arc::new(app)))
    }
}

impl Asgi {
    /// Adds the application to routes, as the fallback.
    pub(crate) fn add_to(&self, routes: Routes) -> Routes {
        let app = Arc::clone(&self.0);
        let handler = move |request: Request| {
            if let Some(refusal) = tunnel::refuse(&request) {
                return AsgiCall::Refused(refusal);
            }
            AsgiCall::Requested(Arc::clone(&app), Box::new(request))
        };
        routes.fallback_route(route().any(handler).server_wide(true))
    }
}

/// The response of an application, which is called with the first poll.
enum AsgiCall {
    Refused(Response),
    Requested(Arc<AsgiApp>, Box<Request>),
    Waiting(Reply),
    Over,
}

impl Future for AsgiCall {
    type Output = Response;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response> {
        let mut reply = match std::mem::replace(&mut *self, Self::Over) {
            Self::Requested(app, request) => match Python::attach(|py| app.begin(py, *request)) {
                Ok(response) => return Poll::Ready(response),
                Err(reply) => reply,
            },
            Self::Refused(refusal) => return Poll::Ready(refusal),
            Self::Waiting(reply) => reply,
            Self::Over => unreachable!("it has answered"),
        };
        let polled = Pin::new(&mut reply).poll(context);
        *self = Self::Waiting(reply);
        polled
    }
}

impl AsgiApp {
    /// Calls the application. Returns its response, or the reply to wait for.
    fn begin(self: &Arc<Self>, py: Python<'_>, request: Request) -> Result<Response, Reply> {
        let (done, pause) = (self.done.clone_ref(py), self.starter.pause().clone_ref(py));
        let made = AsgiExchange::new(request, self.event_loop.clone_ref(py), done, pause);
        let started =
            Bound::new(py, made).and_then(|exchange| Ok((self.start(&exchange)?, exchange)));
        let (started, exchange) = match started {
            Ok(started) => started,
            Err(error) => {
                return Ok(self.failed(py, &error, "the application could not be called"));
            }
        };
        let ended = coroutine::result(&started.task).transpose();
        let is_running = ended.is_none();
        if let Some(ended) = ended {
            self.end(&exchange, ended.err());
        } else {
            let (app, of_task) = (Arc::clone(self), exchange.clone().unbind());
            let then = move |py: Python<'_>, ended: PyResult<Bound<'_, PyAny>>| {
                app.end(of_task.bind(py), ended.err());
            };
            if let Err(error) = self.starter.when_done(started, then) {
                self.reporter.report(py, Some(&error), "the application's end will not be seen");
            }
        }
        match exchange.get().take_response() {
            Some(response) => Ok(response),
            None if is_running => AsgiExchange::wait(&exchange).map_or_else(
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
    fn start<'py>(&self, exchange: &Bound<'py, AsgiExchange>) -> PyResult<StartedTask<'py>> {
        let py = exchange.py();
        let state = self.state.as_ref().map(|state| state.bind(py));
        let made = |request: &Request| scope::make(py, &self.template, &self.root, state, request);
        let scope = exchange.get().with_request(made)?;
        let receive = exchange.getattr(intern!(py, "receive"))?;
        let send = exchange.getattr(intern!(py, "send"))?;
        self.starter.start(&self.app.bind(py).call1((scope, receive, send))?)
    }

    /// Handles the application's end: reports its exception, and completes its response.
    fn end(&self, exchange: &Bound<'_, AsgiExchange>, error: Option<PyErr>) {
        let py = exchange.py();
        let owed = AsgiExchange::end(exchange);
        if error.is_none() && owed.is_none() {
            return;
        }
        let asked = exchange
            .get()
            .with_request(|request| format!("{} {}", request.method_str(), request.target()));
        match (error, owed) {
            (Some(error), _) => {
                let fault = FaultOrigin::of_peer(exchange.get().knows_loss());
                self.reporter.report_as(py, Some(&error), &format!("{asked} has failed"), fault);
            }
            (None, Some(owed)) => {
                self.reporter.report(py, None, &format!("{asked}: the application {owed}"));
            }
            (None, None) => {}
        }
    }
}
