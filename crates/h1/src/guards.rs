//! What requests have to meet before they are routed: https, the policy of their site, no replay.

use gustnado_tasks::SendBuf;

use super::Conn;
use super::progress::ResponseProgress;
use super::received::{ReceivedRequest, TurnContext};

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
        received.response = match guarded.response() {
            Ok(response) => {
                let prefix = self.app.plain_response_prefix(turn.time.unix_secs);
                self.write_last(&response, &prefix.opening, None, out)
            }
            Err(status) => self.write_refusal(status, Some(view), turn, out),
        };
        self.record(&out.bytes, &mut received.response, &ResponseProgress::Lingering);
        true
    }
}
