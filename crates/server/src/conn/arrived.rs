//! A request as it has arrived, before a route is found, and the turn that answers it.

use std::mem;
use std::rc::Rc;

use gustnado_http::head::{Framing, Head};
use gustnado_http::request::Request as View;
use gustnado_http::response_writer::WrittenHead;
use gustnado_tasks::Now;

use super::body_end::{Ending, PendingBody, Wanted};
use crate::response::ResponsePrefix;

/// A request on its way to its handler.
pub(super) struct Arrived<'a> {
    pub(super) head: &'a Head,
    pub(super) bytes: &'a [u8],
    pub(super) body: PendingBody<'a>,
    pub(super) wanted: Wanted,
    /// Its response, once that has been written.
    pub(super) response: HeadAt,
}

/// The head of a response, and where it begins in the turn's buffer.
#[derive(Clone, Copy, Default)]
pub(super) struct HeadAt {
    pub(super) written: WrittenHead,
    pub(super) at: usize,
}

impl HeadAt {
    /// Its bytes, and how many of content lie behind it.
    pub(super) fn parts(self, out: &[u8]) -> (&[u8], u64) {
        let (head, content) = out[self.at..].split_at(self.written.head_bytes as usize);
        (head, content.len() as u64)
    }
}

impl<'a> Arrived<'a> {
    pub(super) fn view(&self) -> View<'a> {
        self.head.on(self.bytes)
    }

    /// Whether its body is still to be read.
    #[inline]
    pub(super) fn has_body_ahead(&self) -> bool {
        matches!(self.body, PendingBody::Ahead)
    }

    /// What of its body is still to be read.
    pub(super) fn ahead(&self) -> Framing {
        if self.has_body_ahead() { self.head.framing() } else { Framing::None }
    }

    /// How the connection goes on after a response that is written now.
    #[inline]
    pub(super) fn ending(&self) -> Ending {
        self.wanted.with(self.body.end())
    }

    /// Takes its body out, if it was read; else nothing.
    pub(super) fn take_content(&mut self) -> Vec<u8> {
        match &mut self.body {
            PendingBody::Read(body) => mem::take(body),
            _ => Vec::new(),
        }
    }

    /// All of its body, if that came together with the head: most bodies are short.
    pub(super) fn body_at_hand(&self) -> Option<&'a [u8]> {
        let Framing::Length(length) = self.head.framing() else { return None };
        let behind = self.bytes.get(self.head.len()..)?;
        let length = usize::try_from(length).ok().filter(|_| self.has_body_ahead())?;
        behind.get(..length).filter(|body| !body.is_empty())
    }
}

/// The moment of a turn: all its answers carry the same date.
pub(super) struct Moment {
    pub(super) time: Now,
    pub(super) common: Rc<ResponsePrefix>,
}
