//! From the HTTP/1.1 text that a test writes to requests on streams.

use gustnado_http::fields::FieldName;
use gustnado_http::h2::StreamId;

use super::Core;
use super::responses::{Asked, Responses};
use super::text::{Fault, FieldList, RequestHead, line_end, read_fields};

/// How much content of chunks is gathered for one frame.
const CHUNKS_BYTES_MAX: usize = 16 << 10;

/// Text that has not been translated yet, and what comes next in it.
pub(super) struct Requests {
    text: Vec<u8>,
    next: Next,
    /// How much of a header of the PROXY protocol has left.
    opened: usize,
    /// Content of chunks, which leaves in frames of its own.
    content: Vec<u8>,
    /// The first byte of a frame has been sent for a head that is not whole.
    is_head_begun: bool,
}

#[derive(Clone, Copy)]
enum Next {
    /// A header of the PROXY protocol, or the first head.
    Opening,
    Head,
    Body(StreamId, Framing),
    /// Nothing that is translated.
    Nothing,
}

/// What comes next of a body (RFC 9112 §6, §7).
#[derive(Clone, Copy)]
enum Framing {
    /// So many bytes, which are the last.
    Length(u64),
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailers,
}

impl Requests {
    pub(super) fn new() -> Self {
        let (text, content) = (Vec::new(), Vec::new());
        Self { text, next: Next::Opening, opened: 0, content, is_head_begun: false }
    }

    /// How many bytes wait: for a window, for a stream, for the rest of a head.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.text.len() + self.content.len()
    }

    /// Whether a frame has begun, which no other may interrupt.
    pub(super) fn is_within_frame(&self) -> bool {
        self.is_head_begun
    }

    /// Whether a connection of HTTP/2 has to be there.
    pub(super) fn has_begun(&self) -> bool {
        !matches!(self.next, Next::Opening)
    }

    pub(super) fn add(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
    }

    /// Leaves the rest untranslated.
    pub(super) fn stop(&mut self) {
        self.next = Next::Nothing;
    }

    /// Translates as much as there is a window for. Returns whether what is left waits for the
    /// server, not for more text.
    ///
    /// - `raw`: what is sent as it is.
    pub(super) fn advance(
        &mut self,
        core: &mut Core,
        responses: &mut Responses,
        (raw, frames): (&mut Vec<u8>, &mut Vec<u8>),
    ) -> Result<bool, Fault> {
        loop {
            let before = (self.text.len(), self.content.len());
            match self.next {
                Next::Opening => match opening(&self.text) {
                    Opening::Begun => return Ok(false),
                    Opening::Header(bytes) => {
                        let here = bytes.min(self.text.len());
                        raw.extend_from_slice(&self.text[self.opened..here]);
                        self.opened = here;
                        if here < bytes {
                            return Ok(false);
                        }
                        self.text.drain(..bytes);
                        self.next = Next::Head;
                    }
                },
                Next::Head => {
                    if self.text.is_empty() {
                        return Ok(false);
                    }
                    if !core.can_open() || responses.is_full() {
                        return Ok(!core.is_used_up());
                    }
                    if !self.open(core, responses, (raw, frames))? {
                        return Ok(false);
                    }
                }
                Next::Body(id, framing) => {
                    let (framing, is_blocked) = self.body(id, framing, core, frames)?;
                    self.next = framing.map_or(Next::Head, |framing| Next::Body(id, framing));
                    if framing.is_none() {
                        responses.note_sent(id, core, frames);
                    } else if (self.text.len(), self.content.len()) == before {
                        self.send_chunks(id, core, frames);
                        return Ok(is_blocked || !self.content.is_empty());
                    }
                }
                Next::Nothing => {
                    self.text.clear();
                    return Ok(false);
                }
            }
        }
    }

    /// Opens a stream for a whole head, or begins a frame for one that is not whole.
    fn open(
        &mut self,
        core: &mut Core,
        responses: &mut Responses,
        (raw, frames): (&mut Vec<u8>, &mut Vec<u8>),
    ) -> Result<bool, Fault> {
        let Some(end) = self.text.windows(4).position(|window| window == b"\r\n\r\n") else {
            // A frame that has begun would hold back the windows that a response needs.
            if responses.is_idle() && !std::mem::replace(&mut self.is_head_begun, true) {
                // No head here is as long as 64 KiB, so this is how its frame begins.
                raw.append(frames);
                raw.push(0);
            }
            return Ok(false);
        };
        let text: Vec<u8> = self.text.drain(..end + 4).collect();
        let head = RequestHead::read(&text)?;
        let is_end = !head.is_chunked && head.length.unwrap_or(0) == 0;
        let mut block = Vec::new();
        let ends = (head.method == "HEAD", is_end);
        let id = core.open(ends, (), &mut block, |encoder, out| head.encode(encoder, out));
        if std::mem::take(&mut self.is_head_begun) {
            assert_eq!(block[0], 0, "a head as long as this cannot begin early");
            // Behind the byte that has been sent, and before all that had to wait since.
            raw.extend_from_slice(&block[1..]);
        } else {
            frames.extend_from_slice(&block);
        }
        responses.ask(Asked { id, is_head: head.method == "HEAD", is_end, closes: head.closes });
        self.next = match (head.is_chunked, head.length) {
            (true, _) => Next::Body(id, Framing::ChunkSize),
            (false, Some(bytes @ 1..)) => Next::Body(id, Framing::Length(bytes)),
            _ => Next::Head,
        };
        Ok(true)
    }

    /// Sends some of a body. Returns what comes next, unless that was its end, and whether the
    /// server is what it waits for.
    fn body(
        &mut self,
        id: StreamId,
        framing: Framing,
        core: &mut Core,
        out: &mut Vec<u8>,
    ) -> Result<(Option<Framing>, bool), Fault> {
        let next = match framing {
            Framing::Length(left) => match self.send_length(id, left, core, out) {
                0 => None,
                left => Some(Framing::Length(left)),
            },
            Framing::Chunk(_) if self.content.len() >= CHUNKS_BYTES_MAX => {
                self.send_chunks(id, core, out);
                let is_blocked = self.content.len() >= CHUNKS_BYTES_MAX;
                return Ok((Some(framing), is_blocked));
            }
            Framing::Chunk(left) => {
                let here = usize::try_from(left).unwrap_or(usize::MAX).min(self.text.len());
                self.content.extend(self.text.drain(..here));
                match left - here as u64 {
                    0 => Some(Framing::ChunkEnd),
                    left => Some(Framing::Chunk(left)),
                }
            }
            Framing::ChunkSize => match line_end(&self.text) {
                None => Some(Framing::ChunkSize),
                Some(end) => {
                    let line: Vec<u8> = self.text.drain(..end + 2).collect();
                    Some(match chunk_size(&line[..end])? {
                        0 => Framing::Trailers,
                        bytes => Framing::Chunk(bytes),
                    })
                }
            },
            Framing::ChunkEnd if self.text.len() < 2 => Some(Framing::ChunkEnd),
            Framing::ChunkEnd => {
                let end: Vec<u8> = self.text.drain(..2).collect();
                if end != b"\r\n" {
                    return Err(Fault::new("the end of a chunk", &end));
                }
                Some(Framing::ChunkSize)
            }
            Framing::Trailers => {
                self.send_chunks(id, core, out);
                if !self.content.is_empty() {
                    return Ok((Some(framing), true));
                }
                let Some(fields) = self.trailers()? else {
                    return Ok((Some(Framing::Trailers), false));
                };
                let is_open = core.stream(id).is_some();
                if is_open && fields.is_empty() {
                    core.write_data(id, b"", true, out);
                } else if is_open {
                    let each = fields.iter();
                    let each = each.map(|(name, value)| (FieldName::from(&**name), &**value));
                    core.write_trailers(id, each, out);
                }
                None
            }
        };
        Ok((next, !self.text.is_empty()))
    }

    /// Sends content, and returns how much of it is left. On a stream that is over it is dropped.
    fn send_length(&mut self, id: StreamId, left: u64, core: &mut Core, out: &mut Vec<u8>) -> u64 {
        let here = usize::try_from(left).unwrap_or(usize::MAX).min(self.text.len());
        let is_end = here as u64 == left;
        let count = match core.stream(id) {
            None => here,
            Some(_) => core.write_data(id, &self.text[..here], is_end, out),
        };
        self.text.drain(..count);
        left - count as u64
    }

    /// Sends content of chunks: in as few frames as there can be, as clients do.
    fn send_chunks(&mut self, id: StreamId, core: &mut Core, out: &mut Vec<u8>) {
        let count = match core.stream(id) {
            None => self.content.len(),
            Some(_) => core.write_data(id, &self.content, false, out),
        };
        self.content.drain(..count);
    }

    /// Takes the trailer fields, once all have come.
    fn trailers(&mut self) -> Result<Option<FieldList>, Fault> {
        let bytes = match self.text.windows(4).position(|window| window == b"\r\n\r\n") {
            _ if self.text.starts_with(b"\r\n") => 2,
            Some(end) => end + 4,
            None => return Ok(None),
        };
        let section: Vec<u8> = self.text.drain(..bytes).collect();
        let mut fields = read_fields(&section[..bytes - 2])?;
        fields.retain(|(name, _)| !super::text::is_of_http1(name));
        Ok(Some(fields))
    }
}

/// What a connection begins with.
enum Opening {
    /// That is not known yet.
    Begun,
    /// A header of the PROXY protocol of so many bytes, of which all may not be here.
    Header(usize),
}

fn opening(text: &[u8]) -> Opening {
    const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
    if text.starts_with(b"PROXY ") {
        return Opening::Header(line_end(text).map_or(usize::MAX, |end| end + 2));
    }
    if text.starts_with(SIGNATURE) {
        let length = text.get(14..16).map(|length| u16::from_be_bytes([length[0], length[1]]));
        return Opening::Header(length.map_or(usize::MAX, |length| 16 + usize::from(length)));
    }
    let is_either = b"PROXY ".starts_with(text) || SIGNATURE.starts_with(text);
    if is_either { Opening::Begun } else { Opening::Header(0) }
}

fn chunk_size(line: &[u8]) -> Result<u64, Fault> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
    let text = std::str::from_utf8(digits).ok();
    let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
    text.filter(|_| is_hex)
        .and_then(|text| u64::from_str_radix(text, 16).ok())
        .ok_or_else(|| Fault::new("the size of a chunk", line))
}
