//! Upgrades as hyper has them: `hyper::upgrade::OnUpgrade`, which the `WebSocket` of axum and
//! others wait for.
//!
//! Only a connection of hyper's makes one. So hyper serves a request that is made up, over a pipe
//! in memory, and hands that pipe over. The response that hyper writes is dropped; the server has
//! written the true one.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{self, Poll, Waker, ready};

use bytes::Bytes;
use gustnado_http::head::Version;
use gustnado_http::method::Method;
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;

use super::pipe::{PipeEnd, UpgradeOutput, UpgradePipe};
use crate::request::Request;
use crate::response::Response;
use crate::tunnel::{Tunnel, TunnelError};

/// What hyper is asked.
const MADE_UP: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n";

type Handover = Pin<Box<dyn Future<Output = ()> + Send>>;

/// An upgrade that a service may choose: a request offers it, or asks for a tunnel.
pub(super) struct PendingUpgrade {
    /// Ends once hyper has handed its end of the pipe over. Dropping it tells the service that
    /// there is no upgrade.
    handover: Handover,
    pipe: Arc<UpgradePipe>,
    /// The protocol of the tunnel, if the request alone names it, as in HTTP/2.
    protocol: Option<Box<str>>,
}

impl PendingUpgrade {
    /// Adds to the extensions of a request what a service takes to be upgraded. `None`: the request
    /// does not offer it.
    pub(super) fn of(request: &Request, extensions: &mut http::Extensions) -> Option<Self> {
        let view = request.view();
        let wants = request.wants_upgrade();
        if !wants && view.method() != Method::Connect {
            return None;
        }
        let (handover, pipe, on_upgrade) = made_up()?;
        extensions.insert(on_upgrade);
        let mut protocol = None;
        if wants && view.version() == Version::Http2 {
            let name = request.upgrade_protocols().next()?;
            extensions.insert(hyper::ext::Protocol::from(name));
            protocol = Some(name.into());
        }
        Some(Self { handover, pipe, protocol })
    }

    /// Makes a response open the tunnel.
    ///
    /// - `protocol`: its name, if the response has one; none for CONNECT.
    pub(super) fn offer(mut self, response: &mut Response, protocol: Option<&str>) {
        let protocol = self.protocol.take().or(protocol.map(Box::from));
        response.set_upgrade(protocol, |tunnel| self.run(tunnel));
    }

    async fn run(self, tunnel: Tunnel) {
        self.pipe.open();
        self.handover.await;
        let mut carrier =
            UpgradeCarrier { tunnel, pipe: self.pipe, is_sending: false, is_draining: false };
        poll_fn(|context| carrier.poll(context)).await;
    }
}

/// Lets hyper serve a request that is made up, up to where its response is awaited. `None`: it does
/// not.
fn made_up() -> Option<(Handover, Arc<UpgradePipe>, OnUpgrade)> {
    let pipe = UpgradePipe::new(MADE_UP);
    let taken = Arc::new(Mutex::new(None));
    let (asked, place) = (Arc::clone(&pipe), Arc::clone(&taken));
    let service = service_fn(move |request: http::Request<Incoming>| {
        *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(hyper::upgrade::on(request));
        let asked = Arc::clone(&asked);
        async move {
            poll_fn(|_| if asked.is_open() { Poll::Ready(()) } else { Poll::Pending }).await;
            let mut response = http::Response::new(Empty::<Bytes>::new());
            *response.status_mut() = http::StatusCode::SWITCHING_PROTOCOLS;
            Ok::<_, Infallible>(response)
        }
    });
    let end = PipeEnd::new(Arc::clone(&pipe));
    let connection = http1::Builder::new().serve_connection(end, service).with_upgrades();
    let mut handover: Handover = Box::pin(async move { _ = connection.await });
    // It is polled again when the tunnel is there, and by nothing before.
    let is_over = handover.as_mut().poll(&mut task::Context::from_waker(Waker::noop()));
    let on_upgrade = taken.lock().unwrap_or_else(PoisonError::into_inner).take()?;
    is_over.is_pending().then_some((handover, pipe, on_upgrade))
}

/// Carries bytes between a tunnel and hyper's end of the pipe, in the tunnel's task.
struct UpgradeCarrier {
    tunnel: Tunnel,
    pipe: Arc<UpgradePipe>,
    is_sending: bool,
    is_draining: bool,
}

impl UpgradeCarrier {
    /// Carries what there is. It is ready when the tunnel is over.
    fn poll(&mut self, context: &task::Context<'_>) -> Poll<()> {
        self.pipe.wait(context);
        if self.poll_send(context).is_ready() {
            return Poll::Ready(());
        }
        self.poll_receive(context)
    }

    fn poll_send(&mut self, context: &task::Context<'_>) -> Poll<()> {
        loop {
            if self.is_sending {
                if ready!(self.tunnel.poll_sent(context)).is_err() {
                    return Poll::Ready(());
                }
                self.is_sending = false;
            }
            match self.pipe.output() {
                UpgradeOutput::Bytes(bytes) => {
                    self.tunnel.start_send(bytes);
                    self.is_sending = true;
                }
                UpgradeOutput::Shut if self.tunnel.shutdown().is_ok() => {}
                UpgradeOutput::Shut | UpgradeOutput::End => return Poll::Ready(()),
                UpgradeOutput::Nothing => return Poll::Pending,
            }
        }
    }

    fn poll_receive(&mut self, context: &task::Context<'_>) -> Poll<()> {
        while self.pipe.wants_input() {
            match ready!(self.tunnel.poll_recv(context, u64::MAX)) {
                Ok(None) => {}
                Ok(Some(bytes)) if bytes.is_empty() => self.pipe.finish(),
                Ok(Some(bytes)) => self.pipe.put(&bytes),
                // A drain begins, for which hyper has no word: the service has its time. After that
                // every wait fails.
                Err(TunnelError::Ending) if !mem::replace(&mut self.is_draining, true) => {}
                Err(_) => return Poll::Ready(()),
            }
        }
        Poll::Pending
    }
}

impl Drop for UpgradeCarrier {
    fn drop(&mut self) {
        self.pipe.lose();
    }
}
