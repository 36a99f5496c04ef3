//! Times of a connection and of its streams: until when what is waited for has to have come.

use gustnado_app::app::App;
use gustnado_http::h2::{Stream, StreamId};
use gustnado_tasks::{ProgressTimeout, SendWatch};

use crate::Http2Conn;
use crate::active::{Active, Rest};
use crate::ending::ConnPhase;
use crate::stream_body::StreamBody;

/// How long a client may pause that has its response, and has more to send: some stop then, and
/// wait until they are told that nobody reads it.
const UNWANTED: ProgressTimeout = ProgressTimeout { silence_ms: 500, rate_min: 0 };

/// Where received bytes end. DATA does not count: a body has times of its own.
pub(super) enum InputEnd {
    /// Between two frames, or within DATA.
    Between,
    /// Within a frame that has begun in them.
    InNewFrame,
    /// Within a frame that had begun before, or a block of fields.
    Within,
}

/// When what is waited for has to have come, in milliseconds; `u64::MAX`: nothing is waited for.
pub(super) struct ConnTimers {
    /// The next request, while there is none.
    pub(super) idle_ms: u64,
    /// The end of the phase that the connection is in.
    phase_ms: u64,
    /// The end of a frame, or a block of fields, that has begun.
    pub(super) frame_ms: u64,
    /// When the send that is under way is looked at next.
    pub(super) look_ms: u64,
    /// Made at the first look: most sends are over before that.
    pub(super) watch: Option<Box<SendWatch>>,
    /// When a client with open streams that is silent is sent a PING, or has to have answered it.
    pub(super) ping_ms: u64,
    /// When the send has begun: the low half.
    sent_ms: u32,
    pub(super) is_ping_sent: bool,
    /// The next send has content of streams whose routes have no time-out of their own.
    pub(super) has_usual_content: bool,
    /// Requests came since the connection was idle.
    is_busy: bool,
}

impl ConnTimers {
    pub(super) fn new(now_ms: u64, app: &App) -> Self {
        Self {
            idle_ms: now_ms + app.times.first_ms,
            phase_ms: u64::MAX,
            frame_ms: u64::MAX,
            look_ms: u64::MAX,
            watch: None,
            ping_ms: now_ms + app.times.ping_ms,
            sent_ms: 0,
            has_usual_content: false,
            is_ping_sent: false,
            is_busy: false,
        }
    }

    /// Notes that something has come, whatever it is: the client is there.
    pub(super) fn note_alive(&mut self, now_ms: u64, app: &App) {
        self.ping_ms = now_ms + app.times.ping_ms;
        self.is_ping_sent = false;
    }

    /// Gives the client more time: the server's own pace lets it send nothing.
    pub(super) fn extend(&mut self, pause_ms: u64) {
        self.idle_ms = self.idle_ms.saturating_add(pause_ms);
        self.frame_ms = self.frame_ms.saturating_add(pause_ms);
    }

    /// Returns since when there was no request.
    ///
    /// - `requests`: so far.
    pub(super) fn idle_since_ms(&self, app: &App, requests: u32) -> u64 {
        let times = &app.times;
        self.idle_ms.saturating_sub(if requests == 0 {
            times.first_ms
        } else {
            times.keep_alive_ms
        })
    }

    /// Notes that bytes were read.
    ///
    /// - `ends`: where they end.
    /// - `has_requests`: a request was among them. Nothing else keeps a connection.
    pub(super) fn note_input(
        &mut self,
        now_ms: u64,
        app: &App,
        (ends, has_requests): (InputEnd, bool),
    ) {
        self.is_busy |= has_requests;
        self.frame_ms = match ends {
            InputEnd::Within if self.frame_ms < u64::MAX => self.frame_ms,
            InputEnd::InNewFrame | InputEnd::Within => now_ms + app.times.header_ms,
            InputEnd::Between => u64::MAX,
        };
    }

    pub(super) fn begin_send(&mut self, now_ms: u64, patience: ProgressTimeout) {
        self.sent_ms = low_half(now_ms);
        self.look_ms = now_ms + patience.first_look_ms();
    }

    /// Returns whether a send is under way. (The socket does not know after a time-out, which may
    /// be one that the send has nothing to do with.)
    pub(super) fn is_sending(&self) -> bool {
        self.look_ms < u64::MAX
    }

    /// Ends the send that is under way. Returns how long it took, in milliseconds.
    pub(super) fn end_send(&mut self, now_ms: u64, app: &App) -> u64 {
        self.look_ms = u64::MAX;
        if self.watch.take().is_some() && app.times.ping_ms > 0 {
            // The client has taken something; before that it could not see a PING.
            self.note_alive(now_ms, app);
        }
        self.sends_since(now_ms)
    }

    /// Returns for how long the last send has been under way, in milliseconds.
    pub(super) fn sends_since(&self, now_ms: u64) -> u64 {
        low_half(now_ms).wrapping_sub(self.sent_ms).into()
    }

    /// Sets when the phase of the connection ends; `u64::MAX`: when it is done.
    pub(super) fn end_phase_at(&mut self, at_ms: u64) {
        self.phase_ms = at_ms;
    }

    /// Returns whether the phase of the connection has had its time.
    pub(super) fn is_phase_over(&self, now_ms: u64) -> bool {
        self.phase_ms <= now_ms
    }
}

fn low_half(ms: u64) -> u32 {
    u32::try_from(ms & u64::from(u32::MAX)).expect("the low half")
}

impl Http2Conn {
    /// Returns where what was read ends.
    ///
    /// - `has_moved`: a frame has ended in it.
    pub(super) fn input_end(&self, has_moved: bool) -> InputEnd {
        let is_partial = !self.unread.is_empty() && !self.has_unread;
        match self.core.is_within_block() && self.phase.reads() {
            true => InputEnd::Within,
            false if is_partial && has_moved => InputEnd::InNewFrame,
            false if is_partial => InputEnd::Within,
            false => InputEnd::Between,
        }
    }

    /// Returns whether nothing is owed to the client.
    pub(super) fn is_idle(&self) -> bool {
        self.core.open_streams() == 0
            && !self.is_sending()
            && !self.has_paced_rest()
            && self.next.as_ref().is_none_or(|next| next.is_empty())
            && matches!(self.phase, ConnPhase::Open)
    }

    /// Sets when the connection looks at its time-outs next.
    pub(super) fn set_deadline(&mut self) {
        let now_ms = self.socket.now().mono_ms;
        if self.phase == ConnPhase::Broken {
            let is_sending = self.is_sending();
            let at_ms = if is_sending { self.timers.look_ms } else { now_ms };
            let is_waiting = !is_sending && self.has_paced_rest();
            return self.socket.set_deadline(if is_waiting { self.paced_send_ms() } else { at_ms });
        }
        let mut at_ms = self.timers.frame_ms;
        if self.is_sending() {
            at_ms = at_ms.min(self.timers.look_ms);
        } else if self.core.open_streams() == 0 {
            if std::mem::take(&mut self.timers.is_busy) {
                self.timers.idle_ms = now_ms + self.app.times.keep_alive_ms;
            }
            if self.awaits_request() {
                at_ms = at_ms.min(self.timers.idle_ms);
            }
        } else {
            self.timers.is_busy = true;
        }
        if self.awaits_ping() {
            at_ms = at_ms.min(self.timers.ping_ms);
        }
        // (One that leaves is looked at before this, and again if that was too early. Where a send
        // is under way to a client that sends no more, that send's time counts.)
        if !(self.phase.only_responds() && self.is_sending()) {
            at_ms = at_ms.min(self.timers.phase_ms.max(now_ms + 1));
        }
        at_ms = at_ms.min(self.paced_send_ms()).min(self.read_pause_ms());
        let of_streams_ms = self.streams_deadline_ms(now_ms);
        self.socket.set_deadline(at_ms.min(of_streams_ms));
    }

    /// Returns when a stream looks at its time-outs next.
    fn streams_deadline_ms(&mut self, now_ms: u64) -> u64 {
        // Pauses of the server's own pace do not count against the client.
        let is_read_paused = self.read_pause_ms() != u64::MAX;
        let is_send_paused = self.has_paced_rest();
        let (times, room, mut at_ms) = (self.app.times, self.core.room(), u64::MAX);
        for stream in self.core.streams() {
            let awaited = waits_for_peer(stream.window().min(room), &stream.state);
            let awaited = awaited.filter(|awaited| match awaited {
                Awaited::Window => !is_send_paused,
                Awaited::Body | Awaited::Rest => !is_read_paused,
            });
            let is_silent = is_handler_silent(&stream.state);
            // What is due now is done in this turn, or once a send is over.
            let paused_ms = paused_until(&stream.state).filter(|at_ms| *at_ms > now_ms);
            let retry_ms = Some(stream.state.memory.retry_ms()).filter(|at_ms| *at_ms > now_ms);
            let write = stream.state.write_timeout(times.write);
            let Active { options, sender, reader, idle, .. } = &mut *stream.state;
            let until_ms = match awaited {
                Some(Awaited::Rest) => sender.wait(UNWANTED, now_ms),
                Some(Awaited::Body) => sender.wait(options.body_timeout(times.body), now_ms),
                Some(Awaited::Window) => reader.wait(write, now_ms),
                None if is_silent => idle.until_ms(),
                None => u64::MAX,
            };
            if awaited.is_some() || !is_silent {
                idle.note_progress(now_ms);
            }
            if !matches!(awaited, Some(Awaited::Body | Awaited::Rest)) {
                sender.pause(now_ms);
            }
            if !matches!(awaited, Some(Awaited::Window)) {
                reader.pause(now_ms);
            }
            let own_ms = paused_ms.unwrap_or(u64::MAX).min(retry_ms.unwrap_or(u64::MAX));
            at_ms = at_ms.min(until_ms).min(own_ms);
        }
        at_ms
    }

    /// Returns the streams that wait for their client.
    pub(super) fn awaiting_streams(&mut self) -> Vec<StreamId> {
        let room = self.core.room();
        let waits = |stream: &Stream<Box<Active>>| {
            waits_for_peer(stream.window().min(room), &stream.state).map(|_| stream.id)
        };
        self.core.streams().iter().filter_map(waits).collect()
    }
}

/// What a stream waits for.
pub(super) enum Awaited {
    Body,
    /// The rest of a body that nobody wants.
    Rest,
    Window,
}

/// Returns what a stream waits for of its client.
pub(super) fn waits_for_peer(window: usize, active: &Active) -> Option<Awaited> {
    match (&active.rest, &active.incoming) {
        _ if active.is_answered => Some(Awaited::Rest),
        (Some(Rest::Bytes(_) | Rest::Segments(_)), _) if window == 0 => Some(Awaited::Window),
        (Some(Rest::Pieces), _)
            if window == 0 && active.outbox.as_ref().is_some_and(|outbox| outbox.has_pieces()) =>
        {
            Some(Awaited::Window)
        }
        (Some(Rest::Tunnel(pipe)), _) if window == 0 && pipe.has_unsent() => Some(Awaited::Window),
        // The server's own pauses, for memory or the disk, do not count against the client.
        _ if active.memory.is_waiting() => None,
        (None, StreamBody::Gathered(gathered)) if !gathered.is_at_disk => Some(Awaited::Body),
        (_, StreamBody::Read(queued)) if queued.is_awaited => Some(Awaited::Body),
        _ => None,
    }
}

/// Returns whether the handler of a stream, or what makes its content, is waited for.
fn is_handler_silent(active: &Active) -> bool {
    let has_pieces = || active.outbox.as_ref().is_some_and(|outbox| outbox.has_pieces());
    match (&active.rest, &active.incoming) {
        _ if active.task.is_none() => false,
        (_, StreamBody::Gathered(_)) => false,
        (None, _) => true,
        (Some(Rest::Pieces), _) => !has_pieces(),
        (Some(_), _) => false,
    }
}

/// Returns until when the pace of its route holds a stream, if it does.
fn paused_until(active: &Active) -> Option<u64> {
    match (&active.rest, &active.pace) {
        (Some(Rest::Held(held)), _) => Some(held.until_ms()),
        (Some(_), Some(pace)) => Some(pace.at_ms()),
        _ => None,
    }
}
