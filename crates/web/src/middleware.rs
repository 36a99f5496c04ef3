//! Middleware: functions that run before, after and around handlers.

use std::fmt;
use std::future::{Future, ready};
use std::sync::Arc;

use gustnado_http::head::Framing;
use gustnado_http::status::Status;
use gustnado_tasks::BlockingPool;

use crate::admission::overloaded;
use crate::build_context::BuildContext;
use crate::handler::{BlockingFn, HandlerFuture, HandlerKind, InlineFn, PageFn, TaskFn};
use crate::handler_limits::AdmissionChain;
use crate::request::Request;
use crate::response::{IntoResponse, Response};

/// Decision of a middleware that runs before the handler.
#[derive(Debug)]
pub enum Flow {
    /// Continues with the next middleware, and finally the handler.
    Next,
    /// Sends this response; neither later middleware nor the handler runs.
    Respond(Response),
}

impl From<Response> for Flow {
    fn from(response: Response) -> Self {
        Self::Respond(response)
    }
}

type Before = dyn Fn(&mut Request) -> Flow + Send + Sync;
type After = dyn Fn(&Request, &mut Response) + Send + Sync;
type Around = dyn Fn(Request, Next) -> HandlerFuture + Send + Sync;

/// Condition on requests.
pub type Matcher = Arc<dyn Fn(&Request) -> bool + Send + Sync>;

/// One middleware, and the condition on the requests that it runs for.
#[derive(Clone)]
pub struct Middleware {
    matcher: Option<Matcher>,
    kind: MiddlewareKind,
}

#[derive(Clone)]
enum MiddlewareKind {
    Before(Arc<Before>),
    After(Arc<After>),
    Around(Arc<Around>),
}

impl Middleware {
    /// Creates a middleware that runs before the later ones: it continues, or responds. It should
    /// not wait.
    pub fn before(f: impl Fn(&mut Request) -> Flow + Send + Sync + 'static) -> Self {
        Self { matcher: None, kind: MiddlewareKind::Before(Arc::new(f)) }
    }

    /// Creates a middleware that runs once the later ones and the handler have responded, and may
    /// change the response. It sees the request without its body, and should not wait.
    pub fn after(f: impl Fn(&Request, &mut Response) + Send + Sync + 'static) -> Self {
        Self { matcher: None, kind: MiddlewareKind::After(Arc::new(f)) }
    }

    /// Creates a middleware that runs around all later ones and the handler, as a light task.
    pub fn around<F, A>(f: F) -> Self
    where
        F: Fn(Request, Next) -> A + Send + Sync + 'static,
        A: Future<Output: IntoResponse> + Send + 'static,
    {
        let around = move |request, next| {
            let returned = f(request, next);
            HandlerFuture::Boxed(Box::pin(async move { returned.await.into_response() }))
        };
        Self { matcher: None, kind: MiddlewareKind::Around(Arc::new(around)) }
    }

    /// Restricts the middleware to requests for which `matcher` returns true.
    #[must_use]
    pub fn only_if(mut self, matcher: impl Fn(&Request) -> bool + Send + Sync + 'static) -> Self {
        self.matcher = Some(Arc::new(matcher));
        self
    }

    /// Changes a response that was made in place of the handler's, as it would have the handler's.
    pub(crate) fn finish(&self, request: &Request, response: &mut Response) {
        if let MiddlewareKind::After(after) = &self.kind
            && self.is_meant_for(request)
        {
            after(request, response);
        }
    }

    fn is_meant_for(&self, request: &Request) -> bool {
        self.matcher.as_ref().is_none_or(|matcher| matcher(request))
    }
}

impl fmt::Debug for Middleware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            MiddlewareKind::Before(_) => "Middleware (before)",
            MiddlewareKind::After(_) => "Middleware (after)",
            MiddlewareKind::Around(_) => "Middleware (around)",
        })
    }
}

/// A handler with the middleware around it.
#[derive(Clone)]
pub struct MiddlewareStack {
    middleware: Arc<[Middleware]>,
    handler: Runnable,
}

/// A handler as connections run it. A blocking handler has become a task that waits for the pool.
#[derive(Clone)]
pub enum Runnable {
    Inline(Arc<InlineFn>),
    Task(Arc<TaskFn>),
    ByLength(Arc<ByLength>),
}

/// One handler for requests whose body is short, or none, and another for others.
pub struct ByLength {
    pub whole_bytes_max: u64,
    pub whole: Runnable,
    pub other: Arc<TaskFn>,
}

impl ByLength {
    /// Returns whether the body is short by its framing.
    pub fn takes_whole(&self, framing: Framing) -> bool {
        match framing {
            Framing::Length(length) => length <= self.whole_bytes_max,
            Framing::Chunked | Framing::ToEnd => false,
            Framing::None => true,
        }
    }
}

impl Runnable {
    /// Turns the handler into a task whose responses are sent separately, so that each can have its
    /// own time-out.
    pub fn with_own_time(self, reads_body: bool) -> Self {
        let handler = self.into_task(reads_body);
        Self::Task(Arc::new(move |request| {
            let running = handler(request);
            HandlerFuture::Boxed(Box::pin(async move { running.await.on_its_own() }))
        }))
    }

    /// Turns the handler into a task.
    pub fn into_task(self, reads_body: bool) -> Arc<TaskFn> {
        match self {
            Self::Inline(handler) if reads_body => Arc::new(move |request| {
                HandlerFuture::Boxed(Box::pin(with_whole_body(Arc::clone(&handler), request)))
            }),
            Self::Inline(handler) => Arc::new(move |mut request| {
                HandlerFuture::Boxed(Box::pin(ready(handler(&mut request))))
            }),
            Self::Task(handler) => handler,
            Self::ByLength(both) => Arc::clone(&both.other),
        }
    }
}

async fn with_whole_body(handler: Arc<InlineFn>, mut request: Request) -> Response {
    match request.read_whole().await {
        Ok(()) => handler(&mut request),
        Err(error) => error.into_response(),
    }
}

impl MiddlewareStack {
    /// Puts middleware around a handler.
    ///
    /// - `limits`: those that the handler passes before it runs; an inline one passes none.
    pub fn around(
        middleware: &[Middleware],
        handler: HandlerKind,
        limits: AdmissionChain,
        build: &BuildContext,
    ) -> Runnable {
        let handler = match handler {
            HandlerKind::Inline(handler) | HandlerKind::HeadOnly(handler) => {
                Runnable::Inline(handler)
            }
            HandlerKind::Task(handler) => Runnable::Task(limited(handler, limits)),
            // A stack with middleware runs either inline or as a task; the task handles any length.
            HandlerKind::ByLength(_, _, other) if !middleware.is_empty() => {
                Runnable::Task(limited(other, limits))
            }
            HandlerKind::ByLength(whole_bytes_max, whole, other) => {
                let other = limited(other, limits);
                let whole = Runnable::Inline(whole);
                Runnable::ByLength(Arc::new(ByLength { whole_bytes_max, whole, other }))
            }
            HandlerKind::Blocking(handler) => Runnable::Task(on_pool(handler, limits, &build.pool)),
            HandlerKind::OnThreads(own) => Runnable::Task((own.make)(limits)),
            #[cfg(feature = "tower")]
            HandlerKind::Service(make, _) => Runnable::Task(limited(make(&build.tokio), limits)),
            HandlerKind::OfServer(page) => Runnable::Inline(of_server(page, build)),
            HandlerKind::Deferred(make) => {
                return Self::around(middleware, make(&build.server_context()).0, limits, build);
            }
        };
        if middleware.is_empty() {
            return handler;
        }
        let has_tasks = middleware.iter().any(|one| matches!(one.kind, MiddlewareKind::Around(_)));
        let chain = Self { middleware: middleware.into(), handler };
        match &chain.handler {
            Runnable::Inline(_) if !has_tasks => {
                Runnable::Inline(Arc::new(move |request| chain.run_inline(0, request)))
            }
            _ => Runnable::Task(Arc::new(move |request| {
                Next { chain: chain.clone(), at: 0 }.start(request)
            })),
        }
    }

    /// Runs the middleware from `at` on and the handler, as nested calls: later ones inside.
    fn run_inline(&self, at: usize, request: &mut Request) -> Response {
        let Some(one) = self.middleware.get(at) else {
            return match &self.handler {
                Runnable::Inline(handler) => handler(request),
                _ => unreachable!("a chain around a task is a task"),
            };
        };
        match &one.kind {
            MiddlewareKind::Before(before) if one.is_meant_for(request) => match before(request) {
                Flow::Next => self.run_inline(at + 1, request),
                Flow::Respond(response) => response,
            },
            MiddlewareKind::After(after) if one.is_meant_for(request) => {
                let mut response = self.run_inline(at + 1, request);
                response.open_file(request.parts().view(), gustnado_tasks::now());
                after(request, &mut response);
                response
            }
            _ => self.run_inline(at + 1, request),
        }
    }
}

/// Returns a handler for a page about its server.
fn of_server(page: Arc<PageFn>, build: &BuildContext) -> Arc<InlineFn> {
    let server = build.server.clone();
    Arc::new(move |request| match &server {
        Some(server) => page(request, &**server),
        None => Response::new(Status::SERVICE_UNAVAILABLE),
    })
}

/// Makes a handler wait until it may run; without a place, its response is 503.
fn limited(handler: Arc<TaskFn>, limits: AdmissionChain) -> Arc<TaskFn> {
    if limits.is_empty() {
        return handler;
    }
    Arc::new(move |request| {
        let (limits, handler) = (limits.clone(), Arc::clone(&handler));
        HandlerFuture::Boxed(Box::pin(async move {
            let bytes = request.held_bytes();
            let Some(_permits) = limits.admit(bytes).await else { return overloaded() };
            handler(request).await
        }))
    })
}

fn on_pool(handler: Arc<BlockingFn>, limits: AdmissionChain, pool: &BlockingPool) -> Arc<TaskFn> {
    let pool = pool.clone();
    Arc::new(move |mut request| {
        let (handler, pool, limits) = (Arc::clone(&handler), pool.clone(), limits.clone());
        HandlerFuture::Boxed(Box::pin(async move {
            if let Err(error) = request.read_whole().await {
                return error.into_response();
            }
            // After the body: a client that sends it slowly keeps no handler from others.
            let bytes = request.held_bytes();
            let Some(permits) = limits.admit(bytes).await else { return overloaded() };
            request.keep_addrs();
            // The call may outlive its client, and counts until its end.
            let call = move || {
                let _permits = permits;
                handler(request)
            };
            match pool.run(call).await {
                Ok(Some(response)) => response,
                // The panic continues here, where it is contained.
                Ok(None) => std::panic::resume_unwind(Box::new("on the pool")),
                // Exempt calls fill the pool's own queue.
                Err(_) => {
                    limits.count_refused();
                    overloaded()
                }
            }
        }))
    })
}

/// The middleware after the current one, and the handler.
#[derive(Clone)]
pub struct Next {
    chain: MiddlewareStack,
    at: usize,
}

impl Next {
    /// Runs the remaining middleware and the handler.
    pub async fn run(self, request: Request) -> Response {
        let head = request.head_only();
        let mut response = self.start(request).await;
        response.open_file(head.parts().view(), gustnado_tasks::now());
        response
    }

    fn start(mut self, mut request: Request) -> HandlerFuture {
        while let Some(one) = self.chain.middleware.get(self.at).cloned() {
            self.at += 1;
            if !one.is_meant_for(&request) {
                continue;
            }
            match one.kind {
                MiddlewareKind::Before(before) => {
                    if let Flow::Respond(response) = before(&mut request) {
                        return HandlerFuture::Boxed(Box::pin(ready(response)));
                    }
                }
                MiddlewareKind::Around(around) => return around(request, self),
                MiddlewareKind::After(after) => {
                    let head = request.head_only();
                    let inner = self.start(request);
                    return HandlerFuture::Boxed(Box::pin(async move {
                        let mut response = inner.await;
                        response.open_file(head.parts().view(), gustnado_tasks::now());
                        after(&head, &mut response);
                        response
                    }));
                }
            }
        }
        match self.chain.handler {
            Runnable::Task(handler) => handler(request),
            Runnable::ByLength(both) => (both.other)(request),
            Runnable::Inline(handler) => {
                HandlerFuture::Boxed(Box::pin(with_whole_body(handler, request)))
            }
        }
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Next")
    }
}
