//! Requests that the server refuses before any handler.

use gustnado_http::fields::Fields;
use gustnado_http::request::RequestView;
use gustnado_http::response_writer::Opening;
use gustnado_http::status::Status;
use gustnado_tasks::{Connection, SendBuf, contained};

use super::Conn;
use super::received::{Responded, TurnContext};
use super::respond::write_short;
use gustnado_app::hooks::Refused;
use gustnado_observe::stats::{Added, Fault};
use gustnado_web::error_page::error_page;
use gustnado_web::response::Response;

/// When a client may try again that found the server without memory.
const RETRY_AFTER_SECONDS: &str = "1";

impl Conn {
    /// Starts to send the refusal of a request that is malformed or late. The connection closes
    /// after it.
    ///
    /// - `request`: its head, if that was complete.
    pub(super) fn refuse(&mut self, status: Status, request: Option<RequestView<'_>>) {
        let (mut out, turn) = (Connection::outgoing(), self.turn_context());
        let response = self.write_refusal(status, request, &turn, &mut out);
        let unread = self.unread.take();
        let input = unread.as_ref().map_or(&b""[..], |unread| &unread.bytes);
        self.record_refusal(input, &out.bytes, response);
        self.unread = unread;
        self.start_send(out);
    }

    /// Writes a refusal. The connection closes after it, which the peer may not expect.
    #[cold]
    pub(super) fn write_refusal(
        &self,
        status: Status,
        request: Option<RequestView<'_>>,
        turn: &TurnContext,
        out: &mut SendBuf,
    ) -> Responded {
        let opening = &turn.prefix.opening;
        let is_full = status == Status::SERVICE_UNAVAILABLE;
        let standard = || {
            let page = error_page(status, None, (opening.lines(), &Fields::new()));
            if is_full { page.header("Retry-After", RETRY_AFTER_SECONDS) } else { page }
        };
        let dressed = self.app.hooks.refusal.as_ref().and_then(|hook| {
            let (refused, mut response) = (Refused::new(status, request), standard());
            // A hook that panics leaves the standard page.
            contained(|| hook(&refused, &mut response)).map(|()| response)
        });
        let response = dressed.unwrap_or_else(standard);
        let fault = match status {
            Status::REQUEST_TIMEOUT => Some(Fault::TooSlow),
            // Not the client's fault.
            Status::SERVICE_UNAVAILABLE => None,
            _ => Some(Fault::BadRequest),
        };
        self.write_last(&response, opening, fault, out)
    }

    /// Writes a response behind which the connection closes, and counts it.
    pub(super) fn write_last(
        &self,
        response: &Response,
        opening: &Opening,
        fault: Option<Fault>,
        out: &mut SendBuf,
    ) -> Responded {
        let before = out.bytes.len();
        let persist = self.app.refusal_persist();
        let written = write_short(response, opening, persist, false, &mut out.bytes);
        let bytes_sent = (out.bytes.len() - before) as u64;
        self.app.count(&Added { status: written.status, bytes_sent, fault });
        Responded { written, at: before, on_sent: None }
    }
}
