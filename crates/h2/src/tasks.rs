//! Handlers that are tasks of their own, and streams of content, which tasks drive.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use gustnado_app::app::App;
use gustnado_files::Files;
use gustnado_http::h2::{ErrorCode, StreamId};
use gustnado_http::status::Status;
use gustnado_tasks::{contained, note_step, spawn};
use gustnado_web::handler::{HandlerFuture, RunningHandler, TaskFn};
use gustnado_web::request::Request;
use gustnado_web::request_head::RequestHead;
use gustnado_web::response::{Content, Failed, Streamed, Trailers};
use gustnado_web::routes::{RouteOptions, RouteTable};

use crate::Http2Conn;
use crate::active::Active;
use crate::outbox::{Delivered, StreamEnd, StreamOutbox};
use crate::respond::{Received, StreamReply};
use crate::stream_body::{Queued, StreamBody};
use crate::stream_pace::StreamRead;

impl Http2Conn {
    /// Starts a task handler.
    pub(super) fn run_task(
        &mut self,
        handler: &Arc<TaskFn>,
        (table, options, mut request): (&Arc<RouteTable>, &RouteOptions, Box<Request>),
        received: &mut Received<'_>,
        app: &App,
        context: &mut Context<'_>,
    ) {
        let bytes_max = options.limit_body_bytes.unwrap_or(app.limits.body_bytes_max);
        let is_ahead = received.has_body_ahead();
        if self.refuses_body(received, options, app) || !self.has_room_for(received, app) {
            return;
        }
        // Looked up here: the task of the handler is another one than the connection's.
        request.give_to(context.waker());
        request.keep_addrs();
        let given = match received.body.take() {
            Some((body, trailers)) => request.with_body(body, trailers),
            None if is_ahead => request.live(),
            None => request.head_only(),
        };
        let incoming = match received.reply.is_tunnel {
            true => StreamBody::Early(Vec::new()),
            false if is_ahead => {
                let expects_continue = received.head.expects_continue();
                StreamBody::Read(Box::new(Queued::new(bytes_max, expects_continue)))
            }
            false => StreamBody::None,
        };
        let parts = request.parts().clone();
        let handler = Arc::clone(handler);
        let running = move || RunningHandler::start(&*handler, given, None);
        let now_ms = self.socket.now().mono_ms;
        self.open(&mut received.reply);
        self.charge_head(received);
        if let Some(stream) = self.core.stream(received.reply.id) {
            let active = &mut *stream.state;
            (active.parts, active.table) = (Some(parts), Some(Arc::clone(table)));
            (active.options, active.incoming) = (*options, incoming);
            active.idle.begin(*options, now_ms);
            active.read =
                options.read.filter(|_| is_ahead).map(|rate| StreamRead::new(rate).into());
        }
        let label = options.label;
        self.start_task(received.reply.id, |outbox| run(running, label, outbox), app);
        self.hint(received.reply.id, app);
        self.feed(received.reply.id, app, context);
    }

    /// Starts the task of a folder that waits for its disk.
    pub(super) fn run_lookup(
        &mut self,
        looking: HandlerFuture,
        (files, table): (&Files, &Arc<RouteTable>),
        received: &mut Received<'_>,
        app: &App,
    ) {
        let parts = RequestHead::take(received.head, received.bytes);
        parts.hint(files);
        self.open(&mut received.reply);
        if let Some(stream) = self.core.stream(received.reply.id) {
            let active = &mut *stream.state;
            (active.parts, active.table) = (Some(parts), Some(Arc::clone(table)));
        }
        let running = move || RunningHandler::new(looking);
        self.start_task(received.reply.id, |outbox| run(running, 0, outbox), app);
        self.hint(received.reply.id, app);
    }

    /// Starts a task for an open stream, which ends with it. Returns whether it did: otherwise the
    /// request is refused.
    pub(super) fn start_task<F>(
        &mut self,
        id: StreamId,
        make: impl FnOnce(Arc<StreamOutbox>) -> F,
        app: &App,
    ) -> bool
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let room = self.open_mailroom();
        let Some(stream) = self.core.stream(id) else { return false };
        let outbox = stream.state.outbox.get_or_insert_with(|| StreamOutbox::new(id, room));
        if let Ok(task) = spawn(make(Arc::clone(outbox))) {
            stream.state.task = Some(task.attach());
            return true;
        }
        // Every slot for tasks is taken.
        self.refuse_stream(id, Status::SERVICE_UNAVAILABLE, app);
        false
    }

    /// Starts the task that makes the content of an open stream, before the head of the response is
    /// written. Returns whether it did: otherwise the request is refused.
    pub(super) fn stream_content(
        &mut self,
        id: StreamId,
        streamed: Streamed,
        trailers: Option<Trailers>,
        app: &App,
    ) -> bool {
        self.start_task(id, |outbox| async move { drive(streamed, trailers, &outbox).await }, app)
    }

    /// Looks at what tasks have left. Returns whether there was something.
    pub(super) fn collect_mail(&mut self, context: &mut Context<'_>) -> bool {
        let Some(mailroom) = self.mailroom() else { return false };
        let streams = mailroom.collect(Vec::new(), context);
        let app = Arc::clone(&self.app);
        for id in &streams {
            self.look_at(*id, &app, context);
        }
        !streams.is_empty()
    }

    /// Looks at one stream: its handler may have responded, or may want more of the body.
    fn look_at(&mut self, id: StreamId, app: &App, context: &mut Context<'_>) {
        let now_ms = self.socket.now().mono_ms;
        let Some(stream) = self.core.stream(id) else { return };
        let active = &mut *stream.state;
        active.idle.note_progress(now_ms);
        self.hint(id, app);
        self.feed(id, app, context);
        let Some(stream) = self.core.stream(id) else { return };
        let delivered = stream.state.outbox.as_ref().and_then(|outbox| outbox.take_response());
        if matches!(delivered, Some(Delivered::Streamed(_))) {
            self.continue_late(id);
        }
        let (response, has_pieces) = match delivered {
            None => return,
            Some(Delivered::OfDisk(outcome)) => return self.after_disk(id, *outcome, app, context),
            Some(Delivered::Whole(response)) => (Some(*response), false),
            Some(Delivered::Streamed(response)) => (Some(*response), true),
            Some(Delivered::Panicked) => (None, false),
        };
        let Some(stream) = self.core.stream(id) else { return };
        let active = &mut *stream.state;
        let (Some(parts), Some(table)) = (active.parts.clone(), active.table.clone()) else {
            return;
        };
        let is_end = stream.is_remote_closed;
        let response = app.response_or_500(response);
        let is_tunnel = matches!(stream.state.incoming, StreamBody::Early(_));
        let mut reply = StreamReply { has_pieces, is_tunnel, ..StreamReply::of_stream(id, is_end) };
        self.respond_to(&mut reply, response, (&parts, &table), app);
    }

    /// Writes the early hints that a handler has left, unless its response is here, too: that says
    /// the same. The connection looks again when there are more.
    fn hint(&mut self, id: StreamId, app: &App) {
        let Some(stream) = self.core.stream(id) else { return };
        let Active { parts: Some(parts), outbox: Some(outbox), rest: None, .. } = &*stream.state
        else {
            return;
        };
        let waker = Waker::from(Arc::clone(outbox));
        let hints = parts.channel().poll_interim(&Context::from_waker(&waker));
        if hints.is_empty() || outbox.has_response() || !app.sends_early_hints(parts.view()) {
            return;
        }
        for (status, fields) in &hints {
            self.write_interim(id, *status, fields);
        }
    }

    /// Closes a stream whose response is written, with all that belongs to it. If the client still
    /// sends its request, that is read over within bounds.
    pub(super) fn finish(&mut self, id: StreamId) {
        let Some(stream) = self.core.stream(id) else { return };
        let goes_on = !stream.is_remote_closed;
        let new = Active { is_answered: true, ..Active::default() };
        let old = std::mem::replace(&mut *stream.state, new);
        if !goes_on {
            self.stop(id);
        }
        self.let_go(old);
    }

    /// Closes a stream. If the client still sends, it is told not to.
    pub(super) fn stop(&mut self, id: StreamId) {
        let out = self.next.get_or_insert_with(gustnado_tasks::Connection::outgoing);
        _ = self.core.finish(id, &mut out.bytes);
    }

    /// Ends a stream with an error.
    pub(super) fn reset(&mut self, id: StreamId, code: ErrorCode) {
        let out = self.next.get_or_insert_with(gustnado_tasks::Connection::outgoing);
        let stream = self.core.reset(id, code, &mut out.bytes);
        if let Some(parts) = stream.as_ref().and_then(|stream| stream.state.parts.as_ref()) {
            parts.channel().end(Err(gustnado_web::body::BodyError::Gone));
        }
    }
}

/// Runs a handler, and delivers its response; then the pieces of its content.
///
/// - `label`: what the worker is told to be doing meanwhile, in case it is held.
async fn run(start: impl FnOnce() -> RunningHandler + Send, label: u32, outbox: Arc<StreamOutbox>) {
    note_step(label);
    let mut running = start();
    let mut response = None;
    poll_fn(|context| {
        note_step(label);
        let is_done = running.poll(context, &mut response);
        outbox.note_turn();
        if is_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    drop(running);
    let Some(mut response) = response else {
        return outbox.deliver(Delivered::Panicked);
    };
    let content = std::mem::replace(&mut response.content, Content::Nothing);
    let Content::Stream(streamed) = content else {
        response.content = content;
        return outbox.deliver(Delivered::Whole(Box::new(response)));
    };
    if response.status.is_interim() {
        // It is no response, as it has no content yet: 500.
        return outbox.deliver(Delivered::Whole(Box::new(response)));
    }
    response.content = Content::Unsent(streamed.length);
    let trailers = response.extras.as_mut().and_then(|extras| extras.trailers.take());
    outbox.deliver(Delivered::Streamed(Box::new(response)));
    drive(streamed, trailers, &outbox).await;
}

/// Puts the pieces of a stream into the outbox, as there is room.
async fn drive(mut streamed: Streamed, trailers: Option<Trailers>, outbox: &StreamOutbox) {
    let mut left = streamed.length;
    loop {
        match poll_fn(|context| poll_piece(&mut streamed, outbox, context)).await {
            Some(Ok(piece)) if piece.is_empty() => {}
            Some(Ok(piece)) => match left.map(|left| left.checked_sub(piece.len() as u64)) {
                Some(None) => return outbox.end(StreamEnd::Failed),
                rest => {
                    left = rest.flatten();
                    outbox.push(piece);
                }
            },
            None if left.is_none_or(|left| left == 0) => {
                return outbox.end(StreamEnd::Whole(trailers));
            }
            Some(Err(Failed)) | None => return outbox.end(StreamEnd::Failed),
        }
    }
}

fn poll_piece(
    streamed: &mut Streamed,
    outbox: &StreamOutbox,
    context: &mut Context<'_>,
) -> Poll<Option<Result<Bytes, Failed>>> {
    ready!(outbox.poll_room(context));
    contained(|| streamed.poll_next(context)).unwrap_or(Poll::Ready(Some(Err(Failed))))
}
