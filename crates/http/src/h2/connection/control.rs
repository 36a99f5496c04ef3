//! The frames that carry no request: SETTINGS, PING, windows, resets, priorities.

use super::sending::END_PING;
use super::{H2Connection, H2Error, H2Event, Step};
use crate::h2::error::{ErrorCode, Flood};
use crate::h2::frame::{self, FrameHeader, flag, kind, number, setting};
use crate::h2::incoming::depends_on;
use crate::h2::payloads::{self, check_ping, check_place};
use crate::h2::priority::Priority;

impl<S> H2Connection<S> {
    /// Reads a frame that is neither DATA nor fields.
    #[inline(never)]
    pub(super) fn control<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        step: &mut Step<'_>,
    ) -> Result<Option<H2Event<'i, S>>, H2Error> {
        check_place(header)?;
        match header.kind {
            kind::WINDOW_UPDATE => self.window_update(header, payload, step),
            kind::RST_STREAM => self.reset_by_peer(header, payload, step),
            kind::SETTINGS => self.settings(header, payload, step),
            kind::PING => self.ping_by_peer(header, payload, step).map(|()| None),
            kind::PRIORITY => self.old_priority(header, payload, step),
            kind::PRIORITY_UPDATE => self.priority_update(header, payload, step).map(|()| None),
            kind::GOAWAY => self.goaway(payload, step).map(|()| None),
            kind::PUSH_PROMISE => Err(H2Error::protocol("a client cannot push")),
            // Unknown ones are ignored (RFC 9113 §5.5).
            _ => self.budget.idle_frame(step.now_ms, step.h2.glitches).map(|()| None),
        }
    }

    fn settings<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        step: &mut Step<'_>,
    ) -> Result<Option<H2Event<'i, S>>, H2Error> {
        let is_first = !std::mem::replace(&mut self.has_settings, true);
        if !is_first {
            self.budget.idle_frame(step.now_ms, step.h2.glitches)?;
        }
        let Some(settings) = payloads::settings(header, payload)? else {
            self.is_acknowledged = true;
            return Ok(None);
        };
        for (id, value) in settings {
            self.set(id, value)?;
        }
        frame::write(kind::SETTINGS, flag::ACK, 0, b"", step.out);
        Ok(Some(H2Event::Window))
    }

    fn set(&mut self, id: u16, value: u32) -> Result<(), H2Error> {
        match id {
            setting::HEADER_TABLE_SIZE => {
                self.encoder.set_max_bytes(usize::try_from(value).unwrap_or(usize::MAX));
            }
            setting::ENABLE_PUSH | setting::ENABLE_CONNECT_PROTOCOL if value > 1 => {
                return Err(H2Error::protocol("a setting is neither 0 nor 1"));
            }
            setting::INITIAL_WINDOW_SIZE => {
                let streams = self.streams.iter_mut().map(|stream| &mut stream.windows);
                self.windows.set_first(value, streams)?;
            }
            setting::MAX_FRAME_SIZE => self.frame_bytes_max = payloads::frame_bytes_max(value)?,
            // How many streams this side may open, and what it may send in their heads: it opens
            // none, and its heads are short.
            _ => {}
        }
        Ok(())
    }

    fn ping_by_peer(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        step: &mut Step<'_>,
    ) -> Result<(), H2Error> {
        check_ping(payload)?;
        self.budget.idle_frame(step.now_ms, step.h2.glitches)?;
        if header.has(flag::ACK) {
            self.is_end_known |= payload == END_PING;
        } else {
            frame::write(kind::PING, flag::ACK, 0, payload, step.out);
        }
        Ok(())
    }

    fn goaway(&mut self, payload: &[u8], step: &mut Step<'_>) -> Result<(), H2Error> {
        if payload.len() < 8 {
            return Err(H2Error::size("GOAWAY has less than 8 bytes"));
        }
        self.budget.idle_frame(step.now_ms, step.h2.glitches)?;
        self.is_peer_leaving = true;
        Ok(())
    }

    fn window_update<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        step: &mut Step<'_>,
    ) -> Result<Option<H2Event<'i, S>>, H2Error> {
        let more = payloads::window_update(payload)?;
        self.budget.window(step.now_ms, step.h2.glitches)?;
        if header.stream == 0 {
            self.windows.widen(more)?;
            return Ok(Some(H2Event::Window));
        }
        if self.is_idle(header.stream) {
            return Err(H2Error::protocol("WINDOW_UPDATE is for a stream that was never opened"));
        }
        if more == 0 {
            return self.break_stream(header.stream, ErrorCode::ProtocolError, step);
        }
        let Some(stream) = self.stream(header.stream) else { return Ok(None) };
        if !stream.windows.widen(more) {
            return self.break_stream(header.stream, ErrorCode::FlowControlError, step);
        }
        Ok(Some(H2Event::Window))
    }

    fn reset_by_peer<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        step: &mut Step<'_>,
    ) -> Result<Option<H2Event<'i, S>>, H2Error> {
        let code = payloads::reset(payload)?;
        if self.is_idle(header.stream) {
            return Err(H2Error::protocol("RST_STREAM is for a stream that was never opened"));
        }
        self.budget.glitch(Flood::Resets, step.now_ms, step.h2.glitches)?;
        let stream = self.remove(header.stream);
        Ok(Some(H2Event::Reset { stream, code, by_peer: true }))
    }

    /// The scheme of RFC 7540, which is checked and has no effect (RFC 9113 §5.3.2).
    fn old_priority<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        step: &mut Step<'_>,
    ) -> Result<Option<H2Event<'i, S>>, H2Error> {
        if header.stream == 0 {
            return Err(H2Error::protocol("PRIORITY is on no stream"));
        }
        let (code, reason) = match payload.len() {
            5 if depends_on(payload) != Some(header.stream) => (ErrorCode::NoError, ""),
            5 => (ErrorCode::ProtocolError, "a stream depends on itself"),
            _ => (ErrorCode::FrameSizeError, "PRIORITY has other than 5 bytes"),
        };
        if code != ErrorCode::NoError {
            // A stream that was never opened cannot be reset.
            if self.is_idle(header.stream) {
                return Err(H2Error::new(code, reason));
            }
            return self.break_stream(header.stream, code, step);
        }
        self.budget.idle_frame(step.now_ms, step.h2.glitches)?;
        Ok(None)
    }

    /// RFC 9218 §7.1
    fn priority_update(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        step: &mut Step<'_>,
    ) -> Result<(), H2Error> {
        if header.stream != 0 {
            return Err(H2Error::protocol("PRIORITY_UPDATE is on a stream"));
        }
        let Some((id, value)) = number(payload) else {
            return Err(H2Error::size("PRIORITY_UPDATE has less than 4 bytes"));
        };
        let id = id & i32::MAX as u32;
        if id.is_multiple_of(2) {
            return Err(H2Error::protocol("PRIORITY_UPDATE is for no request"));
        }
        self.budget.idle_frame(step.now_ms, step.h2.glitches)?;
        let priority = Priority::of(value);
        if let Some(stream) = self.stream(id) {
            stream.priority = priority;
        } else if self.is_idle(id) {
            // The newest one that comes before its request is kept (RFC 9218 §7.1).
            self.ahead = (id, priority);
        }
        Ok(())
    }
}
