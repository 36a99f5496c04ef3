//! A turn: all requests that one receive brought, answered into one buffer.

use std::task::Context;

use gustnado_http::head::{Decoded, Head, Version};
use gustnado_http::response_writer::Persist;
use gustnado_tasks::{Connection, SendBuf};

use super::arrived::{Arrived, HeadAt, Moment};
use super::body::BodyRequest;
use super::body_end::{PendingBody, Wanted};
use super::{Conn, Next, Unread};
use gustnado_app::app::ConnPolicy;
use gustnado_config::AnswerVersion;

/// Answers are sent once they have come to this many bytes, though more requests may be there.
const OUT_BYTES_MAX: usize = 64 << 10;
/// How much of that a byte of the requests counts: they may be dear, and their answers short.
const REQUEST_BYTE_COUNTS: usize = 8;
/// What an answer behind the first one of a turn counts of what a task may do in one run.
const ANSWER_UNITS: u32 = 2;

impl Conn {
    /// Answers what is in newly received bytes, together with what was on hold.
    pub(super) fn answer_piece(&mut self, bytes: &[u8], context: &mut Context<'_>) -> Next {
        if let Some(unread) = &mut self.unread {
            unread.bytes.extend_from_slice(bytes);
            return self.answer_unread(context);
        }
        let mut seen = 0;
        let (used, next) = self.answer_all(bytes, &mut seen, context);
        if used < bytes.len() {
            self.unread = Some(Box::new(Unread { bytes: bytes[used..].to_vec(), seen }));
            if used == 0 {
                // The first bytes of a request start its clock.
                self.expect_request();
            }
        }
        next
    }

    /// Answers what is in the bytes on hold.
    pub(super) fn answer_unread(&mut self, context: &mut Context<'_>) -> Next {
        let Some(mut unread) = self.unread.take() else { return Next::Receive };
        let mut seen = unread.seen;
        let (used, next) = self.answer_all(&unread.bytes, &mut seen, context);
        if used < unread.bytes.len() {
            unread.bytes.drain(..used);
            unread.seen = seen;
            self.unread = Some(unread);
        }
        next
    }

    /// Answers a request whose body has been dealt with.
    pub(super) fn answer_with_body(
        &mut self,
        request: &BodyRequest,
        body: PendingBody<'_>,
        context: &mut Context<'_>,
    ) -> Next {
        let wanted = self.wanted(&request.head);
        let (mut out, moment) = (Connection::outgoing(), self.moment());
        let (head, bytes) = (&request.head, &*request.bytes);
        let response = HeadAt::default();
        let mut arrived = Arrived { head, bytes, body, wanted, response };
        let next = if arrived.view().form().has_path() {
            self.answer_by_route(&mut arrived, &moment, &mut out, context)
        } else {
            self.answer_pathless(&mut arrived, &moment, &mut out, context)
        };
        if self.journal.is_some() {
            self.log_answer(&out.bytes, arrived.response, &next);
        }
        if out.bytes.is_empty() {
            Connection::put_back(out);
        } else {
            self.start_send(out);
        }
        match next {
            Next::Receive if self.unread.is_some() => Next::Again,
            next => next,
        }
    }

    /// Answers request after request, and starts sending the answers. Returns how many bytes of
    /// `input` were used, and what comes next.
    fn answer_all(
        &mut self,
        input: &[u8],
        seen: &mut usize,
        context: &mut Context<'_>,
    ) -> (usize, Next) {
        let (mut out, moment) = (Connection::outgoing(), self.moment());
        let mut used = 0;
        let first = self.requests;
        let next = loop {
            if out.bytes.len() + used * REQUEST_BYTE_COUNTS >= OUT_BYTES_MAX {
                break Next::Again;
            }
            let rest = &input[used..];
            match Head::decode(rest, seen, &self.app.limits) {
                Ok(Decoded::NeedMore) => break Next::Receive,
                Ok(Decoded::Done(head)) => {
                    *seen = 0;
                    used += head.len();
                    self.requests = self.requests.saturating_add(1);
                    let mut next = if self.app.access_log.is_some() {
                        self.answer_logged(&head, rest, &moment, &mut out, context)
                    } else {
                        self.answer_one(&head, rest, &moment, &mut out, context).1
                    };
                    if let Next::BodyToo(behind) = next {
                        used += behind.0;
                        next = behind.1;
                    }
                    match next {
                        Next::Receive if used < input.len() => {}
                        Next::Close if used < input.len() => break Next::Linger,
                        next => break next,
                    }
                }
                Err(error) => {
                    let response = self.refuse_head(error, rest, &moment, &mut out);
                    if self.app.access_log.is_some() {
                        self.log_refusal(rest, &out.bytes, response);
                    }
                    break Next::Linger;
                }
            }
        };
        if out.bytes.is_empty() {
            Connection::put_back(out);
        } else {
            self.start_send(out);
        }
        let answers = self.requests.wrapping_sub(first);
        if answers > 1 {
            gustnado_tasks::charge(ANSWER_UNITS * answers);
        }
        (used, next)
    }

    /// [`Conn::answer_one`], and takes it down.
    #[cold]
    #[inline(never)]
    fn answer_logged(
        &mut self,
        head: &Head,
        input: &[u8],
        moment: &Moment,
        out: &mut SendBuf,
        context: &mut Context<'_>,
    ) -> Next {
        self.log_request(Some(head), input);
        let (response, next) = self.answer_one(head, input, moment, out, context);
        self.log_answer(&out.bytes, response, &next);
        next
    }

    /// Answers one request, unless it has a body to be read first.
    #[expect(clippy::inline_always, reason = "as a call it costs a plain request instructions")]
    #[inline(always)]
    fn answer_one(
        &self,
        head: &Head,
        input: &[u8],
        moment: &Moment,
        out: &mut SendBuf,
        context: &mut Context<'_>,
    ) -> (HeadAt, Next) {
        let nothing = HeadAt::default();
        let wanted = if self.app.has_notice() {
            if self.app.is_outdated() {
                return (nothing, renew_first(head, input));
            }
            self.wanted(head)
        } else {
            self.wanted_unnoticed(head)
        };
        let body = PendingBody::new(head.has_body());
        let mut arrived = Arrived { head, bytes: input, body, wanted, response: nothing };
        let next = if arrived.view().form().has_path() {
            self.answer_by_route(&mut arrived, moment, out, context)
        } else {
            self.answer_pathless(&mut arrived, moment, out, context)
        };
        (arrived.response, next)
    }

    pub(super) fn moment(&self) -> Moment {
        let time = self.socket.now();
        Moment { time, common: self.app.response_prefix(time.unix_secs) }
    }

    /// Whether the connection would go on after the answer to a request with this head.
    pub(super) fn wanted(&self, head: &Head) -> Wanted {
        let wanted = self.wanted_unnoticed(head);
        let is_last = self.app.has_notice() && self.app.is_draining();
        if is_last { wanted.ended() } else { wanted }
    }

    /// The same where there is no notice to heed.
    #[inline]
    fn wanted_unnoticed(&self, head: &Head) -> Wanted {
        if let Some(policy) = &self.app.policy {
            return self.wanted_by(policy, head);
        }
        Wanted::new(match head.version() {
            _ if !head.keep_alive() => Persist::Close,
            Version::Http10 => Persist::KeepAlive,
            Version::Http11 => Persist::Default,
        })
    }

    fn wanted_by(&self, policy: &ConnPolicy, head: &Head) -> Wanted {
        let is_last = policy.requests_max.is_some_and(|max| u64::from(self.requests) >= max);
        let persist = match head.version() {
            _ if !head.keep_alive() => Persist::Close,
            Version::Http10 => Persist::KeepAlive,
            Version::Http11 => Persist::Default,
        };
        let is_old = match policy.version {
            AnswerVersion::Newest => false,
            AnswerVersion::Old => true,
            AnswerVersion::AsAsked => head.version() == Version::Http10,
        };
        let wanted = Wanted::new(if is_old { persist.old() } else { persist });
        if is_last { wanted.ended() } else { wanted }
    }
}

/// Has a request answered by the configuration that has taken the place of this one.
#[cold]
fn renew_first(head: &Head, input: &[u8]) -> Next {
    Next::Renew(Box::new(Unread { bytes: input[..head.len()].to_vec(), seen: 0 }))
}
