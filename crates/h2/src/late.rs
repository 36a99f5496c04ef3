//! What becomes of those who have had their time: of a connection, of a stream. The program's hook
//! may give them more.

use std::sync::Arc;

use gustnado_app::hooks::Limit;
use gustnado_http::h2::{ErrorCode, H2Error, Stream, StreamId};
use gustnado_http::status::Status;
use gustnado_observe::stats::{Added, Fault, Http2Fault};
use gustnado_tasks::{ConnectionError, SendWatch};
use gustnado_web::body::BodyError;
use gustnado_web::tunnel::PipeLoss;

use crate::active::Active;
use crate::ending::ConnPhase;
use crate::stream_body::StreamBody;
use crate::time::waits_for_peer;
use crate::{Http2Conn, TurnOutcome};

impl Http2Conn {
    /// Acts on the time-outs that are over.
    #[cold]
    pub(super) fn after_timeout(&mut self) -> TurnOutcome {
        self.socket.refresh_now();
        let now_ms = self.socket.now().mono_ms;
        let is_broken = self.phase == ConnPhase::Broken;
        if !is_broken && self.timers.frame_ms <= now_ms {
            let kept = (self.unread.len() + self.core.block_bytes()) as u64;
            match self.more_ms(Limit::Head, self.app.times.header_ms, kept) {
                Some(more_ms) => self.timers.frame_ms = now_ms.saturating_add(more_ms),
                None => return self.end_frame(),
            }
        }
        let is_phase_over = self.timers.is_phase_over(now_ms) && !self.is_sending();
        if self.phase.only_responds() && is_phase_over {
            match self.more_ms(Limit::HalfClose, self.app.times.half_close_ms, 0) {
                Some(more_ms) => self.timers.end_phase_at(now_ms.saturating_add(more_ms)),
                None => return self.give_up(&ConnectionError::TimedOut),
            }
        }
        if self.is_sending() {
            if !self.may_send_on(now_ms) {
                return self.give_up(&ConnectionError::TimedOut);
            }
        } else if !is_broken && self.awaits_request() && self.timers.idle_ms <= now_ms {
            let (limit, ms, fault) = match self.requests {
                0 => (Limit::FirstRequest, self.app.times.first_ms, Fault::NeverAsked),
                _ => (Limit::KeepAlive, self.app.times.keep_alive_ms, Fault::Idle),
            };
            let Some(more_ms) = self.more_ms(limit, ms, 0) else {
                self.app.count(&Added { fault: Some(fault), ..Added::default() });
                let reason = "no request has come for a while";
                self.end_by(H2Error::new(ErrorCode::NoError, reason));
                return TurnOutcome::On;
            };
            self.timers.idle_ms = now_ms.saturating_add(more_ms);
        }
        if self.awaits_ping() && self.timers.ping_ms <= now_ms {
            self.ping_or_end(now_ms);
        }
        self.end_late_streams(now_ms);
        self.set_deadline();
        TurnOutcome::On
    }

    /// Returns whether the next request is waited for. A part of one has a time of its own.
    pub(super) fn awaits_request(&self) -> bool {
        self.core.open_streams() == 0 && !self.has_begun_request()
    }

    fn more_ms(&self, limit: Limit, configured_ms: u64, reached: u64) -> Option<u64> {
        self.app.more_ms(self.requests, limit, (configured_ms, reached), b"")
    }

    fn end_frame(&mut self) -> TurnOutcome {
        self.app.count(&Added { fault: Some(Fault::TooSlow), ..Added::default() });
        let reason = "a frame has not come to its end in time";
        self.end_by(H2Error::new(ErrorCode::EnhanceYourCalm, reason));
        TurnOutcome::On
    }

    /// Looks at the send that is under way. Returns whether the client may take its time.
    fn may_send_on(&mut self, now_ms: u64) -> bool {
        let patience = self.send_patience();
        if self.timers.look_ms > now_ms {
            return true;
        }
        let began_ms = now_ms - self.timers.sends_since(now_ms);
        let watch = self.timers.watch.get_or_insert_with(|| SendWatch::new(began_ms).into());
        let look_ms = if self.socket.look_at_send(watch, patience) {
            Some(self.socket.deadline_ms())
        } else {
            let more_ms = self.more_ms(Limit::Write, patience.silence_ms, 0);
            more_ms.map(|more_ms| now_ms.saturating_add(more_ms))
        };
        if let Some(look_ms) = look_ms {
            self.timers.look_ms = look_ms;
        }
        look_ms.is_some()
    }

    /// Returns whether a client that is silent is sent a PING, or has been. One that has a send to
    /// take cannot see it; that has a time of its own.
    pub(super) fn awaits_ping(&self) -> bool {
        self.app.times.ping_ms > 0
            && self.core.open_streams() > 0
            && !self.is_sending()
            && self.phase.reads()
    }

    /// Asks a silent client whether it is there; ends the connection if it was asked.
    fn ping_or_end(&mut self, now_ms: u64) {
        if self.timers.is_ping_sent {
            let fault = Some(Fault::Http2(Http2Fault::NoAnswer));
            self.app.count(&Added { fault, ..Added::default() });
            let reason = "nothing has come since a PING was sent";
            return self.end_by(H2Error::new(ErrorCode::NoError, reason));
        }
        self.with_core(|core, step| core.ping(step.out));
        self.timers.ping_ms = now_ms + self.app.times.ping_answer_ms;
        self.timers.is_ping_sent = true;
    }

    /// Ends the streams whose clients, or handlers, have had their time.
    fn end_late_streams(&mut self, now_ms: u64) {
        let room = self.core.room();
        let streams = self.core.streams().iter_mut();
        let late: Vec<_> = streams.filter_map(|stream| late_of(stream, room, now_ms)).collect();
        for (id, limit, reached) in late {
            self.end_late_stream(id, (limit, reached), now_ms);
        }
    }

    fn end_late_stream(&mut self, id: StreamId, (limit, reached): (Limit, u64), now_ms: u64) {
        let (app, requests) = (Arc::clone(&self.app), self.requests);
        let Some(stream) = self.core.stream(id) else { return };
        let active = &mut *stream.state;
        if active.is_answered {
            return self.stop(id);
        }
        let configured_ms = match limit {
            Limit::Body => active.options.body_timeout(app.times.body).silence_ms,
            Limit::Write => active.write_timeout(app.times.write).silence_ms,
            _ => active.idle.idle_ms(),
        };
        let numbers = (configured_ms, reached);
        if let Some(more_ms) = app.more_ms(requests, limit, numbers, active.target()) {
            let until_ms = now_ms.saturating_add(more_ms);
            return match limit {
                Limit::Body => active.sender.grant(until_ms),
                Limit::Write => active.reader.grant(until_ms),
                _ => active.idle.grant(until_ms),
            };
        }
        let fault = Added { fault: Some(Fault::TooSlow), ..Added::default() };
        match &active.incoming {
            StreamBody::Gathered(_) => self.refuse_stream(id, Status::REQUEST_TIMEOUT, &app),
            _ if limit == Limit::Idle && active.rest.is_none() => {
                app.count(&fault);
                self.refuse_stream(id, Status::SERVICE_UNAVAILABLE, &app);
            }
            StreamBody::Read(_) if active.rest.is_none() => {
                // Now the handler has its time to respond to that.
                active.idle.note_progress(now_ms);
                app.count(&fault);
                self.break_body(id, BodyError::TooSlow);
            }
            StreamBody::Tunnel(tunnel) => {
                tunnel.pipe().lose(PipeLoss::TimedOut);
                app.count(&fault);
                self.reset(id, ErrorCode::Cancel);
            }
            _ => {
                app.count(&fault);
                self.reset(id, ErrorCode::Cancel);
            }
        }
    }

    /// Ends the connection with a code, and a sentence that says why.
    pub(super) fn end_by(&mut self, error: H2Error) {
        self.tell_error(error);
        self.phase = ConnPhase::Broken;
    }

    /// Tells the client, and the log, why the connection ends.
    pub(super) fn tell_error(&mut self, error: H2Error) {
        if error.code != ErrorCode::NoError {
            self.app.note_connection_error(error, &self.socket);
        }
        self.go_away(error);
    }
}

/// Returns the limit of time that a stream is past, if it is, and the bytes until then.
///
/// - `room`: what the connection's window leaves.
fn late_of(
    stream: &mut Stream<Box<Active>>,
    room: usize,
    now_ms: u64,
) -> Option<(StreamId, Limit, u64)> {
    let is_awaited = waits_for_peer(stream.window().min(room), &stream.state).is_some();
    let Active { sender, reader, idle, .. } = &mut *stream.state;
    let (received, sent) = (sender.bytes(), reader.bytes());
    let (limit, reached) = if sender.is_over(now_ms) {
        (Limit::Body, received)
    } else if reader.is_over(now_ms) {
        (Limit::Write, sent)
    } else if !is_awaited && idle.until_ms() <= now_ms {
        // (Where the client is waited for, the handler cannot help it.)
        idle.note_progress(now_ms);
        (Limit::Idle, received)
    } else {
        return None;
    };
    Some((stream.id, limit, reached))
}
