//! The last request of a connection while the server drains.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use gustnado_tasks::RecvBuf;

use super::Conn;

/// How long after its last request a connection may send one more during a drain. That request may
/// already be on its way, and its client was not told that the previous one was the last.
const LAST_CALL_MS: u64 = 200;
/// The same for a connection that was idle for longer: enough time to read what the kernel already
/// holds.
const LAST_LOOK_MS: u64 = 10;

impl Conn {
    /// Waits for a request that may be on its way during a drain. A client that reuses connections
    /// sends its next request at any time; most of those that do so now get a response, and learn
    /// from it that it is the last one.
    ///
    /// - `respond`: called with what was received. It cannot be returned: the piece holds a receive
    ///   buffer of the worker, which must not be kept over a wait.
    ///
    /// Returns `None` if nothing came, or the connection is lost.
    pub(super) async fn last_call<T>(
        &mut self,
        respond: impl Fn(&mut Self, RecvBuf, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let times = &self.app.times;
        // The deadline was set when the connection became idle, so it tells since when it is.
        let waits_ms = if self.requests == 0 { times.first_ms } else { times.keep_alive_ms };
        let now_ms = self.socket.now().mono_ms;
        let idle_since_ms = self.socket.deadline_ms().saturating_sub(waits_ms);
        let until_ms = idle_since_ms.saturating_add(LAST_CALL_MS);
        self.socket.set_deadline(until_ms.clamp(now_ms + LAST_LOOK_MS, now_ms + LAST_CALL_MS));
        poll_fn(|context| {
            let received = ready!(self.socket.poll_recv(false));
            Poll::Ready(received.ok().map(|piece| respond(self, piece, context)))
        })
        .await
    }
}
