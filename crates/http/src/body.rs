//! The request body: which of the bytes that came belong to it, and where it ends
//! (RFC 9112 §6, §7.1).
//!
//! Data is handed on where it lies; nothing is copied. Chunk extensions are checked, counted and
//! dropped (RFC 9112 §7.1.1). Trailer fields are checked, counted, and kept if they are wanted
//! (§7.1.2).

mod error;
mod extension;
#[cfg(test)]
mod tests;

pub use error::BodyDecodeError;

use self::extension::Extension;
use crate::head::Framing;
use crate::limits::Limits;
use crate::syntax::{TOKEN, VALUE, is};

/// Hexadecimal digits of a chunk size, leading zeros included: all that 64 bits need.
pub const SIZE_DIGITS_MAX: u8 = 16;

/// Bytes of the extensions of one chunk. No client sends any but to keep a server busy.
pub const CHUNK_EXTENSION_BYTES_MAX: u32 = 256;

/// Bytes of the extensions of all chunks of one body.
pub const BODY_EXTENSION_BYTES_MAX: u32 = 4_096;

/// What one step found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Bytes of the input that are used up, data and framing together.
    pub consumed: usize,
    /// Body data among them; may be empty.
    pub data: &'a [u8],
    /// Whether the body ends here. What follows in the input is the next request.
    pub done: bool,
}

/// The reader of one request body.
#[derive(Clone, Debug)]
pub struct BodyDecoder {
    /// Bytes of the body, or of the chunk, that are still to come; while a size is read, that size.
    left: u64,
    received: u64,
    body_bytes_max: u64,
    /// Bytes of the extensions so far, all chunks together.
    extension_bytes: u32,
    /// Bytes of the extensions of this chunk, later of the trailer section.
    section_bytes: u32,
    trailer_bytes_max: u32,
    trailers_left: u32,
    trailers_max: u32,
    digits: u8,
    keeps_trailers: bool,
    state: BodyState,
    /// The trailer lines so far, once one has begun.
    trailers: Option<Box<TrailerLines>>,
}

/// Checked lines, of which the last may be incomplete. Few bodies have any.
#[derive(Clone, Debug, Default)]
struct TrailerLines(Vec<u8>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyState {
    /// In a body of known length.
    Length,
    /// In the digits of a chunk size.
    Size,
    Extension(Extension),
    /// Before the line feed of a size line.
    SizeEnd,
    /// In a chunk's data.
    Data,
    /// Behind a chunk's data, before the carriage return.
    DataReturn,
    /// Behind a chunk's data, before the line feed.
    DataEnd,
    /// Before a trailer line or the blank line.
    Trailer,
    TrailerName,
    TrailerValue,
    /// Before the line feed of a trailer line.
    TrailerEnd,
    /// Before the very last line feed.
    BlankLineEnd,
    Done,
}

impl BodyDecoder {
    /// A reader for the body that `framing` announces.
    pub fn new(framing: Framing, limits: &Limits) -> Self {
        let (state, left) = match framing {
            Framing::None | Framing::Length(0) => (BodyState::Done, 0),
            Framing::Length(bytes) => (BodyState::Length, bytes),
            Framing::Chunked => (BodyState::Size, 0),
            // Its end is no byte: what comes is the body.
            Framing::ToEnd => (BodyState::Length, u64::MAX),
        };
        let trailers_max = u32::try_from(limits.fields_max).unwrap_or(u32::MAX);
        Self {
            left,
            received: 0,
            body_bytes_max: limits.body_bytes_max,
            extension_bytes: 0,
            section_bytes: 0,
            trailer_bytes_max: u32::try_from(limits.head_bytes_max).unwrap_or(u32::MAX),
            trailers_left: trailers_max,
            trailers_max,
            digits: 0,
            keeps_trailers: false,
            state,
            trailers: None,
        }
    }

    /// Sets whether trailer lines are kept: at most as many bytes and lines as a head may have.
    /// Those that were kept and are not wanted any more are dropped.
    pub fn keep_trailers(&mut self, is_wanted: bool) {
        self.keeps_trailers = is_wanted;
        self.trailers.take_if(|_| !is_wanted);
    }

    /// Reads on in the body: up to the end of the input, of the body, or of one run of data.
    ///
    /// Call it again with the rest of the input until the piece is `done`, or all of it is
    /// consumed; however the bytes are cut, the data is the same. A body that is announced too
    /// large is refused by the first call, even with empty input: ask before answering `100
    /// Continue`.
    ///
    /// # Errors
    /// [`BodyDecodeError`]; [`BodyDecodeError::status`] is the response's. The connection must then
    /// be closed.
    pub fn decode<'a>(&mut self, input: &'a [u8]) -> Result<Piece<'a>, BodyDecodeError> {
        let mut at = 0;
        loop {
            match self.state {
                BodyState::Done => {
                    return Ok(Piece { consumed: at, data: &[], done: true });
                }
                BodyState::Length if self.left > self.room() => return Err(self.too_large()),
                BodyState::Length | BodyState::Data => return Ok(self.data(input, at)),
                _ => {}
            }
            let Some(byte) = input.get(at) else {
                return Ok(Piece { consumed: at, data: &[], done: false });
            };
            self.state = self.step(*byte)?;
            at += 1;
        }
    }

    /// Returns whether the whole body was read.
    pub fn is_done(&self) -> bool {
        self.state == BodyState::Done
    }

    /// Bytes of data so far, framing not counted.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Returns how many bytes of data are still to come, where the body's length is known.
    pub fn left(&self) -> Option<u64> {
        match self.state {
            BodyState::Length => Some(self.left),
            BodyState::Done => Some(0),
            _ => None,
        }
    }

    /// Returns how many bytes of data are known to come next: of the body, or of the chunk that has
    /// begun.
    pub fn next_run(&self) -> u64 {
        match self.state {
            BodyState::Length | BodyState::Data => self.left,
            _ => 0,
        }
    }

    /// Returns the trailer lines that are kept, each with its line end. Behind the end of the body
    /// they are whole, and [`FieldLines::of`](crate::request::FieldLines::of) reads them.
    pub fn trailer_lines(&self) -> &[u8] {
        self.trailers.as_ref().map_or(&[], |lines| &lines.0)
    }

    /// Takes the trailer lines out; `None` if there were none, or the body is not over.
    pub fn take_trailers(&mut self) -> Option<Vec<u8>> {
        if self.is_done() { self.trailers.take().map(|lines| lines.0) } else { None }
    }

    /// Counts data that was discarded unseen: at most as much as is [left](BodyDecoder::left).
    pub fn skip(&mut self, bytes: u64) {
        debug_assert!(self.left().is_some_and(|left| bytes <= left), "no more than the body's");
        self.left = self.left.saturating_sub(bytes);
        self.received += bytes;
        if self.left == 0 {
            self.state = BodyState::Done;
        }
    }

    /// Takes the data that starts at `at`.
    fn data<'a>(&mut self, input: &'a [u8], at: usize) -> Piece<'a> {
        let there = &input[at..];
        let data = usize::try_from(self.left).map_or(there, |left| &there[..there.len().min(left)]);
        self.left -= data.len() as u64;
        self.received += data.len() as u64;
        if self.left == 0 {
            self.state = if self.state == BodyState::Length {
                BodyState::Done
            } else {
                BodyState::DataReturn
            };
        }
        Piece { consumed: at + data.len(), data, done: self.is_done() }
    }

    /// Takes one byte of framing.
    fn step(&mut self, byte: u8) -> Result<BodyState, BodyDecodeError> {
        match (self.state, byte) {
            (BodyState::Size | BodyState::Extension(_) | BodyState::SizeEnd, _) => {
                self.step_size(byte)
            }
            (BodyState::DataReturn, b'\r') => Ok(BodyState::DataEnd),
            (BodyState::DataEnd, b'\n') => Ok(BodyState::Size),
            (BodyState::DataReturn | BodyState::DataEnd, _) => Err(BodyDecodeError::ChunkEnd),
            _ => self.step_trailer(byte),
        }
    }

    /// `chunk-size [ chunk-ext ] CRLF`, the size in digits only: no sign, no `0x`, no space behind
    /// it.
    fn step_size(&mut self, byte: u8) -> Result<BodyState, BodyDecodeError> {
        match (self.state, byte) {
            (BodyState::Size, _) if byte.is_ascii_hexdigit() => self.digit(byte),
            (BodyState::Size, b'\r' | b';' | b' ' | b'\t') if self.digits > 0 => {
                self.size_known()?;
                if byte == b'\r' {
                    Ok(BodyState::SizeEnd)
                } else {
                    self.extension(Extension::Space, byte)
                }
            }
            (BodyState::Size, _) => Err(BodyDecodeError::ChunkSize),
            (BodyState::Extension(at), b'\r') if at.may_end() => Ok(BodyState::SizeEnd),
            (BodyState::Extension(at), _) => self.extension(at, byte),
            (_, b'\n') => Ok(self.size_line_done()),
            _ => Err(BodyDecodeError::LineEnd),
        }
    }

    fn digit(&mut self, byte: u8) -> Result<BodyState, BodyDecodeError> {
        if self.digits == SIZE_DIGITS_MAX {
            return Err(BodyDecodeError::ChunkSize);
        }
        self.digits += 1;
        let digit = char::from(byte).to_digit(16).expect("the caller saw a hexadecimal digit");
        self.left = self.left << 4 | u64::from(digit);
        Ok(BodyState::Size)
    }

    fn size_known(&self) -> Result<(), BodyDecodeError> {
        if self.left > self.room() { Err(self.too_large()) } else { Ok(()) }
    }

    fn size_line_done(&mut self) -> BodyState {
        self.digits = 0;
        self.section_bytes = 0;
        if self.left == 0 { BodyState::Trailer } else { BodyState::Data }
    }

    /// Takes one byte of the extensions, and counts it.
    fn extension(&mut self, at: Extension, byte: u8) -> Result<BodyState, BodyDecodeError> {
        let next = at.step(byte).ok_or(BodyDecodeError::ChunkExtension)?;
        self.section_bytes += 1;
        self.extension_bytes += 1;
        if self.section_bytes > CHUNK_EXTENSION_BYTES_MAX
            || self.extension_bytes > BODY_EXTENSION_BYTES_MAX
        {
            return Err(BodyDecodeError::ChunkExtensionTooLong);
        }
        Ok(BodyState::Extension(next))
    }

    /// `*( field-line CRLF ) CRLF`
    fn step_trailer(&mut self, byte: u8) -> Result<BodyState, BodyDecodeError> {
        if self.section_bytes >= self.trailer_bytes_max {
            return Err(BodyDecodeError::TrailersTooLarge { limit_bytes: self.trailer_bytes_max });
        }
        self.section_bytes += 1;
        let next = self.trailer_step(byte)?;
        if self.keeps_trailers && !matches!(next, BodyState::BlankLineEnd | BodyState::Done) {
            self.trailers.get_or_insert_default().0.push(byte);
        }
        Ok(next)
    }

    fn trailer_step(&mut self, byte: u8) -> Result<BodyState, BodyDecodeError> {
        match (self.state, byte) {
            (BodyState::Trailer, b'\r') => Ok(BodyState::BlankLineEnd),
            (BodyState::Trailer, _) if is(byte, TOKEN) => self.trailer(),
            (BodyState::TrailerName, b':') => Ok(BodyState::TrailerValue),
            (BodyState::TrailerName, _) if is(byte, TOKEN) => Ok(BodyState::TrailerName),
            (BodyState::TrailerValue, b'\r') => Ok(BodyState::TrailerEnd),
            (BodyState::TrailerValue, _) if is(byte, VALUE) => Ok(BodyState::TrailerValue),
            (BodyState::TrailerEnd, b'\n') => Ok(BodyState::Trailer),
            (BodyState::BlankLineEnd, b'\n') => Ok(BodyState::Done),
            (BodyState::TrailerEnd | BodyState::BlankLineEnd, _) => Err(BodyDecodeError::LineEnd),
            _ => Err(BodyDecodeError::Trailer),
        }
    }

    /// Counts one trailer line.
    fn trailer(&mut self) -> Result<BodyState, BodyDecodeError> {
        self.trailers_left = self
            .trailers_left
            .checked_sub(1)
            .ok_or(BodyDecodeError::TooManyTrailers { limit: self.trailers_max })?;
        Ok(BodyState::TrailerName)
    }

    /// Bytes of data that may still come within the limit.
    fn room(&self) -> u64 {
        self.body_bytes_max - self.received
    }

    fn too_large(&self) -> BodyDecodeError {
        BodyDecodeError::TooLarge { limit_bytes: self.body_bytes_max }
    }
}
