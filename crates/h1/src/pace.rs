//! Connections of a server with a pace: one request at a time.
//!
//! Sending and receiving at a pace is the task of [`gustnado_tls::Socket`].

use std::mem;

use gustnado_http::head::{Decoded, Head};
use gustnado_http::method::Method;
use gustnado_http::request::RequestView;
use gustnado_http::status::Status;
use gustnado_tasks::{Connection, Rate, now};

use super::Conn;
use super::body::{BodyRequest, BodyUse};
use super::body_end::Ending;
use super::progress::ResponseProgress;
use super::received::Responded;
use super::respond::write_short;
use super::unread::Unread;
use gustnado_observe::stats::{Added, Fault};
use gustnado_web::routes::RouteOptions;

/// The first request in the unread bytes.
pub(super) enum BufferedRequest {
    /// Its head is incomplete.
    Incomplete,
    /// Its head is malformed; the bytes stay unread.
    Broken,
    /// A whole head, now alone in the unread bytes; these bytes came behind it.
    Request(Option<Box<Unread>>),
    /// A request past the client's rate, taken out. The client may retry after so many
    /// milliseconds.
    TooMany(Box<BodyRequest>, u64),
}

impl Conn {
    /// Sets the connection's pace, if the server has one.
    pub(super) fn set_pace(&mut self) {
        let Some(pace) = self.app.pace() else { return };
        let pacer = pace.pacer(|| self.socket.peer(), self.socket.now().mono_ms);
        self.socket.set_pacer(pacer);
    }

    /// Takes the first request from the unread bytes, and counts it against the client's rate.
    pub(super) fn take_request(&mut self) -> BufferedRequest {
        let Some(mut unread) = self.unread.take() else { return BufferedRequest::Incomplete };
        let head = match Head::decode(&unread.bytes, &mut unread.seen, &self.app.limits) {
            Ok(Decoded::Done(head)) => head,
            Ok(_) => {
                unread.charge();
                unread.await_head(true, self.app.bodies(), || self.peer_key());
                self.unread = Some(unread);
                return BufferedRequest::Incomplete;
            }
            Err(_) => {
                self.unread = Some(unread);
                return BufferedRequest::Broken;
            }
        };
        let behind = unread.bytes.split_off(head.len());
        let bytes = mem::replace(&mut unread.bytes, behind);
        unread.seen = 0;
        unread.charge();
        unread.await_head(false, self.app.bodies(), || None);
        let rest = (!unread.bytes.is_empty()).then_some(unread);
        let now_ms = now().mono_ms;
        self.socket.begin_response(now_ms);
        if let Err(wait_ms) = self.socket.admit(now_ms) {
            self.unread = rest;
            let body = BodyUse::Nothing(RouteOptions::default());
            let request = BodyRequest { head, bytes, body };
            self.requests = self.requests.saturating_add(1);
            self.open_exchange(Some(&request.head), &request.bytes);
            return BufferedRequest::TooMany(Box::new(request), wait_ms);
        }
        self.unread = Some(Box::new(Unread::new(bytes)));
        BufferedRequest::Request(rest)
    }

    /// Starts to send 429 to a client past its rate of requests.
    pub(super) fn respond_too_many(
        &mut self,
        request: RequestView<'_>,
        ending: Ending,
        wait_ms: u64,
    ) {
        let (mut out, turn) = (Connection::outgoing(), self.turn_of(Some(request)));
        let opening = &turn.prefix.opening;
        let after_secs = wait_ms.div_ceil(1_000).max(1).to_string();
        let page = self.app.routeless_page(Status::TOO_MANY_REQUESTS, opening.lines());
        let response = page.header("Retry-After", after_secs);
        let (head_only, persist) = (request.method() == Method::Head, ending.persist());
        let written = write_short(&response, opening, persist, head_only, &mut out.bytes);
        let fault = Some(Fault::TooManyRequests);
        let bytes_sent = out.bytes.len() as u64;
        self.app.count(&Added { status: written.status, bytes_sent, fault });
        let mut response = Responded { written, ..Responded::default() };
        self.record(&out.bytes, &mut response, &ResponseProgress::Written);
        self.start_send(out);
    }

    /// Sets the pace of the body that follows, from its route.
    pub(super) fn begin_route_read(&mut self, rate: Rate) {
        let received = self.unread.as_ref().map_or(0, |unread| unread.bytes.len() as u64);
        self.socket.begin_route_read(rate, received);
    }
}
