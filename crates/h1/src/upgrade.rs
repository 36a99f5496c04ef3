//! Giving the connection to another protocol, after an upgrade or CONNECT.

use std::future::poll_fn;
use std::mem;
use std::sync::Arc;
use std::task::Poll;

use gustnado_http::method::Method;
use gustnado_http::request::Request as View;
use gustnado_http::status::Status;
use gustnado_tasks::TaskMark;

use super::Conn;
use super::body_end::Ending;
use gustnado_observe::stats::{Added, Fault};
use gustnado_web::contained::contained;
use gustnado_web::response::{OnUpgrade, Response, Upgrade};
use gustnado_web::tunnel::{Lent, Tunnel};

/// Decides whether the upgrade that a response offers comes about. If so, the response becomes the
/// one that says so, and what takes the connection over is returned.
///
/// - `ending`: how the connection would go on. One that ends while the peer may still be sending
///   has an unread body, or the server ends, or this was its last request.
#[cold]
pub(super) fn take_upgrade(
    response: &mut Response,
    request: View<'_>,
    ending: Ending,
) -> Option<Box<OnUpgrade>> {
    let upgrade = response.extras.as_mut()?.upgrade.take()?;
    let Upgrade { protocol, on_upgrade } = *upgrade;
    let protocol = protocol.as_deref();
    let is_asked = match protocol {
        Some(protocol) => !ending.lingers() && asks_for(request, protocol),
        // What follows CONNECT is no request: a connection that does not become a tunnel ends.
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

/// Whether a request asks for an upgrade to this protocol (RFC 9110 §7.8).
fn asks_for(request: View<'_>, protocol: &str) -> bool {
    let is_it = |token: &[u8]| token.trim_ascii().eq_ignore_ascii_case(protocol.as_bytes());
    let mut fields = request.fields();
    request.wants_upgrade()
        && fields.any(|(name, value)| {
            name.eq_ignore_ascii_case(b"upgrade") && value.split(|byte| *byte == b',').any(is_it)
        })
}

/// A connection whose socket is lent to a tunnel. However that ends, what it has sent is counted,
/// and the socket is taken back.
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
        self.conn.app.count_response(0, sent);
        self.conn.log_content(sent);
    }
}

/// How a tunnel has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TunnelEnd {
    /// The connection is still there.
    Returned,
    /// A protocol has closed it.
    Closed,
    /// What had it has panicked.
    Panicked,
}

impl Conn {
    /// Gives the connection and the bytes behind the last request to another protocol, and waits
    /// until that is done.
    pub(super) async fn hand_over(&mut self, on_upgrade: OnUpgrade) -> TunnelEnd {
        let task = poll_fn(|context| Poll::Ready(TaskMark::of(context.waker()))).await;
        let unread = self.unread.take().map_or_else(Vec::new, |unread| unread.bytes);
        let write = self.app.times.write;
        let tunnel = Tunnel::new(self.socket.take(), unread, task, write);
        let lending = Lending { lent: tunnel.lent(), conn: self };
        let mut running = contained(move || on_upgrade.call(tunnel));
        let is_done = poll_fn(|context| {
            let Some(future) = &mut running else { return Poll::Ready(false) };
            match contained(|| future.as_mut().poll(context)) {
                Some(Poll::Pending) => Poll::Pending,
                polled => Poll::Ready(polled.is_some()),
            }
        })
        .await;
        let is_done = contained(|| drop(mem::take(&mut running))).is_some() && is_done;
        drop(lending);
        self.log_end();
        if !is_done {
            let fault = Some(Fault::HandlerPanicked);
            self.app.count(&Added { fault, ..Added::default() });
            return TunnelEnd::Panicked;
        }
        if self.socket.is_open() { TunnelEnd::Returned } else { TunnelEnd::Closed }
    }
}
