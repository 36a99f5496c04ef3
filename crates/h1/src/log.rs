//! The reports of a connection to the access log. Each method is called only if there is a log.

use gustnado_http::head::Head;

use super::received::HeadPosition;
use super::{Conn, Next};
use gustnado_observe::access_log::{AccessLog, Journal};

impl Conn {
    /// Records a request, or input that was refused as one.
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

    /// Records a refusal: of a request that was being read, or of a head that is incomplete or
    /// broken.
    ///
    /// - `input`: what arrived of it.
    /// - `out`, `response`: as in [`Conn::log_response`].
    #[cold]
    #[inline(never)]
    pub(super) fn log_refusal(&mut self, input: &[u8], out: &[u8], response: HeadPosition) {
        if !self.journal.as_ref().is_some_and(|journal| journal.awaits_response()) {
            self.log_request(None, input);
        }
        self.log_response(out, response, &Next::Linger);
    }

    /// Records a response that was written, or begun.
    ///
    /// - `out`: the buffer that is sent next. The response is the last one in it.
    /// - `response`: its position in that buffer.
    #[cold]
    #[inline(never)]
    pub(super) fn log_response(&mut self, out: &[u8], response: HeadPosition, next: &Next) {
        let Some((log, journal)) = self.log() else { return };
        let is_whole = match next {
            Next::BodyUsed(behind) => return self.log_response(out, response, &behind.1),
            Next::Renew(_) => return journal.discard_last(),
            Next::Body(_) | Next::InFlight(_) => return,
            Next::PendingContent(rest) => match &rest.paced {
                // A paced response is sent from its own buffer.
                Some(paced) => {
                    let (head, _) =
                        HeadPosition { written: paced.written, at: 0 }.parts(&paced.start);
                    return journal.record_response(log, (paced.written.status, head), 0, false);
                }
                None => false,
            },
            _ => true,
        };
        let (head, pending) = response.parts(out);
        journal.record_response(log, (response.written.status, head), pending, is_whole);
    }

    /// Counts content of the last response that the kernel has taken.
    #[inline]
    pub(super) fn log_content(&mut self, bytes: u64) {
        if let Some(journal) = &mut self.journal {
            journal.add_content(bytes);
        }
    }

    /// Records that the last response is complete.
    #[cold]
    #[inline(never)]
    pub(super) fn log_end(&mut self) {
        if let Some((log, journal)) = self.log() {
            journal.end(log);
        }
    }

    /// Records that the kernel has taken the turn's buffer.
    #[cold]
    #[inline(never)]
    pub(super) fn log_sent(&mut self) {
        if let Some((log, journal)) = self.log() {
            journal.sent(log);
        }
    }

    /// Records that so many bytes of the turn's buffer did not leave.
    #[cold]
    #[inline(never)]
    pub(super) fn log_unsent(&mut self, unsent: u64) {
        if let Some((_, journal)) = self.log() {
            journal.subtract_unsent(unsent);
        }
    }

    /// Writes the lines of requests that the connection's end cuts off.
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
