//! How a handler in Python is called, and what becomes of what it returns.

use std::sync::Arc;

use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use gustnado::{Method, Reply, Response, Routes, Status, reply_later, route};

use crate::coroutine::{self, Starter};
use crate::errors::{Fault, Told};
use crate::request::Request;
use crate::{response, tunnel};

/// What all handlers stand on.
pub(crate) struct Ground {
    /// Starts coroutines; none where there is no loop for them.
    starter: Option<Starter>,
    told: Told,
    /// Makes a text of a dictionary or list.
    to_json: Py<PyAny>,
    /// The limit of bodies was set: it is that of coroutine functions, too, which have none of
    /// their own.
    has_body_limit: bool,
}

/// How many bytes of a body are read into memory for a function that names no limit.
const READ_BYTES_MAX: u64 = 1 << 20;

impl Ground {
    /// Takes it over from `gustnado._routes.Ground`.
    ///
    /// - `has_body_limit`: `limit-body-bytes` was set.
    pub(crate) fn of(given: &Bound<'_, PyAny>, has_body_limit: bool) -> PyResult<Self> {
        let event_loop = given.getattr("loop")?;
        let starter = if event_loop.is_none() { None } else { Some(Starter::new(&event_loop)?) };
        Ok(Self {
            starter,
            told: Told(given.getattr("on_error")?.unbind()),
            to_json: given.getattr("to_json")?.unbind(),
            has_body_limit,
        })
    }

    /// The answer where a handler has failed: the exception is told, the client learns nothing.
    pub(crate) fn failed(&self, py: Python<'_>, error: &PyErr, what: &str) -> Response {
        self.told.tell(py, Some(error), &format!("{what} has failed"));
        Response::new(Status::INTERNAL_SERVER_ERROR)
    }
}

/// A handler in Python.
pub(crate) struct Callee {
    function: Py<PyAny>,
    takes_request: bool,
    /// The named parts of the path that it takes, each also as Python's text.
    params: Vec<(String, Py<PyString>)>,
    is_coroutine: bool,
    ground: Arc<Ground>,
    /// What it is called in the log.
    name: String,
}

/// What a call has come to.
enum Begun {
    Answered(Response),
    Later(Reply),
}

impl Callee {
    pub(crate) fn new(
        function: Py<PyAny>,
        takes_request: bool,
        params: Vec<String>,
        is_coroutine: bool,
        ground: Arc<Ground>,
    ) -> Self {
        let (params, name) = Python::attach(|py| {
            let text = |name: String| {
                let interned = PyString::intern(py, &name).unbind();
                (name, interned)
            };
            let name = function.bind(py).getattr("__qualname__");
            let name = name.map_or_else(|_| "a handler".to_owned(), |name| name.to_string());
            (params.into_iter().map(text).collect(), name)
        });
        Self { function, takes_request, params, is_coroutine, ground, name }
    }

    /// Adds it to routes. One that takes neither the request nor time runs on the spot.
    pub(crate) fn add_to(
        self: Arc<Self>,
        routes: Routes,
        method: Option<Method>,
        (path, merges): (&str, bool),
    ) -> Routes {
        let mut place = route().merge_slashes(merges);
        if self.is_coroutine && !self.ground.has_body_limit {
            // It reads as it likes, and waits while it does not.
            place = place.limit_body_bytes(u64::MAX);
        }
        let place = if self.takes_request || self.is_coroutine {
            let handler = move |request: gustnado::Request| Arc::clone(&self).answer(request);
            match method {
                Some(method) => place.on(method, handler),
                None => tunnel::refused_by(place).any(handler),
            }
        } else {
            let handler = move |request: &gustnado::Request| self.answer_at_once(request);
            match method {
                Some(method) => place.on(method, handler),
                None => tunnel::refused_by(place).any(handler),
            }
        };
        routes.route(path, place)
    }

    fn answer_at_once(&self, request: &gustnado::Request) -> Response {
        if tunnel::is_websocket(request) {
            return tunnel::no_websocket(request);
        }
        Python::attach(|py| {
            let named = self.named(py, request);
            let returned = named.and_then(|named| self.function.bind(py).call((), named.as_ref()));
            self.judge(py, returned, None)
        })
    }

    async fn answer(self: Arc<Self>, mut request: gustnado::Request) -> Response {
        if tunnel::is_websocket(&request) {
            return tunnel::no_websocket(&request);
        }
        let mut body = None;
        if !self.is_coroutine {
            match request.body_mut().bytes(usize::MAX).await {
                Ok(bytes) => body = Some(bytes),
                Err(error) => return Response::new(error.status()),
            }
        }
        match Python::attach(|py| self.begin(py, request, body)) {
            Begun::Answered(response) => response,
            Begun::Later(reply) => reply.await,
        }
    }

    fn begin(
        self: &Arc<Self>,
        py: Python<'_>,
        request: gustnado::Request,
        body: Option<Bytes>,
    ) -> Begun {
        let mut asked = None;
        let returned = self.named(py, &request).and_then(|named| {
            let function = self.function.bind(py);
            if self.takes_request {
                let read_max = (!self.ground.has_body_limit).then_some(READ_BYTES_MAX);
                let request = asked.insert(Bound::new(py, Request::new(request, body, read_max))?);
                function.call((&*request,), named.as_ref())
            } else {
                function.call(PyTuple::empty(py), named.as_ref())
            }
        });
        match (returned, &self.ground.starter) {
            (Ok(coroutine), Some(starter)) if self.is_coroutine => {
                self.follow(py, starter, &coroutine, asked.as_ref())
            }
            (returned, _) => Begun::Answered(self.judge(py, returned, asked.as_ref())),
        }
    }

    /// Runs a coroutine as a task of the loop, its first step at once.
    fn follow(
        self: &Arc<Self>,
        py: Python<'_>,
        starter: &Starter,
        coroutine: &Bound<'_, PyAny>,
        asked: Option<&Bound<'_, Request>>,
    ) -> Begun {
        let judged = |returned| Begun::Answered(self.judge(py, returned, asked));
        let begun = match starter.start(coroutine) {
            Ok(begun) => begun,
            Err(error) => return judged(Err(error)),
        };
        match coroutine::result(&begun.task) {
            Ok(Some(returned)) => judged(Ok(returned)),
            Err(error) => judged(Err(error)),
            Ok(None) => {
                let (replier, reply) = reply_later();
                let lost = begun.task.clone().unbind();
                replier.on_lost(move || {
                    Python::attach(|py| {
                        if let Err(error) = lost.call_method0(py, pyo3::intern!(py, "cancel")) {
                            error.write_unraisable(py, None);
                        }
                    });
                });
                let (callee, of_task) =
                    (Arc::clone(self), asked.map(|asked| asked.clone().unbind()));
                let judge = move |py: Python<'_>, returned: PyResult<Bound<'_, PyAny>>| {
                    let asked = of_task.as_ref().map(|asked| asked.bind(py));
                    replier.answer(callee.judge(py, returned, asked));
                };
                match starter.when_done(begun, judge) {
                    Ok(()) => Begun::Later(reply),
                    Err(error) => judged(Err(error)),
                }
            }
        }
    }

    /// The named parts of the path that it takes.
    fn named<'py>(
        &self,
        py: Python<'py>,
        request: &gustnado::Request,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        if self.params.is_empty() {
            return Ok(None);
        }
        let named = PyDict::new(py);
        for (name, key) in &self.params {
            named.set_item(key, request.param(name))?;
        }
        Ok(Some(named))
    }

    /// The answer that a handler's value stands for, or an exception. What one raises that was told
    /// of a broken body comes of that: the status is the body's, and the fault the client's.
    fn judge(
        &self,
        py: Python<'_>,
        returned: PyResult<Bound<'_, PyAny>>,
        asked: Option<&Bound<'_, Request>>,
    ) -> Response {
        let answer = returned.and_then(|value| response::of(&value, self.ground.to_json.bind(py)));
        answer.unwrap_or_else(|error| match asked.and_then(|asked| asked.get().broken()) {
            Some(broken) => {
                let what = format!("{}: {broken}", self.name);
                self.ground.told.tell_fault(py, Some(&error), &what, Fault::Peers);
                Response::new(broken.status()).close()
            }
            None => self.ground.failed(py, &error, &self.name),
        })
    }
}
