//! Applications by WSGI (PEP 3333), on the engine's thread or on threads of their own.

mod body;
mod environ;
mod pool;
mod result;
mod start;

use std::net::SocketAddr;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};

use gustnado::{Request, Response, Routes, Status, by_length, route};

use crate::errors::{self, Told};
use crate::learned::{Last, Learned};
use crate::tunnel;
use body::{Input, MEMORY_BYTES_MAX, Spool};
use pool::{Job, Pool};
use result::Ending;
use start::Start;

/// An application, and what it stands on.
#[pyclass(frozen, module = "gustnado._gustnado")]
pub(crate) struct Wsgi(Arc<Inside>);

struct Inside {
    app: Py<PyAny>,
    /// What is the same in every environment.
    template: Py<PyDict>,
    root_path: String,
    /// What fields are called in an environment.
    names: Learned<PyString>,
    /// `io.BytesIO`
    input: Py<PyAny>,
    /// `gustnado.FileWrapper`
    file_wrapper: Py<PyType>,
    told: Told,
    /// The template with `SERVER_NAME` and `SERVER_PORT`, by the address of this end.
    templates: Last<SocketAddr, PyDict>,
    spool: Arc<Spool>,
    /// None: it is called on the engine's thread.
    pool: Option<Pool>,
}

#[pymethods]
impl Wsgi {
    /// - `app`: a function of an environment and `start_response`.
    /// - `template`: the environment of a request but for what differs.
    /// - `root_path`: the part of the paths that is not the application's.
    /// - `waiting_max`: how many requests may wait for a thread of [`Wsgi::work`]; more get 503.
    ///   None: the engine's own thread calls the application, and nobody else is served meanwhile.
    /// - `spool_bytes`: what bodies that are not kept in memory may take on the disk, together.
    /// - `on_error`: called with an exception, or none, and a line about the request.
    #[new]
    fn new(
        app: Py<PyAny>,
        template: Py<PyDict>,
        root_path: String,
        file_wrapper: &Bound<'_, PyType>,
        waiting_max: Option<usize>,
        spool_bytes: u64,
        on_error: Py<PyAny>,
    ) -> PyResult<Self> {
        let py = file_wrapper.py();
        Ok(Self(Arc::new(Inside {
            app,
            template,
            root_path,
            names: Learned::new(environ::NAMES_MAX),
            input: py.import("io")?.getattr("BytesIO")?.unbind(),
            file_wrapper: file_wrapper.clone().unbind(),
            told: Told(on_error),
            templates: Last::default(),
            spool: Spool::new(spool_bytes),
            pool: waiting_max.map(Pool::new),
        })))
    }

    /// Calls the application for one request after the other, until [`Wsgi::end`]. For threads.
    fn work(&self, py: Python<'_>) {
        let Some(pool) = &self.0.pool else { return };
        while let Some(Job { request, body, replier }) = py.detach(|| pool.next()) {
            if replier.is_lost() {
                continue;
            }
            match self.0.ending(py, &request, body.input()) {
                Ending::Whole(response) => _ = replier.answer(response),
                Ending::Iterated(head, iterated) => {
                    let (feed, content) = crate::pipe::pipe();
                    replier.answer(head.stream(content));
                    iterated.feed(py, &feed);
                }
            }
        }
    }

    /// Has all threads return from [`Wsgi::work`] once nothing waits.
    fn end(&self) {
        if let Some(pool) = &self.0.pool {
            pool.end();
        }
    }
}

impl Wsgi {
    /// Has the application answer whatever else has no answer.
    pub(crate) fn add_to(&self, routes: Routes) -> Routes {
        let inside = Arc::clone(&self.0);
        let task = {
            let inside = Arc::clone(&inside);
            move |request: Request| Arc::clone(&inside).answer(request)
        };
        if inside.pool.is_some() {
            return routes.fallback_route(route().any(task).server_wide(true));
        }
        let at_once = move |request: &Request| {
            if tunnel::is_wanted(request) {
                return tunnel::refusal();
            }
            if tunnel::is_websocket(request) {
                return tunnel::no_websocket(request);
            }
            inside.answer_at_once(request, Input::Memory(request.bytes()))
        };
        let handler = by_length(MEMORY_BYTES_MAX as u64, at_once, task);
        routes.fallback_route(route().any(handler).server_wide(true))
    }
}

impl Inside {
    /// Calls the application on this thread.
    fn answer_at_once(self: &Arc<Self>, request: &Request, body: Input<'_>) -> Response {
        Python::attach(|py| match self.ending(py, request, body) {
            Ending::Whole(response) => response,
            Ending::Iterated(head, iterated) => head.stream(iterated),
        })
    }

    /// Reads the body, and has the application called once it is here.
    async fn answer(self: Arc<Self>, mut request: Request) -> Response {
        if tunnel::is_wanted(&request) {
            return tunnel::refusal();
        }
        if tunnel::is_websocket(&request) {
            return tunnel::no_websocket(&request);
        }
        let body = match self.spool.read(&mut request).await {
            Ok(body) => body,
            Err(refused) => {
                if let Some(why) = refused.text() {
                    errors::warn(&format!("{}: {why}", line(&request)));
                }
                return Response::new(refused.status());
            }
        };
        let Some(pool) = &self.pool else { return self.answer_at_once(&request, body.input()) };
        // On another thread nobody could be asked any more; the answer stays with the request.
        _ = request.peer();
        match pool.put(request, body) {
            Some(reply) => reply.await,
            None => Response::new(Status::SERVICE_UNAVAILABLE),
        }
    }

    /// Calls the application, and looks at what it returns.
    fn call(
        self: &Arc<Self>,
        py: Python<'_>,
        request: &Request,
        body: Input<'_>,
    ) -> PyResult<Ending> {
        let environ = environ::make(py, self, request, body)?;
        let start = Bound::new(py, Start::default())?;
        let returned = self.app.bind(py).call1((environ, &start))?;
        result::of(self, &returned, &start, request)
    }

    /// The same, where an application that fails is made up for.
    fn ending(self: &Arc<Self>, py: Python<'_>, request: &Request, body: Input<'_>) -> Ending {
        self.call(py, request, body).unwrap_or_else(|error| {
            self.told.tell(py, Some(&error), &format!("{} has failed", line(request)));
            Ending::Whole(Response::new(Status::INTERNAL_SERVER_ERROR))
        })
    }
}

fn line(request: &Request) -> String {
    format!("{} {}", request.method_str(), request.target())
}
