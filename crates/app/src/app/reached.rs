//! Limits that are reached: the program's hook decides, if there is one.

use gustnado_config::millis;
use gustnado_http::h2::H2Error;
use gustnado_tasks::contained;
use gustnado_tls::Socket;

use super::App;
use crate::hooks::{ConnectionFault, Limit, LimitAction, LimitEvent};

impl App {
    /// Calls the program's hook for a reached limit, if there is one.
    ///
    /// - `requests`: so far on the connection.
    /// - `configured`, `reached`, `target`: as in [`LimitEvent`]; the target may be empty.
    #[cold]
    fn decide(
        &self,
        requests: u32,
        limit: Limit,
        (configured, reached): (u64, u64),
        target: &[u8],
    ) -> LimitAction {
        let Some(hook) = &self.hooks.limit else { return LimitAction::Close };
        let target = std::str::from_utf8(target).ok().filter(|target| !target.is_empty());
        let event = LimitEvent::new(limit, (configured, reached), target, requests);
        // A hook that panics decides nothing, and the default applies.
        contained(|| hook(&event)).unwrap_or_default()
    }

    /// Calls the hook for a time-out. Returns how many milliseconds it grants.
    ///
    /// - `numbers`: configured and reached, as in [`LimitEvent`].
    pub fn more_ms(
        &self,
        requests: u32,
        limit: Limit,
        numbers: (u64, u64),
        target: &[u8],
    ) -> Option<u64> {
        match self.decide(requests, limit, numbers, target) {
            LimitAction::Wait(more) => Some(millis(more).max(1)),
            LimitAction::Close => None,
        }
    }

    /// Calls the hook for an error that ends an HTTP/2 connection.
    #[cold]
    pub fn note_connection_error(&self, error: H2Error, socket: &Socket) {
        let Some(hook) = &self.hooks.fault else { return };
        let peer = socket.peer().ok();
        let fault = ConnectionFault::new(peer.as_ref(), error.code.name(), error.reason);
        // A hook that panics must not end the worker.
        _ = contained(|| hook(&fault));
    }

    /// Calls the hook for a size that was reached. Sizes cannot be extended.
    pub fn note_size(&self, requests: u32, limit: Limit, numbers: (u64, u64), target: &[u8]) {
        _ = self.decide(requests, limit, numbers, target);
    }
}
