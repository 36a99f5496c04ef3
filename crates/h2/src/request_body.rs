//! The bodies of requests: gathered for an inline handler, or handed to a task as it asks for them.

use bytes::Bytes;
use gustnado_app::app::App;
use gustnado_http::h2::{ErrorCode, StreamId};
use gustnado_http::status::Status;
use gustnado_tasks::MemoryKind;
use gustnado_web::body::BodyError;
use gustnado_web::body_channel::BodyDemand;
use std::task::{Context, Waker};

use crate::Http2Conn;
use crate::respond::{Received, StreamReply};
use crate::stream_body::{Gathered, StreamBody};

/// How much of a body is read over that nobody wants. Some clients do not look at a response before
/// all of it is sent; who has more to send is told to stop.
const DISCARDED_BYTES_MAX: usize = 16 << 20;

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
        let Some(stream) = self.core.stream(id) else { return };
        stream.state.sender.note(bytes.len());
        if stream.state.is_answered {
            stream.state.discarded += bytes.len();
            if is_end || stream.state.discarded > DISCARDED_BYTES_MAX {
                return self.stop(id);
            }
            return self.give_window(id, bytes.len(), app);
        }
        match &mut stream.state.incoming {
            StreamBody::None => self.give_window(id, bytes.len(), app),
            // Its window bounds them.
            StreamBody::Early(early) => early.extend_from_slice(bytes),
            StreamBody::Tunnel(tunnel) => {
                tunnel.pipe().put(bytes);
                if is_end {
                    tunnel.pipe().finish();
                }
                self.feed(id, app);
            }
            StreamBody::Gathered(gathered) => {
                gathered.body.extend_from_slice(bytes);
                if gathered.body.len() as u64 > gathered.bytes_max {
                    return self.refuse_stream(id, Status::CONTENT_TOO_LARGE, app);
                }
                if is_end {
                    return self.respond_to_gathered(id, app, context);
                }
                self.give_window(id, bytes.len(), app);
            }
            StreamBody::Read(queued) => {
                queued.received += bytes.len() as u64;
                queued.is_whole |= is_end;
                if queued.received > queued.bytes_max {
                    self.break_body(id, BodyError::TooLarge);
                    return self.give_window(id, bytes.len(), app);
                }
                queued.bytes.extend_from_slice(bytes);
                self.feed(id, app);
            }
        }
    }

    /// Calls the handler of a request whose body is whole.
    fn respond_to_gathered(&mut self, id: StreamId, app: &App, context: &mut Context<'_>) {
        let Some(stream) = self.core.stream(id) else { return };
        let incoming = std::mem::replace(&mut stream.state.incoming, StreamBody::None);
        let StreamBody::Gathered(gathered) = incoming else { return };
        let Gathered { head, bytes, body, .. } = *gathered;
        let mut received = Received::new(id, &head, &bytes, true);
        received.body = Some(Bytes::from(body));
        received.reply.is_open = true;
        self.respond_by_route(&mut received, app, context);
    }

    /// Hands bytes of a body to its reader, if that waits for some. A tunnel takes its own: the
    /// client may send as many more.
    pub(super) fn feed(&mut self, id: StreamId, app: &App) {
        let Some(stream) = self.core.stream(id) else { return };
        let active = &mut *stream.state;
        if let StreamBody::Tunnel(tunnel) = &active.incoming {
            let taken = tunnel.pipe().take_taken();
            return self.give_window(id, taken, app);
        }
        let (StreamBody::Read(queued), Some(parts)) = (&mut active.incoming, &active.parts) else {
            return;
        };
        let Some(outbox) = &active.outbox else { return };
        let waker = Waker::from(std::sync::Arc::clone(outbox));
        let channel = parts.channel();
        let mut taken = 0;
        queued.is_awaited = false;
        loop {
            match channel.poll_demand(&Context::from_waker(&waker)) {
                BodyDemand::Bytes if !queued.bytes.is_empty() => {
                    let bytes = queued.bytes.split().freeze();
                    taken += bytes.len();
                    channel.put(bytes);
                }
                BodyDemand::Bytes if queued.is_whole => {
                    channel.end(Ok(()));
                    active.incoming = StreamBody::None;
                    break;
                }
                BodyDemand::Bytes => {
                    queued.is_awaited = true;
                    break;
                }
                BodyDemand::GivenUp => {
                    taken += queued.bytes.len();
                    queued.bytes.clear();
                    break;
                }
                _ => break,
            }
        }
        if taken > 0 {
            self.give_window(id, taken, app);
        }
    }

    /// Lets the client send as many bytes more. Where memory is short, it may not send faster.
    fn give_window(&mut self, id: StreamId, bytes: usize, app: &App) {
        let grows = !app.is_short_of(MemoryKind::Bodies);
        self.with_core(|core, step| core.take(id, bytes, grows, step));
    }

    /// Ends a body whose rest is not read.
    pub(super) fn break_body(&mut self, id: StreamId, error: BodyError) {
        let Some(stream) = self.core.stream(id) else { return };
        if let (StreamBody::Read(_), Some(parts)) = (&stream.state.incoming, &stream.state.parts) {
            parts.channel().end(Err(error));
            stream.state.incoming = StreamBody::None;
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
