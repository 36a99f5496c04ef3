//! Memory for the bodies of requests: a body grows as far as it was granted some. Where it was not,
//! its client is given no more window, or what is here goes to the disk, or the body is cut.

use std::task::{Context, Waker};

use gustnado_app::app::App;
use gustnado_app::bodies::{BodyAdmission, BodyHold, BodyProgress, Cut};
use gustnado_config::{BodyPolicy, UNCHARGED_BYTES};
use gustnado_http::h2::{ErrorCode, Stream, StreamId};
use gustnado_observe::stats::{Added, Fault};
use gustnado_tasks::{Charge, MemoryKind, now};
use gustnado_web::spool::is_due;
use gustnado_web::tunnel::PipeLoss;

use crate::Http2Conn;
use crate::active::Active;
use crate::respond::Received;
use crate::stream_body::StreamBody;

/// So many streams belong to their connection: up to [`UNCHARGED_BYTES`] of each are not charged.
const FREE_STREAMS: usize = 8;

/// What is charged for a stream that waits, besides its bytes.
const STREAM_BYTES: usize = 1 << 10;

/// What the bodies of a connection may hold beyond what they were granted, while memory is short.
/// The windows of its streams may allow more; then a body is cut.
const EXCESS_BYTES_MAX: usize = 64 << 10;

/// The same before the handler has had a turn: nothing more is read until then, but one receive may
/// bring as much.
const UNBEGUN_EXCESS_BYTES_MAX: usize = 256 << 10;

/// How long a handler may take to its first turn. Mostly it comes at once, and asks for its body.
const TURN_MS: u64 = 100;

/// What becomes of a body.
enum BodyVerdict {
    Read,
    Wait(u64),
    Spill,
    Cut(Cut),
}

impl Http2Conn {
    /// Asks whether more of a body may come, and acts on that.
    pub(super) fn admit(&mut self, id: StreamId, app: &App, context: &Context<'_>) {
        let now_ms = self.now_ms();
        let Some(admitted) = self.admitted(id, app, context.waker()) else { return };
        let Some(stream) = self.core.stream(id) else { return };
        let memory = &mut stream.state.memory;
        let pause_ms = stream.state.read.as_ref().and_then(|read| read.wait_ms(now_ms));
        memory.retry_ms = 0;
        self.has_charged |= memory.hold.is_charged() || pause_ms.is_some();
        match admitted {
            BodyVerdict::Read if pause_ms.is_some() => memory.retry_ms = pause_ms.unwrap_or(0),
            BodyVerdict::Read => self.give_owed(id, app),
            BodyVerdict::Wait(until_ms) => memory.retry_ms = until_ms.max(1),
            BodyVerdict::Spill => self.spill(id, app),
            BodyVerdict::Cut(cut) => self.cut_body(id, cut, app),
        }
    }

    /// Gives the client window for what was taken. As long as it may still send as much, it is
    /// given no window that memory was not granted for.
    fn give_owed(&mut self, id: StreamId, app: &App) {
        let Some(stream) = self.core.stream(id) else { return };
        let (owed, left) = (stream.state.memory.owed, stream.receive_left() as usize);
        let is_early = owed <= left && (granted_window(stream) as usize) < owed + left;
        if owed > 0 && !is_early {
            stream.state.memory.owed = 0;
            self.give_window(id, owed, app);
        }
    }

    /// `None`: there is nothing to ask for.
    fn admitted(&mut self, id: StreamId, app: &App, waker: &Waker) -> Option<BodyVerdict> {
        let excess = if app.is_short_of(MemoryKind::Bodies) { self.excess() } else { 0 };
        let uncharged = self.uncharged_bytes();
        let now_ms = self.socket.now().mono_ms;
        let Self { core, socket, rare, .. } = self;
        let stream = core.stream(id)?;
        let mut progress = progress_of(stream)?;
        (progress.uncharged, progress.now_ms) = (uncharged, now_ms);
        let BodyProgress { held, received, left, can_spill, .. } = progress;
        if can_spill && is_due(held, left, (held as u64) < received) {
            return Some(BodyVerdict::Spill);
        }
        // A burst is not cut because its handlers come late.
        let is_unbegun = stream.state.is_unbegun();
        progress.can_spill |= is_unbegun;
        let Active { incoming, parts, memory, .. } = &mut *stream.state;
        let streams = matches!(incoming, StreamBody::Read(_) | StreamBody::Tunnel(_));
        if held == 0 && streams {
            // Its reader takes what comes, and keeps nothing of it, or has put it elsewhere.
            memory.hold = BodyHold::default();
            return Some(BodyVerdict::Read);
        }
        let client = || match (incoming, parts) {
            (StreamBody::Gathered(gathered), _) => {
                app.client_key(gathered.head.on(&gathered.bytes), socket)
            }
            (_, Some(parts)) => app.client_key(parts.view(), socket),
            _ => app.peer_key(socket),
        };
        Some(match memory.hold.admit(app.bodies(), progress, client, waker) {
            BodyAdmission::Read => BodyVerdict::Read,
            BodyAdmission::Wait(_) if excess > EXCESS_BYTES_MAX && memory.hold.excess(held) > 0 => {
                BodyVerdict::Cut(Cut::Full)
            }
            BodyAdmission::Spill if is_unbegun => {
                if excess > UNBEGUN_EXCESS_BYTES_MAX && memory.hold.excess(held) > 0 {
                    return Some(BodyVerdict::Cut(Cut::Full));
                }
                // No more is read before its handler has had one.
                rare.get_or_insert_default().turn_until_ms = now().mono_ms + TURN_MS;
                BodyVerdict::Wait(now_ms + TURN_MS)
            }
            BodyAdmission::Wait(until_ms) => BodyVerdict::Wait(until_ms),
            BodyAdmission::Spill => BodyVerdict::Spill,
            BodyAdmission::Cut(cut) => BodyVerdict::Cut(cut),
        })
    }

    /// Returns how many bytes of each body belong to the connection.
    fn uncharged_bytes(&self) -> usize {
        if self.core.open_streams() <= FREE_STREAMS { UNCHARGED_BYTES } else { 0 }
    }

    /// Returns what all bodies hold beyond what they were granted.
    #[cold]
    fn excess(&mut self) -> usize {
        let excess_of = |stream: &Stream<Box<Active>>| {
            let held = progress_of(stream).map_or(0, |progress| progress.held);
            stream.state.memory.hold.excess(held)
        };
        self.core.streams().iter().map(excess_of).sum()
    }

    /// Asks again for the bodies that were granted more, or are cut, since then.
    ///
    /// Returns whether there were some.
    pub(super) fn retry_bodies(&mut self, context: &Context<'_>) -> bool {
        if !self.has_charged {
            return false;
        }
        let now_ms = self.socket.now().mono_ms;
        self.has_charged = false;
        let mut due = Vec::new();
        for stream in self.core.streams() {
            if matches!(stream.state.incoming, StreamBody::None) {
                continue;
            }
            let memory = &stream.state.memory;
            self.has_charged |= memory.hold.is_charged() || memory.is_waiting();
            // One that is at the disk goes on once it is back from there.
            let progress = progress_of(stream);
            if progress.is_some_and(|progress| memory.is_due(&progress, now_ms)) {
                due.push(stream.id);
            }
        }
        let app = std::sync::Arc::clone(&self.app);
        for id in &due {
            self.admit(*id, &app, context);
        }
        !due.is_empty()
    }

    /// Has all bodies that wait ask again at once: while handlers had yet to begin, the connection
    /// was let hold more than it may from now on.
    pub(super) fn retry_all_bodies(&mut self) {
        let now_ms = self.socket.now().mono_ms;
        self.has_charged = true;
        for stream in self.core.streams() {
            let retry_ms = &mut stream.state.memory.retry_ms;
            *retry_ms = now_ms.min(*retry_ms);
        }
    }

    /// Has what is in memory of a body put to the disk.
    fn spill(&mut self, id: StreamId, app: &App) {
        let Some(stream) = self.core.stream(id) else { return };
        let Active { incoming, parts, outbox, .. } = &mut *stream.state;
        match (incoming, parts, outbox) {
            (StreamBody::Gathered(_), ..) => self.start_spill(id, app),
            (StreamBody::Read(_), Some(parts), Some(outbox)) => {
                parts.channel().order_spill(&app.tables.build.spool);
                // Its reader says so once it is done.
                let waker = Waker::from(std::sync::Arc::clone(outbox));
                _ = parts.channel().poll_demand(&Context::from_waker(&waker));
            }
            _ => {}
        }
    }

    /// Ends a body whose memory others need.
    fn cut_body(&mut self, id: StreamId, cut: Cut, app: &App) {
        app.count(&Added { fault: Some(Fault::BodyCut), ..Added::default() });
        let Some(stream) = self.core.stream(id) else { return };
        match &stream.state.incoming {
            StreamBody::Gathered(_) | StreamBody::Early(_) => {
                self.refuse_stream(id, cut.status(), app);
            }
            StreamBody::Tunnel(tunnel) => {
                tunnel.pipe().lose(PipeLoss::NoMemory);
                self.reset(id, ErrorCode::EnhanceYourCalm);
            }
            _ => self.break_body(id, cut.error()),
        }
    }

    /// Returns whether there is memory for a stream that outlasts its turn with its head. If not,
    /// it is refused, so that its client may ask again.
    pub(super) fn has_room_for(&mut self, received: &Received<'_>, app: &App) -> bool {
        let is_charged = self.is_head_charged(received);
        if received.reply.is_open || !is_charged || !app.is_short_of(MemoryKind::Heads) {
            return true;
        }
        app.count(&Added { fault: Some(Fault::HeadCut), ..Added::default() });
        self.reset(received.reply.id, ErrorCode::RefusedStream);
        false
    }

    /// Charges the head of a stream that was just opened.
    pub(super) fn charge_head(&mut self, received: &Received<'_>) {
        if !self.is_head_charged(received) {
            return;
        }
        let bytes = received.head.len() + STREAM_BYTES;
        if let Some(stream) = self.core.stream(received.reply.id) {
            let head = &mut stream.state.memory.head;
            head.get_or_insert_with(|| Charge::new(MemoryKind::Heads)).set(bytes);
        }
    }

    fn is_head_charged(&self, received: &Received<'_>) -> bool {
        received.head.len() > UNCHARGED_BYTES || self.core.open_streams() > FREE_STREAMS
    }
}

/// Returns how much of the body of a stream may come at once without more memory than it was
/// granted. One that is read in pieces is bounded by its window alone.
pub(super) fn granted_window(stream: &Stream<Box<Active>>) -> u32 {
    let whole = progress_of(stream).filter(|progress| !progress.is_part);
    let room = whole.and_then(|progress| stream.state.memory.hold.room(progress.held));
    room.map_or(u32::MAX, |room| u32::try_from(room).unwrap_or(u32::MAX))
}

/// Returns how far the body of a stream has come; `None` if there is none, or it is at the disk.
fn progress_of(stream: &Stream<Box<Active>>) -> Option<BodyProgress> {
    let Active { incoming, parts, options, .. } = &*stream.state;
    // What is read in pieces holds no more than its window.
    let window_left = |held: usize| {
        let rest = u64::from(stream.receive_window()).saturating_sub(held as u64);
        Some(stream.body_left().unwrap_or(rest).min(rest))
    };
    let left = if stream.is_remote_closed { Some(0) } else { stream.body_left() };
    let usual = BodyProgress {
        held: 0,
        received: 0,
        can_spill: false,
        is_part: false,
        uncharged: 0,
        left,
        ahead: 0,
        now_ms: 0,
    };
    let progress = match (incoming, parts) {
        (StreamBody::Gathered(gathered), _) if !gathered.is_at_disk => Some(BodyProgress {
            held: gathered.body.memory.len(),
            received: gathered.received,
            can_spill: gathered.spool.is_some(),
            ..usual
        }),
        (StreamBody::Read(queued), Some(parts)) if !parts.channel().is_spilling() => {
            let collected = parts.channel().held();
            let is_spool = options.body_policy == Some(BodyPolicy::Spool);
            let held = queued.bytes.len() + collected.map_or(0, |held| held.bytes);
            Some(BodyProgress {
                held,
                received: queued.received,
                can_spill: collected.is_some_and(|held| held.can_spill && is_spool),
                is_part: collected.is_none_or(|held| held.is_part),
                left: if collected.is_some() { left } else { window_left(held) },
                ..usual
            })
        }
        (StreamBody::Early(early), _) => Some(BodyProgress {
            held: early.len(),
            received: early.len() as u64,
            is_part: true,
            left: window_left(early.len()),
            ..usual
        }),
        (StreamBody::Tunnel(tunnel), _) => {
            let (held, received) = tunnel.pipe().held();
            Some(BodyProgress { held, received, is_part: true, left: window_left(held), ..usual })
        }
        _ => None,
    };
    progress.map(|progress| BodyProgress { ahead: ahead(stream, &progress), ..progress })
}

/// Returns how much window is given next: once the client may send less than it is owed.
fn ahead(stream: &Stream<Box<Active>>, progress: &BodyProgress) -> usize {
    let owed = stream.state.memory.owed;
    if progress.is_part || owed <= stream.receive_left() as usize { 0 } else { owed }
}
