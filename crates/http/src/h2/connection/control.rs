//! The frames that carry no request: SETTINGS, PING, windows, resets, priorities.

use super::sending::END_PING;
use super::{H2Connection, H2Error, H2Event, Step, WINDOW_MAX};
use crate::h2::error::{ErrorCode, Flood};
use crate::h2::frame::{self, FrameHeader, flag, kind, number, setting};
use crate::h2::priority::Priority;

/// Settings in one frame.
const SETTINGS_MAX: usize = 32;

/// What a peer may announce to take at least and at most in a payload (RFC 9113 §6.5.2).
pub(super) const FRAME_BYTES_LEAST: u32 = 1 << 14;
const FRAME_BYTES_LIMIT: u32 = (1 << 24) - 1;

impl<S> H2Connection<S> {
    /// Reads a frame that is neither DATA nor fields.
    #[inline(never)]
    pub(super) fn control<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        step: &mut Step<'_>,
    ) -> Result<Option<H2Event<'i, S>>, H2Error> {
        match header.kind {
            kind::WINDOW_UPDATE => self.window_update(header, payload, step),
            kind::RST_STREAM => self.reset_by_peer(header, payload, step),
            kind::SETTINGS => self.settings(header, payload, step),
            kind::PING => self.ping(header, payload, step).map(|()| None),
            kind::PRIORITY => self.old_priority(header, payload, step),
            kind::PRIORITY_UPDATE => self.priority_update(header, payload, step).map(|()| None),
            kind::GOAWAY => self.goaway(header, payload, step).map(|()| None),
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
        if header.stream != 0 {
            return Err(H2Error::protocol("SETTINGS are on a stream"));
        }
        let is_first = !std::mem::replace(&mut self.has_settings, true);
        if !is_first {
            self.budget.idle_frame(step.now_ms, step.h2.glitches)?;
        }
        if header.has(flag::ACK) {
            self.is_acknowledged = true;
            return match payload {
                [] => Ok(None),
                _ => Err(H2Error::size("an acknowledgement of SETTINGS has a payload")),
            };
        }
        if !payload.len().is_multiple_of(6) {
            return Err(H2Error::size("SETTINGS have no whole number of settings"));
        }
        if payload.len() > SETTINGS_MAX * 6 {
            return Err(H2Error::flood(Flood::Fields));
        }
        for entry in payload.chunks_exact(6) {
            let (id, value) = entry.split_at(2);
            let id = u16::from_be_bytes([id[0], id[1]]);
            let value = u32::from_be_bytes([value[0], value[1], value[2], value[3]]);
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
            setting::INITIAL_WINDOW_SIZE => self.set_first_window(value)?,
            setting::MAX_FRAME_SIZE => {
                if !(FRAME_BYTES_LEAST..=FRAME_BYTES_LIMIT).contains(&value) {
                    return Err(H2Error::protocol("SETTINGS_MAX_FRAME_SIZE is out of its range"));
                }
                self.frame_bytes_max = value;
            }
            // How many streams this side may open, and what it may send in their heads: it opens
            // none, and its heads are short.
            _ => {}
        }
        Ok(())
    }

    /// Changes what each stream may send by as much as the first window changes (RFC 9113 §6.9.2).
    fn set_first_window(&mut self, value: u32) -> Result<(), H2Error> {
        let too_large = H2Error::flow("a window is larger than 2^31 - 1");
        let value = i32::try_from(value).map_err(|_| too_large)?;
        let change = i64::from(value) - i64::from(self.send_window_first);
        self.send_window_first = value;
        for stream in &mut self.streams {
            let window = i64::from(stream.send_window) + change;
            stream.send_window = i32::try_from(window).map_err(|_| too_large)?;
        }
        Ok(())
    }

    fn ping(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        step: &mut Step<'_>,
    ) -> Result<(), H2Error> {
        if header.stream != 0 {
            return Err(H2Error::protocol("PING is on a stream"));
        }
        if payload.len() != 8 {
            return Err(H2Error::size("PING has other than 8 bytes"));
        }
        self.budget.idle_frame(step.now_ms, step.h2.glitches)?;
        if header.has(flag::ACK) {
            self.is_end_known |= payload == END_PING;
        } else {
            frame::write(kind::PING, flag::ACK, 0, payload, step.out);
        }
        Ok(())
    }

    fn goaway(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        step: &mut Step<'_>,
    ) -> Result<(), H2Error> {
        if header.stream != 0 {
            return Err(H2Error::protocol("GOAWAY is on a stream"));
        }
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
        let Some((more, [])) = number(payload) else {
            return Err(H2Error::size("WINDOW_UPDATE has other than 4 bytes"));
        };
        let more = i64::from(more & i32::MAX as u32);
        self.budget.window(step.now_ms, step.h2.glitches)?;
        if header.stream == 0 {
            if more == 0 {
                return Err(H2Error::protocol("WINDOW_UPDATE gives nothing"));
            }
            let window = i64::from(self.send_window) + more;
            let too_large = H2Error::flow("the connection's window is larger than 2^31 - 1");
            self.send_window = i32::try_from(window).map_err(|_| too_large)?;
            return Ok(Some(H2Event::Window));
        }
        if self.is_idle(header.stream) {
            return Err(H2Error::protocol("WINDOW_UPDATE is for a stream that was never opened"));
        }
        if more == 0 {
            return self.break_stream(header.stream, ErrorCode::ProtocolError, step);
        }
        let Some(stream) = self.stream(header.stream) else { return Ok(None) };
        let window = i64::from(stream.send_window) + more;
        if window > WINDOW_MAX {
            return self.break_stream(header.stream, ErrorCode::FlowControlError, step);
        }
        stream.send_window = i32::try_from(window).unwrap_or(i32::MAX);
        Ok(Some(H2Event::Window))
    }

    fn reset_by_peer<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        step: &mut Step<'_>,
    ) -> Result<Option<H2Event<'i, S>>, H2Error> {
        let Some((code, [])) = number(payload) else {
            return Err(H2Error::size("RST_STREAM has other than 4 bytes"));
        };
        if self.is_idle(header.stream) {
            return Err(H2Error::protocol("RST_STREAM is for a stream that was never opened"));
        }
        self.budget.glitch(Flood::Resets, step.now_ms, step.h2.glitches)?;
        let stream = self.remove(header.stream);
        Ok(Some(H2Event::Reset { stream, code: ErrorCode::of(code), by_peer: true }))
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
            self.ahead = Some((id, priority));
        }
        Ok(())
    }
}

/// Returns the stream that the old priority of a stream depends on.
pub(super) fn depends_on(payload: &[u8]) -> Option<u32> {
    number(payload).map(|(id, _)| id & i32::MAX as u32)
}
