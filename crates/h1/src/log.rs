//! What a connection tells the access log. Each of these is called only where there is one.

use gustnado_http::head::Head;

use super::arrived::HeadAt;
use super::{Conn, Next};
use gustnado_observe::access_log::{AccessLog, Journal};

impl Conn {
    /// A request has come, or something that was refused in place of one.
    #[cold]
    #[inline(never)]
    pub(super) fn log_request(&mut self, head: Option<&Head>, bytes: &[u8]) {
        let Self { app, journal, socket, .. } = self;
        if let Some(log) = &app.access_log {
            let journal = journal.get_or_insert_default();
            let peer = || socket.peer().ok();
            let client = || {
                let (trusted_proxies, head, peer) =
                    (app.trusted_proxies.as_deref()?, head?, peer()?);
                let client = trusted_proxies.client(head.on(bytes), peer.clone());
                (client != peer).then_some(client)
            };
            journal.record_request(log, (head, bytes), socket.now().unix_secs, peer, client);
        }
    }

    /// What was refused has been answered: a request that was being read, or one whose head never
    /// came whole.
    ///
    /// - `input`: what of it has come.
    /// - `out`, `response`: as in [`Conn::log_answer`].
    #[cold]
    #[inline(never)]
    pub(super) fn log_refusal(&mut self, input: &[u8], out: &[u8], response: HeadAt) {
        if !self.journal.as_ref().is_some_and(|journal| journal.awaits_response()) {
            self.log_request(None, input);
        }
        self.log_answer(out, response, &Next::Linger);
    }

    /// An answer has been written, or at least begun.
    ///
    /// - `out`: the buffer that is sent next. The answer is the last one in it.
    /// - `response`: where in it the answer's head is.
    #[cold]
    #[inline(never)]
    pub(super) fn log_answer(&mut self, out: &[u8], response: HeadAt, next: &Next) {
        let Some((log, journal)) = self.log() else { return };
        let is_whole = match next {
            Next::BodyToo(behind) => return self.log_answer(out, response, &behind.1),
            Next::Renew(_) => return journal.discard_last(),
            Next::Body(_) | Next::InFlight(_) => return,
            Next::PendingContent(rest) => match &rest.paced {
                // What has a pace is not in the buffer.
                Some(paced) => {
                    let (head, _) = HeadAt { written: paced.written, at: 0 }.parts(&paced.start);
                    return journal.record_response(log, (paced.written.status, head), 0, false);
                }
                None => false,
            },
            _ => true,
        };
        let (head, pending) = response.parts(out);
        journal.record_response(log, (response.written.status, head), pending, is_whole);
    }

    /// Content of the last answer has been handed to the kernel.
    #[inline]
    pub(super) fn log_content(&mut self, bytes: u64) {
        if let Some(journal) = &mut self.journal {
            journal.add_content(bytes);
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

    /// Of what was written into the turn's buffer, so many bytes have not left, and will not.
    #[cold]
    #[inline(never)]
    pub(super) fn log_unsent(&mut self, unsent: u64) {
        if let Some((_, journal)) = self.log() {
            journal.subtract_unsent(unsent);
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
        Some((self.app.access_log.as_deref()?, self.journal.as_deref_mut()?))
    }
}
