//! What a connection records of its exchanges: bytes in the counters, and each request and response
//! where a log or a callback reads it.
//!
//! Bytes are counted when they are handed over to be sent, and taken back if they do not leave.

use gustnado_http::head::Head;

use super::Conn;
use super::progress::ResponseProgress;
use super::received::Responded;
use gustnado_observe::exchange::ResponseRecord;

impl Conn {
    /// Opens the exchange of a request, or of input that was refused as one. Called only if there
    /// is a log.
    #[cold]
    #[inline(never)]
    pub(super) fn open_exchange(&mut self, head: Option<&Head>, bytes: &[u8]) {
        let Self { app, exchanges, socket, .. } = self;
        let Some(log) = &app.access_log else { return };
        let client = || {
            let (trusted_proxies, head, peer) =
                (app.trusted_proxies.as_deref()?, head?, socket.peer().ok()?);
            let client = trusted_proxies.client(head.on(bytes), peer.clone());
            (client != peer).then_some(client)
        };
        exchanges.get_or_insert_default().open(log, (head, bytes), socket, client);
    }

    /// Records a refusal: of a request that was being read, or of a head that is incomplete or
    /// broken.
    ///
    /// - `input`: what arrived of it.
    /// - `out`, `response`: as in [`Conn::record`].
    pub(super) fn record_refusal(&mut self, input: &[u8], out: &[u8], mut response: Responded) {
        if self.app.access_log.is_none() {
            return;
        }
        if !self.exchanges.as_ref().is_some_and(|exchanges| exchanges.awaits_response()) {
            self.open_exchange(None, input);
        }
        self.record(out, &mut response, &ResponseProgress::Lingering);
    }

    /// Records a response that was written, or begun.
    ///
    /// - `out`: the buffer that is sent next. The response is the last one in it.
    /// - `response`: its head's position in that buffer.
    #[inline]
    pub(super) fn record(
        &mut self,
        out: &[u8],
        response: &mut Responded,
        progress: &ResponseProgress,
    ) {
        // A response that nothing follows is in the counters alone.
        if self.app.access_log.is_some() || response.on_sent.is_some() {
            self.record_followed(out, response, progress);
        }
    }

    #[cold]
    #[inline(never)]
    fn record_followed(
        &mut self,
        out: &[u8],
        response: &mut Responded,
        progress: &ResponseProgress,
    ) {
        let exchanges = self.exchanges.get_or_insert_default();
        let rest = match progress {
            ResponseProgress::BodyFirst(_) | ResponseProgress::InFlight(_) => return,
            ResponseProgress::Begun(rest) => Some(rest),
            _ => None,
        };
        let Responded { mut written, at, ref mut on_sent } = *response;
        let (head, content) = match rest.and_then(|rest| rest.paced.as_ref()) {
            // It is sent from a buffer of its own, and its content counted then.
            Some(paced) => {
                written = paced.written;
                (&paced.start[..written.head_bytes as usize], &[][..])
            }
            None => out[at..].split_at(written.head_bytes as usize),
        };
        let (status, content_bytes) = (written.status, content.len() as u64);
        let is_whole = rest.is_none();
        exchanges.respond(ResponseRecord {
            status,
            head,
            content_bytes,
            is_whole,
            on_sent: on_sent.take(),
        });
    }

    /// Counts a written response, which is the last one in `out`.
    #[inline]
    pub(super) fn count_response(&self, response: &Responded, out: &[u8]) {
        self.app.count_response(response.written.status, (out.len() - response.at) as u64);
    }

    /// Counts bytes of the last response that are sent next, or have left.
    ///
    /// - `content_bytes`: how many of them are content.
    #[inline]
    pub(super) fn count_more(&mut self, bytes: u64, content_bytes: u64) {
        self.app.count_response(0, bytes);
        if let Some(exchanges) = &mut self.exchanges {
            exchanges.add_content(content_bytes);
        }
    }

    /// Records that everything counted so far has left.
    #[inline]
    pub(super) fn record_sent(&mut self) {
        // A head that waits for its content is with the socket still.
        if self.exchanges.is_some() && !self.socket.holds_back() {
            self.finish_exchanges();
        }
    }

    /// Records that the last response, all of which has left, is complete.
    pub(super) fn record_end(&mut self) {
        if let Some(exchanges) = &mut self.exchanges {
            exchanges.end_last();
            self.finish_exchanges();
        }
    }

    #[cold]
    #[inline(never)]
    fn finish_exchanges(&mut self) {
        self.exchanges.take_if(|exchanges| {
            exchanges.sent();
            exchanges.is_unused()
        });
    }

    /// Takes back bytes of the last send that did not leave.
    #[cold]
    pub(super) fn take_back(&mut self, unsent: u64) {
        self.app.take_back(unsent);
        if let Some(exchanges) = &mut self.exchanges {
            exchanges.take_back(unsent);
        }
    }
}
