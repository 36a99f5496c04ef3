//! Requests that the server refuses before any handler.

use gustnado_http::method::Method;
use gustnado_http::request::RequestView;
use gustnado_http::response_writer::Opening;
use gustnado_http::status::Status;
use gustnado_tasks::{Connection, SendBuf};

use super::Conn;
use super::received::{Responded, TurnContext};
use super::respond::write_short;
use gustnado_observe::stats::{Added, Fault};
use gustnado_web::response::Response;

impl Conn {
    /// Starts to send the refusal of a request that is malformed or late. The connection closes
    /// after it.
    ///
    /// - `request`: its head, if that was complete.
    pub(super) fn refuse(&mut self, status: Status, request: Option<RequestView<'_>>) {
        let (mut out, turn) = (Connection::outgoing(), self.turn_of(request));
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
        let (response, fault) = self.app.refusal(status, request, opening.lines());
        let head_only = request.is_some_and(|request| request.method() == Method::Head);
        self.write_last(&response, (opening, head_only), fault, out)
    }

    /// Writes a response behind which the connection closes, and counts it.
    pub(super) fn write_last(
        &self,
        response: &Response,
        (opening, head_only): (&Opening, bool),
        fault: Option<Fault>,
        out: &mut SendBuf,
    ) -> Responded {
        let before = out.bytes.len();
        let persist = self.app.refusal_persist();
        let written = write_short(response, opening, persist, head_only, &mut out.bytes);
        let bytes_sent = (out.bytes.len() - before) as u64;
        self.app.count(&Added { status: written.status, bytes_sent, fault });
        Responded { written, at: before, on_sent: None }
    }
}
