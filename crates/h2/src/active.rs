//! A stream that outlasts its turn, as the connection sees it.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use gustnado_config::BodyPolicy;
use gustnado_files::Segment;
use gustnado_observe::exchange::Exchanges;
use gustnado_tasks::{Attached, ProgressTimeout};
use gustnado_web::request_head::RequestHeadRef;
use gustnado_web::routes::{RouteOptions, RouteTable};
use gustnado_web::tunnel::StreamPipe;

use crate::outbox::StreamOutbox;
use crate::patience::{HandlerTime, Patience};
use crate::stream_body::StreamBody;
use crate::stream_memory::StreamMemory;
use crate::stream_pace::{HeldResponse, StreamPace, StreamRead};

/// What is kept with an open stream.
#[derive(Default)]
pub(super) struct Active {
    /// The request's head, which its handler shares.
    pub(super) parts: Option<RequestHeadRef>,
    /// The routes that it was found in.
    pub(super) table: Option<Arc<RouteTable>>,
    pub(super) options: RouteOptions,
    /// The task of its handler, which ends with this.
    pub(super) task: Option<Attached<()>>,
    pub(super) outbox: Option<Arc<StreamOutbox>>,
    pub(super) incoming: StreamBody,
    /// What it holds.
    pub(super) memory: StreamMemory,
    /// What is left of its response, once the head is written.
    pub(super) rest: Option<Rest>,
    pub(super) exchange: Option<Box<Exchanges>>,
    /// How long the client has been waited for: for its body, and for room.
    pub(super) sender: Patience,
    pub(super) reader: Patience,
    /// How long its handler may be silent.
    pub(super) idle: HandlerTime,
    /// When the request was read.
    pub(super) read_ms: u64,
    /// The pace of its response, and of its body, from its route.
    pub(super) pace: Option<Box<StreamPace>>,
    pub(super) read: Option<Box<StreamRead>>,
    /// When it has last had its turn to send content, in turns of its connection, and how much of
    /// the next one it has had.
    pub(super) turn: u32,
    pub(super) turn_kib: u8,
    /// A thread reads the next bytes of its file.
    pub(super) is_cold: bool,
    /// Up to where one has read its file. That is not asked again: some file systems cannot tell.
    pub(super) read_until: u64,
    /// As for [`StreamReply::is_insecure`](crate::respond::StreamReply::is_insecure).
    pub(super) is_insecure: bool,
    /// Its response is written, and the client still sends its request.
    pub(super) is_answered: bool,
    /// How much of that was read over since.
    pub(super) discarded: usize,
}

impl Active {
    /// Returns the target of the request; empty if that is not known any more.
    pub(super) fn target(&self) -> &[u8] {
        match (&self.incoming, &self.parts) {
            (StreamBody::Gathered(gathered), _) => gathered.head.on(&gathered.bytes).target(),
            (_, Some(parts)) => parts.view().target(),
            _ => b"",
        }
    }

    /// Returns whether its body waits for its handler, which has not had a turn yet, and may put it
    /// to the disk.
    pub(super) fn is_unbegun(&self) -> bool {
        matches!(self.incoming, StreamBody::Read(_))
            && self.options.body_policy == Some(BodyPolicy::Spool)
            && self.outbox.as_ref().is_some_and(|outbox| !outbox.had_turn())
    }

    /// Returns whether only the end of its content is left to be sent.
    pub(super) fn is_at_end(&self) -> bool {
        match &self.rest {
            Some(Rest::Pieces) => self.outbox.as_ref().is_some_and(|outbox| outbox.has_ended()),
            Some(Rest::Tunnel(pipe)) => pipe.has_output(false),
            _ => false,
        }
    }

    /// Returns how slowly its client may take content.
    pub(super) fn write_timeout(&self, usual: ProgressTimeout) -> ProgressTimeout {
        match &self.rest {
            Some(Rest::Tunnel(pipe)) => pipe.write_timeout(),
            _ => self.options.write_timeout(usual),
        }
    }
}

/// The rest of a response whose head was written.
pub(super) enum Rest {
    /// Bytes that are here.
    Bytes(Bytes),
    /// Parts of files and the bytes between them.
    Segments(VecDeque<Segment>),
    /// Pieces, as a task makes them.
    Pieces,
    /// All of it, until the response may begin.
    Held(Box<HeldResponse>),
    /// The bytes of a tunnel.
    Tunnel(Arc<StreamPipe>),
}
