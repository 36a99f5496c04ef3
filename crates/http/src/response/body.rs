//! The body of a response: which of the bytes that came belong to it, where it ends, and the
//! trailers behind it.

use super::ResponseFraming;
use crate::body::{BodyDecodeError, BodyDecoder, Piece};
use crate::head::Framing;
use crate::limits::Limits;
use crate::request::FieldLines;

/// The reader of one response body.
///
/// Data is handed on where it lies. Only trailers are kept: at most `head_bytes_max` of them.
#[derive(Clone, Debug)]
pub struct ResponseBody {
    end: End,
}

/// How the end is found.
#[derive(Clone, Debug)]
enum End {
    Framed(BodyDecoder),
    Close { received: u64, bytes_max: u64, closed: bool },
}

impl ResponseBody {
    /// A reader for the body that `framing` announces. What follows the head of a tunnel is no
    /// body: there it finds none.
    ///
    /// - `limits`: of which `body_bytes_max` counts here, and for trailers those of a head.
    pub fn new(framing: ResponseFraming, limits: &Limits) -> Self {
        let framed = match framing {
            ResponseFraming::UntilClose => {
                let bytes_max = limits.body_bytes_max;
                return Self { end: End::Close { received: 0, bytes_max, closed: false } };
            }
            ResponseFraming::None | ResponseFraming::Tunnel => Framing::None,
            ResponseFraming::Chunked => Framing::Chunked,
            ResponseFraming::Length(bytes) => Framing::Length(bytes),
        };
        let mut decoder = BodyDecoder::new(framed, limits);
        decoder.keep_trailers(true);
        Self { end: End::Framed(decoder) }
    }

    /// Reads on in the body: up to the end of the input, of the body, or of one run of data. The
    /// data is always the last of the bytes that are used up.
    ///
    /// Call it again with the rest of the input until the piece is `done`, or all of it is
    /// consumed; however the bytes are cut, the data is the same.
    ///
    /// # Errors
    /// [`BodyDecodeError`]. The connection must then be closed.
    pub fn decode<'a>(&mut self, input: &'a [u8]) -> Result<Piece<'a>, BodyDecodeError> {
        let decoder = match &mut self.end {
            End::Framed(decoder) => decoder,
            End::Close { received, bytes_max, closed } => {
                let data = if *closed { &[] } else { input };
                *received += data.len() as u64;
                if *received > *bytes_max {
                    return Err(BodyDecodeError::TooLarge { limit_bytes: *bytes_max });
                }
                return Ok(Piece { consumed: data.len(), data, done: *closed });
            }
        };
        decoder.decode(input)
    }

    /// Takes note that the server has closed. Returns whether the body is whole (RFC 9112 §8).
    pub fn close(&mut self) -> bool {
        if let End::Close { closed, .. } = &mut self.end {
            *closed = true;
        }
        self.is_done()
    }

    /// Returns whether the whole body was read.
    pub fn is_done(&self) -> bool {
        match &self.end {
            End::Framed(decoder) => decoder.is_done(),
            End::Close { closed, .. } => *closed,
        }
    }

    /// Bytes of data so far, framing not counted.
    pub fn received(&self) -> u64 {
        match &self.end {
            End::Framed(decoder) => decoder.received(),
            End::Close { received, .. } => *received,
        }
    }

    /// Returns the trailer fields in order (RFC 9112 §7.1.2); `None` before the body is done. They
    /// are what the server says after the fact: nothing in them changes how the message was framed.
    pub fn trailers(&self) -> Option<FieldLines<'_>> {
        let lines = match &self.end {
            End::Framed(decoder) => decoder.trailer_lines(),
            End::Close { .. } => &[],
        };
        self.is_done().then(|| FieldLines::of(lines))
    }
}
