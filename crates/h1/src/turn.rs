//! A turn: all requests that one receive brought, responded to in one buffer.

use std::task::Context;

use gustnado_http::head::{Decoded, Head, Version};
use gustnado_http::request::RequestView;
use gustnado_http::response_writer::Persist;
use gustnado_tasks::{Connection, MemoryKind};

use super::Conn;
use super::body::BodyRequest;
use super::body_end::{PendingBody, RequestedPersist};
use super::progress::{ResponseProgress, TurnEnd};
use super::received::{ReceivedRequest, TurnContext};
use super::unread::Unread;
use gustnado_app::app::{ConnPolicy, Notice, is_secure_connection};
use gustnado_config::ResponseVersion;

/// The responses of a turn are sent at this many bytes, even if more requests are buffered: a
/// pipelining client must not grow the buffer without bound.
const OUT_BYTES_MAX: usize = 64 << 10;
/// And at this many where sends hold too much memory: such a buffer is not charged.
const SHORT_OUT_BYTES: usize = 8 << 10;
/// How many bytes of that budget one byte of requests costs. Requests may be expensive with short
/// responses, and other connections must get their turn too.
const REQUEST_BYTE_COUNTS: usize = 8;
/// The cost of each response, in a turn with several, to the task's budget for one run.
const RESPONSE_UNITS: u32 = 2;

impl Conn {
    /// Responds to newly received bytes, behind the unread ones.
    pub(super) fn respond_to_piece(&mut self, bytes: &[u8], context: &mut Context<'_>) -> TurnEnd {
        let mut unread = self.unread.take();
        let (input, mut seen) = match &mut unread {
            // Nothing is unread, the usual case: the requests are parsed in the receive buffer,
            // uncopied.
            None => (bytes, 0),
            Some(unread) => {
                unread.bytes.extend_from_slice(bytes);
                (&*unread.bytes, unread.seen)
            }
        };
        let (used, end) = self.respond_all(input, &mut seen, context);
        if used < input.len() {
            return self.keep_rest(unread, (bytes, used), seen, end);
        }
        end
    }

    /// Keeps the bytes that no request of a turn has used.
    ///
    /// - `unread`: those of before, with `bytes` behind them; else `bytes` are all there are.
    #[inline(never)] // It would take registers from the way of whole requests.
    fn keep_rest(
        &mut self,
        unread: Option<Box<Unread>>,
        (bytes, used): (&[u8], usize),
        seen: usize,
        end: TurnEnd,
    ) -> TurnEnd {
        let is_first = unread.is_none();
        let mut unread = unread.unwrap_or_default();
        if is_first {
            unread.bytes = bytes[used..].to_vec();
        } else {
            unread.bytes.drain(..used);
        }
        unread.seen = seen;
        unread.charge();
        let is_awaited = matches!(end, TurnEnd::NeedMore);
        unread.await_head(is_awaited, self.app.bodies(), || self.peer_key());
        self.unread = Some(unread);
        if is_first && used == 0 {
            // The first bytes of a request start its head timeout. Later ones do not restart it, or
            // a slow sender could hold the connection for ever.
            self.expect_request();
        }
        end
    }

    /// Responds to the unread bytes.
    pub(super) fn respond_to_unread(&mut self, context: &mut Context<'_>) -> TurnEnd {
        if self.unread.is_none() { TurnEnd::NeedMore } else { self.respond_to_piece(b"", context) }
    }

    /// Responds to a request whose body was read or skipped.
    pub(super) fn respond_with_body(
        &mut self,
        request: &BodyRequest,
        body: PendingBody<'_>,
        context: &mut Context<'_>,
    ) -> ResponseProgress {
        let (head, bytes) = (&request.head, &*request.bytes);
        let (mut out, turn) = (Connection::outgoing(), self.turn_of(Some(head.on(bytes))));
        let wanted = self.wanted(head, self.app.notice());
        let mut received = ReceivedRequest { body, ..ReceivedRequest::new(head, bytes, wanted) };
        let progress = self.respond_by_route(&mut received, &turn, &mut out, context);
        self.record(&out.bytes, &mut received.response, &progress);
        if out.bytes.is_empty() {
            Connection::put_back(out);
        } else {
            self.start_send(out);
        }
        progress
    }

    /// Responds to request after request, and starts sending the responses. Returns how many bytes
    /// of `input` were used, and how the turn has ended.
    fn respond_all(
        &mut self,
        input: &[u8],
        seen: &mut usize,
        context: &mut Context<'_>,
    ) -> (usize, TurnEnd) {
        // One buffer and one date for all responses of the turn, so that one send carries them.
        let (mut out, mut turn) = (Connection::outgoing(), self.turn_context());
        let mut used = 0;
        let (first, mut head) = (self.requests, None);
        let end = loop {
            if out.bytes.len() + used * REQUEST_BYTE_COUNTS >= OUT_BYTES_MAX {
                break TurnEnd::Full;
            }
            let rest = &input[used..];
            match Head::decode_in(&mut head, rest, seen, &self.app.limits) {
                Ok(Decoded::NeedMore) => break TurnEnd::NeedMore,
                Ok(Decoded::Done(head)) => {
                    *seen = 0;
                    used += head.len();
                    // Before anything is done about it: no request is served by old routes.
                    let notice = self.app.notice();
                    if notice.has_news() && self.app.is_outdated() {
                        break outdated(head, rest);
                    }
                    self.requests = self.requests.saturating_add(1);
                    if self.app.access_log.is_some() {
                        self.open_exchange(Some(head), rest);
                    }
                    let wanted = self.wanted(head, notice);
                    let mut received = ReceivedRequest::new(head, rest, wanted);
                    if notice.has_guards() && self.is_guarded(&mut received, &mut turn, &mut out) {
                        break TurnEnd::Last(ResponseProgress::Lingering);
                    }
                    let progress = self.respond_by_route(&mut received, &turn, &mut out, context);
                    self.record(&out.bytes, &mut received.response, &progress);
                    used += received.body_bytes_used;
                    match progress {
                        ResponseProgress::Written if used < input.len() => {
                            let is_long = out.bytes.len() >= SHORT_OUT_BYTES;
                            if is_long && self.app.is_short_of(MemoryKind::Sends) {
                                break TurnEnd::Full;
                            }
                        }
                        progress => break TurnEnd::Last(progress),
                    }
                }
                Err(_) if self.is_http2_in_clear(rest) => break TurnEnd::Http2,
                Err(error) => {
                    let response = self.refuse_head(error, rest, &mut turn, &mut out);
                    self.record_refusal(rest, &out.bytes, response);
                    // After a broken head the next request's start is unknown, so the connection
                    // cannot go on.
                    break TurnEnd::Last(ResponseProgress::Lingering);
                }
            }
        };
        if out.bytes.is_empty() {
            Connection::put_back(out);
        } else {
            self.start_send(out);
        }
        let responses = self.requests.wrapping_sub(first);
        // A single response is paid by its send. Several are charged here too, or a pipelining
        // client would get more of the worker than others.
        if responses > 1 {
            gustnado_tasks::charge(RESPONSE_UNITS * responses);
        }
        (used, end)
    }

    /// Switches to the app in force, and puts the last request's head back to be parsed under it.
    pub(super) fn renew(&mut self, mut head: Box<Unread>) {
        if let Some(app) = self.app.successor() {
            self.app = app;
        }
        // The head arrived before these bytes, so it goes in front of them.
        if let Some(behind) = self.unread.take() {
            head.bytes.extend_from_slice(&behind.bytes);
        }
        self.unread = Some(head);
    }

    /// Returns the context of a turn whose requests choose the prefix themselves.
    #[inline]
    fn turn_context(&self) -> TurnContext {
        let time = self.socket.now();
        TurnContext { time, prefix: self.app.response_prefix(time.unix_secs) }
    }

    /// Returns the context of the response to one request; `None` if its head did not come.
    pub(super) fn turn_of(&self, request: Option<RequestView<'_>>) -> TurnContext {
        let time = self.socket.now();
        let mut turn = TurnContext { time, prefix: self.app.late_response_prefix(time.unix_secs) };
        if self.app.has_hsts() {
            self.choose_prefix(&mut turn, request);
        }
        turn
    }

    /// Chooses the fields of the response to a request: one that came without https must not ask
    /// for that (RFC 6797 §7.2). Only a server with guards has both HSTS and a plain listener.
    #[cold]
    pub(super) fn choose_prefix(&self, turn: &mut TurnContext, request: Option<RequestView<'_>>) {
        if !self.app.has_hsts() {
            return;
        }
        let is_secure = match request {
            Some(view) => self.app.is_secure(view, &self.socket),
            None => is_secure_connection(&self.socket),
        };
        let unix_secs = turn.time.unix_secs;
        turn.prefix = if is_secure {
            self.app.late_response_prefix(unix_secs)
        } else {
            self.app.plain_response_prefix(unix_secs)
        };
    }

    /// Returns whether the connection would persist after the response to this head.
    #[inline]
    pub(super) fn wanted(&self, head: &Head, notice: Notice) -> RequestedPersist {
        let wanted = self.wanted_unnoticed(head);
        let is_last = notice.has_news() && self.app.is_draining();
        if is_last { wanted.ended() } else { wanted }
    }

    /// Returns the same for an app without a notice.
    #[inline]
    fn wanted_unnoticed(&self, head: &Head) -> RequestedPersist {
        let persist = match head.version() {
            _ if !head.keep_alive() => Persist::Close,
            Version::Http10 => Persist::KeepAlive,
            Version::Http11 | Version::Http2 => Persist::Default,
        };
        match &self.app.policy {
            Some(policy) => self.wanted_by(policy, head, persist),
            None => RequestedPersist::new(persist),
        }
    }

    fn wanted_by(&self, policy: &ConnPolicy, head: &Head, persist: Persist) -> RequestedPersist {
        let is_last = policy.requests_max.is_some_and(|max| u64::from(self.requests) >= max);
        let is_old = match policy.version {
            ResponseVersion::Newest => false,
            ResponseVersion::Old => true,
            ResponseVersion::AsRequested => head.version() == Version::Http10,
        };
        let wanted = RequestedPersist::new(if is_old { persist.old() } else { persist });
        if is_last { wanted.ended() } else { wanted }
    }
}

/// Ends a turn before a request, which is parsed again under the app that has replaced this one.
#[cold]
fn outdated(head: &Head, input: &[u8]) -> TurnEnd {
    TurnEnd::Outdated(Box::new(Unread::new(input[..head.len()].to_vec())))
}
