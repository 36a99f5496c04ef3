//! Hands the connection to another protocol, after an upgrade or CONNECT.

use std::future::{Future, poll_fn};
use std::mem;
use std::sync::Arc;
use std::task::Poll;

use gustnado_http::method::Method;
use gustnado_http::request::RequestView;
use gustnado_http::status::Status;
use gustnado_tasks::{TaskMark, contained};

use super::body_end::Ending;
use super::serving::Serving;
use super::{Conn, NextStep};
use gustnado_observe::stats::{Added, Fault};
use gustnado_web::response::{OnUpgrade, Response, Upgrade};
use gustnado_web::tunnel::{Lent, Tunnel};

/// Decides whether the upgrade that a response offers takes place. If so, the response becomes a
/// 101 or a 200 to CONNECT, and the protocol's start is returned.
///
/// - `ending`: how the connection would go on. If it lingers, a body is unread, the server drains
///   or this is the last request, so no other protocol can start.
#[cold]
pub(super) fn take_upgrade(
    response: &mut Response,
    request: RequestView<'_>,
    ending: Ending,
) -> Option<Box<OnUpgrade>> {
    let upgrade = response.extras.as_mut()?.upgrade.take()?;
    let Upgrade { protocol, on_upgrade } = *upgrade;
    let protocol = protocol.as_deref();
    let is_asked = match protocol {
        Some(protocol) => !ending.lingers() && request.wants_protocol(protocol),
        // What follows CONNECT is no request, so a connection that does not become a tunnel closes.
        None => request.method() == Method::Connect,
    };
    if let Some(on_upgrade) = on_upgrade.filter(|_| is_asked && !ending.persist().is_old()) {
        response.switch(protocol);
        return Some(on_upgrade);
    }
    if let Some(protocol) = protocol.filter(|_| response.status == Status::UPGRADE_REQUIRED) {
        response.name_protocol(protocol);
    }
    None
}

/// A connection whose socket is lent to a tunnel. On drop, also by a panic or a cancelled task, the
/// tunnel's bytes are counted and the socket is taken back.
struct Lending<'a> {
    conn: &'a mut Conn,
    lent: Arc<Lent>,
}

impl Drop for Lending<'_> {
    fn drop(&mut self) {
        let (socket, sent) = self.lent.end();
        if let Some(socket) = socket {
            self.conn.socket = socket;
        }
        self.conn.socket.refresh_now();
        self.conn.count_more(sent, sent);
    }
}

/// How a tunnel has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TunnelEnd {
    /// The connection is still open.
    Returned,
    /// The protocol has closed it.
    Closed,
    /// The protocol has panicked.
    Panicked,
}

impl Conn {
    /// Gives the connection to another protocol, until it ends.
    #[expect(clippy::manual_async_fn, reason = "an async function would keep its arguments twice")]
    #[expect(clippy::async_yields_async, reason = "it is the connection's next state")]
    pub(super) fn take_tunnel(
        mut self,
        on_upgrade: Box<OnUpgrade>,
    ) -> impl Future<Output = Serving> + Send {
        async move {
            let next = match self.hand_over(on_upgrade).await {
                TunnelEnd::Returned => NextStep::Linger,
                TunnelEnd::Closed | TunnelEnd::Panicked => NextStep::Close,
            };
            Serving::rare(self, next)
        }
    }

    /// Gives the connection and the unread bytes to another protocol, and waits for its end.
    async fn hand_over(&mut self, on_upgrade: Box<OnUpgrade>) -> TunnelEnd {
        let task = poll_fn(|context| Poll::Ready(TaskMark::of(context.waker()))).await;
        let unread = self.unread.take().map_or_else(Vec::new, |unread| unread.bytes);
        let write = self.app.times.write;
        let (tunnel, lent) = Tunnel::over_socket(self.socket.take(), unread, task, write);
        let lending = Lending { lent, conn: self };
        let mut running = contained(move || on_upgrade.call(tunnel));
        let is_done = poll_fn(|context| {
            let Some(future) = &mut running else { return Poll::Ready(false) };
            match contained(|| future.as_mut().poll(context)) {
                Some(Poll::Pending) => Poll::Pending,
                polled => Poll::Ready(polled.is_some()),
            }
        })
        .await;
        // Dropped before the socket is taken back: its destructors may still use the tunnel, and
        // may panic.
        let is_done = contained(|| drop(mem::take(&mut running))).is_some() && is_done;
        drop(lending);
        self.record_end();
        if !is_done {
            let fault = Some(Fault::HandlerPanicked);
            self.app.count(&Added { fault, ..Added::default() });
            return TunnelEnd::Panicked;
        }
        if self.socket.is_open() { TunnelEnd::Returned } else { TunnelEnd::Closed }
    }
}
