//! A request, its route, its handler.

use std::mem;
use std::sync::Arc;
use std::task::Context;

use bytes::Bytes;
use gustnado_http::body::BodyDecoder;
use gustnado_http::head::{Framing, Head};
use gustnado_http::method::Method;
use gustnado_http::path::CanonicalPath;
use gustnado_http::status::Status;
use gustnado_tasks::{Connection, ConnectionError, ConnectionId, SendBuf};

use super::after::after_head;
use super::arrived::{Arrived, HeadAt, Moment};
use super::body::{BodyPolicy, body_first};
use super::body_end::{BodyEnd, Ending, PendingBody, Wanted};
use super::in_flight::{InFlight, Incoming};
use super::pending::PendingContent;
use super::respond::{Begun, WriteContext};
use super::timeouts::RouteTimeouts;
use super::{Conn, Next};
use gustnado_app::hooks::Limit;
use gustnado_files::Mounted;
use gustnado_web::body::Body;
use gustnado_web::contained::contained;
use gustnado_web::handler::{HandlerId, InlineFn, RunningHandler, TaskFn};
use gustnado_web::middleware::Runnable;
use gustnado_web::request::Request;
use gustnado_web::response::{Content, Response};
use gustnado_web::route_cache::RouteCache;
use gustnado_web::routes::{Endpoint, EndpointDoes, Matcher, RouteOptions, Table};
use gustnado_web::trusted_proxies::TrustedProxies;

/// A request and the handler that was found for it.
pub(super) struct Called<'a> {
    pub(super) cache: &'a RouteCache,
    pub(super) table: &'a Arc<Table>,
    pub(super) endpoint: &'a Endpoint,
    pub(super) request: Box<Request>,
}

impl Conn {
    /// Responds by the routes in force.
    #[expect(clippy::inline_always, reason = "as a call it costs a plain request instructions")]
    #[inline(always)]
    pub(super) fn answer_by_route(
        &self,
        arrived: &mut Arrived<'_>,
        moment: &Moment,
        out: &mut SendBuf,
        context: &mut Context<'_>,
    ) -> Next {
        let table = self.app.tables.of_host(arrived.view());
        match &table.only_folder {
            Some(files) if !arrived.has_body_ahead() => {
                self.respond_from_folder((files, None), table, arrived, moment, out)
            }
            _ => self.answer_routed(table, arrived, moment, out, context),
        }
    }

    /// Finds a request's route, and answers it or sets its handler to work.
    #[inline(never)] // It would take registers from the way of files.
    fn answer_routed(
        &self,
        table: &Arc<Table>,
        arrived: &mut Arrived<'_>,
        moment: &Moment,
        out: &mut SendBuf,
        context: &mut Context<'_>,
    ) -> Next {
        RouteCache::with(&self.app.tables, |cache| {
            self.answer_with_cache(cache, table, arrived, moment, out, context)
        })
    }

    #[inline]
    fn answer_with_cache(
        &self,
        cache: &RouteCache,
        table: &Arc<Table>,
        arrived: &mut Arrived<'_>,
        moment: &Moment,
        out: &mut SendBuf,
        context: &mut Context<'_>,
    ) -> Next {
        let view = arrived.view();
        let exact = if table.matchers().is_empty() {
            table.find_exact(view.method(), view.path(), &cache.recent)
        } else {
            None
        };
        if let Some(Endpoint { does: EndpointDoes::Run(Runnable::Inline(handler)), .. }) = exact
            && matches!(arrived.body, PendingBody::Empty)
        {
            let origin = self.origin();
            let request = Request::bare(&cache.used, arrived.head, arrived.bytes, origin);
            return self.run_inline(&**handler, request, (cache, table), arrived, moment, out);
        }
        let (endpoint, request, path) = match exact {
            Some(endpoint) => (endpoint, None, None),
            None => find(cache, table, arrived, self.origin()),
        };
        match &endpoint.does {
            EndpointDoes::Files { .. } if arrived.has_body_ahead() => {
                body_first(arrived.head, arrived.bytes, BodyPolicy::Nothing)
            }
            EndpointDoes::Files { files, mounted_at } => {
                let path = path.or_else(|| CanonicalPath::of(view.path()).ok());
                let place = path.map(|path| Mounted { path, at: *mounted_at });
                self.respond_from_folder((files, place.as_ref()), table, arrived, moment, out)
            }
            EndpointDoes::Run(runnable) => {
                let origin = self.origin();
                let bare = || Request::bare(&cache.used, arrived.head, arrived.bytes, origin);
                let called =
                    Called { cache, table, endpoint, request: request.unwrap_or_else(bare) };
                self.run(runnable, called, arrived, moment, out, context)
            }
        }
    }

    /// What a request is to know of where it came from.
    #[inline]
    pub(super) fn origin(&self) -> (ConnectionId, Option<&Arc<TrustedProxies>>) {
        (self.socket.id(), self.app.trusted_proxies.as_ref())
    }

    #[inline(never)] // It would take registers from the way of inline handlers.
    pub(super) fn run(
        &self,
        runnable: &Runnable,
        mut called: Called<'_>,
        arrived: &mut Arrived<'_>,
        moment: &Moment,
        out: &mut SendBuf,
        context: &mut Context<'_>,
    ) -> Next {
        match runnable {
            Runnable::Inline(_) if arrived.has_body_ahead() => {
                let Endpoint { options, reads_body, .. } = called.endpoint;
                let policy =
                    if *reads_body { BodyPolicy::Whole(*options) } else { BodyPolicy::Nothing };
                body_first(arrived.head, arrived.bytes, policy)
            }
            Runnable::Inline(handler) => {
                let body = arrived.take_content();
                *called.request.body_mut() = Body::from_whole(body.into());
                let Called { cache, table, request, .. } = called;
                self.run_inline(&**handler, request, (cache, table), arrived, moment, out)
            }
            Runnable::Task(handler) => {
                self.run_task(handler, called, arrived, moment, out, context)
            }
            Runnable::ByLength(both) if both.takes_whole(arrived.ahead()) => {
                self.run(&both.whole, called, arrived, moment, out, context)
            }
            Runnable::ByLength(both) => {
                self.run_task(&both.other, called, arrived, moment, out, context)
            }
        }
    }

    fn run_task(
        &self,
        handler: &Arc<TaskFn>,
        called: Called<'_>,
        arrived: &mut Arrived<'_>,
        moment: &Moment,
        out: &mut SendBuf,
        context: &mut Context<'_>,
    ) -> Next {
        let Called { cache, table, endpoint: Endpoint { options, .. }, mut request } = called;
        let is_ahead = arrived.has_body_ahead();
        if is_ahead && self.is_too_large(options, arrived) {
            let view = Some(arrived.view());
            arrived.response = self.write_refusal(Status::CONTENT_TOO_LARGE, view, moment, out);
            return Next::Linger;
        }
        let body = if is_ahead { arrived.body_at_hand() } else { None };
        request.give_to(context.waker());
        let given = match (body, &mut arrived.body) {
            (Some(body), _) => request.with_body(Bytes::copy_from_slice(body)),
            // (It was read for a handler in whose place this one has come.)
            (None, PendingBody::Read(body)) => request.with_body(mem::take(*body).into()),
            (None, PendingBody::Ahead) => request.live(),
            (None, PendingBody::Empty | PendingBody::Unread) => request.head_only(),
        };
        let is_whole = body.is_some() || !is_ahead;
        let end = if body.is_some() { BodyEnd::Read } else { arrived.body.end() };
        let id = HandlerId::of(handler);
        let place = match cache.place.take() {
            Some((last, place)) if last == id => Some(place),
            _ => None,
        };
        let mut answering = RunningHandler::start(&**handler, given, place);
        let mut answer = None;
        let is_done = answering.poll(context, &mut answer);
        let next = match answer {
            Some(response) if is_whole && response.is_ready() => {
                let ending = arrived.wanted.with(end);
                self.write_ready(response, arrived, ending, moment, out);
                cache.place.set(answering.into_place().map(|place| (id, place)));
                request.put_back(&cache.used);
                after_head(None, ending, &arrived.view(), out)
            }
            answer => {
                let incoming = self.incoming_behind(options, arrived.head, is_whole, end);
                let parts = request.parts().clone();
                let timeouts = RouteTimeouts::of(*options, self.app.times.write);
                let table = Arc::clone(table);
                let in_flight =
                    Box::new(InFlight::new(parts, table, answering, incoming, timeouts));
                if is_done {
                    let response = self.app.response_or_500(answer);
                    let (head, next) =
                        self.finish_in_flight(response, in_flight, arrived.wanted, moment, out);
                    arrived.response = head;
                    next
                } else {
                    Next::InFlight(in_flight)
                }
            }
        };
        match body {
            Some(body) => Next::BodyToo(Box::new((body.len(), next))),
            None => next,
        }
    }

    /// What is still to come of a request's body while its handler runs.
    ///
    /// - `is_whole`: the handler has all of it.
    fn incoming_behind(
        &self,
        options: &RouteOptions,
        head: &Head,
        is_whole: bool,
        end: BodyEnd,
    ) -> Incoming {
        let framing = if is_whole { Framing::None } else { head.framing() };
        let waits = !is_whole && head.expects_continue();
        let mut incoming = self.incoming(options, framing, waits);
        // (One that was given up before its handler was found.)
        incoming.is_tunnel = head.method() == Method::Connect;
        incoming.is_spoilt = is_whole && end == BodyEnd::Close && !incoming.is_tunnel;
        incoming
    }

    /// Writes an answer that is ready.
    #[inline]
    fn write_ready(
        &self,
        response: Response,
        arrived: &mut Arrived<'_>,
        ending: Ending,
        moment: &Moment,
        out: &mut SendBuf,
    ) {
        let head_only = arrived.head.method() == Method::Head;
        let before = out.bytes.len();
        let written =
            response.write_ready(&moment.common, ending.persist(), head_only, &mut out.bytes);
        arrived.response = self.count_response(written, before, &out.bytes);
    }

    #[inline]
    fn run_inline(
        &self,
        handler: &InlineFn,
        mut request: Box<Request>,
        (cache, table): (&RouteCache, &Arc<Table>),
        arrived: &mut Arrived<'_>,
        moment: &Moment,
        out: &mut SendBuf,
    ) -> Next {
        // (WrittenHead from inside: an answer is large, and would be moved on its way out.)
        let mut answer = None;
        _ = contained(|| answer = Some(handler(&mut request)));
        match answer {
            Some(response) if response.is_ready() => {
                let ending = arrived.ending();
                self.write_ready(response, arrived, ending, moment, out);
                request.put_back(&cache.used);
                after_head(None, ending, &arrived.view(), out)
            }
            response => {
                let response = self.app.response_or_500(response);
                if matches!(response.content, Content::Stream(_)) {
                    // It wants to know when the client goes, as a task does.
                    let incoming = self.incoming(&RouteOptions::default(), Framing::None, false);
                    let parts = request.parts().clone();
                    let ended = RunningHandler::ended();
                    let table = Arc::clone(table);
                    let in_flight = Box::new(InFlight::new(parts, table, ended, incoming, None));
                    let landed =
                        self.finish_in_flight(response, in_flight, arrived.wanted, moment, out);
                    arrived.response = landed.0;
                    return landed.1;
                }
                self.respond(response, (request.parts(), table), arrived, moment, out)
            }
        }
    }

    /// A request's body on its way to a task.
    ///
    /// - `framing`: of what is still to be read.
    pub(super) fn incoming(
        &self,
        options: &RouteOptions,
        framing: Framing,
        expects_continue: bool,
    ) -> Incoming {
        let mut limits = self.app.limits;
        limits.body_bytes_max = self.body_bytes_max(options);
        Incoming {
            decoder: BodyDecoder::new(framing, &limits),
            expects_continue,
            began_ms: self.socket.now().mono_ms,
            patience: options.body_patience(self.app.times.body),
            waits_since_ms: None,
            granted_ms: 0,
            read: options.read,
            is_spoilt: false,
            is_tunnel: false,
            half_close_ms: options.half_close_ms.map_or(self.app.times.half_close_ms, u64::from),
        }
    }

    /// Whether a body is announced to be larger than its route allows. If so, that is told.
    fn is_too_large(&self, options: &RouteOptions, arrived: &Arrived<'_>) -> bool {
        let bytes_max = self.body_bytes_max(options);
        match arrived.head.framing() {
            Framing::Length(length) if length > bytes_max => {
                self.note_size(Limit::BodyBytes, (bytes_max, length), arrived.view().target());
                true
            }
            _ => false,
        }
    }

    fn body_bytes_max(&self, options: &RouteOptions) -> u64 {
        options.limit_body_bytes.unwrap_or(self.app.limits.body_bytes_max)
    }

    /// Waits for a handler that did not answer at once, and answers.
    ///
    /// # Errors
    /// The connection is lost.
    pub(super) async fn await_handler(
        &mut self,
        mut in_flight: Box<InFlight>,
    ) -> Result<Next, ConnectionError> {
        if let Some(rate) = in_flight.incoming.read {
            self.begin_route_read(rate);
        }
        let response = self.answer_of(&mut in_flight).await?;
        self.socket.refresh_now();
        let (mut out, moment) = (Connection::outgoing(), self.moment());
        let wanted = self.wanted(in_flight.parts.head());
        let (at, next) = self.finish_in_flight(response, in_flight, wanted, &moment, &mut out);
        if self.journal.is_some() {
            self.log_answer(&out.bytes, at, &next);
        }
        self.start_send(out);
        Ok(match next {
            Next::Receive if self.unread.is_some() => Next::Again,
            next => next,
        })
    }

    /// Writes a task's answer, while the body of its request may still be coming.
    fn finish_in_flight(
        &self,
        mut response: Response,
        mut in_flight: Box<InFlight>,
        wanted: Wanted,
        moment: &Moment,
        out: &mut SendBuf,
    ) -> (HeadAt, Next) {
        if !in_flight.incoming.decoder.is_done() {
            response.decline_upgrade();
        }
        let InFlight { parts, incoming, .. } = &mut *in_flight;
        let before = out.bytes.len();
        incoming.invite(parts.channel(), &response, &mut out.bytes);
        self.app.count_response(0, (out.bytes.len() - before) as u64);
        let asked = WriteContext {
            parts: &in_flight.parts,
            pages: &in_flight.table.pages,
            common: &moment.common,
            now: moment.time,
            ending: wanted.with(in_flight.incoming.end(in_flight.parts.channel(), &response)),
            socket: self.socket.id(),
            trusted_proxies: self.app.trusted_proxies.as_ref(),
            timeouts: in_flight.timeouts,
            read_ms: in_flight.incoming.began_ms,
        };
        let (at, Begun { rest, ending, .. }) =
            self.write_response(response, &asked, &mut out.bytes);
        // A stream's handler may still read, and wants to know when the client goes.
        let has_stream = rest.as_ref().is_some_and(|rest| rest.stream.is_some());
        let parts = in_flight.parts.clone();
        let rest = if has_stream || !in_flight.incoming.decoder.is_done() {
            Some(PendingContent::with_flight(rest, ending, in_flight))
        } else {
            rest
        };
        (at, after_head(rest, ending, &parts.view(), out))
    }
}

/// A route, the request where it was made, and its canonical path where that is asked for later.
type Found<'t, 'p> = (&'t Endpoint, Option<Box<Request>>, Option<CanonicalPath<'p>>);

/// Asks the matchers, and walks the paths. What the path's names stand for is noted in the request,
/// which is made where it is needed.
fn find<'t, 'p>(
    cache: &RouteCache,
    table: &'t Table,
    arrived: &Arrived<'p>,
    origin: (ConnectionId, Option<&Arc<TrustedProxies>>),
) -> Found<'t, 'p> {
    let view = arrived.view();
    let Ok(path) = CanonicalPath::of(view.path()) else { return (&table.no_path, None, None) };
    let bare = || Request::bare(&cache.used, arrived.head, arrived.bytes, origin);
    let mut request = None;
    if !table.matchers().is_empty() {
        let asked = request.insert(bare());
        asked.parts_mut().set_path(path.clone().into_changed());
        let asked: &Request = asked;
        let is_meant = |matcher: &Matcher| contained(|| matcher(asked)).unwrap_or(false);
        let mut matchers = table.matchers().iter();
        if let Some((_, endpoint)) = matchers.find(|(matcher, _)| is_meant(matcher)) {
            return (endpoint, request, None);
        }
    }
    let found = table.find(view.method(), &path);
    let endpoint = found.endpoint;
    if matches!(endpoint.does, EndpointDoes::Files { .. }) {
        return (endpoint, None, Some(path));
    }
    let mut request = request.unwrap_or_else(bare);
    let parts = request.parts_mut();
    if let Some(names) = found.names {
        parts.set_params(Arc::clone(names), found.spans(&path));
        parts.set_keeps_empty(endpoint.options.keeps_empty && found.has_rest);
    }
    drop(found);
    parts.set_path(path.into_changed());
    (endpoint, Some(request), None)
}
