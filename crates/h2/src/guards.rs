//! What requests have to meet before they are routed.

use gustnado_app::app::{App, GuardVerdict};
use gustnado_http::status::Status;
use gustnado_web::response::Response;

use crate::Http2Conn;
use crate::respond::Received;

impl Http2Conn {
    /// Responds to a request that may not be routed. Returns whether it did.
    #[cold]
    pub(super) fn is_guarded(&mut self, received: &mut Received<'_>, app: &App) -> bool {
        let Some(guarded) = app.guarded(received.view(), &self.socket) else { return false };
        let response = match guarded {
            GuardVerdict::Proof(proof) => Response::bytes(proof),
            GuardVerdict::ToHttps(location) => {
                let mut response = Response::new(Status::PERMANENT_REDIRECT);
                // The decoder has let no byte through that could split a field.
                _ = response.try_header("Location", location);
                response
            }
            GuardVerdict::Refused(status) => {
                self.write_refusal(&mut received.reply, status, app);
                return true;
            }
        };
        self.write_response(&mut received.reply, response, false, app);
        true
    }
}
