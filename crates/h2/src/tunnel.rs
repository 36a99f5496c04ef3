//! Tunnels: what CONNECT asks for (RFC 9113 §8.5), and CONNECT with a protocol (RFC 8441), which is
//! what an upgrade is in HTTP/1.1. The function that uses one runs as a task of its own.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use gustnado_app::app::App;
use gustnado_http::h2::{ErrorCode, StreamId};
use gustnado_http::request::RequestView;
use gustnado_http::status::Status;
use gustnado_tasks::{Sleep, TaskMark, contained, sleep, spawn_detached};
use gustnado_web::request_head::RequestHeadRef;
use gustnado_web::response::{OnUpgrade, Response, Upgrade};
use gustnado_web::routes::RouteTable;
use gustnado_web::tunnel::{PipeClose, PipeConnection, PipeLoss, StreamPipe, Tunnel};

use crate::Http2Conn;
use crate::active::{Active, Rest};
use crate::respond::StreamReply;
use crate::stream_body::{StreamBody, TunnelGuard};

/// How long a function may go on whose tunnel is lost. It is told, and most end at once; no more
/// than the client's budget of resets can be on their way.
const LOST_TIME: Duration = Duration::from_secs(10);

impl Http2Conn {
    /// Responds to a request for a tunnel: opens it if the handler offers what is asked for.
    /// Otherwise the response must not say that it is open.
    #[cold]
    pub(super) fn respond_to_connect(
        &mut self,
        reply: &mut StreamReply<'_>,
        mut response: Response,
        (parts, table): (&RequestHeadRef, &RouteTable),
        app: &App,
    ) {
        let Some(on_upgrade) = take_upgrade(&mut response, parts.view()) else {
            return self.write_prepared(reply, declined(response), (parts, table), app);
        };
        // During a drain nothing new begins, and a client without a slot may try again as well.
        if app.is_draining() || self.start_tunnel(reply, on_upgrade, app).is_none() {
            return self.write_refusal(reply, Status::SERVICE_UNAVAILABLE, app);
        }
        response.switch(None);
        reply.has_pieces = true;
        self.write_prepared(reply, response, (parts, table), app);
        self.send_tunnel(reply.id);
    }

    /// Sends what a tunnel has to send, if this stream is one, once the head of its response is
    /// written.
    pub(super) fn send_tunnel(&mut self, id: StreamId) {
        let Some(stream) = self.core.stream(id) else { return };
        let Active { incoming, rest, .. } = &mut *stream.state;
        if let (StreamBody::Tunnel(tunnel), Some(Rest::Pieces)) = (incoming, &rest) {
            *rest = Some(Rest::Tunnel(tunnel.shared()));
        }
    }

    /// Starts the function of a tunnel. `None`: every slot for tasks is taken.
    fn start_tunnel(
        &mut self,
        reply: &mut StreamReply<'_>,
        on_upgrade: Box<OnUpgrade>,
        app: &App,
    ) -> Option<()> {
        self.open(reply);
        let addresses = self.addresses();
        let connection: Arc<dyn PipeConnection> = self.open_mailroom();
        let step = self.core.window_bytes() as usize / 2;
        let stream = self.core.stream(reply.id)?;
        let pipe = StreamPipe::new(addresses, step, (connection, reply.id), app.times.write);
        // It goes on by itself: what becomes of the stream, it is told.
        spawn_detached(TunnelRun::new(on_upgrade, Arc::clone(&pipe))).ok()?;
        let active = &mut *stream.state;
        let end = StreamBody::Tunnel(TunnelGuard::new(Arc::clone(&pipe)));
        if let StreamBody::Early(bytes) = mem::replace(&mut active.incoming, end) {
            pipe.put(&bytes);
        }
        if stream.is_remote_closed {
            pipe.finish();
        }
        // What the handler may still leave is no part of the tunnel.
        (active.outbox, active.task) = (None, None);
        (active.parts, active.table) = (None, None);
        Some(())
    }

    /// Lets the client send as many bytes more as its tunnel has taken. What that has not taken is
    /// granted its memory, as a body is.
    pub(super) fn feed_tunnel(&mut self, id: StreamId, app: &App, context: &Context<'_>) {
        let now_ms = self.now_ms();
        let Some(stream) = self.core.stream(id) else { return };
        let StreamBody::Tunnel(tunnel) = &stream.state.incoming else { return };
        let taken = tunnel.pipe().take_taken();
        let (held, received) = tunnel.pipe().held();
        let memory = &mut stream.state.memory;
        if stream.is_remote_closed {
            // Nothing more comes, and what is here can be had.
            memory.hold.complete(held, received, now_ms);
            return memory.hold.settle(held, now_ms);
        }
        memory.owe(taken);
        self.admit(id, app, context);
        let Some(stream) = self.core.stream(id) else { return };
        if let StreamBody::Tunnel(tunnel) = &stream.state.incoming {
            tunnel.pipe().set_charged(stream.state.memory.hold.is_charged());
        }
    }

    /// Tells all tunnels that the server drains.
    pub(super) fn tell_tunnels(&mut self) {
        for stream in self.core.streams() {
            if let StreamBody::Tunnel(tunnel) = &stream.state.incoming {
                tunnel.pipe().tell_ending();
            }
        }
    }

    /// Tells all tunnels that the server has ended.
    pub(super) fn cut_tunnels(&mut self) {
        for stream in self.core.streams() {
            if let StreamBody::Tunnel(tunnel) = &stream.state.incoming {
                tunnel.pipe().lose(PipeLoss::Ending);
            }
        }
    }

    /// Ends the tunnels whose client can send no more, without having said so.
    pub(super) fn end_tunnels(&mut self) {
        let streams = self.core.streams().iter();
        let open = streams.filter(|stream| {
            matches!(stream.state.incoming, StreamBody::Tunnel(_)) && !stream.is_remote_closed
        });
        for id in open.map(|stream| stream.id).collect::<Vec<StreamId>>() {
            self.reset(id, ErrorCode::Cancel);
        }
    }
}

/// Runs the function of a tunnel to its end.
///
/// Written by hand, as it is a part of every tunnel that is open.
struct TunnelRun {
    function: TunnelFunction,
    pipe: Arc<StreamPipe>,
    /// The tunnel is lost: so long its function may go on.
    lost: Option<Box<Sleep>>,
}

/// The function of a tunnel.
enum TunnelFunction {
    Begins(Box<OnUpgrade>),
    Runs(Pin<Box<dyn Future<Output = ()> + Send>>),
    Over,
}

impl TunnelRun {
    fn new(on_upgrade: Box<OnUpgrade>, pipe: Arc<StreamPipe>) -> Self {
        Self { function: TunnelFunction::Begins(on_upgrade), pipe, lost: None }
    }

    #[cold]
    fn begin(&mut self, context: &Context<'_>) {
        let begun = mem::replace(&mut self.function, TunnelFunction::Over);
        let TunnelFunction::Begins(on_upgrade) = begun else { return };
        let task = TaskMark::of(context.waker());
        let tunnel = Tunnel::over_stream(Arc::clone(&self.pipe), task);
        if let Some(running) = contained(move || on_upgrade.call(tunnel)) {
            self.function = TunnelFunction::Runs(running);
        }
    }

    /// Waits until a function whose tunnel is lost has had its time.
    fn poll_lost(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.lost.is_none() {
            ready!(self.pipe.poll_lost(context));
        }
        Pin::new(&mut **self.lost.get_or_insert_with(|| Box::new(sleep(LOST_TIME)))).poll(context)
    }
}

impl Future for TunnelRun {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if let TunnelFunction::Begins(_) = this.function {
            this.begin(context);
        }
        let mut is_well = false;
        if let TunnelFunction::Runs(running) = &mut this.function {
            let polled = contained(|| running.as_mut().poll(context));
            if let Some(Poll::Pending) = polled {
                ready!(this.poll_lost(context));
            }
            is_well = polled.is_some();
        }
        is_well &= contained(|| this.function = TunnelFunction::Over).is_some();
        this.pipe.close(if is_well { PipeClose::Returned } else { PipeClose::Panicked });
        Poll::Ready(())
    }
}

/// Takes out the function that uses a tunnel, if the response offers one that is asked for.
fn take_upgrade(response: &mut Response, request: RequestView<'_>) -> Option<Box<OnUpgrade>> {
    let upgrade = response.extras.as_mut()?.upgrade.take()?;
    let Upgrade { protocol, on_upgrade } = *upgrade;
    let is_asked = match protocol.as_deref() {
        Some(protocol) => request.wants_protocol(protocol),
        None => !request.head().wants_upgrade(),
    };
    on_upgrade.filter(|_| is_asked)
}

/// Returns the response to a request for a tunnel that is not opened. A success would say that it
/// is, and 426 would name a protocol, for which HTTP/2 has no field: the protocol is unknown here
/// (RFC 9220 §3).
fn declined(response: Response) -> Response {
    let line = response.extras.as_ref().and_then(|extras| extras.status_line.as_ref());
    let code = line.map_or(response.status.code(), |line| line.number);
    let is_open = (200..300).contains(&code) || response.status == Status::UPGRADE_REQUIRED;
    if is_open { Response::new(Status::NOT_IMPLEMENTED) } else { response }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_is_a_tunnel_is_small() {
        let (run, active) = (size_of::<TunnelRun>(), size_of::<Active>());
        assert!(run <= 40 && active <= 368, "{run} bytes of its task, {active} of its stream");
    }
}
