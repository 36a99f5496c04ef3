//! Requests that the server refuses by itself: no handler sees them.

use gustnado_http::fields::Fields;
use gustnado_http::request::Request as View;
use gustnado_http::status::Status;
use gustnado_tasks::{Connection, SendBuf};

use super::Conn;
use super::arrived::{HeadAt, Moment};
use super::respond::write_short;
use gustnado_app::hooks::Refused;
use gustnado_observe::stats::{Added, Fault};
use gustnado_web::contained::contained;
use gustnado_web::error_page::error_page;

impl Conn {
    /// Starts to send the response to a request that breaks the rules or comes too late. The
    /// connection ends after it.
    ///
    /// - `request`: its head, where that was whole.
    pub(super) fn refuse(&mut self, status: Status, request: Option<View<'_>>) {
        let (mut out, moment) = (Connection::outgoing(), self.moment());
        let response = self.write_refusal(status, request, &moment, &mut out);
        if self.app.access_log.is_some() {
            let unread = self.unread.take();
            let input = unread.as_ref().map_or(&b""[..], |unread| &unread.bytes);
            self.log_refusal(input, &out.bytes, response);
            self.unread = unread;
        }
        self.start_send(out);
    }

    /// Writes what refuses a request. The connection ends after it, which the peer may not expect.
    #[cold]
    pub(super) fn write_refusal(
        &self,
        status: Status,
        request: Option<View<'_>>,
        moment: &Moment,
        out: &mut SendBuf,
    ) -> HeadAt {
        let opening = &moment.common.opening;
        let mut response = error_page(status, None, (opening.lines(), &Fields::new()));
        if let Some(hook) = &self.app.hooks.refusal {
            let refused = Refused::new(status, request);
            let mut dressed = error_page(status, None, (opening.lines(), &Fields::new()));
            // A panic in it is its own, and leaves the page as it always is.
            if contained(|| hook(&refused, &mut dressed)).is_some() {
                response = dressed;
            }
        }
        let before = out.bytes.len();
        let persist = self.app.refusal_persist();
        let written = write_short(&response, opening, persist, false, &mut out.bytes);
        let late = status == Status::REQUEST_TIMEOUT;
        let fault = Some(if late { Fault::TooSlow } else { Fault::BadRequest });
        let bytes_sent = (out.bytes.len() - before) as u64;
        self.app.count(&Added { status: written.status, bytes_sent, fault });
        HeadAt { written, at: before }
    }
}
