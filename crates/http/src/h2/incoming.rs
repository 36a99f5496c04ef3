//! What comes in parts, for either side: blocks of fields, frames of DATA, bodies of a length that
//! was announced.

use super::error::{Flood, H2Error};
use super::frame::{FrameHeader, PAYLOAD_BYTES_MAX, StreamId, flag, kind, number};

/// Checks what holds for every frame.
///
/// - `block`: the block of fields whose end has not come.
/// - `has_settings`: the peer's settings have come.
#[inline]
pub(super) fn check_frame(
    header: FrameHeader,
    block: Option<&FieldBlock>,
    has_settings: bool,
) -> Result<(), H2Error> {
    if header.len > PAYLOAD_BYTES_MAX {
        return Err(H2Error::size("a frame is longer than 16,384 bytes"));
    }
    if let Some(block) = block
        && (header.kind != kind::CONTINUATION || header.stream != block.id)
    {
        return Err(H2Error::protocol("a block of fields is interrupted by another frame"));
    }
    if !has_settings && (header.kind != kind::SETTINGS || header.has(flag::ACK)) {
        return Err(H2Error::protocol("the first frame is not SETTINGS"));
    }
    Ok(())
}

/// A block of fields that comes in several frames.
#[derive(Debug)]
pub(super) struct FieldBlock {
    pub(super) id: StreamId,
    pub(super) is_end: bool,
    frames: u8,
    pub(super) bytes: Vec<u8>,
}

impl FieldBlock {
    pub(super) fn begin(id: StreamId, is_end: bool, bytes: &[u8]) -> Self {
        Self { id, is_end, frames: 1, bytes: bytes.to_vec() }
    }

    /// Adds a CONTINUATION.
    ///
    /// - `bytes_max`, `frames_max`: how long the block may become.
    ///
    /// # Errors
    /// It is longer.
    pub(super) fn add(
        &mut self,
        payload: &[u8],
        (bytes_max, frames_max): (usize, u8),
    ) -> Result<(), H2Error> {
        self.frames += 1;
        if self.frames > frames_max || self.bytes.len() + payload.len() > bytes_max {
            return Err(H2Error::flood(Flood::Fields));
        }
        self.bytes.extend_from_slice(payload);
        Ok(())
    }

    /// Returns how much memory it takes behind this value.
    pub(super) fn heap_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

/// Bytes of a priority of the old scheme, in front of a block of fields.
const PRIORITY_BYTES: usize = 5;

/// Returns the stream that the old priority of a stream depends on.
pub(super) fn depends_on(priority: &[u8]) -> Option<StreamId> {
    number(priority).map(|(id, _)| id & i32::MAX as u32)
}

/// Returns the block of HEADERS, without padding and priority, and the stream that the priority
/// depends on.
#[inline]
pub(super) fn block_of(
    header: FrameHeader,
    payload: &[u8],
) -> Result<(&[u8], Option<StreamId>), H2Error> {
    if !header.has(flag::PADDED | flag::PRIORITY) {
        return Ok((payload, None));
    }
    let mut block = payload;
    if header.has(flag::PADDED) {
        let [padding, rest @ ..] = block else {
            return Err(H2Error::size("HEADERS are too short for their padding"));
        };
        let end = rest.len().checked_sub(usize::from(*padding));
        let end = end.ok_or(H2Error::protocol("HEADERS are all padding, and more"))?;
        block = &rest[..end];
    }
    if !header.has(flag::PRIORITY) {
        return Ok((block, None));
    }
    let too_short = H2Error::size("HEADERS are too short for a priority");
    let (priority, block) = block.split_at_checked(PRIORITY_BYTES).ok_or(too_short)?;
    Ok((block, depends_on(priority)))
}

/// The rest of a DATA frame.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DataFrame {
    /// 0: its bytes are not wanted.
    pub(super) id: StreamId,
    pub(super) left: u32,
    padding: u8,
    is_end: bool,
    pub(super) is_open: bool,
}

impl DataFrame {
    /// Begins a frame whose bytes are not wanted yet. Returns what follows its padding's length;
    /// `None` if that has not come.
    #[inline]
    pub(super) fn begin(
        header: FrameHeader,
        payload: &[u8],
    ) -> Result<Option<(Self, &[u8])>, H2Error> {
        let (mut padding, mut rest, mut left) = (0, payload, header.len);
        if header.has(flag::PADDED) {
            if header.len == 0 {
                return Err(H2Error::size("DATA is too short for its padding"));
            }
            let [length, behind @ ..] = payload else { return Ok(None) };
            (padding, rest, left) = (*length, behind, left - 1);
            if usize::from(padding) > left {
                return Err(H2Error::protocol("DATA is all padding, and more"));
            }
        }
        let left = u32::try_from(left).unwrap_or(u32::MAX);
        let is_end = header.has(flag::END_STREAM);
        Ok(Some((Self { id: 0, left, padding, is_end, is_open: true }, rest)))
    }

    /// Returns how many bytes of content are to come.
    #[inline]
    pub(super) fn content_bytes(&self) -> usize {
        (self.left as usize).saturating_sub(usize::from(self.padding))
    }

    /// Takes what has come of it.
    #[inline]
    pub(super) fn take<'i>(&mut self, input: &'i [u8]) -> DataPart<'i> {
        let Self { id, left, is_end, .. } = *self;
        let (came, rest) = input.split_at((left as usize).min(input.len()));
        let content = &came[..self.content_bytes().min(came.len())];
        let is_whole = came.len() == left as usize;
        self.left -= u32::try_from(came.len()).unwrap_or(0);
        self.is_open = !is_whole;
        if is_whole {
            *self = Self::default();
        }
        let is_end = is_whole && is_end;
        let is_of_use = id != 0 && (!content.is_empty() || is_end);
        DataPart { wanted: is_of_use.then_some((id, content, is_end)), rest }
    }
}

/// A part of a DATA frame.
pub(super) struct DataPart<'i> {
    /// The stream, the content, and whether the stream ends with it; `None`: nobody wants it.
    pub(super) wanted: Option<(StreamId, &'i [u8], bool)>,
    /// What follows.
    pub(super) rest: &'i [u8],
}

/// What is left of a body whose length was announced, if it was.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AnnouncedLength(pub(super) Option<u64>);

impl AnnouncedLength {
    /// Takes a payload off it. Returns whether it agrees.
    #[inline]
    pub(super) fn note(&mut self, bytes: usize, is_end: bool) -> bool {
        let agrees = self.agrees(bytes, is_end);
        self.take(bytes);
        agrees
    }

    /// Returns whether a payload agrees with it.
    #[inline]
    pub(super) fn agrees(self, bytes: usize, is_end: bool) -> bool {
        let Some(left) = self.0 else { return true };
        left.checked_sub(bytes as u64).is_some_and(|rest| !is_end || rest == 0)
    }

    /// Takes a part of a payload off it, as it comes.
    #[inline]
    pub(super) fn take(&mut self, bytes: usize) {
        self.0 = self.0.map(|left| left.saturating_sub(bytes as u64));
    }
}
