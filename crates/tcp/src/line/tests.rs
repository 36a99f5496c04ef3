use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use super::*;

/// What a protocol was told, in one text. Raw data counts as one, however it was cut.
type Heard = Arc<Mutex<String>>;

/// Notes what it is told. A line `raw N` makes the next N bytes raw data, and `again` after a line
/// that was too long makes the rest of that raw.
struct Notes {
    heard: Heard,
    raw_left: usize,
    raw: Vec<u8>,
    goes_on: bool,
}

impl Notes {
    fn note(&self, what: &str, bytes: &[u8]) {
        let mut heard = self.heard.lock().expect("no test panics with it");
        writeln!(heard, "{what} {}", bytes.escape_ascii()).expect("text takes text");
    }
}

impl LineProtocol for Notes {
    fn line_received(&mut self, lines: &mut Lines<'_>, line: &[u8]) {
        self.note("line", line);
        if let Some(count) = line.strip_prefix(b"raw ").and_then(|count| count.first()) {
            self.raw_left = usize::from(count % 8) + 1;
            lines.set_raw_mode();
        }
        lines.send_line(line);
    }

    fn raw_data_received(&mut self, lines: &mut Lines<'_>, data: &[u8]) {
        let (raw, rest) = data.split_at(data.len().min(self.raw_left));
        self.raw.extend_from_slice(raw);
        self.raw_left -= raw.len();
        if self.raw_left == 0 {
            let whole = mem::take(&mut self.raw);
            self.note("raw", &whole);
            // Also what is not the end of the data itself may be given back.
            if rest.len() % 2 == 0 {
                lines.set_line_mode(rest);
            } else {
                let elsewhere = Vec::from(rest);
                lines.set_line_mode(&elsewhere);
            }
        }
    }

    fn line_length_exceeded(&mut self, lines: &mut Lines<'_>, beginning: &[u8]) {
        self.note("exceeded", beginning);
        if !self.goes_on {
            lines.transport.lose_connection();
        }
    }

    fn peer_finished(&mut self, lines: &mut Lines<'_>, rest: &[u8]) {
        self.note("rest", rest);
        lines.transport.lose_connection();
    }
}

fn receiver(delimiter: &[u8], max_length: usize, goes_on: bool) -> (LineReceiver<Notes>, Heard) {
    let heard = Heard::default();
    let notes = Notes { heard: Arc::clone(&heard), raw_left: 0, raw: Vec::new(), goes_on };
    (LineReceiver::new(notes).delimiter(delimiter).max_length(max_length), heard)
}

/// What is heard of pieces received one after the other.
fn heard_of(delimiter: &[u8], max_length: usize, goes_on: bool, pieces: &[&[u8]]) -> String {
    let (mut receiver, heard) = receiver(delimiter, max_length, goes_on);
    let mut transport = Transport::detached();
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        receiver.data_received(&mut transport, piece);
        let most = max_length + delimiter.len();
        assert!(receiver.kept.len() < most, "{} bytes kept", receiver.kept.len());
    }
    if !transport.is_ending() {
        receiver.peer_finished(&mut transport);
    }
    let heard = heard.lock().expect("no test panics with it");
    heard.clone()
}

#[test]
fn lines_are_told_without_their_delimiter() {
    let heard = heard_of(b"\r\n", 99, true, &[b"one\r\n\r\ntw", b"o\rthree\r", b"\nfo"]);
    assert_eq!(heard, "line one\nline \nline two\\rthree\nrest fo\n");
}

#[test]
fn any_bytes_may_be_the_delimiter() {
    assert_eq!(heard_of(b"--", 9, true, &[b"a-b---c--"]), "line a-b\nline -c\nrest \n");
    assert_eq!(heard_of(b"\0", 9, true, &[b"a\0b"]), "line a\nrest b\n");
    assert_eq!(heard_of(b"aab", 9, true, &[b"aaab"]), "line a\nrest \n");
    let mut unset = LineReceiver::new(()).delimiter("");
    assert_eq!(&*mem::take(&mut unset.delimiter), b"\n");
}

impl LineProtocol for () {
    fn line_received(&mut self, _lines: &mut Lines<'_>, _line: &[u8]) {}
}

#[test]
fn a_line_may_have_exactly_the_most_bytes() {
    assert_eq!(heard_of(b"\r\n", 3, true, &[b"abc\r\n"]), "line abc\nrest \n");
    assert_eq!(heard_of(b"\r\n", 3, true, &[b"abc", b"\r", b"\n"]), "line abc\nrest \n");
    assert_eq!(heard_of(b"\r\n", 3, false, &[b"abcd\r\nx"]), "exceeded abc\n");
    assert_eq!(heard_of(b"\r\n", 3, false, &[b"abc\rd"]), "exceeded abc\n");
}

#[test]
fn the_rest_of_a_line_that_is_too_long_is_skipped() {
    let heard = heard_of(b"\r\n", 3, true, &[b"abcdefghij", b"klm\r", b"\nno\r\n"]);
    assert_eq!(heard, "exceeded abc\nline no\nrest \n");
}

#[test]
fn raw_data_begins_right_behind_the_line_and_ends_where_the_protocol_says() {
    let heard = heard_of(b"\r\n", 99, true, &[b"raw \x03\r\n\r\n\r\nline\r\n"]);
    assert_eq!(heard, "line raw \\x03\nraw \\r\\n\\r\\n\nline line\nrest \n");
}

#[test]
fn no_line_is_told_while_reading_rests() {
    struct Once(Heard);
    impl LineProtocol for Once {
        fn line_received(&mut self, lines: &mut Lines<'_>, line: &[u8]) {
            let line = String::from_utf8_lossy(line).into_owned();
            self.0.lock().expect("no test panics with it").push_str(&line);
            lines.transport.pause_reading();
        }
    }
    let heard = Heard::default();
    let mut receiver = LineReceiver::new(Once(Arc::clone(&heard))).delimiter("\n");
    let mut transport = Transport::detached();
    receiver.data_received(&mut transport, b"a\nb\nc");
    for expected in ["a", "ab", "ab"] {
        assert_eq!(*heard.lock().expect("no test panics with it"), expected);
        transport.resume_reading();
        receiver.reading_resumed(&mut transport);
    }
    assert_eq!(receiver.kept, b"c");
}

#[test]
fn many_small_raw_blocks_in_one_piece_are_cheap() {
    struct Blocks(usize);
    impl LineProtocol for Blocks {
        fn line_received(&mut self, lines: &mut Lines<'_>, _line: &[u8]) {
            lines.set_raw_mode();
        }
        fn raw_data_received(&mut self, lines: &mut Lines<'_>, data: &[u8]) {
            self.0 += 1;
            lines.set_line_mode(&data[1..]);
        }
    }
    let mut receiver = LineReceiver::new(Blocks(0)).delimiter("\n");
    let mut transport = Transport::detached();
    receiver.data_received(&mut transport, &b"\nx".repeat(500_000));
    assert_eq!((receiver.protocol.0, receiver.kept.len()), (500_000, 0));
}

fn alphabet() -> impl Strategy<Value = u8> {
    prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'a'), Just(b' '), any::<u8>()]
}

fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let text = prop::collection::vec(alphabet(), 0..40);
    let raw = any::<u8>().prop_map(|count| [b"raw ".as_slice(), &[count], b"\r\n"].concat());
    prop::collection::vec(prop_oneof![text, raw], 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn lines_cut_at_any_byte_read_the_same(
        bytes in pieces(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        max_length in 0_usize..30,
        goes_on: bool,
        delimiter in prop_oneof![Just(&b"\r\n"[..]), Just(&b"\n"[..]), Just(&b"a a"[..])],
    ) {
        let whole = heard_of(delimiter, max_length, goes_on, &[&bytes]);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let parts: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(&heard_of(delimiter, max_length, goes_on, &parts), &whole);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&heard_of(delimiter, max_length, goes_on, &single), &whole);
    }
}
