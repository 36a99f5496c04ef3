//! A turn: all requests that one receive brought, answered into one buffer.

use std::collections::VecDeque;
use std::rc::Rc;

use gustnado_http::answer::Persist;
use gustnado_http::head::{Decoded, Framing, Head, Version};
use gustnado_http::request::Request;
use gustnado_http::status::Status;
use gustnado_tasks::{Link, Outgoing, now};

use super::body::{Body, BodyRequest};
use super::{Conn, Unread};
use crate::app::Common;
use crate::reply::{Now, Rest, Segment, Turn, status_page};
use crate::stats::{Added, Fault};

/// Answers are sent once they have come to this many bytes, though more requests may be there.
const OUT_BYTES_MAX: usize = 64 << 10;

/// What a turn has written, and what comes after it is sent.
#[derive(Debug)]
pub(super) struct Turned {
    pub(super) out: Box<Outgoing>,
    pub(super) next: Next,
}

/// What comes after the answers of a turn.
#[derive(Debug)]
pub(super) enum Next {
    /// The next request.
    Receive,
    /// The last answer's body, which is sent from elsewhere.
    #[expect(clippy::box_collection, reason = "rare, and it would make every turn larger")]
    Segments { segments: Box<VecDeque<Segment>>, persist: Persist },
    /// The last request's body, without which it is not answered.
    Body(Box<BodyRequest>),
    /// The end: the peer knows, and nothing of it is unread.
    Close,
    /// The end, which the peer may not expect.
    Linger,
}

/// The moment of a turn: all its answers carry the same date.
struct Moment {
    time: Now,
    common: Rc<Common>,
}

impl Turned {
    fn new() -> Self {
        Self { out: Link::outgoing(), next: Next::Receive }
    }

    /// Whether more requests can be answered before something is sent.
    fn goes_on(&self) -> bool {
        matches!(self.next, Next::Receive) && self.out.bytes.len() < OUT_BYTES_MAX
    }

    /// Whether there is something to send or to do.
    fn is_due(&self) -> bool {
        !self.out.bytes.is_empty() || !matches!(self.next, Next::Receive)
    }
}

impl Conn {
    /// Answers what is in newly received bytes, together with what was on hold. `None`: there is no
    /// whole request yet.
    pub(super) fn answer_piece(&mut self, bytes: &[u8]) -> Option<Turned> {
        if let Some(unread) = &mut self.unread {
            unread.bytes.extend_from_slice(bytes);
            return self.answer_unread();
        }
        let (mut turned, mut seen) = (Turned::new(), 0);
        let used = self.answer_all(bytes, &mut seen, &mut turned);
        if used < bytes.len() {
            let (bytes, ready) = (bytes[used..].to_vec(), !turned.goes_on());
            self.unread = Some(Box::new(Unread { bytes, seen, ready }));
        }
        if !turned.is_due() {
            // The first bytes of a request start its clock.
            self.expect_request();
        }
        turned.due()
    }

    /// Answers what is in the bytes on hold. `None`: there is no whole request yet.
    pub(super) fn answer_unread(&mut self) -> Option<Turned> {
        let mut unread = self.unread.take()?;
        let (mut turned, mut seen) = (Turned::new(), unread.seen);
        let used = self.answer_all(&unread.bytes, &mut seen, &mut turned);
        if used < unread.bytes.len() {
            unread.bytes.drain(..used);
            unread.seen = seen;
            unread.ready = !turned.goes_on();
            self.unread = Some(unread);
        }
        turned.due()
    }

    /// Answers a request whose body has been dealt with.
    pub(super) fn answer_with_body(&mut self, request: &BodyRequest, body: Body) -> Turned {
        let body = match body {
            Body::Whole(body) => Ok(body),
            Body::Skipped => Err(()),
            Body::Refused(status) => return self.refuse(status),
        };
        let (mut turned, moment) = (Turned::new(), self.moment());
        let persist = if body.is_ok() { self.persist(&request.head) } else { Persist::Close };
        let body_bytes = body.as_deref().unwrap_or(&[]);
        let added = self.write_answer(&request.view(), body_bytes, &moment, persist, &mut turned);
        if matches!(turned.next, Next::Close) && body.is_err() {
            turned.next = Next::Linger;
        }
        self.app.count(&added);
        turned
    }

    /// Answers a request that breaks the rules or comes too late, and ends.
    pub(super) fn refuse(&mut self, status: Status) -> Turned {
        let (mut turned, moment) = (Turned::new(), self.moment());
        let added = write_refusal(status, &moment, &mut turned);
        self.app.count(&added);
        turned
    }

    /// Answers request after request. Returns how many bytes of `input` were used.
    fn answer_all(&mut self, input: &[u8], seen: &mut usize, turned: &mut Turned) -> usize {
        let moment = self.moment();
        let mut used = 0;
        while used < input.len() && turned.goes_on() {
            let rest = &input[used..];
            let added = match Head::decode(rest, seen, &self.app.limits) {
                Ok(Decoded::NeedMore) => break,
                Ok(Decoded::Done(head)) => {
                    *seen = 0;
                    used += head.len();
                    self.requests += 1;
                    let added = self.answer_one(&head, rest, &moment, turned);
                    if matches!(turned.next, Next::Close) && used < input.len() {
                        turned.next = Next::Linger;
                    }
                    added
                }
                Err(error) => write_refusal(error.status(), &moment, turned),
            };
            self.app.count(&added);
        }
        used
    }

    /// Answers one request, unless it has a body to be read first.
    fn answer_one(&self, head: &Head, input: &[u8], moment: &Moment, turned: &mut Turned) -> Added {
        if matches!(head.framing(), Framing::None | Framing::Length(0)) {
            return self.write_answer(&head.on(input), &[], moment, self.persist(head), turned);
        }
        let bytes = input[..head.len()].to_vec();
        turned.next = Next::Body(Box::new(BodyRequest { head: *head, bytes }));
        Added::default()
    }

    /// Writes the answer to a request that is complete.
    fn write_answer(
        &self,
        request: &Request<'_>,
        body: &[u8],
        moment: &Moment,
        persist: Persist,
        turned: &mut Turned,
    ) -> Added {
        let turn = Turn { common: &moment.common.lines, persist };
        let before = turned.out.bytes.len();
        let rest = self.app.answer(request, body, moment.time, &turn, &mut turned.out.bytes);
        turned.finish_answer(before, rest, persist)
    }

    fn moment(&self) -> Moment {
        let now = now();
        let time = Now { unix_secs: now.unix_secs, mono_ms: now.mono_ms };
        Moment { time, common: self.app.common(now.unix_secs) }
    }

    fn persist(&self, head: &Head) -> Persist {
        match head.version() {
            _ if self.is_last(head.keep_alive()) => Persist::Close,
            Version::Http10 => Persist::KeepAlive,
            Version::Http11 => Persist::Default,
        }
    }
}

impl Turned {
    /// Hands a turn on if there is something in it, else its buffer back.
    fn due(self) -> Option<Self> {
        if self.is_due() {
            return Some(self);
        }
        Link::put_back(self.out);
        None
    }

    /// Takes note of an answer that was written from `before` on.
    fn finish_answer(&mut self, before: usize, rest: Rest, persist: Persist) -> Added {
        let answer = &self.out.bytes[before..];
        // What was written tells its status: `HTTP/1.1 ` and then the digits.
        let class = answer.get(9).map_or(0, |digit| digit.wrapping_sub(b'0'));
        let added = Added { class, bytes_sent: answer.len() as u64, ..Added::default() };
        self.next = match rest {
            Rest::Segments(segments) => {
                self.out.more = true;
                Next::Segments { segments, persist }
            }
            Rest::Nothing if persist == Persist::Close => Next::Close,
            Rest::Nothing => Next::Receive,
        };
        added
    }
}

fn write_refusal(status: Status, moment: &Moment, turned: &mut Turned) -> Added {
    let turn = Turn { common: &moment.common.lines, persist: Persist::Close };
    let before = turned.out.bytes.len();
    status_page(&mut turned.out.bytes, status, &turn, false, &[]);
    let added = turned.finish_answer(before, Rest::Nothing, Persist::Close);
    turned.next = Next::Linger;
    let late = status == Status::REQUEST_TIMEOUT;
    Added { fault: Some(if late { Fault::TooSlow } else { Fault::BadRequest }), ..added }
}
