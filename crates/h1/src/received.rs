//! A received request before its route is found, and the context of the turn that responds to it.

use std::mem;
use std::rc::Rc;

use gustnado_http::head::{Framing, Head};
use gustnado_http::request::RequestView;
use gustnado_http::response_writer::WrittenHead;
use gustnado_tasks::Now;

use super::body::{BodyRequest, BodyUse};
use super::body_end::{Ending, PendingBody, RequestedPersist, WholeBody};
use gustnado_observe::exchange::SentCallbacks;
use gustnado_web::response::ResponsePrefix;

/// A request on its way to its handler.
pub(super) struct ReceivedRequest<'a> {
    pub(super) head: &'a Head,
    pub(super) bytes: &'a [u8],
    pub(super) body: PendingBody<'a>,
    pub(super) wanted: RequestedPersist,
    /// Its response, once written.
    pub(super) response: Responded,
    /// Bytes of its body that arrived with its head and have been used.
    pub(super) body_bytes_used: usize,
}

/// What there is to record of a written response.
#[derive(Default)]
pub(super) struct Responded {
    pub(super) written: WrittenHead,
    /// Where its head begins in the turn's buffer.
    pub(super) at: usize,
    pub(super) on_sent: Option<Box<SentCallbacks>>,
}

impl<'a> ReceivedRequest<'a> {
    #[inline]
    pub(super) fn new(head: &'a Head, bytes: &'a [u8], wanted: RequestedPersist) -> Self {
        Self {
            head,
            bytes,
            body: PendingBody::new(head.has_body()),
            wanted,
            response: Responded::default(),
            body_bytes_used: 0,
        }
    }

    pub(super) fn view(&self) -> RequestView<'a> {
        self.head.on(self.bytes)
    }

    /// Notes its response, which has no callbacks.
    ///
    /// - `at`: where the head begins in the turn's buffer.
    #[inline]
    pub(super) fn note(&mut self, written: WrittenHead, at: usize) -> &Responded {
        (self.response.written, self.response.at) = (written, at);
        &self.response
    }

    /// Returns whether its body is still to be read.
    #[inline]
    pub(super) fn has_body_ahead(&self) -> bool {
        matches!(self.body, PendingBody::Ahead)
    }

    /// Puts it off until its body has been read.
    pub(super) fn put_off(&self, body: BodyUse) -> Box<BodyRequest> {
        let bytes = self.bytes[..self.head.len()].to_vec();
        Box::new(BodyRequest { head: *self.head, bytes, body })
    }

    /// Returns the framing of the body that is still to be read.
    pub(super) fn ahead(&self) -> Framing {
        if self.has_body_ahead() { self.head.framing() } else { Framing::None }
    }

    /// Returns how the connection goes on after a response that is written now.
    #[inline]
    pub(super) fn ending(&self) -> Ending {
        self.wanted.with(self.body.end())
    }

    /// Takes its body out; empty if it was not read.
    pub(super) fn take_content(&mut self) -> WholeBody {
        match &mut self.body {
            PendingBody::Read(body) => mem::take(body),
            _ => WholeBody::default(),
        }
    }

    /// Returns the whole body if it arrived together with the head, as most bodies do.
    pub(super) fn body_at_hand(&self) -> Option<&'a [u8]> {
        let Framing::Length(length) = self.head.framing() else { return None };
        let behind = self.bytes.get(self.head.len()..)?;
        let length = usize::try_from(length).ok().filter(|_| self.has_body_ahead())?;
        behind.get(..length).filter(|body| !body.is_empty())
    }
}

/// The context of a turn: all its responses have the same date and prefix.
pub(super) struct TurnContext {
    pub(super) time: Now,
    pub(super) prefix: Rc<ResponsePrefix>,
}
