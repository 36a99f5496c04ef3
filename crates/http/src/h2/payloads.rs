//! Payloads of the frames that carry neither content nor fields, as both sides have to read them.

use super::error::{ErrorCode, Flood, H2Error};
use super::frame::{FrameHeader, flag, kind, number};

/// Settings in one frame.
const SETTINGS_MAX: usize = 32;

/// What a peer may announce to take at least and at most in a payload (RFC 9113 §6.5.2).
pub(super) const FRAME_BYTES_LEAST: u32 = 1 << 14;
const FRAME_BYTES_LIMIT: u32 = (1 << 24) - 1;

/// Checks that a frame which is of the connection is on no stream.
pub(super) fn check_place(header: FrameHeader) -> Result<(), H2Error> {
    let fault = match header.kind {
        _ if header.stream == 0 => return Ok(()),
        kind::SETTINGS => "SETTINGS are on a stream",
        kind::PING => "PING is on a stream",
        kind::GOAWAY => "GOAWAY is on a stream",
        _ => return Ok(()),
    };
    Err(H2Error::protocol(fault))
}

/// Reads SETTINGS: numbers and values. `None`: it acknowledges this side's.
pub(super) fn settings(
    header: FrameHeader,
    payload: &[u8],
) -> Result<Option<impl Iterator<Item = (u16, u32)>>, H2Error> {
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
    Ok(Some(payload.chunks_exact(6).map(|entry| {
        let (id, value) = entry.split_at(2);
        let id = u16::from_be_bytes([id[0], id[1]]);
        (id, u32::from_be_bytes([value[0], value[1], value[2], value[3]]))
    })))
}

/// Checks the value of `SETTINGS_MAX_FRAME_SIZE`.
pub(super) fn frame_bytes_max(value: u32) -> Result<u32, H2Error> {
    if !(FRAME_BYTES_LEAST..=FRAME_BYTES_LIMIT).contains(&value) {
        return Err(H2Error::protocol("SETTINGS_MAX_FRAME_SIZE is out of its range"));
    }
    Ok(value)
}

/// Checks the payload of PING.
pub(super) fn check_ping(payload: &[u8]) -> Result<(), H2Error> {
    match payload.len() {
        8 => Ok(()),
        _ => Err(H2Error::size("PING has other than 8 bytes")),
    }
}

/// Reads how much more may be sent: 0 to 2^31 - 1.
pub(super) fn window_update(payload: &[u8]) -> Result<i64, H2Error> {
    let Some((more, [])) = number(payload) else {
        return Err(H2Error::size("WINDOW_UPDATE has other than 4 bytes"));
    };
    Ok(i64::from(more & i32::MAX as u32))
}

/// Reads why a stream ends.
pub(super) fn reset(payload: &[u8]) -> Result<ErrorCode, H2Error> {
    let Some((code, [])) = number(payload) else {
        return Err(H2Error::size("RST_STREAM has other than 4 bytes"));
    };
    Ok(ErrorCode::of(code))
}
