//! The bodies of requests: gathered for an inline handler, or handed to a task as it asks for them.

use std::mem;
use std::sync::Arc;
use std::task::{Context, Waker};

use bytes::Bytes;
use gustnado_app::app::App;
use gustnado_app::bodies::BodyHold;
use gustnado_app::hooks::Limit;
use gustnado_http::fields::Fields;
use gustnado_http::h2::{ErrorCode, StreamId};
use gustnado_http::status::Status;
use gustnado_tasks::MemoryKind;
use gustnado_web::body::BodyError;
use gustnado_web::body_channel::BodyDemand;
use gustnado_web::trailers::RequestTrailers;

use crate::Http2Conn;
use crate::active::Active;
use crate::body_memory::granted_window;
use crate::respond::{Received, StreamReply};
use crate::stream_body::{Gathered, StreamBody};

/// How much of a body is read over that nobody wants. Some clients do not look at a response before
/// all of it is sent; who has more to send is told to stop.
const DISCARDED_BYTES_MAX: usize = 16 << 20;

/// The window of a stream grows up to this part of the memory for bodies: a client may fill it
/// before anything can be said about that.
const WINDOW_SHARE: u64 = 8;

impl Http2Conn {
    /// Takes bytes of a body.
    pub(super) fn take_data(
        &mut self,
        id: StreamId,
        bytes: &[u8],
        is_end: bool,
        app: &App,
        context: &mut Context<'_>,
    ) {
        let now_ms = self.now_ms();
        let Some(stream) = self.core.stream(id) else { return };
        stream.state.sender.note(bytes.len());
        if let Some(read) = &mut stream.state.read {
            read.note(bytes.len(), now_ms);
        }
        if stream.state.is_answered {
            stream.state.discarded += bytes.len();
            if is_end || stream.state.discarded > DISCARDED_BYTES_MAX {
                return self.stop(id);
            }
            return self.give_window(id, bytes.len(), app);
        }
        match &mut stream.state.incoming {
            StreamBody::None => self.give_window(id, bytes.len(), app),
            StreamBody::Early(early) => {
                early.extend_from_slice(bytes);
                self.admit(id, app, context);
            }
            StreamBody::Tunnel(tunnel) => {
                tunnel.pipe().put(bytes);
                if is_end {
                    tunnel.pipe().finish();
                }
                self.feed(id, app, context);
            }
            StreamBody::Gathered(gathered) => {
                gathered.body.memory.extend_from_slice(bytes);
                gathered.received += bytes.len() as u64;
                gathered.is_whole |= is_end;
                if gathered.received > gathered.bytes_max {
                    let numbers = (gathered.bytes_max, gathered.received);
                    let target = gathered.head.on(&gathered.bytes).target();
                    app.note_size(self.requests, Limit::BodyBytes, numbers, target);
                    return self.refuse_stream(id, Status::CONTENT_TOO_LARGE, app);
                }
                stream.state.memory.owe(bytes.len());
                if is_end { self.complete(id, app, context) } else { self.admit(id, app, context) }
            }
            StreamBody::Read(queued) => {
                queued.received += bytes.len() as u64;
                queued.is_whole |= is_end;
                if queued.received > queued.bytes_max {
                    let numbers = (queued.bytes_max, queued.received);
                    if let Some(parts) = &stream.state.parts {
                        let target = parts.view().target();
                        app.note_size(self.requests, Limit::BodyBytes, numbers, target);
                    }
                    self.break_body(id, BodyError::TooLarge);
                    return self.give_window(id, bytes.len(), app);
                }
                queued.bytes.extend_from_slice(bytes);
                self.feed(id, app, context);
            }
        }
    }

    /// Keeps the trailer fields of a request for its handler.
    #[cold]
    pub(super) fn take_trailers(&mut self, id: StreamId, records: &[u8]) {
        let Some(stream) = self.core.stream(id).filter(|_| !records.is_empty()) else { return };
        let Active { incoming, parts, .. } = &mut *stream.state;
        let trailers = || RequestTrailers::of_records(records.to_vec());
        match (incoming, parts) {
            (StreamBody::Gathered(gathered), _) => gathered.trailers = Some(trailers()),
            (StreamBody::Read(_), Some(parts)) => parts.channel().set_trailers(trailers()),
            _ => {}
        }
    }

    /// Calls the handler of a request whose body is whole, once it is back from the disk.
    pub(super) fn complete(&mut self, id: StreamId, app: &App, context: &mut Context<'_>) {
        let now_ms = self.socket.now().mono_ms;
        let Some(stream) = self.core.stream(id) else { return };
        let StreamBody::Gathered(gathered) = &mut stream.state.incoming else { return };
        if gathered.is_at_disk {
            return;
        }
        let body = &mut gathered.body;
        stream.state.memory.hold.complete(body.memory.len(), body.len(), now_ms);
        if body.spilled() > 0 {
            return self.start_finish(id, app);
        }
        let body = Bytes::from(mem::take(&mut body.memory));
        self.respond_to_gathered(id, body, context);
    }

    /// Calls the handler of a request with its whole body.
    pub(super) fn respond_to_gathered(
        &mut self,
        id: StreamId,
        body: Bytes,
        context: &mut Context<'_>,
    ) {
        let Some(stream) = self.core.stream(id) else { return };
        let incoming = mem::take(&mut stream.state.incoming);
        // Charged until the handler has run.
        let memory = mem::take(&mut stream.state.memory);
        let StreamBody::Gathered(gathered) = incoming else { return };
        let Gathered { app, head, bytes, trailers, .. } = *gathered;
        let mut received = Received::new(id, &head, &bytes, true);
        received.body = Some((body, trailers));
        received.reply.is_open = true;
        self.respond_by_route(&mut received, &app, context);
        drop(memory);
    }

    /// Hands bytes of a body to its reader, if that waits for some. A tunnel takes its own.
    pub(super) fn feed(&mut self, id: StreamId, app: &App, context: &Context<'_>) {
        let now_ms = self.socket.now().mono_ms;
        let Some(stream) = self.core.stream(id) else { return };
        let active = &mut *stream.state;
        if let StreamBody::Tunnel(_) = &active.incoming {
            return self.feed_tunnel(id, app, context);
        }
        let (StreamBody::Read(queued), Some(parts)) = (&mut active.incoming, &active.parts) else {
            return self.settle_body(id);
        };
        let Some(outbox) = &active.outbox else { return };
        let waker = Waker::from(Arc::clone(outbox));
        let channel = parts.channel();
        let (mut taken, mut goes_on) = (0, false);
        queued.is_awaited = false;
        loop {
            match channel.poll_demand(&Context::from_waker(&waker)) {
                BodyDemand::Bytes if !queued.bytes.is_empty() => {
                    let bytes = queued.bytes.split().freeze();
                    taken += bytes.len();
                    active.idle.note_progress(now_ms);
                    channel.put(bytes);
                }
                BodyDemand::Bytes if queued.is_whole => {
                    let held = channel.held().map_or(0, |held| held.bytes);
                    active.memory.hold.complete(held, queued.received, now_ms);
                    channel.end(Ok(()));
                    active.incoming = StreamBody::None;
                    return;
                }
                BodyDemand::Bytes => {
                    queued.is_awaited = true;
                    // A head that is on its way says as much.
                    goes_on = active.rest.is_none() && mem::take(&mut queued.expects_continue);
                    break;
                }
                BodyDemand::GivenUp => {
                    taken += queued.bytes.len();
                    queued.bytes.clear();
                    break;
                }
                // It says so once that is done. Until then nothing is asked of it again.
                BodyDemand::Spilling => return active.memory.owe(taken),
                BodyDemand::Nothing => break,
            }
        }
        active.memory.owe(taken);
        if goes_on {
            self.write_interim(id, Status::CONTINUE, &Fields::new());
        }
        self.admit(id, app, context);
    }

    /// Charges what the reader of a whole body still holds: it may have put it to the disk.
    fn settle_body(&mut self, id: StreamId) {
        let now_ms = self.socket.now().mono_ms;
        let Some(stream) = self.core.stream(id) else { return };
        let active = &mut *stream.state;
        if let Some(parts) = active.parts.as_ref().filter(|_| active.memory.hold.may_settle()) {
            let held = parts.channel().held().map_or(0, |held| held.bytes);
            active.memory.hold.settle(held, now_ms);
        }
    }

    /// Lets a client send its body whose response begins before that is read: behind the head of
    /// the response it could not be told any more.
    pub(super) fn continue_late(&mut self, id: StreamId) {
        let Some(stream) = self.core.stream(id) else { return };
        let (StreamBody::Read(queued), Some(parts)) =
            (&mut stream.state.incoming, &stream.state.parts)
        else {
            return;
        };
        let is_unsaid = mem::take(&mut queued.expects_continue) && queued.received == 0;
        if is_unsaid && !parts.channel().is_given_up() {
            self.write_interim(id, Status::CONTINUE, &Fields::new());
        }
    }

    /// Lets the client send as many bytes more. Where memory is short, it may not send faster; and
    /// what it sends at once never takes much of the memory for bodies, nor more than a body that
    /// is held whole was granted.
    pub(super) fn give_window(&mut self, id: StreamId, bytes: usize, app: &App) {
        let Some(stream) = self.core.stream(id) else { return };
        let grows = stream.state.read.is_none() && !app.is_short_of(MemoryKind::Bodies);
        let share = u32::try_from(app.bodies().budget() / WINDOW_SHARE).unwrap_or(u32::MAX);
        let window_max = if grows { share.min(granted_window(stream)) } else { 0 };
        self.with_core(|core, step| core.take(id, bytes, window_max, step));
    }

    /// Ends a body whose rest is not read.
    pub(super) fn break_body(&mut self, id: StreamId, error: BodyError) {
        let Some(stream) = self.core.stream(id) else { return };
        let active = &mut *stream.state;
        if let (StreamBody::Read(_), Some(parts)) = (&active.incoming, &active.parts) {
            parts.channel().end(Err(error));
            active.incoming = StreamBody::None;
            if parts.channel().held().is_none() {
                // All that it held was queued here.
                active.memory.hold = BodyHold::default();
            }
        }
    }

    /// Refuses a request whose stream is open.
    pub(super) fn refuse_stream(&mut self, id: StreamId, status: Status, app: &App) {
        let Some(stream) = self.core.stream(id) else { return };
        if stream.state.rest.is_some() {
            return self.reset(id, ErrorCode::Cancel);
        }
        let is_end = stream.is_remote_closed;
        let mut reply = StreamReply::of_stream(id, is_end);
        self.write_refusal(&mut reply, status, app);
    }
}
