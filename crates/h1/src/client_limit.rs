//! Connections of a server on which each client may have a limited number.

use std::sync::Arc;

use gustnado_app::app::{App, ConnectionOpening};
use gustnado_app::client_slots::ClientSlot;
use gustnado_observe::stats::{Added, Fault};
use gustnado_tasks::Connection;

use super::serving::Serving;
use super::{Conn, LAST_LINGER_MS, NextStep};

/// Serves one connection like [`super::serve`], unless its client has as many as it may: then it is
/// closed at once.
///
/// A future of its own, so that connections of other servers hold no slot.
///
/// - `opening`: as for [`super::serve`].
pub async fn serve_limited(connection: Connection, app: Arc<App>, opening: ConnectionOpening) {
    let mut conn = Conn::new(connection, app);
    let (first, slot) = conn.enter(opening).await;
    let Some(slot) = slot else { return };
    Serving::rare(conn, first).await;
    drop(slot);
}

impl Conn {
    /// Takes a slot of the client, behind the PROXY header if one is required, and before the
    /// handshake, which costs the most. Without a slot the connection is ended. Returns the first
    /// step that is left.
    async fn enter(&mut self, mut opening: ConnectionOpening) -> (NextStep, Option<ClientSlot>) {
        let sender = self.socket.peer();
        let Some(proxies) = opening.proxies.take() else {
            let slot = self.app.take_client_slot(&sender);
            self.end_without(slot.is_none()).await;
            return (NextStep::Opening(Box::new(opening)), slot);
        };
        let next = match self.begin_with_proxy_header(&proxies).await {
            NextStep::Receive | NextStep::Again if opening.tls.is_some() => {
                NextStep::Opening(Box::new(opening))
            }
            next => next,
        };
        let client = self.socket.peer();
        // A balancer that speaks for itself, to see whether the server is there, is no client.
        let is_own = matches!((&sender, &client), (Ok(sender), Ok(client)) if sender == client);
        let slot = if is_own {
            Some(self.app.take_no_client_slot())
        } else {
            self.app.take_client_slot(&client)
        };
        self.end_without(slot.is_none()).await;
        (next, slot)
    }

    /// Ends a connection that got no slot: its client sees an end in order, and no reset.
    async fn end_without(&mut self, is_refused: bool) {
        if is_refused {
            let fault = Some(Fault::TooManyConnections);
            self.app.count(&Added { fault, ..Added::default() });
            self.linger(LAST_LINGER_MS).await;
        }
    }
}
