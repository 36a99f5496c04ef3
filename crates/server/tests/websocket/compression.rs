//! Messages that are compressed (RFC 7692).

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};
use gustnado::websocket::DeflateOptions;
use gustnado_http::websocket::{Opcode, WebSocketHeader, write};

use crate::harness::Setup;
use crate::peer::{Peer, text};
use crate::serving;

on_every_server!(
    compressed_messages_are_answered_compressed,
    short_messages_are_left_alone,
    contexts_are_kept_where_that_is_asked_for,
    compression_can_be_left_out,
    what_cannot_be_inflated_is_refused,
    bombs_are_refused,
    compressed_text_has_to_be_utf8,
);

pub(crate) const OFFER: &str =
    "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n";

/// A client's compressor and decompressor.
pub(crate) struct Both(Compress, Decompress);

impl Both {
    pub(crate) fn new() -> Self {
        Self(Compress::new(Compression::default(), false), Decompress::new(false))
    }

    /// A frame with a compressed message.
    pub(crate) fn frame(&mut self, opcode: Opcode, message: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(message.len() + 1_024);
        self.0.compress_vec(message, &mut out, FlushCompress::Sync).expect("it compresses");
        out.truncate(out.len() - 4);
        compressed(opcode, &out)
    }

    pub(crate) fn inflate(&mut self, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(1 << 20);
        let input = [payload, &[0, 0, 0xff, 0xff]].concat();
        self.1.decompress_vec(&input, &mut out, FlushDecompress::Sync).expect("it inflates");
        out
    }
}

fn compressed(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let mask = Some([9, 8, 7, 6]);
    let header = WebSocketHeader { opcode, is_final: true, is_compressed: true, mask, len: 0 };
    let mut frame = Vec::new();
    write(header, payload, &mut frame);
    frame
}

fn compressed_messages_are_answered_compressed(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint);
    let (mut peer, answer) = Peer::with_fields(&server, "/echo", OFFER);
    let agreed = "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
    assert_eq!(answer.field("sec-websocket-extensions"), Some(agreed));
    for _ in 0..3 {
        let (mut both, message) = (Both::new(), "a long text, ".repeat(10_000));
        peer.send(both.frame(Opcode::Text, message.as_bytes()));
        let answer = peer.frame();
        assert_eq!((answer.header.opcode, answer.header.is_compressed), (Opcode::Text, true));
        assert!(answer.payload.len() < 2_000, "{} bytes", answer.payload.len());
        assert!(both.inflate(&answer.payload) == message.as_bytes());
    }
    peer.send(text("not compressed"));
    assert_eq!(peer.text(), "not compressed");
}

fn short_messages_are_left_alone(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint);
    let (mut peer, _) = Peer::with_fields(&server, "/echo", OFFER);
    peer.send(Both::new().frame(Opcode::Text, b"short"));
    let answer = peer.frame();
    assert_eq!((answer.header.is_compressed, &*answer.payload), (false, &b"short"[..]));
}

fn contexts_are_kept_where_that_is_asked_for(setup: Setup) {
    let wanted = DeflateOptions { keeps_context: true, window_bits_max: 15 };
    let server = serving(setup, |endpoint| endpoint.deflate(Some(wanted)).deflate_bytes_min(1));
    let (mut peer, answer) = Peer::with_fields(&server, "/echo", OFFER);
    assert_eq!(answer.field("sec-websocket-extensions"), Some("permessage-deflate"));
    let (mut both, mut lens) = (Both::new(), Vec::new());
    let numbers = (0..200).map(|number| (number * 7_919 % 1_000).to_string());
    let message = numbers.collect::<Vec<_>>().join(", ");
    for _ in 0..3 {
        peer.send(both.frame(Opcode::Text, message.as_bytes()));
        let answer = peer.frame();
        assert!(answer.header.is_compressed);
        lens.push(answer.payload.len());
        assert!(both.inflate(&answer.payload) == message.as_bytes());
    }
    assert!(lens[1] < lens[0] / 5 && lens[2] < lens[0] / 5, "the window is kept: {lens:?}");
}

fn compression_can_be_left_out(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint.deflate(None));
    let (mut peer, answer) = Peer::with_fields(&server, "/echo", OFFER);
    assert_eq!(answer.field("sec-websocket-extensions"), None);
    peer.send(Both::new().frame(Opcode::Text, b"x"));
    peer.expect_close(1002);
}

fn what_cannot_be_inflated_is_refused(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint);
    let (mut peer, _) = Peer::with_fields(&server, "/echo", OFFER);
    peer.send(compressed(Opcode::Text, b"\xff\xff\xff\xff"));
    peer.expect_close(1007);
}

fn bombs_are_refused(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint.message_bytes_max(100_000));
    let (mut peer, _) = Peer::with_fields(&server, "/echo", OFFER);
    peer.send(Both::new().frame(Opcode::Binary, &vec![0; 10 << 20]));
    peer.expect_close(1009);
}

fn compressed_text_has_to_be_utf8(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint);
    let (mut peer, _) = Peer::with_fields(&server, "/echo", OFFER);
    peer.send(Both::new().frame(Opcode::Text, b"wrong: \xff"));
    peer.expect_close(1007);
}
