//! Messages compressed and inflated (RFC 7692 §7.2).
//!
//! Where no context is kept, a worker's connections use its compressor and its decompressor in
//! turn, and hold none. Contexts are charged to the ledger. The compressor's is given back while
//! it is not used, or memory is short: a message may begin with an empty window at any time. The
//! decompressor's has to stay, as the peer's compressor refers to it.

use std::cell::RefCell;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use gustnado_http::websocket::Violation;
use gustnado_http::websocket::deflate::{DeflateAgreed, DeflateOptions, WINDOW_BITS_MIN};
use gustnado_http::websocket::reader::Role;
use gustnado_tasks::{Charge, MemoryKind};

/// What a compressor leaves at the end of a message, and a decompressor needs there.
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// Inflated at a time.
const STEP_BYTES: usize = 16 << 10;

thread_local! {
    /// By their window bits.
    static COMPRESSORS: RefCell<[Option<Box<Compress>>; 16]> =
        const { RefCell::new([const { None }; 16]) };
    static DECOMPRESSOR: RefCell<Option<Box<Decompress>>> = const { RefCell::new(None) };
}

/// What a compressor holds beside its window: hashes, links and what it has not written yet.
const COMPRESSOR_BYTES: usize = 192 << 10;

/// What a decompressor holds.
const DECOMPRESSOR_BYTES: usize = 48 << 10;

/// How a WebSocket compresses.
pub(crate) struct Deflate {
    /// Bits of this side's window.
    window_bits: u8,
    bytes_min: usize,
    /// What is kept between messages; `None`: nothing may be.
    contexts: Option<Contexts>,
}

/// What a WebSocket keeps between messages.
struct Contexts {
    /// This side's may be kept.
    keeps_own: bool,
    compressor: Option<Box<Compress>>,
    /// It was used since it was last to be given back.
    is_used: bool,
    /// `None`: the peer keeps none.
    decompressor: Option<Box<Decompress>>,
    charge: Charge,
}

impl Contexts {
    /// Returns this side's compressor, if there is memory for it.
    fn compressor(&mut self, window_bits: u8) -> Option<&mut Compress> {
        if !self.keeps_own {
            return None;
        }
        let bytes = compressor_bytes(window_bits);
        if self.charge.is_over_budget() {
            self.compressor = None;
        } else if self.compressor.is_none() && self.charge.has_room_for(bytes) {
            self.compressor = Some(new_compressor(window_bits));
        }
        self.is_used = true;
        self.recharge(window_bits);
        self.compressor.as_deref_mut()
    }

    fn recharge(&mut self, window_bits: u8) {
        let own = self.compressor.as_ref().map_or(0, |_| compressor_bytes(window_bits));
        let peer = self.decompressor.as_ref().map_or(0, |_| DECOMPRESSOR_BYTES);
        self.charge.set(own + peer);
    }
}

fn compressor_bytes(window_bits: u8) -> usize {
    COMPRESSOR_BYTES + (4 << window_bits)
}

/// Returns whether there is memory for the context of another peer.
pub(crate) fn has_room_for_context() -> bool {
    Charge::new(MemoryKind::WebSockets).has_room_for(DECOMPRESSOR_BYTES)
}

impl Deflate {
    /// - `bytes_min`: shorter messages are left alone.
    pub(crate) fn new(agreed: DeflateAgreed, role: Role, bytes_min: usize) -> Self {
        let server = (agreed.server_no_context_takeover, agreed.server_window_bits);
        let client = (agreed.client_no_context_takeover, agreed.client_window_bits);
        let ((forgets, window_bits), (peer_forgets, _)) = match role {
            Role::Server => (server, client),
            Role::Client => (client, server),
        };
        let contexts = (!forgets || !peer_forgets).then(|| {
            let mut contexts = Contexts {
                keeps_own: !forgets,
                compressor: None,
                is_used: false,
                decompressor: (!peer_forgets).then(|| Box::new(Decompress::new(false))),
                charge: Charge::new(MemoryKind::WebSockets),
            };
            contexts.recharge(window_bits);
            contexts
        });
        Self { window_bits, bytes_min, contexts }
    }

    /// Gives this side's context back, if it was not used since this was last called.
    pub(crate) fn give_back(&mut self) {
        let window_bits = self.window_bits;
        if let Some(contexts) = &mut self.contexts {
            if !std::mem::take(&mut contexts.is_used) {
                contexts.compressor = None;
            }
            contexts.recharge(window_bits);
        }
    }

    /// Makes that of a client.
    ///
    /// - `wanted`: what it has offered.
    pub(crate) fn of_client(
        mut agreed: DeflateAgreed,
        wanted: DeflateOptions,
        bytes_min: usize,
    ) -> Self {
        agreed.client_no_context_takeover |= !wanted.keeps_context;
        // zlib has no smaller window than 512 bytes. With one nothing is compressed.
        let is_small = agreed.client_window_bits < WINDOW_BITS_MIN;
        agreed.client_window_bits = agreed.client_window_bits.max(WINDOW_BITS_MIN);
        Self::new(agreed, Role::Client, if is_small { usize::MAX } else { bytes_min })
    }

    /// Compresses a message. `None`: it is sent as it is.
    pub(crate) fn compress(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        if message.len() < self.bytes_min {
            return None;
        }
        let window_bits = self.window_bits;
        let contexts = self.contexts.as_mut();
        if let Some(compressor) = contexts.and_then(|contexts| contexts.compressor(window_bits)) {
            return Some(compress(compressor, message));
        }
        let compressed = COMPRESSORS.with_borrow_mut(|all| {
            let compressor = all[usize::from(self.window_bits)]
                .get_or_insert_with(|| new_compressor(self.window_bits));
            compressor.reset();
            compress(compressor, message)
        });
        (compressed.len() < message.len()).then_some(compressed)
    }

    /// Inflates a message that is whole.
    ///
    /// # Errors
    /// It is not deflated, or longer than `bytes_max`.
    pub(crate) fn inflate(&mut self, message: &[u8], bytes_max: u64) -> Result<Vec<u8>, Violation> {
        let contexts = self.contexts.as_mut();
        if let Some(decompressor) = contexts.and_then(|contexts| contexts.decompressor.as_mut()) {
            return inflate(decompressor, message, bytes_max);
        }
        DECOMPRESSOR.with_borrow_mut(|kept| {
            let decompressor = kept.get_or_insert_with(|| Box::new(Decompress::new(false)));
            decompressor.reset(false);
            inflate(decompressor, message, bytes_max)
        })
    }
}

fn new_compressor(window_bits: u8) -> Box<Compress> {
    Box::new(Compress::new_with_window_bits(Compression::fast(), false, window_bits))
}

fn compress(compressor: &mut Compress, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(message.len() / 2 + 64);
    let mut rest = message;
    loop {
        let before = compressor.total_in();
        // It fails only where it is used wrongly.
        let status = compressor.compress_vec(rest, &mut out, FlushCompress::Sync);
        let used = usize::try_from(compressor.total_in() - before).unwrap_or(rest.len());
        rest = &rest[used..];
        let has_room = out.len() < out.capacity();
        if status.is_err() || (rest.is_empty() && has_room) {
            break;
        }
        out.reserve(out.len().max(256));
    }
    if out.ends_with(&TAIL) {
        out.truncate(out.len() - TAIL.len());
    }
    if out.is_empty() {
        // Nothing, written as a block (RFC 7692 §7.2.3.6).
        out.push(0);
    }
    out
}

fn inflate(
    decompressor: &mut Decompress,
    message: &[u8],
    bytes_max: u64,
) -> Result<Vec<u8>, Violation> {
    let mut out = Vec::new();
    for mut rest in [message, &TAIL] {
        loop {
            if out.len() == out.capacity() {
                out.reserve(out.len().clamp(256, STEP_BYTES));
            }
            let before = decompressor.total_in();
            let status = decompressor.decompress_vec(rest, &mut out, FlushDecompress::Sync);
            let used = usize::try_from(decompressor.total_in() - before).unwrap_or(rest.len());
            rest = &rest[used..];
            if out.len() as u64 > bytes_max {
                return Err(Violation::too_big("a message is too long when it is inflated"));
            }
            match status {
                Err(_) => return Err(Violation::data("a compressed message cannot be inflated")),
                // A block that says that it is the last one: what follows begins anew (RFC 7692
                // §7.2.3.4).
                Ok(Status::StreamEnd) => {
                    decompressor.reset(false);
                    if rest.is_empty() {
                        break;
                    }
                }
                Ok(_) if rest.is_empty() && out.len() < out.capacity() => break,
                Ok(Status::BufError) if out.len() < out.capacity() => break,
                Ok(_) => {}
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(offer: &str, keeps_context: bool) -> (Deflate, Deflate) {
        let wanted = DeflateOptions { keeps_context, window_bits_max: 15 };
        let agreed = DeflateAgreed::choose([offer.as_bytes()], wanted).expect("it can be met");
        (Deflate::new(agreed, Role::Server, 0), Deflate::new(agreed, Role::Client, 0))
    }

    #[test]
    fn what_is_compressed_is_inflated_to_the_same() {
        for (offer, keeps_context) in [
            ("permessage-deflate", false),
            ("permessage-deflate", true),
            ("permessage-deflate; server_max_window_bits=9", true),
        ] {
            let (mut server, mut client) = both(offer, keeps_context);
            for message in ["a".repeat(100_000), "hello".to_owned(), String::new(), "b".repeat(17)]
            {
                let Some(compressed) = server.compress(message.as_bytes()) else { continue };
                let inflated = client.inflate(&compressed, 1 << 20).expect("it is right");
                assert_eq!(inflated, message.as_bytes());
            }
        }
    }

    /// The examples of RFC 7692 §7.2.3.
    #[test]
    fn the_examples_of_the_rfc_are_inflated() {
        let (mut server, _) = both("permessage-deflate", true);
        let hello = [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
        assert_eq!(server.inflate(&hello, 5).as_deref(), Ok(&b"Hello"[..]));
        let with_window = [0xf2, 0x00, 0x11, 0x00, 0x00];
        assert_eq!(server.inflate(&with_window, 5).as_deref(), Ok(&b"Hello"[..]));
        let not_compressed = [0, 5, 0, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0];
        assert_eq!(server.inflate(&not_compressed, 5).as_deref(), Ok(&b"Hello"[..]));
        let with_last_block = [0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00];
        assert_eq!(server.inflate(&with_last_block, 5).as_deref(), Ok(&b"Hello"[..]));
        let in_two_blocks = [0xf2, 0x48, 0x05, 0, 0, 0, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00];
        assert_eq!(server.inflate(&in_two_blocks, 5).as_deref(), Ok(&b"Hello"[..]));
    }

    #[test]
    fn a_bomb_is_refused_before_it_is_large() {
        let (mut server, mut client) = both("permessage-deflate", false);
        let bomb = server.compress(&vec![0; 64 << 20]).expect("it shrinks");
        let error = client.inflate(&bomb, 1 << 20).expect_err("it is too long");
        assert_eq!(error.code.0, 1009);
        let error = client.inflate(b"\xff\xff\xff", 1 << 20).expect_err("no deflate");
        assert_eq!(error.code.0, 1007);
    }
}
