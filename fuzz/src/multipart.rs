//! The parts of a form: split-equals-whole, progress, bounds, and what is written reads back.
#![no_main]

use gustnado_http::multipart::{MultipartDecoder, MultipartError, MultipartEvent, MultipartLimits};
use libfuzzer_sys::fuzz_target;

/// Small, so that a fuzzer reaches them.
const LIMITS: MultipartLimits = MultipartLimits { parts_max: 4, head_bytes_max: 200 };
const DELIMITER: &[u8] = b"\r\n--b";

fuzz_target!(|input: &[u8]| {
    let [step, bytes @ ..] = input else { return };
    let step = usize::from(*step) % 32 + 1;
    let whole = read(bytes, usize::MAX / 2);
    assert_eq!(read(bytes, step), whole);
    assert_eq!(read(bytes, 1), whole);
    round_trip(bytes, step);
});

/// Name and data of each part that was begun.
type Parts = Vec<(String, Vec<u8>)>;

fn read(bytes: &[u8], step: usize) -> (Parts, Result<bool, MultipartError>) {
    let mut decoder = MultipartDecoder::new(b"b", LIMITS).expect("a good boundary");
    let (mut parts, mut at, mut there) = (Parts::new(), 0, 0);
    loop {
        let used = match decoder.decode(&bytes[at..there]) {
            Err(error) => return (parts, Err(error)),
            Ok(MultipartEvent::End) => return (parts, Ok(true)),
            Ok(MultipartEvent::NeedMore) if there == bytes.len() => return (parts, Ok(false)),
            Ok(MultipartEvent::NeedMore) => {
                assert!(there - at <= LIMITS.head_bytes_max, "it holds {} bytes", there - at);
                there = bytes.len().min(there.saturating_add(step));
                continue;
            }
            Ok(MultipartEvent::Head(len, head)) => {
                parts.push((head.name().to_owned(), Vec::new()));
                assert!(parts.len() <= LIMITS.parts_max && len <= LIMITS.head_bytes_max);
                len
            }
            Ok(MultipartEvent::Data(len)) => {
                let data = &bytes[at..at + len];
                parts.last_mut().expect("data follows a head").1.extend_from_slice(data);
                len
            }
            Ok(MultipartEvent::Skip(len) | MultipartEvent::PartEnd(len)) => len,
        };
        assert!(used > 0 && used <= there - at, "{used} bytes of {}", there - at);
        at += used;
    }
}

fn round_trip(data: &[u8], step: usize) {
    let head = b"--b\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\n";
    let bytes = [head, data, DELIMITER, b"--"].concat();
    let first = bytes[head.len()..].windows(DELIMITER.len()).position(|w| w == DELIMITER);
    let (parts, ended) = read(&bytes, step);
    // Up to the first delimiter it is data, whatever stands there.
    let len = first.expect("it was written");
    assert_eq!(parts[0], ("n".to_owned(), data[..len.min(data.len())].to_vec()));
    assert!(len < data.len() || ended == Ok(true));
}
