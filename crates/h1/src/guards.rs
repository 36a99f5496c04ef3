//! What requests have to meet before they are routed: https, the policy of their site, no replay.

use gustnado_app::app::GuardVerdict;
use gustnado_http::status::Status;
use gustnado_tasks::SendBuf;
use gustnado_web::response::Response;

use super::Conn;
use super::progress::ResponseProgress;
use super::received::{ReceivedRequest, Responded, TurnContext};

impl Conn {
    /// Responds to a request that may not be routed; the connection closes behind it. Returns
    /// whether it did.
    #[cold]
    pub(super) fn is_guarded(
        &mut self,
        received: &mut ReceivedRequest<'_>,
        turn: &TurnContext,
        out: &mut SendBuf,
    ) -> bool {
        let view = received.view();
        let Some(guarded) = self.app.guarded(view, &self.socket) else { return false };
        received.response = match guarded {
            GuardVerdict::Proof(proof) => {
                let kind = ("Content-Type", "application/octet-stream");
                self.write_answer(Status::OK, kind, proof, turn, out)
            }
            GuardVerdict::ToHttps(location) => {
                let location = ("Location", location.as_str());
                self.write_answer(Status::PERMANENT_REDIRECT, location, Vec::new(), turn, out)
            }
            GuardVerdict::Refused(status) => self.write_refusal(status, Some(view), turn, out),
        };
        self.record(&out.bytes, &mut received.response, &ResponseProgress::Lingering);
        true
    }

    fn write_answer(
        &self,
        status: Status,
        (name, value): (&str, &str),
        body: Vec<u8>,
        turn: &TurnContext,
        out: &mut SendBuf,
    ) -> Responded {
        let mut response = Response::new(status).body(body);
        // The parser has let no byte through that could split a line.
        _ = response.try_header(name, value);
        let prefix = self.app.plain_response_prefix(turn.time.unix_secs);
        self.write_last(&response, &prefix.opening, None, out)
    }
}
