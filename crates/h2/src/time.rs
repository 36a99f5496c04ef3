//! Time-outs of a connection and of its streams.

use gustnado_app::app::App;
use gustnado_http::h2::{ErrorCode, H2Error};
use gustnado_http::status::Status;
use gustnado_observe::stats::{Added, Fault};
use gustnado_tasks::{ConnectionError, SendWatch};

use crate::active::{Active, Rest};
use crate::ending::ConnPhase;
use crate::stream_body::StreamBody;
use crate::{Http2Conn, TurnOutcome};

/// When what is waited for has to have come, in milliseconds.
pub(super) struct ConnTimers {
    /// The next request, while there is none.
    idle_ms: u64,
    /// The end of a frame, or a block of fields, that has begun.
    frame_ms: Option<u64>,
    /// The send that is under way, and when it is looked at next.
    send: Option<Box<(SendWatch, u64)>>,
}

impl ConnTimers {
    pub(super) fn new(now_ms: u64, app: &App) -> Self {
        Self { idle_ms: now_ms + app.times.first_ms, frame_ms: None, send: None }
    }

    /// Notes that bytes were read.
    ///
    /// - `is_within`: they end within a frame.
    pub(super) fn note_input(&mut self, now_ms: u64, app: &App, is_within: bool) {
        self.idle_ms = now_ms + app.times.keep_alive_ms;
        if !is_within {
            self.frame_ms = None;
        } else if self.frame_ms.is_none() {
            self.frame_ms = Some(now_ms + app.times.header_ms);
        }
    }

    pub(super) fn begin_send(&mut self, now_ms: u64, app: &App) {
        let look_ms = now_ms + app.times.write_look_ms;
        self.send = Some(Box::new((SendWatch::new(now_ms), look_ms)));
    }

    pub(super) fn end_send(&mut self, now_ms: u64) {
        self.send = None;
        _ = now_ms;
    }
}

impl Http2Conn {
    /// Returns whether what was read ends within a frame or a block of fields.
    pub(super) fn is_within_frame(&self) -> bool {
        !self.unread.is_empty() && !self.has_unread || self.core.is_within_frame()
    }

    /// Returns whether nothing is owed to the client.
    pub(super) fn is_idle(&self) -> bool {
        self.core.open_streams() == 0
            && !self.socket.is_sending()
            && self.next.as_ref().is_none_or(|next| next.is_empty())
            && matches!(self.phase, ConnPhase::Open)
    }

    /// Sets when the connection looks at its time-outs next.
    pub(super) fn set_deadline(&mut self) {
        let now_ms = self.socket.now().mono_ms;
        let mut at_ms = self.timers.frame_ms.unwrap_or(u64::MAX);
        if let Some(send) = &self.timers.send {
            at_ms = at_ms.min(send.1);
        } else if self.core.open_streams() == 0 {
            at_ms = at_ms.min(self.timers.idle_ms);
        }
        if let ConnPhase::Leaving { until_ms } = self.phase {
            at_ms = at_ms.min(until_ms.max(now_ms + 1));
        }
        let times = self.app.times;
        let room = self.core.room();
        for stream in self.core.streams() {
            let silence_ms = match waits_for_peer(stream.window().min(room), &stream.state) {
                None => {
                    stream.state.until_ms = 0;
                    continue;
                }
                Some(Awaited::Body) => stream.state.options.body_timeout(times.body).silence_ms,
                Some(Awaited::Window) => stream.state.options.write_timeout(times.write).silence_ms,
            };
            if stream.state.until_ms == 0 {
                stream.state.until_ms = now_ms + silence_ms;
            }
            at_ms = at_ms.min(stream.state.until_ms);
        }
        self.socket.set_deadline(at_ms);
    }

    /// Acts on the time-outs that are over.
    #[cold]
    pub(super) fn after_timeout(&mut self) -> TurnOutcome {
        self.socket.refresh_now();
        let now_ms = self.socket.now().mono_ms;
        if self.timers.frame_ms.is_some_and(|at_ms| at_ms <= now_ms) {
            self.app.count(&Added { fault: Some(Fault::TooSlow), ..Added::default() });
            self.end_by(ErrorCode::EnhanceYourCalm, "a frame has not come to its end in time");
            return TurnOutcome::On;
        }
        if let Some(send) = &mut self.timers.send {
            if send.1 <= now_ms {
                let patience = self.app.times.write;
                if !self.socket.look_at_send(&mut send.0, patience) {
                    return self.give_up(&ConnectionError::TimedOut);
                }
                send.1 = self.socket.deadline_ms();
            }
        } else if self.core.open_streams() == 0 && self.timers.idle_ms <= now_ms {
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
        let late = |stream: &gustnado_http::h2::Stream<Box<Active>>| {
            (1..=now_ms).contains(&stream.state.until_ms).then_some(stream.id)
        };
        let late: Vec<_> = self.core.streams().iter().filter_map(late).collect();
        let app = std::sync::Arc::clone(&self.app);
        for id in late {
            let Some(stream) = self.core.stream(id) else { continue };
            stream.state.until_ms = 0;
            match &stream.state.incoming {
                _ if stream.state.is_answered => self.stop(id),
                StreamBody::Gathered(_) => self.refuse_stream(id, Status::REQUEST_TIMEOUT, &app),
                StreamBody::Read(_) if stream.state.rest.is_none() => {
                    app.count(&Added { fault: Some(Fault::TooSlow), ..Added::default() });
                    self.break_body(id, gustnado_web::body::BodyError::TooSlow);
                }
                _ => {
                    app.count(&Added { fault: Some(Fault::TooSlow), ..Added::default() });
                    self.reset(id, ErrorCode::Cancel);
                }
            }
        }
    }

    fn end_by(&mut self, code: ErrorCode, reason: &'static str) {
        self.go_away(H2Error { code, reason });
        self.phase = ConnPhase::Broken;
    }
}

/// What a stream waits for.
enum Awaited {
    Body,
    Window,
}

/// Returns what a stream waits for of its client.
fn waits_for_peer(window: usize, active: &Active) -> Option<Awaited> {
    match (&active.rest, &active.incoming) {
        _ if active.is_answered => Some(Awaited::Body),
        (Some(Rest::Bytes(_) | Rest::Segments(_)), _) if window == 0 => Some(Awaited::Window),
        (Some(Rest::Pieces), _)
            if window == 0 && active.outbox.as_ref().is_some_and(|outbox| outbox.has_pieces()) =>
        {
            Some(Awaited::Window)
        }
        (None, StreamBody::Gathered(_)) => Some(Awaited::Body),
        (_, StreamBody::Read(queued)) if queued.is_awaited => Some(Awaited::Body),
        _ => None,
    }
}
