//! From a request to its route and handler.

use std::mem;
use std::sync::Arc;
use std::task::Context;

use bytes::Bytes;
use gustnado_http::head::{Framing, Head};
use gustnado_http::method::Method;
use gustnado_http::path::CanonicalPath;
use gustnado_http::status::Status;
use gustnado_tasks::{Connection, ConnectionError, SendBuf, contained, note_step};

use super::Conn;
use super::body::BodyUse;
use super::body_end::{BodyEnd, Ending, PendingBody, RequestedPersist, WholeBody};
use super::in_flight::{InFlight, Incoming};
use super::pending::PendingContent;
use super::progress::ResponseProgress;
use super::received::{ReceivedRequest, Responded, TurnContext};
use super::respond::{WriteContext, WrittenResponse};
use super::timeouts::RouteTimeouts;
use gustnado_app::hooks::Limit;
use gustnado_web::handler::{HandlerId, InlineFn, RunningHandler, TaskFn};
use gustnado_web::lookup::find;
use gustnado_web::middleware::Runnable;
use gustnado_web::request::{Request, RequestSource};
use gustnado_web::response::{Content, Response};
use gustnado_web::route_cache::RouteCache;
use gustnado_web::routes::{EndpointKind, RouteEndpoint, RouteOptions, RouteTable};

/// A request and the endpoint that was found for it.
pub(super) struct RoutedRequest<'a> {
    pub(super) cache: &'a RouteCache,
    pub(super) table: &'a Arc<RouteTable>,
    pub(super) endpoint: &'a RouteEndpoint,
    pub(super) request: Box<Request>,
}

impl Conn {
    /// Responds by the routes in force.
    #[expect(clippy::inline_always, reason = "as a call it costs a plain request instructions")]
    #[inline(always)]
    pub(super) fn respond_by_route(
        &self,
        received: &mut ReceivedRequest<'_>,
        turn: &TurnContext,
        out: &mut SendBuf,
        context: &mut Context<'_>,
    ) -> ResponseProgress {
        let view = received.view();
        if !view.form().has_path() {
            return self.respond_pathless(received, turn, out, context);
        }
        let table = self.app.tables.of_host(view);
        match &table.only_folder {
            Some(files) if !received.has_body_ahead() => {
                self.respond_from_folder((files, None), table, received, turn, out)
            }
            _ => self.respond_routed(table, received, turn, out, context),
        }
    }

    /// Finds a request's route, and responds or starts its handler.
    #[inline(never)] // It would take registers from the way of files.
    fn respond_routed(
        &self,
        table: &Arc<RouteTable>,
        received: &mut ReceivedRequest<'_>,
        turn: &TurnContext,
        out: &mut SendBuf,
        context: &mut Context<'_>,
    ) -> ResponseProgress {
        RouteCache::with(&self.app.tables, |cache| {
            self.respond_with_cache(cache, table, received, turn, out, context)
        })
    }

    #[inline]
    fn respond_with_cache(
        &self,
        cache: &RouteCache,
        table: &Arc<RouteTable>,
        received: &mut ReceivedRequest<'_>,
        turn: &TurnContext,
        out: &mut SendBuf,
        context: &mut Context<'_>,
    ) -> ResponseProgress {
        let view = received.view();
        let exact = if table.is_exact_first() {
            table.find_exact(view.method(), view.path(), &cache.recent)
        } else {
            None
        };
        if let Some(RouteEndpoint {
            kind: EndpointKind::Run(Runnable::Inline(handler)),
            options,
            ..
        }) = exact
            && matches!(received.body, PendingBody::Empty)
        {
            let origin = self.origin();
            let request = Request::bare(&cache.used, received.head, received.bytes, origin);
            note_step(options.label);
            let from = (cache, table, options);
            return self.run_inline(&**handler, request, from, received, turn, out);
        }
        let asked = (received.head, received.bytes);
        let (endpoint, request, path) = match exact {
            Some(endpoint) => (endpoint, None, None),
            None => find(cache, table, view.method(), asked, self.origin()),
        };
        match &endpoint.kind {
            EndpointKind::Files { files, mounted_at } => {
                let path = || path.or_else(|| CanonicalPath::of(view.path()).ok());
                let from = (table, &endpoint.options);
                self.respond_from_mount((&**files, *mounted_at, path), from, received, turn, out)
            }
            EndpointKind::Gated(gated) => {
                note_step(endpoint.options.label);
                let origin = self.origin();
                let bare = || Request::bare(&cache.used, received.head, received.bytes, origin);
                let request = request.unwrap_or_else(bare);
                let routed = RoutedRequest { cache, table, endpoint: &gated.inner, request };
                self.respond_gated(gated, routed, received, turn, out, context)
            }
            EndpointKind::Run(runnable) => {
                note_step(endpoint.options.label);
                let origin = self.origin();
                let bare = || Request::bare(&cache.used, received.head, received.bytes, origin);
                let routed =
                    RoutedRequest { cache, table, endpoint, request: request.unwrap_or_else(bare) };
                match runnable {
                    // Without the way through `run`, which costs 25 instructions.
                    Runnable::Task(handler) => {
                        self.run_task(handler, routed, received, turn, out, context)
                    }
                    _ => self.run(runnable, routed, received, turn, out, context),
                }
            }
        }
    }

    /// Returns where a request came from, as its handler may ask.
    #[inline]
    pub(super) fn origin(&self) -> RequestSource<'_> {
        let trusted_proxies = self.app.trusted_proxies.as_ref();
        RequestSource { socket: Some(&self.socket), trusted_proxies }
    }

    #[inline(never)] // It would take registers from the way of inline handlers.
    pub(super) fn run(
        &self,
        runnable: &Runnable,
        mut routed: RoutedRequest<'_>,
        received: &mut ReceivedRequest<'_>,
        turn: &TurnContext,
        out: &mut SendBuf,
        context: &mut Context<'_>,
    ) -> ResponseProgress {
        match runnable {
            Runnable::Inline(handler) if received.has_body_ahead() => {
                let RouteEndpoint { options, reads_body, .. } = routed.endpoint;
                let goes_on = !received.wanted.with(BodyEnd::Drain).ends();
                if !reads_body && self.is_discarded_behind(received.head, options, goes_on) {
                    return self.run_before_body(&**handler, routed, received, turn, out);
                }
                let body = if *reads_body { BodyUse::Whole } else { BodyUse::Nothing };
                ResponseProgress::BodyFirst(received.put_off(body(*options)))
            }
            Runnable::Inline(handler) => {
                let WholeBody { bytes, trailers } = received.take_content();
                routed.request.set_whole_body(bytes, trailers);
                let RoutedRequest { cache, table, endpoint, request, .. } = routed;
                let from = (cache, table, &endpoint.options);
                self.run_inline(&**handler, request, from, received, turn, out)
            }
            Runnable::Task(handler) => self.run_task(handler, routed, received, turn, out, context),
            Runnable::ByLength(both) if both.takes_whole(received.ahead()) => {
                self.run(&both.whole, routed, received, turn, out, context)
            }
            Runnable::ByLength(both) => {
                self.run_task(&both.other, routed, received, turn, out, context)
            }
        }
    }

    pub(super) fn run_task(
        &self,
        handler: &Arc<TaskFn>,
        routed: RoutedRequest<'_>,
        received: &mut ReceivedRequest<'_>,
        turn: &TurnContext,
        out: &mut SendBuf,
        context: &mut Context<'_>,
    ) -> ResponseProgress {
        let RoutedRequest { cache, table, endpoint: RouteEndpoint { options, .. }, mut request } =
            routed;
        let is_ahead = received.has_body_ahead();
        if is_ahead && self.is_too_large(options, received) {
            let view = Some(received.view());
            received.response = self.write_refusal(Status::CONTENT_TOO_LARGE, view, turn, out);
            return ResponseProgress::Lingering;
        }
        let body = if is_ahead { received.body_at_hand() } else { None };
        request.give_to(context.waker());
        let given = match (body, &mut received.body) {
            (Some(body), _) => request.with_body(Bytes::copy_from_slice(body), None),
            // It was read for a handler that another one has since replaced.
            (None, PendingBody::Read(body)) => {
                let WholeBody { bytes, trailers } = mem::take(*body);
                request.with_body(bytes, trailers)
            }
            (None, PendingBody::Ahead) => request.live(),
            (None, PendingBody::Empty | PendingBody::Unread) => request.head_only(),
        };
        let is_whole = body.is_some() || !is_ahead;
        let end = if body.is_some() { BodyEnd::Read } else { received.body.end() };
        let id = HandlerId::of(handler);
        let place = match cache.place.take() {
            Some((last, place)) if last == id => Some(place),
            _ => None,
        };
        let mut running = RunningHandler::start(&**handler, given, place);
        let mut response = None;
        let is_done = running.poll(context, &mut response);
        let progress = match response {
            Some(response) if is_whole && response.is_ready() => {
                let ending = received.wanted.with(end);
                self.write_ready(response, received, ending, turn, out);
                cache.place.set(running.into_place().map(|place| (id, place)));
                request.put_back(&cache.used);
                ResponseProgress::of(None, ending, &received.view(), out)
            }
            response => {
                let incoming = self.incoming_behind(options, received.head, is_whole, end);
                let parts = request.parts().clone();
                let timeouts = RouteTimeouts::of(*options, self.app.times.write);
                let table = Arc::clone(table);
                let in_flight = Box::new(InFlight::new(parts, table, running, incoming, timeouts));
                if is_done {
                    let response = self.app.response_or_500(response);
                    let (responded, progress) =
                        self.finish_in_flight(response, in_flight, received.wanted, turn, out);
                    received.response = responded;
                    progress
                } else {
                    ResponseProgress::InFlight(in_flight)
                }
            }
        };
        received.body_bytes_used = body.map_or(0, <[u8]>::len);
        progress
    }

    /// Returns the state of a request's body while its handler runs.
    ///
    /// - `is_whole`: the handler has all of it.
    pub(super) fn incoming_behind(
        &self,
        options: &RouteOptions,
        head: &Head,
        is_whole: bool,
        end: BodyEnd,
    ) -> Incoming {
        let framing = if is_whole { Framing::None } else { head.framing() };
        let waits = !is_whole && head.expects_continue();
        let mut incoming = self.incoming(options, framing, waits);
        // A body may have been given up before its handler was found.
        incoming.is_tunnel = head.method() == Method::Connect;
        incoming.is_broken = is_whole && end == BodyEnd::Close && !incoming.is_tunnel;
        incoming
    }

    /// Writes a response that is ready.
    #[inline]
    fn write_ready(
        &self,
        response: Response,
        received: &mut ReceivedRequest<'_>,
        ending: Ending,
        turn: &TurnContext,
        out: &mut SendBuf,
    ) {
        let head_only = received.head.method() == Method::Head;
        let before = out.bytes.len();
        let written =
            response.write_ready(&turn.prefix, ending.persist(), head_only, &mut out.bytes);
        self.count_response(received.note(written, before), &out.bytes);
    }

    #[inline]
    fn run_inline(
        &self,
        handler: &InlineFn,
        mut request: Box<Request>,
        (cache, table, options): (&RouteCache, &Arc<RouteTable>, &RouteOptions),
        received: &mut ReceivedRequest<'_>,
        turn: &TurnContext,
        out: &mut SendBuf,
    ) -> ResponseProgress {
        // Assigned inside the closure: a response is large, and returning it would copy it.
        let mut response = None;
        _ = contained(|| response = Some(handler(&mut request)));
        match response {
            Some(response) if response.is_ready() => {
                let ending = received.ending();
                self.write_ready(response, received, ending, turn, out);
                request.put_back(&cache.used);
                ResponseProgress::of(None, ending, &received.view(), out)
            }
            response => {
                let response = self.app.response_or_500(response);
                if matches!(response.content, Content::Stream(_)) {
                    // A stream ends when its client goes, as a task does, so the connection watches
                    // for that.
                    let incoming = self.incoming(options, Framing::None, false);
                    let from = (&*request, table, incoming);
                    return self.finish_inline(response, from, received, turn, out);
                }
                self.respond(response, (request.parts(), table), received, turn, out)
            }
        }
    }

    /// Responds to a request whose body is discarded behind the response.
    fn run_before_body(
        &self,
        handler: &InlineFn,
        routed: RoutedRequest<'_>,
        received: &mut ReceivedRequest<'_>,
        turn: &TurnContext,
        out: &mut SendBuf,
    ) -> ResponseProgress {
        let RoutedRequest { table, endpoint, mut request, .. } = routed;
        let mut response = None;
        _ = contained(|| response = Some(handler(&mut request)));
        let response = self.app.response_or_500(response);
        let incoming = self.incoming(&endpoint.options, received.head.framing(), false);
        self.finish_inline(response, (&*request, table, incoming), received, turn, out)
    }

    /// Writes the response of an inline handler whose request goes on: its client is watched, or
    /// its body discarded.
    pub(super) fn finish_inline(
        &self,
        response: Response,
        (request, table, incoming): (&Request, &Arc<RouteTable>, Incoming),
        received: &mut ReceivedRequest<'_>,
        turn: &TurnContext,
        out: &mut SendBuf,
    ) -> ResponseProgress {
        let (parts, ended) = (request.parts().clone(), RunningHandler::ended());
        let in_flight = InFlight::new(parts, Arc::clone(table), ended, incoming, None);
        let (responded, progress) =
            self.finish_in_flight(response, Box::new(in_flight), received.wanted, turn, out);
        received.response = responded;
        progress
    }

    /// Returns whether the announced length exceeds the route's limit, which is reported.
    fn is_too_large(&self, options: &RouteOptions, received: &ReceivedRequest<'_>) -> bool {
        let bytes_max = self.body_bytes_max(options);
        match received.head.framing() {
            Framing::Length(length) if length > bytes_max => {
                self.note_size(Limit::BodyBytes, (bytes_max, length), received.view().target());
                true
            }
            _ => false,
        }
    }

    pub(super) fn body_bytes_max(&self, options: &RouteOptions) -> u64 {
        options.limit_body_bytes.unwrap_or(self.app.limits.body_bytes_max)
    }

    /// Waits for a handler that was not ready at once, and writes its response.
    ///
    /// # Errors
    /// The connection is lost.
    pub(super) async fn await_handler(
        &mut self,
        mut in_flight: Box<InFlight>,
    ) -> Result<ResponseProgress, ConnectionError> {
        if let Some(rate) = in_flight.incoming.read {
            self.begin_route_read(rate);
        }
        let response = self.response_of(&mut in_flight).await?;
        self.socket.refresh_now();
        let turn = self.turn_of(Some(in_flight.parts.view()));
        let mut out = Connection::outgoing();
        let wanted = self.wanted(in_flight.parts.head(), self.app.notice());
        let (mut responded, progress) =
            self.finish_in_flight(response, in_flight, wanted, &turn, &mut out);
        self.record(&out.bytes, &mut responded, &progress);
        self.start_send(out);
        Ok(progress)
    }

    /// Writes a task's response, while the body of its request may still be arriving.
    fn finish_in_flight(
        &self,
        mut response: Response,
        mut in_flight: Box<InFlight>,
        wanted: RequestedPersist,
        turn: &TurnContext,
        out: &mut SendBuf,
    ) -> (Responded, ResponseProgress) {
        if !in_flight.incoming.decoder.is_done() {
            response.decline_upgrade();
        }
        let InFlight { parts, incoming, .. } = &mut *in_flight;
        let before = out.bytes.len();
        incoming.write_continue(parts.channel(), &response, &mut out.bytes);
        self.app.count_response(0, (out.bytes.len() - before) as u64);
        let goes_on = !wanted.with(BodyEnd::Drain).ends();
        let bytes_max = self.unwanted_bytes_max(goes_on);
        let end = in_flight.incoming.end(in_flight.parts.channel(), &response, bytes_max);
        let asked = WriteContext {
            parts: &in_flight.parts,
            pages: &in_flight.table.pages,
            prefix: &turn.prefix,
            now: turn.time,
            ending: wanted.with(end),
            origin: self.origin(),
            timeouts: in_flight.timeouts,
            read_ms: in_flight.incoming.began_ms,
        };
        let WrittenResponse { rest, ending, responded } =
            self.write_response(response, &asked, &mut out.bytes);
        // A stream's handler may still read the body, and must learn when the client goes.
        let has_stream = rest.as_ref().is_some_and(|rest| rest.stream.is_some());
        let parts = in_flight.parts.clone();
        let rest = if has_stream || !in_flight.incoming.decoder.is_done() {
            Some(PendingContent::with_in_flight(rest, ending, in_flight))
        } else {
            rest
        };
        (responded, ResponseProgress::of(rest, ending, &parts.view(), out))
    }
}
