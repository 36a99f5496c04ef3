//! What requests have to meet before they are routed.

use gustnado_app::app::App;

use crate::Http2Conn;
use crate::respond::Received;

impl Http2Conn {
    /// Responds to a request that may not be routed. Returns whether it did.
    #[cold]
    pub(super) fn is_guarded(&mut self, received: &mut Received<'_>, app: &App) -> bool {
        let view = received.view();
        // Only a server with guards, or behind a proxy, has both HSTS and a plain listener.
        received.reply.is_insecure = app.has_hsts() && !app.is_secure(view, &self.socket);
        let Some(guarded) = app.guarded(view, &self.socket) else { return false };
        match guarded.response(app) {
            Ok(response) => self.write_response(&mut received.reply, response, false, app),
            Err(status) => self.write_refusal(&mut received.reply, status, app),
        }
        true
    }
}
