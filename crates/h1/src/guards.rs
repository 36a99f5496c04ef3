//! What requests have to meet before they are routed: https, the policy of their site, no replay.

use gustnado_http::method::Method;
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
        turn: &mut TurnContext,
        out: &mut SendBuf,
    ) -> bool {
        let view = received.view();
        self.choose_prefix(turn, Some(view));
        let Some(guarded) = self.app.guarded(view, &self.socket) else { return false };
        received.response = match guarded.response(&self.app) {
            Ok(response) => {
                let head_only = view.method() == Method::Head;
                self.write_last(&response, (&turn.prefix.opening, head_only), None, out)
            }
            Err(status) => self.write_refusal(status, Some(view), turn, out),
        };
        self.record(&out.bytes, &mut received.response, &ResponseProgress::Lingering);
        true
    }
}
