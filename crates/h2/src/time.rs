//! Time-outs of a connection and of its streams.

use std::sync::Arc;

use gustnado_app::app::App;
use gustnado_http::h2::{ErrorCode, H2Error, Stream, StreamId};
use gustnado_http::status::Status;
use gustnado_observe::stats::{Added, Fault};
use gustnado_tasks::{ConnectionError, ProgressTimeout, SendWatch};
use gustnado_web::tunnel::PipeLoss;

use crate::active::{Active, Rest};
use crate::ending::ConnPhase;
use crate::stream_body::StreamBody;
use crate::{Http2Conn, TurnOutcome};

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

/// When what is waited for has to have come, in milliseconds.
pub(super) struct ConnTimers {
    /// The next request, while there is none.
    idle_ms: u64,
    /// Requests came since then.
    is_busy: bool,
    /// The end of what a client that sends no more may still wait for.
    gone_ms: u64,
    /// The end of a frame, or a block of fields, that has begun.
    frame_ms: Option<u64>,
    send: Option<SendTimer>,
}

/// A send that is under way.
struct SendTimer {
    began_ms: u64,
    /// When it is looked at next.
    look_ms: u64,
    /// Made at the first look: most sends are over before that.
    watch: Option<Box<SendWatch>>,
}

impl ConnTimers {
    pub(super) fn new(now_ms: u64, app: &App) -> Self {
        let idle_ms = now_ms + app.times.first_ms;
        Self { idle_ms, is_busy: false, gone_ms: u64::MAX, frame_ms: None, send: None }
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
            InputEnd::Between => None,
            InputEnd::InNewFrame => Some(now_ms + app.times.header_ms),
            InputEnd::Within => Some(self.frame_ms.unwrap_or(now_ms + app.times.header_ms)),
        };
    }

    pub(super) fn begin_send(&mut self, now_ms: u64, app: &App) {
        let look_ms = now_ms + app.times.write_look_ms;
        self.send = Some(SendTimer { began_ms: now_ms, look_ms, watch: None });
    }

    /// Returns whether a send is under way. (The socket does not know after a time-out, which may
    /// be one that the send has nothing to do with.)
    pub(super) fn is_sending(&self) -> bool {
        self.send.is_some()
    }

    pub(super) fn end_send(&mut self) {
        self.send = None;
    }

    /// Notes that the client sends no more.
    pub(super) fn note_gone(&mut self, now_ms: u64, app: &App) {
        self.gone_ms = now_ms.saturating_add(app.times.half_close_ms);
    }
}

impl Http2Conn {
    /// Returns where what was read ends.
    ///
    /// - `has_moved`: a frame has ended in it.
    pub(super) fn input_end(&self, has_moved: bool) -> InputEnd {
        let is_partial = !self.unread.is_empty() && !self.has_unread;
        match self.core.is_within_block() {
            true => InputEnd::Within,
            false if is_partial && has_moved => InputEnd::InNewFrame,
            false if is_partial => InputEnd::Within,
            false => InputEnd::Between,
        }
    }

    /// Sets when the connection looks at its time-outs next.
    pub(super) fn set_deadline(&mut self) {
        let now_ms = self.socket.now().mono_ms;
        if self.phase == ConnPhase::Broken {
            let send = self.timers.send.as_ref();
            return self.socket.set_deadline(send.map_or(now_ms, |send| send.look_ms));
        }
        let mut at_ms = self.timers.frame_ms.unwrap_or(u64::MAX);
        if let Some(send) = &self.timers.send {
            at_ms = at_ms.min(send.look_ms);
        } else if self.core.open_streams() == 0 {
            if std::mem::take(&mut self.timers.is_busy) {
                self.timers.idle_ms = now_ms + self.app.times.keep_alive_ms;
            }
            at_ms = at_ms.min(self.timers.idle_ms);
        } else {
            self.timers.is_busy = true;
        }
        at_ms = at_ms.min(self.timers.gone_ms);
        if let ConnPhase::Leaving { until_ms } = self.phase {
            at_ms = at_ms.min(until_ms.max(now_ms + 1));
        }
        let times = self.app.times;
        let room = self.core.room();
        for stream in self.core.streams() {
            let awaited = waits_for_peer(stream.window().min(room), &stream.state);
            let Active { options, sender, reader, rest, .. } = &mut *stream.state;
            let write = match rest {
                Some(Rest::Tunnel(pipe)) => pipe.write_timeout(),
                _ => options.write_timeout(times.write),
            };
            let until_ms = match awaited {
                Some(Awaited::Rest) => sender.wait(UNWANTED, now_ms),
                Some(Awaited::Body) => sender.wait(options.body_timeout(times.body), now_ms),
                Some(Awaited::Window) => reader.wait(write, now_ms),
                None => u64::MAX,
            };
            if !matches!(awaited, Some(Awaited::Body | Awaited::Rest)) {
                sender.pause(now_ms);
            }
            if !matches!(awaited, Some(Awaited::Window)) {
                reader.pause(now_ms);
            }
            at_ms = at_ms.min(until_ms);
        }
        self.socket.set_deadline(at_ms);
    }

    /// Returns the streams that wait for their client.
    pub(super) fn awaiting_streams(&mut self) -> Vec<StreamId> {
        let room = self.core.room();
        let waits = |stream: &Stream<Box<Active>>| {
            waits_for_peer(stream.window().min(room), &stream.state).map(|_| stream.id)
        };
        self.core.streams().iter().filter_map(waits).collect()
    }

    /// Acts on the time-outs that are over.
    #[cold]
    pub(super) fn after_timeout(&mut self) -> TurnOutcome {
        self.socket.refresh_now();
        let now_ms = self.socket.now().mono_ms;
        let is_broken = self.phase == ConnPhase::Broken;
        if !is_broken && self.timers.frame_ms.is_some_and(|at_ms| at_ms <= now_ms) {
            self.app.count(&Added { fault: Some(Fault::TooSlow), ..Added::default() });
            self.end_by(ErrorCode::EnhanceYourCalm, "a frame has not come to its end in time");
            return TurnOutcome::On;
        }
        if self.timers.gone_ms <= now_ms {
            return self.give_up(&ConnectionError::TimedOut);
        }
        if let Some(send) = &mut self.timers.send {
            if send.look_ms <= now_ms {
                let patience = self.app.times.write;
                let watch = send.watch.get_or_insert_with(|| SendWatch::new(send.began_ms).into());
                if !self.socket.look_at_send(watch, patience) {
                    return self.give_up(&ConnectionError::TimedOut);
                }
                send.look_ms = self.socket.deadline_ms();
            }
        } else if !is_broken && self.core.open_streams() == 0 && self.timers.idle_ms <= now_ms {
            let fault = if self.requests == 0 { Fault::NeverAsked } else { Fault::Idle };
            self.app.count(&Added { fault: Some(fault), ..Added::default() });
            self.end_by(ErrorCode::NoError, "no request has come for a while");
            return TurnOutcome::On;
        }
        self.end_late_streams(now_ms);
        self.set_deadline();
        TurnOutcome::On
    }

    /// Ends the streams whose clients have had their time.
    fn end_late_streams(&mut self, now_ms: u64) {
        let late = |stream: &mut Stream<Box<Active>>| {
            let Active { sender, reader, .. } = &mut *stream.state;
            (sender.is_over(now_ms) | reader.is_over(now_ms)).then_some(stream.id)
        };
        let late: Vec<_> = self.core.streams().iter_mut().filter_map(late).collect();
        let app = Arc::clone(&self.app);
        for id in late {
            let Some(stream) = self.core.stream(id) else { continue };
            match &stream.state.incoming {
                _ if stream.state.is_answered => self.stop(id),
                StreamBody::Gathered(_) => self.refuse_stream(id, Status::REQUEST_TIMEOUT, &app),
                StreamBody::Read(_) if stream.state.rest.is_none() => {
                    app.count(&Added { fault: Some(Fault::TooSlow), ..Added::default() });
                    self.break_body(id, gustnado_web::body::BodyError::TooSlow);
                }
                StreamBody::Tunnel(tunnel) => {
                    tunnel.pipe().lose(PipeLoss::TimedOut);
                    app.count(&Added { fault: Some(Fault::TooSlow), ..Added::default() });
                    self.reset(id, ErrorCode::Cancel);
                }
                _ => {
                    app.count(&Added { fault: Some(Fault::TooSlow), ..Added::default() });
                    self.reset(id, ErrorCode::Cancel);
                }
            }
        }
    }

    fn end_by(&mut self, code: ErrorCode, reason: &'static str) {
        self.go_away(H2Error::new(code, reason));
        self.phase = ConnPhase::Broken;
    }
}

/// What a stream waits for.
enum Awaited {
    Body,
    /// The rest of a body that nobody wants.
    Rest,
    Window,
}

/// Returns what a stream waits for of its client.
fn waits_for_peer(window: usize, active: &Active) -> Option<Awaited> {
    match (&active.rest, &active.incoming) {
        _ if active.is_answered => Some(Awaited::Rest),
        (Some(Rest::Bytes(_) | Rest::Segments(_)), _) if window == 0 => Some(Awaited::Window),
        (Some(Rest::Pieces), _)
            if window == 0 && active.outbox.as_ref().is_some_and(|outbox| outbox.has_pieces()) =>
        {
            Some(Awaited::Window)
        }
        (Some(Rest::Tunnel(pipe)), _) if window == 0 && pipe.has_unsent() => Some(Awaited::Window),
        (None, StreamBody::Gathered(_)) => Some(Awaited::Body),
        (_, StreamBody::Read(queued)) if queued.is_awaited => Some(Awaited::Body),
        _ => None,
    }
}
