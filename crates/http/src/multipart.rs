//! The parts of a `multipart/form-data` body (RFC 7578, RFC 2046 §5.1): bytes in, verdict out.

mod head;

use std::error::Error;
use std::fmt;

use memchr::memmem::Finder;

pub use head::PartHead;

/// Bytes that a boundary may have (RFC 2046 §5.1.1).
const BOUNDARY_BYTES_MAX: usize = 70;
/// Bytes of white space behind a delimiter (RFC 2046 §5.1.1 has gateways add some).
const PADDING_BYTES_MAX: usize = 64;

/// How much of one body is taken before it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultipartLimits {
    /// Parts.
    pub parts_max: usize,
    /// Bytes of one part's head, and of what stands before the first part.
    pub head_bytes_max: usize,
}

/// Reads one body. It holds nothing of it: the caller does, from where the last verdict ended.
#[derive(Debug)]
pub struct MultipartDecoder {
    /// `\r\n--` and the boundary.
    delimiter: Finder<'static>,
    limits: MultipartLimits,
    state: MultipartState,
    parts: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MultipartState {
    /// Before the first delimiter, of which no line end need stand in front. So many bytes have
    /// been passed over.
    Preamble {
        skipped: usize,
    },
    /// Behind a delimiter: a part, or the end.
    Delimiter,
    /// In the head of a part; so many bytes of it have been searched.
    Head {
        seen: usize,
    },
    Data,
    End,
}

/// What the next bytes are.
#[derive(Debug, PartialEq, Eq)]
pub enum MultipartEvent {
    /// Nothing that could be told yet: more bytes are needed.
    NeedMore,
    /// So many bytes are no part's, and are to be thrown away.
    Skip(usize),
    /// So many bytes are the head of a part.
    Head(usize, PartHead),
    /// So many bytes, 1 at least, are data of the part.
    Data(usize),
    /// The part ends; so many bytes are the delimiter.
    PartEnd(usize),
    /// The body's last part has ended. What may still come is to be ignored (RFC 2046 §5.1.1).
    End,
}

impl MultipartDecoder {
    /// - `boundary`: as Content-Type says it, 1 to 70 bytes.
    ///
    /// # Errors
    /// [`MultipartError::Boundary`].
    pub fn new(boundary: &[u8], limits: MultipartLimits) -> Result<Self, MultipartError> {
        let is_visible = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
        let is_fit = (1..=BOUNDARY_BYTES_MAX).contains(&boundary.len())
            && boundary.iter().all(is_visible)
            && !boundary.ends_with(b" ");
        if !is_fit {
            return Err(MultipartError::Boundary);
        }
        let delimiter = Finder::new(&[b"\r\n--", boundary].concat()).into_owned();
        Ok(Self { delimiter, limits, state: MultipartState::Preamble { skipped: 0 }, parts: 0 })
    }

    /// Says what the first bytes of `input` are.
    ///
    /// - `input`: what has come of the body and was not used by an earlier event; may stop
    ///   anywhere. The event counts the bytes that it uses.
    ///
    /// However the bytes are cut, the heads and the data come out the same.
    ///
    /// # Errors
    /// [`MultipartError`], after which nothing can be read any more.
    pub fn decode(&mut self, input: &[u8]) -> Result<MultipartEvent, MultipartError> {
        match self.state {
            MultipartState::Preamble { skipped } => self.preamble(input, skipped),
            MultipartState::Delimiter => self.behind_delimiter(input),
            MultipartState::Head { seen } => self.head(input, seen),
            MultipartState::Data => Ok(self.data(input)),
            MultipartState::End => Ok(MultipartEvent::End),
        }
    }

    /// Returns whether the last part has ended. A body that ends before that was cut off.
    pub fn is_done(&self) -> bool {
        self.state == MultipartState::End
    }

    fn preamble(&mut self, input: &[u8], skipped: usize) -> Result<MultipartEvent, MultipartError> {
        let delimiter = self.delimiter.needle();
        // At the very beginning the delimiter has no line end in front.
        let bare = &delimiter[2..];
        if skipped == 0 {
            if input.starts_with(bare) {
                self.state = MultipartState::Delimiter;
                return Ok(MultipartEvent::Skip(bare.len()));
            }
            if bare.starts_with(input) {
                return Ok(MultipartEvent::NeedMore);
            }
        }
        let (passed, found) = match self.delimiter.find(input) {
            Some(at) => (at + delimiter.len(), true),
            None => (input.len() - tail(input, delimiter), false),
        };
        if skipped + passed > self.limits.head_bytes_max + delimiter.len() {
            return Err(MultipartError::NoBoundary);
        }
        if passed == 0 {
            return Ok(MultipartEvent::NeedMore);
        }
        let skipped = skipped + passed;
        self.state =
            if found { MultipartState::Delimiter } else { MultipartState::Preamble { skipped } };
        Ok(MultipartEvent::Skip(passed))
    }

    fn behind_delimiter(&mut self, input: &[u8]) -> Result<MultipartEvent, MultipartError> {
        if input.starts_with(b"--") {
            self.state = MultipartState::End;
            return Ok(MultipartEvent::Skip(2));
        }
        if input.is_empty() || input == b"-" {
            return Ok(MultipartEvent::NeedMore);
        }
        let padding = input.iter().take_while(|byte| b" \t".contains(byte)).count();
        if padding > PADDING_BYTES_MAX {
            return Err(MultipartError::Delimiter);
        }
        match &input[padding..] {
            [b'\r', b'\n', ..] => {
                self.parts += 1;
                if self.parts > self.limits.parts_max {
                    return Err(MultipartError::TooManyParts { limit: self.limits.parts_max });
                }
                self.state = MultipartState::Head { seen: 0 };
                Ok(MultipartEvent::Skip(padding + 2))
            }
            [] | [b'\r'] => Ok(MultipartEvent::NeedMore),
            _ => Err(MultipartError::Delimiter),
        }
    }

    fn head(&mut self, input: &[u8], seen: usize) -> Result<MultipartEvent, MultipartError> {
        if input.starts_with(b"\r\n") {
            return Err(MultipartError::Name); // no field at all
        }
        let from = seen.saturating_sub(3);
        let end = memchr::memmem::find(&input[from..], b"\r\n\r\n").map(|at| from + at + 4);
        let len = end.unwrap_or(input.len());
        if len > self.limits.head_bytes_max {
            let limit_bytes = self.limits.head_bytes_max;
            return Err(MultipartError::HeadTooLarge { limit_bytes });
        }
        if end.is_none() {
            self.state = MultipartState::Head { seen: len };
            return Ok(MultipartEvent::NeedMore);
        }
        let head = PartHead::read(&input[..len - 2])?;
        self.state = MultipartState::Data;
        Ok(MultipartEvent::Head(len, head))
    }

    fn data(&mut self, input: &[u8]) -> MultipartEvent {
        let delimiter = self.delimiter.needle();
        match self.delimiter.find(input) {
            Some(0) => {
                let len = delimiter.len();
                self.state = MultipartState::Delimiter;
                MultipartEvent::PartEnd(len)
            }
            Some(at) => MultipartEvent::Data(at),
            None => match input.len() - tail(input, delimiter) {
                0 => MultipartEvent::NeedMore,
                len => MultipartEvent::Data(len),
            },
        }
    }
}

/// How many bytes at the end of `input` may be the beginning of `delimiter`.
fn tail(input: &[u8], delimiter: &[u8]) -> usize {
    let from = input.len().saturating_sub(delimiter.len() - 1);
    let starts = memchr::memchr_iter(b'\r', &input[from..]);
    let mut tails = starts.map(|at| &input[from + at..]);
    tails.find(|tail| delimiter.starts_with(tail)).map_or(0, <[u8]>::len)
}

/// Error of a body that was refused. Nothing of it can be read any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MultipartError {
    /// The boundary is not 1 to 70 visible bytes.
    Boundary,
    /// No part begins where the first one should.
    NoBoundary,
    /// Something else than a line end stands behind a boundary.
    Delimiter,
    /// A line in a part's head is no field.
    Field,
    /// A part has no name (RFC 7578 §4.2), or one that is not UTF-8.
    Name,
    /// A part's head has more bytes than the limit.
    HeadTooLarge {
        /// The limit that was passed.
        limit_bytes: usize,
    },
    /// There are more parts than the limit.
    TooManyParts {
        /// The limit that was passed.
        limit: usize,
    },
}

impl fmt::Display for MultipartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boundary => {
                write!(f, "a boundary must be 1 to {BOUNDARY_BYTES_MAX} visible characters")
            }
            Self::NoBoundary => f.write_str("the body does not begin with its boundary"),
            Self::Delimiter => f.write_str("a boundary must be followed by a line end or by --"),
            Self::Field => f.write_str("a line in a part's head is no field"),
            Self::Name => f.write_str("a part must have a name in UTF-8"),
            Self::HeadTooLarge { limit_bytes } => {
                write!(f, "a part's head is longer than {limit_bytes} bytes")
            }
            Self::TooManyParts { limit } => write!(f, "more than {limit} parts"),
        }
    }
}

impl Error for MultipartError {}

#[cfg(test)]
mod tests;
