//! The frames that carry no response: SETTINGS, PING, windows, resets, GOAWAY.

use super::{ErrorCode, FrameHeader, H2Client, H2ClientEvent, H2Error, flag, kind, setting};
use crate::h2::frame::{self, number};
use crate::h2::payloads::{self, check_ping, check_place};

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
        check_place(header)?;
        match header.kind {
            kind::WINDOW_UPDATE => self.window_update(header, payload, now_ms, out),
            kind::RST_STREAM => self.reset_by_peer(header, payload, now_ms),
            kind::SETTINGS => self.settings(header, payload, now_ms, out),
            kind::PING => self.ping(header, payload, now_ms, out).map(|()| None),
            kind::GOAWAY => self.goaway(payload, now_ms),
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
        let is_first = !std::mem::replace(&mut self.has_settings, true);
        if !is_first {
            self.idle_frame(now_ms)?;
        }
        let Some(settings) = payloads::settings(header, payload)? else { return Ok(None) };
        if is_first {
            // No limit of its own is none (RFC 9113 §6.5.2).
            self.streams_max = u32::MAX;
        }
        for (id, value) in settings {
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
            setting::INITIAL_WINDOW_SIZE => {
                let streams = self.streams.iter_mut().map(|stream| &mut stream.windows);
                self.windows.set_first(value, streams)?;
            }
            setting::MAX_FRAME_SIZE => self.frame_bytes_max = payloads::frame_bytes_max(value)?,
            // A head that is longer than the server takes gets its response, too.
            _ => {}
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
        check_ping(payload)?;
        self.idle_frame(now_ms)?;
        if !header.has(flag::ACK) {
            frame::write(kind::PING, flag::ACK, 0, payload, out);
        }
        Ok(())
    }

    fn goaway<'i>(
        &mut self,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<Option<H2ClientEvent<'i, S>>, H2Error> {
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
        let more = payloads::window_update(payload)?;
        self.budget.window(now_ms, self.limits.glitches)?;
        let id = header.stream;
        if id == 0 {
            self.windows.widen(more)?;
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
        if !stream.windows.widen(more) {
            let fault = (ErrorCode::FlowControlError, "a window is larger than 2^31 - 1");
            return self.break_stream(id, fault, now_ms, out);
        }
        Ok(Some(H2ClientEvent::Window))
    }

    fn reset_by_peer<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<Option<H2ClientEvent<'i, S>>, H2Error> {
        let code = payloads::reset(payload)?;
        if self.is_idle(header.stream) {
            return Err(H2Error::protocol("RST_STREAM is for a stream that was never opened"));
        }
        let Some(stream) = self.remove(header.stream) else {
            self.idle_frame(now_ms)?;
            return Ok(None);
        };
        Ok(Some(H2ClientEvent::Reset { stream, code, fault: None }))
    }
}
