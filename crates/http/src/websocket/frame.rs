//! Frames (RFC 6455 §5.2).

use super::close::Violation;
use super::mask;

/// Bytes of the longest header.
pub const HEADER_BYTES_MAX: usize = 14;

/// The longest payload of a control frame.
pub const CONTROL_BYTES_MAX: usize = 125;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Opcode {
    /// The next frame of a message.
    Continuation = 0,
    /// The first frame of a text.
    Text = 1,
    /// The first frame of a message of bytes.
    Binary = 2,
    /// The end.
    Close = 8,
    /// Asks for a pong with the same payload.
    Ping = 9,
    /// Answers a ping, or says that the peer is alive.
    Pong = 10,
}

impl Opcode {
    const fn of(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Continuation,
            1 => Self::Text,
            2 => Self::Binary,
            8 => Self::Close,
            9 => Self::Ping,
            10 => Self::Pong,
            _ => return None,
        })
    }

    /// Returns whether it may come between the frames of a message.
    pub const fn is_control(self) -> bool {
        self as u8 >= 8
    }
}

/// What is in front of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebSocketHeader {
    /// What the frame is.
    pub opcode: Opcode,
    /// It is the last frame of its message.
    pub is_final: bool,
    /// Bit RSV1: the message that begins with it is compressed (RFC 7692 §6).
    pub is_compressed: bool,
    /// The mask of the payload. Clients mask, servers do not.
    pub mask: Option<[u8; 4]>,
    /// Bytes of the payload.
    pub len: u64,
}

impl WebSocketHeader {
    /// Reads a header, and returns it and its length; `None` if it is not whole.
    ///
    /// # Errors
    /// It breaks a rule that needs no state: reserved bits and opcodes, lengths that are longer
    /// than they have to be, control frames that are long or in pieces.
    pub fn read(input: &[u8]) -> Result<Option<(Self, usize)>, Violation> {
        let [first, second, rest @ ..] = input else { return Ok(None) };
        if first & (RSV2 | RSV3) != 0 {
            return Err(Violation::protocol("a reserved bit is set"));
        }
        let Some(opcode) = Opcode::of(first & OPCODE) else {
            return Err(Violation::protocol("an opcode that is not one"));
        };
        let (is_final, is_compressed) = (first & FINAL != 0, first & RSV1 != 0);
        let short = second & LEN;
        if opcode.is_control() {
            check_control(is_final, is_compressed, short)?;
        }
        let Some((len, rest)) = read_len(short, rest)? else { return Ok(None) };
        let (mask, rest) = if second & MASKED == 0 {
            (None, rest)
        } else {
            let Some((mask, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
            (Some(*mask), rest)
        };
        let header = Self { opcode, is_final, is_compressed, mask, len };
        Ok(Some((header, input.len() - rest.len())))
    }

    /// Appends its bytes.
    pub fn write(self, out: &mut Vec<u8>) {
        let flag = |is_set, bit| if is_set { bit } else { 0 };
        let masked = flag(self.mask.is_some(), MASKED);
        let first = self.opcode as u8 | flag(self.is_final, FINAL) | flag(self.is_compressed, RSV1);
        match (u8::try_from(self.len), u16::try_from(self.len)) {
            (Ok(len), _) if len < LEN_OF_2 => out.extend_from_slice(&[first, masked | len]),
            (_, Ok(len)) => {
                out.extend_from_slice(&[first, masked | LEN_OF_2]);
                out.extend_from_slice(&len.to_be_bytes());
            }
            _ => {
                out.extend_from_slice(&[first, masked | LEN_OF_8]);
                out.extend_from_slice(&self.len.to_be_bytes());
            }
        }
        if let Some(mask) = self.mask {
            out.extend_from_slice(&mask);
        }
    }
}

/// Appends a frame.
///
/// - `header`: its length is that of the payload, whatever it says.
pub fn write(header: WebSocketHeader, payload: &[u8], out: &mut Vec<u8>) {
    out.reserve(HEADER_BYTES_MAX + payload.len());
    WebSocketHeader { len: payload.len() as u64, ..header }.write(out);
    let begins = out.len();
    out.extend_from_slice(payload);
    if let Some(mask) = header.mask {
        mask::apply(mask, &mut out[begins..]);
    }
}

const FINAL: u8 = 1 << 7;
const RSV1: u8 = 1 << 6;
const RSV2: u8 = 1 << 5;
const RSV3: u8 = 1 << 4;
const OPCODE: u8 = 0x0f;
/// The first byte of a message in one frame.
pub(super) const WHOLE_TEXT: u8 = FINAL | Opcode::Text as u8;
pub(super) const WHOLE_BINARY: u8 = FINAL | Opcode::Binary as u8;
pub(super) const MASKED: u8 = 1 << 7;
pub(super) const LEN: u8 = 0x7f;
/// Lengths that say that the length follows, in two bytes or in eight.
pub(super) const LEN_OF_2: u8 = 126;
const LEN_OF_8: u8 = 127;

/// Refuses control frames that have what only messages may have (RFC 6455 §5.5).
fn check_control(is_final: bool, is_compressed: bool, len: u8) -> Result<(), Violation> {
    if !is_final {
        return Err(Violation::protocol("a control frame in pieces"));
    }
    if is_compressed {
        return Err(Violation::protocol("a reserved bit is set"));
    }
    if usize::from(len) > CONTROL_BYTES_MAX {
        return Err(Violation::protocol("a control frame of more than 125 bytes"));
    }
    Ok(())
}

/// Reads the rest of a length. Returns what follows it; `None` if it is not whole.
fn read_len(short: u8, rest: &[u8]) -> Result<Option<(u64, &[u8])>, Violation> {
    let (len, least, rest) = match short {
        LEN_OF_2 => {
            let Some((len, rest)) = rest.split_first_chunk::<2>() else { return Ok(None) };
            (u64::from(u16::from_be_bytes(*len)), u64::from(LEN_OF_2), rest)
        }
        LEN_OF_8 => {
            let Some((len, rest)) = rest.split_first_chunk::<8>() else { return Ok(None) };
            (u64::from_be_bytes(*len), 1 << 16, rest)
        }
        len => (u64::from(len), 0, rest),
    };
    if len < least {
        return Err(Violation::protocol("a length that is written longer than it has to be"));
    }
    if len > u64::MAX >> 1 {
        return Err(Violation::protocol("a length beyond 63 bits"));
    }
    Ok(Some((len, rest)))
}
