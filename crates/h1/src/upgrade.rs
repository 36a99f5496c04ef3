//! Hands the connection to another protocol, after an upgrade or CONNECT.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use gustnado_http::method::Method;
use gustnado_http::request::RequestView;
use gustnado_http::status::Status;
use gustnado_tasks::{TaskMark, contained, continue_as};

use super::body_end::Ending;
use super::serving::Serving;
use super::{Conn, NextStep};
use gustnado_observe::stats::{Added, Fault};
use gustnado_web::response::{OnUpgrade, Response, Upgrade};
use gustnado_web::tunnel::{Tunnel, lend};

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

/// Future of the protocol that a connection goes on in.
type ProtocolFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A connection that goes on in another protocol, until that ends. The socket is lent to the tunnel
/// while the protocol's future is polled.
pub(super) struct TunnelConn {
    /// `None` once it has ended.
    conn: Option<Conn>,
    protocol: Option<ProtocolFuture>,
}

impl Conn {
    /// Gives the connection and the unread bytes to another protocol. Its task goes on as that
    /// alone: the room of a connection that waits for requests would be held besides.
    pub(super) fn into_tunnel(mut self, on_upgrade: Box<OnUpgrade>, task: TaskMark) -> Serving {
        let unread = self.unread.take().map_or_else(Vec::new, |unread| unread.bytes);
        let is_limited = self.app.connections_per_client > 0;
        let protocol = self.lend(task, || on_upgrade.call(Tunnel::over_socket(unread, task)));
        let tunnel = TunnelConn { conn: Some(self), protocol };
        if is_limited {
            // Its task holds the slot of its client besides: see `serve_limited`.
            return Serving::Rare(Box::pin(tunnel));
        }
        Serving::Other(Box::pin(LoneTunnel(tunnel)))
    }

    /// Runs a part of the protocol, with the socket lent to its tunnel. Returns `None` if it
    /// panics.
    fn lend<T>(&mut self, task: TaskMark, run: impl FnOnce() -> T) -> Option<T> {
        let write = self.app.times.write;
        let (ran, sent) = lend(&mut self.socket, task, write, || contained(run));
        if sent > 0 {
            self.count_more(sent, sent);
        }
        ran
    }

    /// Notes that the protocol has ended. Returns what comes next.
    fn end_tunnel(&mut self, is_well: bool) -> NextStep {
        self.socket.refresh_now();
        self.record_end();
        if !is_well {
            let fault = Some(Fault::HandlerPanicked);
            self.app.count(&Added { fault, ..Added::default() });
            return NextStep::Close;
        }
        if self.socket.is_open() { NextStep::Linger } else { NextStep::Close }
    }
}

impl Future for TunnelConn {
    type Output = Serving;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Serving> {
        let Self { conn: place, protocol } = self.get_mut();
        let Some(conn) = place else { return Poll::Ready(Serving::Closed) };
        let task = TaskMark::of(context.waker());
        let mut is_well = false;
        if let Some(future) = protocol {
            match conn.lend(task, || future.as_mut().poll(context)) {
                Some(Poll::Pending) => return Poll::Pending,
                polled => is_well = polled.is_some(),
            }
            // Its destructors may still use the tunnel, and may panic.
            is_well &= conn.lend(task, || *protocol = None).is_some();
        }
        let next = conn.end_tunnel(is_well);
        Poll::Ready(place.take().map_or(Serving::Closed, |conn| Serving::rare(conn, next)))
    }
}

/// A connection that is dropped where it waits: the server ends.
impl Drop for TunnelConn {
    fn drop(&mut self) {
        let (Some(conn), Some(protocol)) = (&mut self.conn, self.protocol.take()) else { return };
        // Nothing may be sent or received any more. What a protocol has sent is counted.
        let socket = conn.socket.take();
        _ = conn.lend(TaskMark::ANY, || drop(protocol));
        conn.socket = socket;
    }
}

/// A tunnel as its task alone.
struct LoneTunnel(TunnelConn);

impl Future for LoneTunnel {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let serving = ready!(Pin::new(&mut self.0).poll(context));
        continue_as(Box::pin(serving));
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tunnel_is_a_small_future() {
        let bytes = size_of::<LoneTunnel>();
        assert!(bytes <= 120, "{bytes} bytes beside the protocol's own");
    }
}
