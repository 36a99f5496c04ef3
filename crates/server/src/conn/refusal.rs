//! Requests that the server refuses by itself: no handler sees them.

use gustnado_http::request::Request as View;
use gustnado_http::response_writer::{ResponseWriter, WrittenHead, has_field};
use gustnado_http::status::Status;
use gustnado_tasks::{Connection, SendBuf};

use super::Conn;
use super::arrived::{HeadAt, Moment};
use crate::contained::contained;
use crate::hooks::Refused;
use crate::response::{Content, Response};
use crate::stats::{Added, Fault};
use crate::status_page::{Turn, page, status_page};

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
        let turn = Turn { common: &moment.common.opening, persist: self.app.last_words() };
        let before = out.bytes.len();
        let dressed = self.app.hooks.refusal.as_ref().and_then(|hook| {
            let refused = Refused::new(status, request);
            let mut response = Response::html(page(status)).status(status);
            if !has_field(turn.common.lines(), "X-Content-Type-Options") {
                response = response.header("X-Content-Type-Options", "nosniff");
            }
            // A panic in it is its own, and leaves the page as it always is.
            contained(|| hook(&refused, &mut response)).map(|()| response)
        });
        let written = match dressed {
            Some(response) => write_at_once(&response, &turn, &mut out.bytes),
            None => status_page(&mut out.bytes, status, &turn, false, &[]),
        };
        let late = status == Status::REQUEST_TIMEOUT;
        let fault = Some(if late { Fault::TooSlow } else { Fault::BadRequest });
        let bytes_sent = (out.bytes.len() - before) as u64;
        self.app.count(&Added { status: written.status, bytes_sent, fault });
        HeadAt { written, at: before }
    }
}

/// Writes a response whose content is at hand, and nothing of any other content.
fn write_at_once(response: &Response, turn: &Turn<'_>, out: &mut Vec<u8>) -> WrittenHead {
    let content: &[u8] = match &response.content {
        Content::Bytes(bytes) if response.status.may_have_body() => bytes,
        _ => &[],
    };
    let mut answer = ResponseWriter::start(out, response.status, turn.common, turn.persist);
    if let Some(kind) = response.kind.filter(|_| response.status.may_have_body()) {
        answer.constant("Content-Type", kind.name());
    }
    answer.ready_lines(&response.lines);
    if response.status.may_have_body() {
        answer.content_length(content.len() as u64);
    }
    let written = answer.finish();
    out.extend_from_slice(content);
    written
}
