//! The requests of one connection that have no response yet, by its protocol.

use super::coordinator::Coordinator;
use super::counts::ServiceState;
use super::http1::Http1Requests;
use super::http2::Http2Requests;
use super::pending::{LeaveReason, PendingRequest};
use super::script::Script;
use super::websocket_requests::WebSocketRequests;
use crate::plan::{HttpVersion, LoadPlan};

/// Requests without a response.
pub(super) enum RequestsInFlight {
    /// In order, one after the other.
    Http1(Http1Requests),
    /// Each on its stream.
    Http2(Box<Http2Requests>),
    /// Messages, of which each comes back.
    Ws(Box<WebSocketRequests>),
}

use RequestsInFlight::{Http1, Http2, Ws};

impl RequestsInFlight {
    /// - `kind`: the request that opens a WebSocket.
    /// - `number`: of the connection.
    pub(super) fn new(plan: &LoadPlan, kind: u32, number: u64) -> Self {
        if let Some(load) = plan.websocket {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            return Ws(Box::new(WebSocketRequests::new(plan, load, (kind, number))));
        }
        match plan.http {
            HttpVersion::Http2 => Http2(Box::new(Http2Requests::new(plan))),
            _ => Http1(Http1Requests::new(plan.pipeline as usize)),
        }
    }

    /// Begins a connection.
    ///
    /// - `received`: what has come right behind the handshake.
    pub(super) fn begin(&mut self, received: Vec<u8>, now: u64) {
        match self {
            Http1(_) => {}
            Http2(requests) => requests.begin(received),
            Ws(requests) => requests.begin(now),
        }
    }

    /// Returns whether requests wait until the server has accepted a WebSocket.
    pub(super) fn is_opening(&self) -> bool {
        matches!(self, Ws(requests) if requests.is_opening())
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Http1(requests) => requests.is_empty(),
            Http2(requests) => requests.is_empty(),
            Ws(requests) => requests.is_empty(),
        }
    }

    /// Returns whether the server has refused requests without a look at them, so that they
    /// are sent again.
    pub(super) fn has_refused(&self) -> bool {
        matches!(self, Http2(requests) if requests.has_refused())
    }

    /// Returns whether one more may be sent.
    #[inline]
    pub(super) fn has_room(&self, depth: usize) -> bool {
        match self {
            Http1(requests) => requests.len() < depth,
            Http2(requests) => requests.has_room(depth),
            Ws(requests) => requests.has_room(depth),
        }
    }

    /// Returns whether bytes have to be received while others are sent, and each request has a
    /// time-out of its own.
    pub(super) fn is_two_way(&self) -> bool {
        !matches!(self, Http1(_))
    }

    /// Returns how long the oldest request has waited, in milliseconds. One by HTTP/1 waits from
    /// the last send on.
    pub(super) fn oldest_ms(&self, now: u64) -> u64 {
        match self {
            Http1(_) => 0,
            Http2(requests) => requests.oldest_ms(now),
            Ws(requests) => requests.oldest_ms(now),
        }
    }

    /// Returns whether the protocol has something to say.
    #[inline]
    pub(super) fn has_output(&self) -> bool {
        match self {
            Http1(_) => false,
            Http2(requests) => requests.has_output(),
            Ws(requests) => requests.has_output(),
        }
    }

    /// Writes what the protocol has to say.
    pub(super) fn write_output(&mut self, script: &Script, bytes: &mut Vec<u8>) {
        match self {
            Http1(_) => {}
            Http2(requests) => requests.write_output(script, bytes),
            Ws(requests) => requests.write_output(script, bytes),
        }
    }

    /// Encodes a request. Returns its bytes.
    #[inline]
    pub(super) fn put(
        &mut self,
        pending: PendingRequest,
        script: &Script,
        bytes: &mut Vec<u8>,
    ) -> usize {
        match self {
            Http1(requests) => requests.put(pending, script, bytes),
            Http2(requests) => requests.put(pending, script, bytes),
            Ws(requests) => requests.put(pending, bytes),
        }
    }

    /// Reads received bytes. Returns the reason to leave the connection, if there is one.
    #[inline]
    pub(super) fn take_in(
        &mut self,
        bytes: &[u8],
        coordinator: &mut Coordinator,
        service: &mut ServiceState,
        now: u64,
    ) -> Option<LeaveReason> {
        match self {
            Http1(requests) => requests.take_in(bytes, coordinator, service, now),
            Http2(requests) => requests.take_in(bytes, coordinator, service, now),
            Ws(requests) => requests.take_in(bytes, coordinator, service, now),
        }
    }

    /// Handles the server's close.
    pub(super) fn end(
        &mut self,
        coordinator: &mut Coordinator,
        service: &mut ServiceState,
        now: u64,
    ) -> LeaveReason {
        match self {
            Http1(requests) => requests.end(coordinator, service, now),
            Http2(requests) => requests.end(),
            Ws(requests) => requests.end(coordinator),
        }
    }

    /// Takes all requests out, the oldest one first.
    pub(super) fn drain(&mut self, each: impl FnMut(&PendingRequest)) {
        match self {
            Http1(requests) => requests.drain(each),
            Http2(requests) => requests.drain(each),
            Ws(requests) => requests.drain(each),
        }
    }

    /// Forgets the connection.
    pub(super) fn reset(&mut self) {
        match self {
            Http1(requests) => requests.reset(),
            Http2(requests) => requests.reset(),
            Ws(requests) => requests.reset(),
        }
    }
}
