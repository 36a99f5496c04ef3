//! The frames that carry no response: SETTINGS, PING, windows, resets, GOAWAY.

use super::{ErrorCode, Flood, FrameHeader, H2Client, H2ClientEvent, H2Error, flag, kind, setting};
use crate::h2::frame::{self, number};

/// Settings in one frame.
const SETTINGS_MAX: usize = 32;

/// What a peer may announce to take at least and at most in a payload (RFC 9113 §6.5.2).
pub(super) const FRAME_BYTES_LEAST: u32 = 1 << 14;
const FRAME_BYTES_LIMIT: u32 = (1 << 24) - 1;

impl<S> H2Client<S> {
    /// Reads a frame that is neither DATA nor fields.
    #[inline(never)]
    pub(super) fn control<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Result<Option<H2ClientEvent<'i, S>>, H2Error> {
        match header.kind {
            kind::WINDOW_UPDATE => self.window_update(header, payload, now_ms, out),
            kind::RST_STREAM => self.reset_by_peer(header, payload, now_ms),
            kind::SETTINGS => self.settings(header, payload, now_ms, out),
            kind::PING => self.ping(header, payload, now_ms, out).map(|()| None),
            kind::GOAWAY => self.goaway(header, payload, now_ms),
            kind::PUSH_PROMISE => Err(H2Error::protocol("a push, which was switched off")),
            kind::PRIORITY if header.stream == 0 => {
                Err(H2Error::protocol("PRIORITY is on no stream"))
            }
            // Unknown ones are ignored (RFC 9113 §5.5), and priorities mean nothing to a client.
            _ => self.idle_frame(now_ms).map(|()| None),
        }
    }

    fn idle_frame(&mut self, now_ms: u64) -> Result<(), H2Error> {
        self.budget.idle_frame(now_ms, self.limits.glitches)
    }

    fn settings<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Result<Option<H2ClientEvent<'i, S>>, H2Error> {
        if header.stream != 0 {
            return Err(H2Error::protocol("SETTINGS are on a stream"));
        }
        let is_first = !std::mem::replace(&mut self.has_settings, true);
        if !is_first {
            self.idle_frame(now_ms)?;
        }
        if header.has(flag::ACK) {
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
        if is_first {
            // No limit of its own is none (RFC 9113 §6.5.2).
            self.streams_max = u32::MAX;
        }
        for entry in payload.chunks_exact(6) {
            let (id, value) = entry.split_at(2);
            let id = u16::from_be_bytes([id[0], id[1]]);
            let value = u32::from_be_bytes([value[0], value[1], value[2], value[3]]);
            self.set(id, value)?;
        }
        frame::write(kind::SETTINGS, flag::ACK, 0, b"", out);
        Ok(Some(H2ClientEvent::Window))
    }

    fn set(&mut self, id: u16, value: u32) -> Result<(), H2Error> {
        match id {
            setting::HEADER_TABLE_SIZE => {
                self.encoder.set_max_bytes(usize::try_from(value).unwrap_or(usize::MAX));
            }
            setting::ENABLE_PUSH if value != 0 => {
                return Err(H2Error::protocol("a server enables push"));
            }
            setting::ENABLE_CONNECT_PROTOCOL => {
                if value > 1 || value == 0 && self.is_connect_protocol {
                    return Err(H2Error::protocol("a setting is neither 0 nor 1, or taken back"));
                }
                self.is_connect_protocol = value == 1;
            }
            setting::MAX_CONCURRENT_STREAMS => self.streams_max = value,
            setting::INITIAL_WINDOW_SIZE => self.set_first_window(value)?,
            setting::MAX_FRAME_SIZE => {
                if !(FRAME_BYTES_LEAST..=FRAME_BYTES_LIMIT).contains(&value) {
                    return Err(H2Error::protocol("SETTINGS_MAX_FRAME_SIZE is out of its range"));
                }
                self.frame_bytes_max = value;
            }
            // A head that is longer than the server takes gets its response, too.
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
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), H2Error> {
        if header.stream != 0 {
            return Err(H2Error::protocol("PING is on a stream"));
        }
        if payload.len() != 8 {
            return Err(H2Error::size("PING has other than 8 bytes"));
        }
        self.idle_frame(now_ms)?;
        if !header.has(flag::ACK) {
            frame::write(kind::PING, flag::ACK, 0, payload, out);
        }
        Ok(())
    }

    fn goaway<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<Option<H2ClientEvent<'i, S>>, H2Error> {
        if header.stream != 0 {
            return Err(H2Error::protocol("GOAWAY is on a stream"));
        }
        let Some((last, code)) = number(payload).and_then(|(last, rest)| {
            let (code, _) = number(rest)?;
            Some((last & i32::MAX as u32, ErrorCode::of(code)))
        }) else {
            return Err(H2Error::size("GOAWAY has less than 8 bytes"));
        };
        self.idle_frame(now_ms)?;
        if last > self.last_served {
            return Err(H2Error::protocol("a second GOAWAY serves more than the first"));
        }
        (self.last_served, self.is_leaving) = (last, true);
        let at = self.streams.partition_point(|stream| stream.id <= last);
        let refused = self.streams.drain(at..).collect();
        Ok(Some(H2ClientEvent::GoAway { refused, code }))
    }

    fn window_update<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Result<Option<H2ClientEvent<'i, S>>, H2Error> {
        let Some((more, [])) = number(payload) else {
            return Err(H2Error::size("WINDOW_UPDATE has other than 4 bytes"));
        };
        let more = i64::from(more & i32::MAX as u32);
        self.budget.window(now_ms, self.limits.glitches)?;
        let id = header.stream;
        if id == 0 {
            if more == 0 {
                return Err(H2Error::protocol("WINDOW_UPDATE gives nothing"));
            }
            let window = i64::from(self.send_window) + more;
            let too_large = H2Error::flow("the connection's window is larger than 2^31 - 1");
            self.send_window = i32::try_from(window).map_err(|_| too_large)?;
            return Ok(Some(H2ClientEvent::Window));
        }
        if self.is_idle(id) {
            return Err(H2Error::protocol("WINDOW_UPDATE is for a stream that was never opened"));
        }
        if more == 0 {
            let fault = (ErrorCode::ProtocolError, "WINDOW_UPDATE gives nothing");
            return self.break_stream(id, fault, now_ms, out);
        }
        let Some(stream) = self.stream(id) else { return Ok(None) };
        let Ok(window) = i32::try_from(i64::from(stream.send_window) + more) else {
            let fault = (ErrorCode::FlowControlError, "a window is larger than 2^31 - 1");
            return self.break_stream(id, fault, now_ms, out);
        };
        stream.send_window = window;
        Ok(Some(H2ClientEvent::Window))
    }

    fn reset_by_peer<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<Option<H2ClientEvent<'i, S>>, H2Error> {
        let Some((code, [])) = number(payload) else {
            return Err(H2Error::size("RST_STREAM has other than 4 bytes"));
        };
        if self.is_idle(header.stream) {
            return Err(H2Error::protocol("RST_STREAM is for a stream that was never opened"));
        }
        let Some(stream) = self.remove(header.stream) else {
            self.idle_frame(now_ms)?;
            return Ok(None);
        };
        let code = ErrorCode::of(code);
        Ok(Some(H2ClientEvent::Reset { stream, code, fault: None }))
    }
}
