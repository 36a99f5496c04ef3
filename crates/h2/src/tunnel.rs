//! Tunnels: what CONNECT asks for (RFC 9113 §8.5), and CONNECT with a protocol (RFC 8441), which is
//! what an upgrade is in HTTP/1.1. The function that uses one runs as a task of its own.

use std::future::poll_fn;
use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use gustnado_app::app::App;
use gustnado_http::h2::{ErrorCode, StreamId};
use gustnado_http::request::RequestView;
use gustnado_http::status::Status;
use gustnado_tasks::{TaskMark, contained, sleep, spawn};
use gustnado_web::request_head::RequestHeadRef;
use gustnado_web::response::{OnUpgrade, Response, Upgrade};
use gustnado_web::routes::RouteTable;
use gustnado_web::tunnel::{PipeClose, PipeLoss, StreamPipe, Tunnel};

use crate::Http2Conn;
use crate::active::Rest;
use crate::outbox::{Mailroom, StreamOutbox};
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
        let pipe = if app.is_draining() { None } else { self.start_tunnel(reply, on_upgrade, app) };
        let Some(pipe) = pipe else {
            return self.write_refusal(reply, Status::SERVICE_UNAVAILABLE, app);
        };
        response.switch(None);
        reply.has_pieces = true;
        self.write_prepared(reply, response, (parts, table), app);
        if let Some(stream) = self.core.stream(reply.id) {
            stream.state.rest = Some(Rest::Tunnel(pipe));
        }
    }

    /// Starts the function of a tunnel. Returns what the connection has to send of it; `None` if
    /// every slot for tasks is taken.
    fn start_tunnel(
        &mut self,
        reply: &mut StreamReply<'_>,
        on_upgrade: Box<OnUpgrade>,
        app: &App,
    ) -> Option<Arc<StreamPipe>> {
        self.open(reply, app);
        let addresses = self.socket.peer().ok().zip(self.socket.local().ok());
        let room = Arc::clone(self.rare().mailroom.get_or_insert_with(Arc::<Mailroom>::default));
        let stream = self.core.stream(reply.id)?;
        // Another one than the handler's: what that may still leave is no part of the tunnel.
        let outbox = StreamOutbox::new(reply.id, room);
        let step = app.h2.window_bytes as usize / 2;
        let waker = Waker::from(Arc::clone(&outbox));
        let pipe = StreamPipe::new(addresses, step, waker, app.times.write);
        // It goes on by itself: what becomes of the stream, it is told.
        drop(spawn(run(on_upgrade, Arc::clone(&pipe))).ok()?);
        let active = &mut *stream.state;
        let end = StreamBody::Tunnel(TunnelGuard::new(Arc::clone(&pipe)));
        if let StreamBody::Early(bytes) = mem::replace(&mut active.incoming, end) {
            pipe.put(&bytes);
        }
        if stream.is_remote_closed {
            pipe.finish();
        }
        (active.outbox, active.task) = (Some(outbox), None);
        (active.parts, active.table) = (None, None);
        Some(pipe)
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
async fn run(on_upgrade: Box<OnUpgrade>, pipe: Arc<StreamPipe>) {
    let task = poll_fn(|context| Poll::Ready(TaskMark::of(context.waker()))).await;
    let tunnel = Tunnel::over_stream(Arc::clone(&pipe), task);
    let mut running = contained(move || on_upgrade.call(tunnel));
    let mut lost = pin!(async {
        poll_fn(|context| pipe.poll_lost(context)).await;
        sleep(LOST_TIME).await;
    });
    let is_done = poll_fn(|context| {
        let Some(future) = &mut running else { return Poll::Ready(false) };
        match contained(|| future.as_mut().poll(context)) {
            Some(Poll::Pending) => {}
            polled => return Poll::Ready(polled.is_some()),
        }
        ready!(lost.as_mut().poll(context));
        Poll::Ready(true)
    })
    .await;
    let is_done = contained(|| drop(running)).is_some() && is_done;
    pipe.close(if is_done { PipeClose::Returned } else { PipeClose::Panicked });
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
