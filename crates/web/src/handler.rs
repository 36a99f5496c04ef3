//! Handlers: inline functions, light tasks, blocking functions.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use gustnado_files::Files;
use gustnado_http::status::Status;
use gustnado_tasks::contained;

use crate::handler_limits::{AdmissionChain, HandlerThreads, OwnLimit};
use crate::request::Request;
use crate::response::{IntoResponse, Response};
#[cfg(feature = "tower")]
use crate::route_options::RouteOptions;
use crate::server_context::ServerContext;
#[cfg(feature = "tower")]
use crate::tokio_runtime::Tokio;
use gustnado_observe::server_stats::ServerStats;

pub type InlineFn = dyn Fn(&mut Request) -> Response + Send + Sync;
pub type TaskFn = dyn Fn(Request) -> HandlerFuture + Send + Sync;
pub type PageFn = dyn Fn(&Request, &dyn ServerStats) -> Response + Send + Sync;
pub type BlockingFn = dyn Fn(Request) -> Response + Send + Sync;

/// Makes the handler that takes files for a folder, of which so many bytes of a path are not a
/// part.
pub type UploadsFn = fn(Arc<Files>, usize) -> Arc<TaskFn>;

pub type MakeFn = dyn Fn(&ServerContext) -> Handler + Send + Sync;

/// A handler of any kind.
pub struct Handler(#[doc(hidden)] pub HandlerKind);

#[derive(Clone)]
pub enum HandlerKind {
    /// Runs on the worker, and must not wait.
    Inline(Arc<InlineFn>),
    /// Runs on the worker, and reads the head alone: the body is not kept for it.
    HeadOnly(Arc<InlineFn>),
    /// A light task: may wait for anything that is a future.
    Task(Arc<TaskFn>),
    /// An inline handler for short bodies, a task for others: see [`by_length`].
    ByLength(u64, Arc<InlineFn>, Arc<TaskFn>),
    /// Runs on a thread of the pool, and may wait for anything.
    Blocking(Arc<BlockingFn>),
    /// Runs on threads of its own: see [`on_threads`].
    OnThreads(Arc<OnThreads>),
    /// Becomes a task once the server's tokio runtime is known. The options are for a route that
    /// does not have its own.
    #[cfg(feature = "tower")]
    Service(Arc<ServiceFn>, RouteOptions),
    /// Reads the counters of its server; inline.
    OfServer(Arc<PageFn>),
    /// Becomes another kind once the server is known.
    Deferred(Arc<MakeFn>),
}

/// A handler that runs on threads of its own, and waits for its permit itself.
pub struct OnThreads {
    threads: OwnLimit,
    queue_max: usize,
    pub make: Box<dyn Fn(AdmissionChain) -> Arc<TaskFn> + Send + Sync>,
}

impl HandlerKind {
    /// Returns what it is on a server.
    pub fn on(self, server: &ServerContext) -> Self {
        match self {
            Self::Deferred(make) => make(server).0.on(server),
            known => known,
        }
    }

    /// Returns the threads that it runs on.
    pub fn threads(&self) -> HandlerThreads {
        match self {
            Self::Blocking(_) => HandlerThreads::Pool,
            Self::OnThreads(own) => HandlerThreads::Own(own.threads, own.queue_max),
            _ => HandlerThreads::None,
        }
    }
}

#[cfg(feature = "tower")]
pub type ServiceFn = dyn Fn(&Tokio) -> Arc<TaskFn> + Send + Sync;

/// A type that can be converted to a handler.
///
/// - `|request: &Request| …`: inline. It runs on the worker, finds the body whole, and should not
///   wait: it holds up the worker's other connections.
/// - `async |request: Request| …`: a light task. It may wait, read the body as it comes, and
///   stream.
/// - [`blocking`]`(|request: Request| …)`: on the thread pool. It may hold its thread, and finds
///   the body whole.
///
/// Each returns a type that implements [`IntoResponse`]. A panic is contained: the client gets 500,
/// and the panic is counted.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no handler",
    label = "expected `|request: &Request| …`, `async |request: Request| …`, `blocking(…)`, or \
             `tower(app)` for an axum `Router`",
    note = "`tower(app)`, of the cargo feature `tower`, takes an axum `Router` or another \
            `tower::Service<http::Request<gustnado::Body>>` that is `Clone + Send + Sync`; not \
            what `into_make_service` makes of one: hand over the `Router` itself",
    note = "a handler returns what `IntoResponse` takes, is `Send + Sync + 'static`, and a task's \
            future is `Send`"
)]
pub trait IntoHandler<Form> {
    /// Converts the value to a handler.
    fn into_handler(self) -> Handler;
}

/// Markers of the forms of handlers, used for type inference only.
pub mod form {
    /// A function of a borrowed request.
    #[derive(Debug)]
    pub enum InlineForm {}
    /// An async function of an owned request.
    #[derive(Debug)]
    pub enum TaskForm {}
    /// The result of [`super::blocking`].
    #[derive(Debug)]
    pub enum BlockingForm {}
    /// The result of [`tower()`](crate::tower::tower).
    #[cfg(feature = "tower")]
    #[derive(Debug)]
    pub enum ServiceForm {}
    /// A handler itself.
    #[derive(Debug)]
    pub enum ReadyForm {}
}

impl<F, R> IntoHandler<form::InlineForm> for F
where
    F: Fn(&Request) -> R + Send + Sync + 'static,
    R: IntoResponse,
{
    fn into_handler(self) -> Handler {
        Handler(HandlerKind::Inline(Arc::new(move |request: &mut Request| {
            self(request).into_response()
        })))
    }
}

impl<F, A> IntoHandler<form::TaskForm> for F
where
    F: Fn(Request) -> A + Send + Sync + 'static,
    A: Future<Output: IntoResponse> + Send + 'static,
{
    fn into_handler(self) -> Handler {
        let call = Arc::new(self);
        Handler(HandlerKind::Task(Arc::new(move |request| {
            let mut place = TaskCall { call: Arc::clone(&call), future: Box::pin(None) };
            place.start(request);
            HandlerFuture::Reusable(Box::new(place))
        })))
    }
}

/// A handler for the thread pool: see [`blocking`].
pub struct Blocking<F>(F);

/// Makes a handler that runs on the thread pool, where it may hold its thread. While all threads
/// are held, requests wait in the order in which they came: `blocking-queue` of them at most, each
/// for `blocking-queue-timeout` at most. When the queue is full, the oldest gets 503.
pub fn blocking<F, R>(call: F) -> Blocking<F>
where
    F: Fn(Request) -> R + Send + Sync + 'static,
    R: IntoResponse,
{
    Blocking(call)
}

impl<F, R> IntoHandler<form::BlockingForm> for Blocking<F>
where
    F: Fn(Request) -> R + Send + Sync + 'static,
    R: IntoResponse,
{
    fn into_handler(self) -> Handler {
        Handler(HandlerKind::Blocking(Arc::new(move |request| self.0(request).into_response())))
    }
}

/// Makes a handler of two: an inline one for requests with a short body or none, and a task for all
/// others.
///
/// - `whole_bytes_max`: how long a short body is at most.
///
/// # Panics
/// If the two are not of these forms, which their types ensure.
#[doc(hidden)]
pub fn by_length(
    whole_bytes_max: u64,
    whole: impl IntoHandler<form::InlineForm>,
    other: impl IntoHandler<form::TaskForm>,
) -> Handler {
    match (whole.into_handler().0, other.into_handler().0) {
        (HandlerKind::Inline(whole), HandlerKind::Task(other)) => {
            Handler(HandlerKind::ByLength(whole_bytes_max, whole, other))
        }
        _ => unreachable!("each form makes its own kind"),
    }
}

/// Makes a handler for threads that the caller has. It waits for its permit itself, once it has
/// what it needs, and holds that until its thread is free again.
///
/// - `threads`: how many there are, at least 1.
/// - `queue_max`: requests that may wait for one of them.
///
/// # Panics
/// If there are no threads.
#[doc(hidden)]
pub fn on_threads<F, A>(threads: usize, queue_max: usize, call: F) -> Handler
where
    F: Fn(Request, AdmissionChain) -> A + Send + Sync + 'static,
    A: Future<Output: IntoResponse> + Send + 'static,
{
    let call = Arc::new(call);
    let make = move |limits: AdmissionChain| {
        let call = Arc::clone(&call);
        let task = move |request: Request| call(request, limits.clone());
        match task.into_handler().0 {
            HandlerKind::Task(task) => task,
            _ => unreachable!("this form makes a task"),
        }
    };
    let threads = OwnLimit::new(threads).expect("there is a thread");
    Handler(HandlerKind::OnThreads(Arc::new(OnThreads {
        threads,
        queue_max,
        make: Box::new(make),
    })))
}

/// Makes a handler of an inline one that reads no body: none is kept for it.
///
/// # Panics
/// If it is of another form, which its type ensures.
#[doc(hidden)]
pub fn head_only(handler: impl IntoHandler<form::InlineForm>) -> Handler {
    match handler.into_handler().0 {
        HandlerKind::Inline(handler) => Handler(HandlerKind::HeadOnly(handler)),
        _ => unreachable!("the form makes its own kind"),
    }
}

impl Handler {
    /// Makes a handler that becomes another one once the server is known.
    #[doc(hidden)]
    pub fn of_server(make: impl Fn(&ServerContext) -> Self + Send + Sync + 'static) -> Self {
        Self(HandlerKind::Deferred(Arc::new(make)))
    }
}

impl IntoHandler<form::ReadyForm> for Handler {
    fn into_handler(self) -> Handler {
        self
    }
}

impl std::fmt::Debug for Handler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            HandlerKind::Inline(_) | HandlerKind::HeadOnly(_) => "Handler (inline)",
            HandlerKind::Task(_) => "Handler (task)",
            HandlerKind::ByLength(..) => "Handler (inline or task)",
            HandlerKind::Blocking(_) => "Handler (blocking)",
            HandlerKind::OnThreads(_) => "Handler (threads)",
            #[cfg(feature = "tower")]
            HandlerKind::Service(..) => "Handler (service)",
            HandlerKind::OfServer(_) => "Handler (of the server)",
            HandlerKind::Deferred(_) => "Handler (once the server is known)",
        })
    }
}

impl<F> std::fmt::Debug for Blocking<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Blocking")
    }
}

/// Returns the response to a request whose handler panicked.
pub fn panicked() -> Response {
    Response::new(Status::INTERNAL_SERVER_ERROR)
}

/// Future of a task handler.
pub enum HandlerFuture {
    /// Allocated for this request.
    Boxed(Pin<Box<dyn Future<Output = Response> + Send>>),
    /// In memory that the next request of the same handler can reuse.
    Reusable(Box<dyn ReusableCall>),
}

impl Future for HandlerFuture {
    type Output = Response;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response> {
        match &mut *self {
            Self::Boxed(future) => future.as_mut().poll(context),
            Self::Reusable(place) => place.poll(context),
        }
    }
}

/// Memory for the future of one handler, which its requests use in turn.
pub trait ReusableCall: Send {
    /// Calls the handler.
    fn start(&mut self, request: Request);
    /// Polls the handler. Once it returns a response, the future is dropped and the memory is free.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Response>;
}

/// Identity of a task handler, valid while the handler exists: a worker drops it together with its
/// routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandlerId(usize);

impl HandlerId {
    #[inline]
    pub fn of(handler: &Arc<TaskFn>) -> Self {
        Self(Arc::as_ptr(handler).cast::<()>().addr())
    }
}

struct TaskCall<F, A> {
    call: Arc<F>,
    future: Pin<Box<Option<A>>>,
}

impl<F, A> ReusableCall for TaskCall<F, A>
where
    F: Fn(Request) -> A + Send + Sync,
    A: Future<Output: IntoResponse> + Send,
{
    fn start(&mut self, request: Request) {
        let future = (self.call)(request);
        self.future.set(Some(future));
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Response> {
        let future =
            self.future.as_mut().as_pin_mut().expect("polled between the start and the response");
        let returned = ready!(future.poll(context));
        self.future.set(None);
        Poll::Ready(returned.into_response())
    }
}

/// A running task handler, whose panics are contained.
pub struct RunningHandler(Option<HandlerFuture>);

impl RunningHandler {
    /// Creates one that runs.
    pub fn new(running: HandlerFuture) -> Self {
        Self(Some(running))
    }

    /// Creates one that has responded.
    pub fn ended() -> Self {
        Self(None)
    }

    /// Calls a task handler, which may panic at once.
    ///
    /// - `place`: memory that an earlier request of the same handler has used.
    #[inline]
    pub fn start(handler: &TaskFn, request: Request, place: Option<Box<dyn ReusableCall>>) -> Self {
        Self(contained(|| match place {
            Some(mut place) => {
                place.start(request);
                HandlerFuture::Reusable(place)
            }
            None => handler(request),
        }))
    }

    /// Polls the handler. Returns whether it has ended; `response` is then the response, or `None`
    /// if the handler panicked, now or in its destructor.
    #[inline]
    pub fn poll(&mut self, context: &mut Context<'_>, response: &mut Option<Response>) -> bool {
        let Some(running) = &mut self.0 else { return true };
        let is_pending = contained(|| match Pin::new(running).poll(context) {
            Poll::Pending => true,
            Poll::Ready(returned) => {
                *response = Some(returned);
                false
            }
        });
        match (is_pending, &self.0) {
            (Some(true), _) => return false,
            (Some(false), Some(HandlerFuture::Reusable(_))) => {}
            _ => {
                let ended = self.0.take();
                if contained(|| drop(ended)).is_none() || is_pending.is_none() {
                    *response = None;
                }
            }
        }
        true
    }

    /// Returns the memory of its future, for another request of the same handler.
    #[inline]
    pub fn into_place(mut self) -> Option<Box<dyn ReusableCall>> {
        let running = self.0.take();
        // Nothing is left in it: forgetting it saves the check of a drop.
        mem::forget(self);
        match running {
            Some(HandlerFuture::Reusable(place)) => Some(place),
            _ => None,
        }
    }
}

impl Drop for RunningHandler {
    fn drop(&mut self) {
        let Some(unfinished) = self.0.take() else { return };
        // A panic in the destructor must not end the connection's task.
        _ = contained(|| drop(unfinished));
    }
}
