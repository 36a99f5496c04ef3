//! A whole HTTP/2 connection without I/O: any bytes behind the preface, in any pieces.
//!
//! Whatever comes, the same bytes in other pieces give the same events; streams stay within their
//! number, and memory within its bounds.
#![no_main]

use gustnado_http::h2::frame::PREFACE;
use gustnado_http::h2::{H2Connection, H2Error, H2Event, H2Limits, H2Scratch, Step};
use gustnado_http::limits::Limits;
use gustnado_http::request::FieldLines;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [pieces, rest @ ..] = input else { return };
    let bytes = [PREFACE, rest].concat();
    let whole = played(&bytes, bytes.len());
    let cut = played(&bytes, usize::from(*pieces).max(1));
    assert_eq!(whole, cut);
});

/// What has come of a connection: its events in words, and how it has ended.
#[derive(Debug, PartialEq, Eq)]
struct Played {
    events: Vec<String>,
    content: usize,
    ended: Option<H2Error>,
}

fn step<'s>(
    (h2, limits): (&'s H2Limits, &'s Limits),
    scratch: &'s mut H2Scratch,
    out: &'s mut Vec<u8>,
) -> Step<'s> {
    Step { scratch, h2, limits, now_ms: 1_000, out }
}

fn played(bytes: &[u8], piece: usize) -> Played {
    let (h2, limits) = (H2Limits { streams_max: 8, ..H2Limits::default() }, Limits::default());
    let (mut scratch, mut out) = (H2Scratch::default(), Vec::new());
    let of = (&h2, &limits);
    let mut core = H2Connection::<()>::new(&mut step(of, &mut scratch, &mut out));
    let mut played = Played { events: Vec::new(), content: 0, ended: None };
    let mut unread: Vec<u8> = Vec::new();
    for piece in bytes.chunks(piece) {
        unread.extend_from_slice(piece);
        let mut used = 0;
        loop {
            let next = core.next(&unread[used..], &mut step(of, &mut scratch, &mut out));
            let (more, event) = match next {
                Ok(next) => next,
                Err(error) => {
                    core.go_away(error, &mut out);
                    played.ended = Some(error);
                    return played;
                }
            };
            used += more;
            let opens = match event {
                None => break,
                Some(H2Event::Request { id, head, is_end }) => {
                    let head_bytes = scratch.head_bytes();
                    let view = head.on(head_bytes);
                    let line = view.target().escape_ascii().to_string();
                    assert!(view.fields().count() <= limits.fields_max);
                    played.events.push(format!("{id} {line} {is_end}"));
                    Some((id, is_end))
                }
                Some(H2Event::Refused { id, status, is_end, .. }) => {
                    played.events.push(format!("{id} {status:?} {is_end}"));
                    None
                }
                Some(H2Event::Data { id, bytes, is_end }) => {
                    played.content += bytes.len();
                    let count = bytes.len();
                    core.take(id, count, u32::MAX, &mut step(of, &mut scratch, &mut out));
                    if is_end {
                        core.finish(id, &mut out);
                    }
                    None
                }
                Some(H2Event::Trailers { id }) => {
                    let records = FieldLines::of_records(scratch.trailer_records());
                    assert!(records.count() <= limits.fields_max);
                    assert!(scratch.trailer_records().len() <= limits.head_bytes_max);
                    core.finish(id, &mut out);
                    None
                }
                Some(H2Event::Reset { .. } | H2Event::Window) => None,
            };
            if let Some((id, is_end)) = opens {
                // (Of the other half, the response is over at once.)
                if id % 4 == 1 {
                    core.open(id, (None, is_end), ());
                }
            }
            assert!(core.open_streams() <= 8);
            assert!(core.heap_bytes() < 100_000);
        }
        unread.drain(..used);
        assert!(unread.len() <= (16 << 10) + 9, "no more than a frame is kept");
    }
    played
}
