//! From a request to its handler.

use std::sync::Arc;
use std::task::Context;

use bytes::Bytes;
use gustnado_app::app::App;
use gustnado_app::hooks::Limit;
use gustnado_files::Mounted;
use gustnado_http::fields::Fields;
use gustnado_http::h2::StreamId;
use gustnado_http::head::{Framing, Head};
use gustnado_http::method::Method;
use gustnado_http::path::CanonicalPath;
use gustnado_http::request::RequestView;
use gustnado_http::status::Status;
use gustnado_observe::exchange::Exchanges;
use gustnado_tasks::{contained, note_step};
use gustnado_web::handler::InlineFn;
use gustnado_web::lookup::find;
use gustnado_web::middleware::Runnable;
use gustnado_web::request::{Request, RequestSource};
use gustnado_web::route_cache::RouteCache;
use gustnado_web::routes::{EndpointKind, RouteEndpoint, RouteOptions, RouteTable};
use gustnado_web::trailers::RequestTrailers;

use crate::Http2Conn;
use crate::stream_body::{Gathered, StreamBody};
use crate::stream_pace::StreamRead;

/// A request on its way to its handler.
pub(super) struct Received<'a> {
    pub(super) head: &'a Head,
    pub(super) bytes: &'a [u8],
    /// Its body, once it was gathered, and its trailer fields.
    pub(super) body: Option<(Bytes, Option<RequestTrailers>)>,
    pub(super) reply: StreamReply<'a>,
}

/// Where a response goes.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct StreamReply<'a> {
    pub(super) id: StreamId,
    /// The head of the request, if that is served.
    pub(super) asked: Option<(&'a Head, &'a [u8])>,
    /// The client has sent all of its request.
    pub(super) is_end: bool,
    /// Its stream is open.
    pub(super) is_open: bool,
    pub(super) exchange: Option<Box<Exchanges>>,
    /// Its content comes in pieces.
    pub(super) has_pieces: bool,
    /// It was held back for as long as its pace says.
    pub(super) was_held: bool,
    /// The request asks for a tunnel.
    pub(super) is_tunnel: bool,
    /// The request came without https, on a server that otherwise asks for it.
    pub(super) is_insecure: bool,
}

impl StreamReply<'_> {
    /// A reply on an open stream.
    pub(super) fn of_stream(id: StreamId, is_end: bool) -> Self {
        Self {
            id,
            asked: None,
            is_end,
            is_open: true,
            exchange: None,
            has_pieces: false,
            was_held: false,
            is_tunnel: false,
            is_insecure: false,
        }
    }
}

impl<'a> Received<'a> {
    #[inline]
    pub(super) fn new(id: StreamId, head: &'a Head, bytes: &'a [u8], is_end: bool) -> Self {
        let reply = StreamReply {
            asked: Some((head, bytes)),
            is_open: false,
            is_tunnel: head.method() == Method::Connect,
            ..StreamReply::of_stream(id, is_end)
        };
        Self { head, bytes, body: None, reply }
    }

    #[inline]
    pub(super) fn view(&self) -> RequestView<'a> {
        self.head.on(self.bytes)
    }

    /// Returns whether its body is still to come.
    #[inline]
    pub(super) fn has_body_ahead(&self) -> bool {
        !self.reply.is_end && self.body.is_none() && !self.reply.is_tunnel
    }
}

/// What was found for a request.
pub(super) struct Routed<'t> {
    pub(super) table: &'t Arc<RouteTable>,
    pub(super) options: &'t RouteOptions,
    pub(super) reads_body: bool,
    pub(super) request: Box<Request>,
}

impl Http2Conn {
    /// Responds to a request, or has its handler do so.
    #[inline]
    pub(super) fn respond(
        &mut self,
        received: &mut Received<'_>,
        app: &Arc<App>,
        context: &mut Context<'_>,
    ) {
        if app.notice().has_guards() && self.is_guarded(received, app) {
            return;
        }
        self.respond_by_route(received, app, context);
    }

    /// Responds by the routes in force.
    pub(super) fn respond_by_route(
        &mut self,
        received: &mut Received<'_>,
        app: &App,
        context: &mut Context<'_>,
    ) {
        let view = received.view();
        let table = app.tables.of_host(view);
        if !view.form().has_path() {
            return self.respond_pathless(received, table, app, context);
        }
        if let Some(files) = &table.only_folder
            && !received.has_body_ahead()
        {
            return self.respond_from_folder((files, None), table, received, app);
        }
        RouteCache::with(&app.tables, |cache| {
            self.respond_routed(cache, table, received, app, context);
        });
    }

    fn respond_routed(
        &mut self,
        cache: &RouteCache,
        table: &Arc<RouteTable>,
        received: &mut Received<'_>,
        app: &App,
        context: &mut Context<'_>,
    ) {
        let view = received.view();
        // In HTTP/1.1 a request for a tunnel at a path is a GET: one route is for both.
        let method = if received.reply.is_tunnel { Method::Get } else { view.method() };
        let exact = if table.is_exact_first() {
            table.find_exact(method, view.path(), &cache.recent)
        } else {
            None
        };
        let (endpoint, request, path) = match exact {
            Some(endpoint) => (endpoint, None, None),
            None => find(cache, table, method, (received.head, received.bytes), self.origin(app)),
        };
        match &endpoint.kind {
            EndpointKind::Files { files, mounted_at } => {
                if self.refuses_body(received, &endpoint.options, app) {
                    return;
                }
                let path = path.or_else(|| CanonicalPath::of(view.path()).ok());
                let place = path.map(|path| Mounted { path, at: *mounted_at });
                self.respond_from_folder((files, place.as_ref()), table, received, app);
                if received.reply.is_open {
                    self.keep_options(received.reply.id, &endpoint.options);
                }
            }
            EndpointKind::Gated(gated) => {
                self.respond_gated(gated, (cache, table, request), received, app, context);
            }
            EndpointKind::Run(runnable) => {
                self.run_endpoint(
                    runnable,
                    endpoint,
                    (cache, table, request),
                    received,
                    app,
                    context,
                );
            }
        }
    }

    fn run_endpoint(
        &mut self,
        runnable: &Runnable,
        endpoint: &RouteEndpoint,
        (cache, table, request): (&RouteCache, &Arc<RouteTable>, Option<Box<Request>>),
        received: &mut Received<'_>,
        app: &App,
        context: &mut Context<'_>,
    ) {
        note_step(endpoint.options.label);
        let origin = self.origin(app);
        let request = request
            .unwrap_or_else(|| Request::bare(&cache.used, received.head, received.bytes, origin));
        let RouteEndpoint { options, reads_body, .. } = endpoint;
        let routed = Routed { table, options, reads_body: *reads_body, request };
        self.run(runnable, routed, cache, received, app, context);
    }

    pub(super) fn run(
        &mut self,
        runnable: &Runnable,
        mut routed: Routed<'_>,
        cache: &RouteCache,
        received: &mut Received<'_>,
        app: &App,
        context: &mut Context<'_>,
    ) {
        match runnable {
            Runnable::Inline(_) if received.has_body_ahead() && routed.reads_body => {
                self.gather(received, routed.options, app);
            }
            Runnable::Inline(_) if self.refuses_body(received, routed.options, app) => {}
            Runnable::Inline(handler) => {
                let (body, trailers) = received.body.take().unwrap_or_default();
                routed.request.set_whole_body(body, trailers);
                self.run_inline(&**handler, routed, cache, received, app);
            }
            Runnable::Task(handler) => {
                let Routed { table, options, request, .. } = routed;
                self.run_task(handler, (table, options, request), received, app, context);
            }
            Runnable::ByLength(both) => {
                let framing =
                    if received.has_body_ahead() { received.head.framing() } else { Framing::None };
                if both.takes_whole(framing) {
                    return self.run(&both.whole, routed, cache, received, app, context);
                }
                let Routed { table, options, request, .. } = routed;
                self.run_task(&both.other, (table, options, request), received, app, context);
            }
        }
    }

    #[inline]
    fn run_inline(
        &mut self,
        handler: &InlineFn,
        routed: Routed<'_>,
        cache: &RouteCache,
        received: &mut Received<'_>,
        app: &App,
    ) {
        let Routed { table, options, mut request, .. } = routed;
        // Assigned inside the closure: a response is large, and returning it would copy it.
        let mut response = None;
        _ = contained(|| response = Some(handler(&mut request)));
        match response {
            Some(response) if response.is_ready() && !received.reply.is_tunnel => {
                let head_only = received.head.method() == Method::Head;
                self.write_response(&mut received.reply, response, head_only, app);
                request.put_back(&cache.used);
            }
            response => {
                let response = app.response_or_500(response);
                let parts = request.parts().clone();
                self.respond_to(&mut received.reply, response, (&parts, table), app);
            }
        }
        if received.reply.is_open {
            self.keep_options(received.reply.id, options);
        }
    }

    /// Keeps what is set for a route with the stream of a response that outlasts its turn.
    pub(super) fn keep_options(&mut self, id: StreamId, options: &RouteOptions) {
        let now_ms = self.now_ms();
        if let Some(stream) = self.core.stream(id) {
            stream.state.options = *options;
            stream.state.idle.begin(*options, now_ms);
        }
    }

    /// Waits for the whole body of a request, unless it announces too long a one.
    fn gather(&mut self, received: &mut Received<'_>, options: &RouteOptions, app: &App) {
        if self.refuses_body(received, options, app) || !self.has_room_for(received, app) {
            return;
        }
        let bytes_max = options.limit_body_bytes.unwrap_or(app.limits.body_bytes_max);
        let spool = options.spools_bodies().then(|| Arc::clone(&app.tables.build.spool));
        let in_force = Arc::clone(&self.app);
        let gathered = Gathered::new(in_force, received.head, received.bytes, bytes_max, spool);
        let id = received.reply.id;
        self.open(&mut received.reply);
        self.charge_head(received);
        if received.head.expects_continue() {
            self.write_interim(id, Status::CONTINUE, &Fields::new());
        }
        if let Some(stream) = self.core.stream(id) {
            stream.state.incoming = StreamBody::Gathered(Box::new(gathered));
            stream.state.options = *options;
            stream.state.read = options.read.map(|rate| Box::new(StreamRead::new(rate)));
        }
    }

    /// Refuses a request whose body is announced to be longer than its route lets it be. Returns
    /// whether it did.
    #[inline]
    pub(super) fn refuses_body(
        &mut self,
        received: &mut Received<'_>,
        options: &RouteOptions,
        app: &App,
    ) -> bool {
        received.has_body_ahead() && self.refuses_length(received, options, app)
    }

    #[inline(never)] // Most requests have no body.
    fn refuses_length(
        &mut self,
        received: &mut Received<'_>,
        options: &RouteOptions,
        app: &App,
    ) -> bool {
        let Framing::Length(length) = received.head.framing() else { return false };
        let bytes_max = options.limit_body_bytes.unwrap_or(app.limits.body_bytes_max);
        if length <= bytes_max {
            return false;
        }
        let target = received.view().target();
        app.note_size(self.requests, Limit::BodyBytes, (bytes_max, length), target);
        self.write_refusal(&mut received.reply, Status::CONTENT_TOO_LARGE, app);
        true
    }

    /// Returns where a request came from, as its handler may ask.
    #[inline]
    pub(super) fn origin<'o>(&'o self, app: &'o App) -> RequestSource<'o> {
        let trusted_proxies = app.trusted_proxies.as_ref();
        RequestSource { socket: Some(&self.socket), trusted_proxies }
    }

    /// Responds to a request without a path: `OPTIONS *`, or CONNECT. A fallback that takes such
    /// requests responds to them, else the server itself.
    #[cold]
    fn respond_pathless(
        &mut self,
        received: &mut Received<'_>,
        table: &Arc<RouteTable>,
        app: &App,
        context: &mut Context<'_>,
    ) {
        let endpoint = table.fallback(received.head.method());
        let takes_it = match received.head.method() {
            Method::Connect => endpoint.options.takes_connect,
            _ => endpoint.options.takes_asterisk,
        };
        let is_taken = RouteCache::with(&app.tables, |cache| match &endpoint.kind {
            _ if !takes_it => false,
            EndpointKind::Run(runnable) => {
                self.run_endpoint(runnable, endpoint, (cache, table, None), received, app, context);
                true
            }
            EndpointKind::Gated(gated) => {
                self.respond_gated(gated, (cache, table, None), received, app, context);
                true
            }
            EndpointKind::Files { .. } => false,
        });
        if is_taken {
            return;
        }
        if self.refuses_body(received, &RouteOptions::default(), app) {
            return;
        }
        let status = match received.head.method() {
            Method::Connect => Status::METHOD_NOT_ALLOWED,
            _ => Status::NO_CONTENT,
        };
        let allow = match table.only_folder {
            None => "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
            Some(_) => "GET, HEAD, OPTIONS",
        };
        let prefix = app.response_prefix(self.socket.now().unix_secs);
        let page = app.routeless_page(status, prefix.opening.lines());
        let response = page.header("Allow", allow);
        self.write_response(&mut received.reply, response, false, app);
    }
}
