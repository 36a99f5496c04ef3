//! What a connection tells the access log. Each of these is called only where there is one.

use gustnado_http::head::Head;

use super::{Conn, Next};
use crate::access_log::{AccessLog, Journal, final_answer};
use crate::files::is_lookup;

impl Conn {
    /// A request has come, or something that was refused in place of one.
    #[cold]
    #[inline(never)]
    pub(super) fn log_request(&mut self, head: Option<&Head>, bytes: &[u8]) {
        let Self { app, besides, link, .. } = self;
        if let Some(log) = &app.access_log {
            let journal = &mut besides.get_or_insert_default().journal;
            journal.begin(log, (head, bytes), link, app.proxies.as_deref());
        }
    }

    /// What was refused has been answered: a request that was being read, or one whose head never
    /// came whole.
    ///
    /// - `input`: what of it has come.
    #[cold]
    #[inline(never)]
    pub(super) fn log_refusal(&mut self, input: &[u8], written: &[u8]) {
        if !self.besides.as_ref().is_some_and(|besides| besides.journal.is_asked()) {
            self.log_request(None, input);
        }
        self.log_answer(written, &Next::Linger);
    }

    /// An answer has been written, or at least begun.
    ///
    /// - `written`: what was written for it into the buffer that is sent next.
    #[cold]
    #[inline(never)]
    pub(super) fn log_answer(&mut self, written: &[u8], next: &Next) {
        let Some((log, journal)) = self.log() else { return };
        let (written, is_whole) = match next {
            Next::BodyToo(behind) => return self.log_answer(written, &behind.1),
            Next::Renew(_) => return journal.take_back(),
            Next::Body(_) | Next::Flight(_) => return,
            Next::Remainder(rest) => match &rest.paced {
                // (What has a pace is not in the buffer.)
                Some(paced) => (&*paced.start, false),
                None => (written, false),
            },
            Next::Segments { segments, .. } if is_lookup(segments) => return,
            Next::Segments { .. } => (written, false),
            _ => (written, true),
        };
        // (A program may have written a status line of its own, in which there is none.)
        let found = final_answer(written);
        let status = found.as_ref().map(|(status, _)| *status);
        let head = found.map_or(0..0, |(_, head)| head);
        let is_paced = matches!(next, Next::Remainder(rest) if rest.paced.is_some());
        let content = (written.len() - head.end) as u64;
        let pending = if is_paced || status.is_none() { 0 } else { content };
        journal.answer(log, (status, &written[head]), pending, is_whole);
    }

    /// Content of the last answer has been handed to the kernel.
    #[inline]
    pub(super) fn log_content(&mut self, bytes: u64) {
        if let Some(besides) = &mut self.besides {
            besides.journal.add(bytes);
        }
    }

    /// The last answer's content has come to its end.
    #[cold]
    #[inline(never)]
    pub(super) fn log_end(&mut self) {
        if let Some((log, journal)) = self.log() {
            journal.end(log);
        }
    }

    /// What was written into the turn's buffer has been handed to the kernel.
    #[cold]
    #[inline(never)]
    pub(super) fn log_sent(&mut self) {
        if let Some((log, journal)) = self.log() {
            journal.sent(log);
        }
    }

    /// The connection ends.
    #[cold]
    #[inline(never)]
    pub(super) fn log_cut(&mut self) {
        if let Some((log, journal)) = self.log() {
            journal.cut(log);
        }
    }

    fn log(&mut self) -> Option<(&AccessLog, &mut Journal)> {
        Some((self.app.access_log.as_deref()?, &mut self.besides.as_deref_mut()?.journal))
    }
}
