//! The last request of a connection that is to close: the server drains, or others wait for a slot.

use std::future::poll_fn;
use std::task::{Poll, ready};

use super::{Conn, LAST_LINGER_MS, NextStep};
use gustnado_app::client_key::ClientKey;

/// How long after its last request a connection may send one more during a drain. That request may
/// already be on its way, and its client was not told that the previous one was the last.
const LAST_CALL_MS: u64 = 200;
/// The same for a connection that was idle for longer: enough time to read what the kernel already
/// holds.
const LAST_LOOK_MS: u64 = 10;
/// A connection that was idle for longer than this gives way to others.
const IDLE_MIN_MS: u64 = 1_000;

impl Conn {
    /// Waits for a request that may be on its way during a drain. A client that reuses connections
    /// sends its next request at any time; most of those that do so now get a response, and learn
    /// from it that it is the last one.
    pub(super) async fn last_call(&mut self) -> NextStep {
        let now_ms = self.socket.now().mono_ms;
        let until_ms = self.idle_since_ms().saturating_add(LAST_CALL_MS);
        let until_ms = until_ms.clamp(now_ms + LAST_LOOK_MS, now_ms + LAST_CALL_MS);
        self.last_look(until_ms, LAST_LINGER_MS).await.unwrap_or(NextStep::Close)
    }

    /// Returns what comes next when others wait for the slot of this connection.
    #[cold]
    pub(super) fn give_way(&self) -> NextStep {
        if self.socket.now().mono_ms <= self.idle_since_ms().saturating_add(IDLE_MIN_MS) {
            return NextStep::Receive;
        }
        let is_chosen = self.socket.give_way(|| self.peer_key().map(ClientKey::number));
        if is_chosen { NextStep::GiveWay } else { NextStep::Receive }
    }

    /// Closes to make room, unless a request that was on its way arrives: then it is responded to,
    /// and the connection stays.
    pub(super) async fn close_for_others(&mut self) -> NextStep {
        let until_ms = self.socket.now().mono_ms + LAST_LOOK_MS;
        if let Some(next) = self.last_look(until_ms, LAST_LOOK_MS).await {
            return next;
        }
        self.socket.count_evicted();
        NextStep::Close
    }

    /// Responds to what arrives until a time. If nothing does, shuts down the sending side, waits
    /// for the peer to do the same, and returns `None`.
    async fn last_look(&mut self, until_ms: u64, linger_ms: u64) -> Option<NextStep> {
        self.socket.set_deadline(until_ms);
        // The response is begun within the poll: what was received holds a receive buffer of the
        // worker, which must not be kept over a wait.
        let next = poll_fn(|context| {
            let received = ready!(self.socket.poll_recv(false));
            Poll::Ready(received.ok().map(|piece| self.after_content(piece.bytes(), context)))
        });
        let next = next.await;
        if next.is_none() {
            self.linger(linger_ms).await;
        }
        next
    }

    /// Returns since when the connection is idle: its deadline was set then.
    fn idle_since_ms(&self) -> u64 {
        let times = &self.app.times;
        let waits_ms = if self.requests == 0 { times.first_ms } else { times.keep_alive_ms };
        self.socket.deadline_ms().saturating_sub(waits_ms)
    }
}
