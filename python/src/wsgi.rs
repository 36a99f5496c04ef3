//! WSGI applications (PEP 3333), on the engine's thread or on threads of their own.

mod body;
mod environ;
mod input;
mod result;
mod start;
mod thread_queue;

use std::sync::Arc;

use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};

use gustnado::config::BodyPolicy;
use gustnado::{
    AdmissionChain, Method, Request, Response, Routes, Status, by_length, on_threads, overloaded,
    route,
};

use crate::errors::{self, ErrorReporter, FaultOrigin};
use crate::name_cache::NameCache;
use crate::pipe::pipe;
use crate::request_template::RequestTemplate;
use crate::{hang_watch, tunnel};
use body::{Input, MEMORY_BYTES_MAX};
use result::CallEnd;
use start::StartResponse;
use thread_queue::{HandlerCall, ThreadQueue};

/// The body of a request without one.
static EMPTY: Bytes = Bytes::new();

/// A WSGI application.
#[pyclass(frozen, module = "gustnado._gustnado")]
pub(crate) struct Wsgi(Arc<WsgiApp>);

struct WsgiApp {
    app: Py<PyAny>,
    /// The common part of all environments.
    template: RequestTemplate,
    root_path: String,
    /// Names of fields in an environment.
    names: NameCache<PyString>,
    /// `io.BytesIO`
    bytes_io: Py<PyAny>,
    /// `io.BufferedReader`
    buffered_reader: Py<PyAny>,
    /// `gustnado.FileWrapper`
    file_wrapper: Py<PyType>,
    reporter: ErrorReporter,
    /// `None`: the engine's thread calls the application.
    thread_queue: Option<ThreadQueue>,
    threads: usize,
    waiting_max: usize,
}

#[pymethods]
impl Wsgi {
    /// - `app`: a function of an environment and `start_response`.
    /// - `template`: the common part of all environments.
    /// - `root_path`: the part of the paths that is not the application's.
    /// - `threads`: how many call `work`, and how many requests may wait for one of them; of more
    ///   the oldest gets 503. With one thread none calls it: the engine's own calls the
    ///   application, and serves nothing else meanwhile.
    /// - `on_error`: called with an exception, or none, and a line about the request.
    #[new]
    fn new(
        app: Py<PyAny>,
        template: Py<PyDict>,
        root_path: String,
        file_wrapper: &Bound<'_, PyType>,
        threads: (usize, usize),
        on_error: Py<PyAny>,
    ) -> PyResult<Self> {
        let py = file_wrapper.py();
        let io = py.import("io")?;
        let (threads, waiting_max) = threads;
        Ok(Self(Arc::new(WsgiApp {
            app,
            template: RequestTemplate::new(template),
            root_path,
            names: NameCache::new(environ::NAMES_MAX),
            bytes_io: io.getattr("BytesIO")?.unbind(),
            buffered_reader: io.getattr("BufferedReader")?.unbind(),
            file_wrapper: file_wrapper.clone().unbind(),
            reporter: ErrorReporter(on_error),
            thread_queue: (threads > 1).then(ThreadQueue::default),
            threads,
            waiting_max,
        })))
    }

    /// Calls the application for one request after the other, until `end`. For threads.
    fn work(&self, py: Python<'_>) {
        let Some(thread_queue) = &self.0.thread_queue else { return };
        while let Some(call) = py.detach(|| thread_queue.next()) {
            // The permits are given back when the thread is free again.
            let HandlerCall { request, body, replier, permits: _permits } = call;
            if replier.is_lost() {
                continue;
            }
            let start = StartResponse::to_client(replier, request.method() == Method::Head);
            match Bound::new(py, start) {
                Ok(start) => self.0.call_on_thread(&request, body.input(), &start),
                Err(error) => error.write_unraisable(py, None),
            }
        }
    }

    /// Makes all threads return from `work` once no request waits.
    fn end(&self) {
        if let Some(thread_queue) = &self.0.thread_queue {
            thread_queue.end();
        }
    }
}

impl Wsgi {
    /// Adds the application to routes, as the fallback.
    pub(crate) fn add_to(&self, routes: Routes) -> Routes {
        let inside = Arc::clone(&self.0);
        // The bodies of an application go to the disk whatever the others' do.
        let place = route().body_policy(BodyPolicy::Spool).server_wide(true);
        if inside.thread_queue.is_some() {
            let (threads, waiting_max) = (inside.threads, inside.waiting_max);
            let handler = on_threads(threads, waiting_max, move |request, limits| {
                Arc::clone(&inside).respond(request, Some(limits))
            });
            return routes.fallback_route(place.any(handler));
        }
        let task = {
            let inside = Arc::clone(&inside);
            move |request: Request| Arc::clone(&inside).respond(request, None)
        };
        let at_once = move |request: &Request| {
            if let Some(refusal) = tunnel::refuse(request) {
                return refusal;
            }
            let body = request.whole_body().unwrap_or(&EMPTY);
            inside.respond_at_once(request, Input::Memory(body))
        };
        let handler = by_length(MEMORY_BYTES_MAX as u64, at_once, task);
        routes.fallback_route(place.any(handler))
    }
}

impl WsgiApp {
    /// Calls the application on this thread.
    fn respond_at_once(self: &Arc<Self>, request: &Request, body: Input<'_>) -> Response {
        Python::attach(|py| {
            let start = match Bound::new(py, StartResponse::default()) {
                Ok(start) => start,
                Err(error) => return self.failed(py, &error, request, FaultOrigin::Own),
            };
            match self.ending(request, body, &start) {
                CallEnd::Whole(response) => response,
                CallEnd::Iterated(head, iterated) => head.stream(iterated),
                CallEnd::Behind(..) => unreachable!("it has no client to write to"),
            }
        })
    }

    /// Calls the application on a thread that may wait, and sends its response.
    fn call_on_thread(
        self: &Arc<Self>,
        request: &Request,
        body: Input<'_>,
        start: &Bound<'_, StartResponse>,
    ) {
        let py = start.py();
        match self.ending(request, body, start) {
            CallEnd::Whole(response) => start.get().respond(response),
            CallEnd::Iterated(head, iterated) => {
                let (writer, content) = pipe();
                start.get().respond(head.stream(content));
                iterated.write_to(py, &writer);
            }
            CallEnd::Behind(writer, iterated) => iterated.write_to(py, &writer),
        }
    }

    /// Reads the body, then calls the application.
    ///
    /// - `limits`: what it waits for, where it is called on a thread.
    async fn respond(
        self: Arc<Self>,
        mut request: Request,
        limits: Option<AdmissionChain>,
    ) -> Response {
        if let Some(refusal) = tunnel::refuse(&request) {
            return refusal;
        }
        let body = match body::read(&mut request).await {
            Ok(body) => body,
            Err(refused) => {
                if let Some(why) = refused.text() {
                    errors::warn(&format!("{}: {why}", line(&request)));
                }
                return Response::new(refused.status());
            }
        };
        let (Some(thread_queue), Some(limits)) = (&self.thread_queue, limits) else {
            return self.respond_at_once(&request, body.input());
        };
        // After the body: a client that sends it slowly keeps no thread from others.
        let Some(permits) = limits.admit(request.held_bytes()).await else { return overloaded() };
        // Another thread cannot query the connection; the request caches the addresses.
        _ = request.peer();
        match thread_queue.put(request, body, permits) {
            Some(reply) => reply.await,
            None => overloaded(),
        }
    }

    /// Calls the application, and inspects what it returns.
    fn call(
        self: &Arc<Self>,
        request: &Request,
        body: Input<'_>,
        start: &Bound<'_, StartResponse>,
    ) -> PyResult<CallEnd> {
        let py = start.py();
        hang_watch::note_call(py);
        let environ = environ::make(py, self, request, body)?;
        let returned = self.app.bind(py).call1((environ, start))?;
        result::of(self, &returned, start, request)
    }

    /// The same, with a 500 for an application that fails.
    fn ending(
        self: &Arc<Self>,
        request: &Request,
        body: Input<'_>,
        start: &Bound<'_, StartResponse>,
    ) -> CallEnd {
        self.call(request, body, start).unwrap_or_else(|error| {
            let fault = FaultOrigin::of_peer(start.get().knows_loss());
            CallEnd::Whole(self.failed(start.py(), &error, request, fault))
        })
    }

    fn failed(
        &self,
        py: Python<'_>,
        error: &PyErr,
        request: &Request,
        fault: FaultOrigin,
    ) -> Response {
        let what = format!("{} has failed", line(request));
        self.reporter.report_as(py, Some(error), &what, fault);
        Response::new(Status::INTERNAL_SERVER_ERROR)
    }
}

fn line(request: &Request) -> String {
    format!("{} {}", request.method_str(), request.target())
}
