//! Endpoints: what serves the requests of a path.

use std::sync::Arc;

use gustnado_access::{GateResponse, GateVerdict};
use gustnado_config::AccessSettings;
use gustnado_http::method::Method;
use gustnado_http::path::pattern::{before_rest, path_names};
use gustnado_http::status::Status;
use gustnado_tasks::Now;

use super::access_gate::AccessGate;
use super::{Route, RouteOptions, plain_status};
use crate::handler::{HandlerFuture, HandlerKind, TaskFn};
use crate::middleware::{Middleware, Runnable};
use crate::request::Request;
use crate::response::Response;
use gustnado_files::Files;

/// Endpoints of one path, by method.
pub(super) struct PathEntry {
    by_method: [Option<RouteEndpoint>; Method::COUNT],
    any: Option<RouteEndpoint>,
    options: RouteEndpoint,
    not_allowed: RouteEndpoint,
    pub(super) names: Option<Arc<[Box<str>]>>,
    pub(super) has_rest: bool,
    /// The canonical path, if it is exact; otherwise empty, which no request's path is.
    pub(super) pattern: Box<[u8]>,
}

/// What serves a request: a handler or a folder, with its options.
#[derive(Clone)]
pub struct RouteEndpoint {
    pub kind: EndpointKind,
    pub options: RouteOptions,
    /// A request's body is kept for it; otherwise it is discarded.
    pub reads_body: bool,
}

#[derive(Clone)]
pub enum EndpointKind {
    Run(Runnable),
    /// Serves a folder; `mounted_at` bytes of the path are the route's.
    Files {
        files: Arc<Files>,
        mounted_at: usize,
    },
    /// Another one, behind a gate.
    Gated(Arc<GatedEndpoint>),
}

/// An endpoint behind a gate.
pub struct GatedEndpoint {
    gate: Arc<AccessGate>,
    /// What gets requests that meet it.
    pub inner: RouteEndpoint,
    /// The same as a task, which checks the password first.
    pub verifying: Arc<TaskFn>,
    /// What the gate's own responses pass, the outermost first.
    after: Arc<[Middleware]>,
}

/// What becomes of a request.
pub enum Passage {
    /// The inner endpoint gets it.
    Open,
    /// [`GatedEndpoint::verifying`] gets it.
    Verify,
    /// It gets this response.
    Respond(Box<Response>),
}

impl GatedEndpoint {
    /// - `task`: the inner endpoint as a task.
    pub(super) fn new(
        gate: &Arc<AccessGate>,
        inner: RouteEndpoint,
        task: Arc<TaskFn>,
        after: &[Middleware],
    ) -> Self {
        let after: Arc<[Middleware]> = after.into();
        let (gate, own) = (Arc::clone(gate), Arc::clone(&after));
        let asked = Arc::clone(&gate);
        let verifying: Arc<TaskFn> = Arc::new(move |request| {
            let (gate, task, after) = (Arc::clone(&asked), Arc::clone(&task), Arc::clone(&own));
            HandlerFuture::Boxed(Box::pin(async move {
                match gate.verify(&request).await {
                    Ok(()) => task(request).await,
                    Err(refusal) => finished(refusal, &request, &after),
                }
            }))
        });
        Self { gate, inner, verifying, after }
    }

    /// Returns what it asks.
    pub(super) fn settings(&self) -> &AccessSettings {
        self.gate.settings()
    }

    /// Returns what becomes of a request.
    ///
    /// - `is_again`: it was let through already, before its body was read.
    pub fn check(&self, request: &mut Request, is_again: bool, now: Now) -> Passage {
        let verdict = if is_again { GateVerdict::Open } else { self.gate.check(request, now) };
        let passage = match verdict {
            GateVerdict::Open => Passage::Open,
            GateVerdict::Verify => Passage::Verify,
            GateVerdict::Respond(refusal) => {
                return Passage::Respond(Box::new(finished(refusal, request, &self.after)));
            }
        };
        if self.gate.has_passwords() {
            request.parts_mut().note_verified_user();
        }
        passage
    }
}

/// Returns a response of a gate with the fields of its route.
fn finished(refusal: GateResponse, request: &Request, after: &[Middleware]) -> Response {
    let GateResponse { status, fields, hint } = refusal;
    let mut response = Response::new(status);
    for (name, value) in fields {
        let outcome = response.try_header(name, value);
        debug_assert!(outcome.is_ok(), "{name}: {outcome:?}");
    }
    if hint.is_some() {
        response.extras.get_or_insert_default().hint = hint;
    }
    after.iter().rev().for_each(|one| one.finish(request, &mut response));
    response
}

impl PathEntry {
    pub(super) fn new(
        path: &str,
        route: &Route,
        endpoint: impl Fn(Option<Method>, HandlerKind) -> RouteEndpoint,
    ) -> Self {
        let allow = allow(route);
        let plain = |status| endpoint(None, plain_status(status, Some(allow.clone())));
        let mut entry = Self {
            by_method: [const { None }; Method::COUNT],
            any: route.any.as_ref().map(|handler| endpoint(None, handler.0.clone())),
            options: plain(Status::NO_CONTENT),
            not_allowed: plain(Status::METHOD_NOT_ALLOWED),
            names: names(path),
            has_rest: before_rest(path).is_some(),
            pattern: Box::default(),
        };
        for (method, handler) in &route.handlers {
            let made = endpoint(Some(*method), handler.0.clone());
            entry.by_method[*method as usize] = Some(made);
        }
        entry
    }

    /// Creates an entry with one endpoint for all methods.
    pub(super) fn all(endpoint: &RouteEndpoint) -> Self {
        Self {
            by_method: [const { None }; Method::COUNT],
            any: Some(endpoint.clone()),
            options: endpoint.clone(),
            not_allowed: endpoint.clone(),
            names: None,
            has_rest: false,
            pattern: Box::default(),
        }
    }

    /// Returns it with another endpoint for uploads.
    pub(super) fn with_uploads(mut self, uploads: Option<&RouteEndpoint>) -> Self {
        for method in [Method::Put, Method::Post] {
            self.by_method[method as usize] = uploads.cloned();
        }
        self
    }

    /// Returns the endpoint of a method.
    #[inline]
    pub(super) fn endpoint(&self, method: Method) -> &RouteEndpoint {
        let by_method = |method: Method| self.by_method[method as usize].as_ref();
        let own = by_method(method);
        let own = if method == Method::Head { own.or_else(|| by_method(Method::Get)) } else { own };
        match own.or(self.any.as_ref()) {
            Some(endpoint) => endpoint,
            None if method == Method::Options => &self.options,
            None => &self.not_allowed,
        }
    }
}

/// Returns the methods of a path, for `Allow` (RFC 9110 §10.2.1).
fn allow(route: &Route) -> String {
    let has = |wanted: Method| route.handlers.iter().any(|(method, _)| *method == wanted);
    let is_allowed = |method: &Method| match method {
        Method::Head => has(Method::Head) || has(Method::Get),
        Method::Options => true,
        method => has(*method),
    };
    let methods: Vec<&str> = Method::ALL
        .iter()
        .filter(|method| is_allowed(method))
        .filter_map(|method| method.as_str())
        .collect();
    methods.join(", ")
}

/// Returns the names in a path, in order.
fn names(path: &str) -> Option<Arc<[Box<str>]>> {
    let names: Vec<Box<str>> = path_names(path).into_iter().map(String::into).collect();
    (!names.is_empty()).then(|| names.into())
}
