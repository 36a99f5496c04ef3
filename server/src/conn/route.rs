//! A request, its route, its handler.

use std::cell::Cell;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use gustnado_http::answer::Persist;
use gustnado_http::body::BodyDecoder;
use gustnado_http::head::{Framing, Head};
use gustnado_http::method::Method;
use gustnado_http::request::{Request as View, TargetForm};
use gustnado_http::status::Status;
use gustnado_tasks::{Link, LinkError, Outgoing, Patience};

use super::body::{Wish, body_first};
use super::flight::{Flight, Incoming};
use super::remainder::{Notices, Remainder};
use super::respond::Asked;
use super::turn::{Moment, after_rest};
use super::{Conn, Next};
use crate::body::Body;
use crate::chain::Runnable;
use crate::handler::{Contained, InlineFn, TaskFn, contained};
use crate::reply::{Rest, Turn, status_page};
use crate::request::{Parts, Recycled, Request};
use crate::routes::{Endpoint, EndpointDoes, Matcher, RouteOptions, Table, Tables, normalized};
use crate::stats::Added;

/// A request on its way to its handler.
pub(super) struct Arrived<'a> {
    pub(super) head: &'a Head,
    pub(super) bytes: &'a [u8],
    /// The body, if it has been read.
    pub(super) body: Option<&'a mut Vec<u8>>,
    pub(super) persist: Persist,
}

impl Arrived<'_> {
    pub(super) fn view(&self) -> View<'_> {
        self.head.on(self.bytes)
    }

    /// Whether its body is still to be read.
    fn has_body_ahead(&self) -> bool {
        self.body.is_none() && self.head.has_body()
    }
}

impl Conn {
    /// Finds a request's route, and answers it or sets its handler to work.
    pub(super) fn answer_routed(
        &self,
        tables: &Tables,
        recent: &Cell<usize>,
        arrived: Arrived<'_>,
        moment: &Moment,
        out: &mut Outgoing,
        context: &mut Context<'_>,
    ) -> Next {
        let view = arrived.view();
        if view.form() == TargetForm::Asterisk {
            // RFC 9110 §9.3.7: what the server in general can do.
            let turn = Turn { common: &moment.common.lines, persist: arrived.persist };
            status_page(&mut out.bytes, Status::NO_CONTENT, &turn, false, &[ALLOW]);
            return after_head(None, arrived.persist, &view, out);
        }
        let table = tables.of_host(view);
        let exact = if table.matchers().is_empty() {
            table.find_exact(view.method(), view.path(), recent)
        } else {
            None
        };
        if let Some(Endpoint { does: EndpointDoes::Run(Runnable::Inline(handler)), .. }) = exact
            && !arrived.head.has_body()
        {
            let request = Request::for_inline(arrived.head, arrived.bytes);
            return self.run_inline(&**handler, request, table, &arrived, moment, out);
        }
        let (endpoint, parts) = match exact {
            Some(endpoint) => (endpoint, None),
            None => find(table, &arrived),
        };
        if let EndpointDoes::Files { files, mounted_at } = &endpoint.does {
            if arrived.has_body_ahead() {
                return body_first(arrived.head, arrived.bytes, Wish::Nothing);
            }
            let turn = Turn { common: &moment.common.lines, persist: arrived.persist };
            let before = out.bytes.len();
            let rest = files.answer_below(*mounted_at, &view, moment.time, &turn, &mut out.bytes);
            self.app.count(&Added::answer(&out.bytes[before..]));
            return after_rest(rest, arrived.persist, &view, out);
        }
        let parts = parts.unwrap_or_else(|| Parts::take(arrived.head, arrived.bytes));
        self.run(endpoint, table, parts, arrived, moment, out, context)
    }

    #[expect(clippy::too_many_arguments, reason = "one step of the function above")]
    fn run(
        &self,
        endpoint: &Endpoint,
        table: &Arc<Table>,
        parts: Recycled,
        mut arrived: Arrived<'_>,
        moment: &Moment,
        out: &mut Outgoing,
        context: &mut Context<'_>,
    ) -> Next {
        let EndpointDoes::Run(runnable) = &endpoint.does else {
            unreachable!("folders are answered elsewhere");
        };
        let asked = |parts, persist| Asked {
            parts,
            pages: &table.pages,
            common: &moment.common.lines,
            now: moment.time,
            persist,
        };
        match runnable {
            Runnable::Inline(_) if arrived.has_body_ahead() => {
                let bytes_max = self.body_bytes_max(endpoint.options);
                body_first(arrived.head, arrived.bytes, Wish::Whole { bytes_max })
            }
            Runnable::Inline(handler) => {
                let body = arrived.body.as_deref_mut().map(mem::take).unwrap_or_default();
                let request = Request::new(parts, Body::from_whole(body.into()));
                self.run_inline(&**handler, request, table, &arrived, moment, out)
            }
            Runnable::Task(handler) => {
                let Ok(mut flight) =
                    self.launch(&**handler, endpoint.options, table, parts, &arrived)
                else {
                    return self.write_refusal(Status::CONTENT_TOO_LARGE, moment, out);
                };
                let Poll::Ready(answer) = flight.poll_answer(context) else {
                    return Next::Flight(Box::new(flight));
                };
                let response = self.app.answer_or_500(answer);
                let has_body = arrived.has_body_ahead();
                flight.incoming.invite(flight.parts.exchange(), &response, &mut out.bytes);
                let persist =
                    flight.incoming.persist(flight.parts.exchange(), &response, arrived.persist);
                let (rest, persist) =
                    self.write_response(response, &asked(&flight.parts, persist), &mut out.bytes);
                let rest = if has_body {
                    Some(with_flight(rest, persist, Box::new(flight)))
                } else {
                    rest
                };
                after_head(rest, persist, &arrived.view(), out)
            }
        }
    }

    #[inline]
    fn run_inline(
        &self,
        handler: &InlineFn,
        mut request: Request,
        table: &Table,
        arrived: &Arrived<'_>,
        moment: &Moment,
        out: &mut Outgoing,
    ) -> Next {
        // (Written from inside: an answer is large, and would be moved on its way out.)
        let mut answer = None;
        _ = contained(|| answer = Some(handler(&mut request)));
        match answer {
            Some(response) if response.is_ready() => {
                let head_only = arrived.head.method() == Method::Head;
                let before = out.bytes.len();
                let common = &moment.common.lines;
                response.write_ready(common, arrived.persist, head_only, &mut out.bytes);
                self.app.count(&Added::answer(&out.bytes[before..]));
                request.put_back();
                after_rest(Rest::Nothing, arrived.persist, &arrived.view(), out)
            }
            response => {
                let response = self.app.answer_or_500(response);
                let asked = Asked {
                    parts: request.parts(),
                    pages: &table.pages,
                    common: &moment.common.lines,
                    now: moment.time,
                    persist: arrived.persist,
                };
                let (rest, persist) = self.write_response(response, &asked, &mut out.bytes);
                after_head(rest, persist, &arrived.view(), out)
            }
        }
    }

    /// Calls a task handler. `Err` if the request's body is announced too large.
    fn launch(
        &self,
        handler: &TaskFn,
        options: RouteOptions,
        table: &Arc<Table>,
        mut parts: Recycled,
        arrived: &Arrived<'_>,
    ) -> Result<Flight, ()> {
        let framing = arrived.head.framing();
        let mut limits = self.app.limits;
        limits.body_bytes_max = self.body_bytes_max(options);
        if matches!(framing, Framing::Length(length) if length > limits.body_bytes_max) {
            return Err(());
        }
        let decoder = BodyDecoder::new(framing, &limits);
        let inside = parts.get_mut().expect("nobody else has seen it");
        inside.exchange_mut().open(!decoder.is_done());
        let incoming = Incoming {
            decoder,
            expects_continue: arrived.head.expects_continue(),
            began_ms: self.link.now().mono_ms,
            patience: patience(options, self.app.times.body),
            is_spoilt: false,
        };
        let request = Request::new(parts.clone(), Body::live(parts.clone(), framing));
        let answering = Contained::of(contained(|| handler(request)));
        Ok(Flight::new(parts, Arc::clone(table), answering, incoming))
    }

    fn body_bytes_max(&self, options: RouteOptions) -> u64 {
        options.limit_body_bytes.unwrap_or(self.app.limits.body_bytes_max)
    }

    /// Waits for a handler that did not answer at once, and answers.
    ///
    /// # Errors
    /// The connection is lost.
    pub(super) async fn fly(&mut self, mut flight: Box<Flight>) -> Result<Next, LinkError> {
        let response = self.answer_of(&mut flight).await?;
        let (mut out, moment) = (Link::outgoing(), self.moment());
        let head = *flight.parts.head();
        let has_body = head.has_body();
        flight.incoming.invite(flight.parts.exchange(), &response, &mut out.bytes);
        let persist =
            flight.incoming.persist(flight.parts.exchange(), &response, self.persist(&head));
        let asked = Asked {
            parts: &flight.parts,
            pages: &flight.table.pages,
            common: &moment.common.lines,
            now: moment.time,
            persist,
        };
        let (rest, persist) = self.write_response(response, &asked, &mut out.bytes);
        // A stream's handler may still read, and wants to know when the client goes.
        let keep = has_body || rest.as_ref().is_some_and(|rest| rest.stream.is_some());
        let parts = flight.parts.clone();
        let rest = if keep { Some(with_flight(rest, persist, flight)) } else { rest };
        let next = after_head(rest, persist, &parts.view(), &mut out);
        self.start_send(out);
        Ok(match next {
            Next::Receive if self.unread.is_some() => Next::Again,
            next => next,
        })
    }
}

/// What comes next after an answer's head has been written.
fn after_head(
    rest: Option<Box<Remainder>>,
    persist: Persist,
    request: &View<'_>,
    out: &mut Outgoing,
) -> Next {
    match rest {
        Some(rest) => {
            out.more = rest.follows_at_once();
            Next::Remainder(rest)
        }
        None => after_rest(Rest::Nothing, persist, request, out),
    }
}

fn patience(options: RouteOptions, usual: Patience) -> Patience {
    match options.body_timeout {
        Some(silence) => Patience { silence_ms: crate::app::millis(silence), ..usual },
        None => usual,
    }
}

/// Asks the matchers, and walks the paths. What the path's names stand for is noted in the head.
fn find<'t>(table: &'t Table, arrived: &Arrived<'_>) -> (&'t Endpoint, Option<Recycled>) {
    let view = arrived.view();
    let mut parts = Parts::take(arrived.head, arrived.bytes);
    if !table.matchers().is_empty() {
        let request = Request::new(parts.clone(), Body::empty());
        let mut matchers = table.matchers().iter();
        let is_meant = |matcher: &Matcher| contained(|| matcher(&request)).unwrap_or(false);
        if let Some((_, endpoint)) = matchers.find(|(matcher, _)| is_meant(matcher)) {
            drop(request);
            return (endpoint, Some(parts));
        }
    }
    let path = std::str::from_utf8(view.path()).expect("targets are ASCII");
    let routed = normalized(path);
    let path = routed.as_deref().unwrap_or(path);
    let found = table.find(view.method(), path);
    let inside = parts.get_mut().expect("just made, and lent to nobody");
    if let Some(names) = found.names {
        inside.set_params(Arc::clone(names), found.spans(path));
    }
    let endpoint = found.endpoint;
    drop(found);
    inside.set_routed(routed);
    (endpoint, Some(parts))
}

const ALLOW: (&str, &[u8]) = ("Allow", b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");

/// What is left of an answer while the request's body may still be coming.
fn with_flight(
    rest: Option<Box<Remainder>>,
    persist: Persist,
    flight: Box<Flight>,
) -> Box<Remainder> {
    let mut rest = rest.unwrap_or_else(|| Box::new(Remainder::new(Notices(Vec::new()), persist)));
    rest.flight = Some(flight);
    rest
}
