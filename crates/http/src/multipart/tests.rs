use super::*;

const LIMITS: MultipartLimits = MultipartLimits { parts_max: 4, head_bytes_max: 200 };

/// A part as it was read: name, file name, data.
type Read = (String, Option<String>, String);

/// Reads a body that comes in pieces of `step` bytes.
fn read(body: &[u8], step: usize) -> Result<(Vec<Read>, bool), MultipartError> {
    let mut decoder = MultipartDecoder::new(b"XyZ", LIMITS)?;
    let (mut here, mut parts): (Vec<u8>, Vec<Read>) = (Vec::new(), Vec::new());
    let mut pieces = body.chunks(step);
    loop {
        let used = match decoder.decode(&here)? {
            MultipartEvent::NeedMore => match pieces.next() {
                Some(piece) => {
                    here.extend_from_slice(piece);
                    0
                }
                None => return Ok((parts, false)),
            },
            MultipartEvent::End => return Ok((parts, true)),
            MultipartEvent::Head(len, head) => {
                let file_name = head.file_name().map(str::to_owned);
                parts.push((head.name().to_owned(), file_name, String::new()));
                len
            }
            MultipartEvent::Data(len) => {
                assert_ne!(len, 0);
                let data = std::str::from_utf8(&here[..len]).expect("these tests use ASCII");
                parts.last_mut().expect("data follows a head").2.push_str(data);
                len
            }
            MultipartEvent::Skip(len) | MultipartEvent::PartEnd(len) => len,
        };
        here.drain(..used);
    }
}

fn part(name: &str, data: &str) -> String {
    format!("--XyZ\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{data}\r\n")
}

#[test]
fn a_body_cut_at_any_byte_reads_the_same() {
    let text = "ignored\r\n".to_owned()
        + &part("a", "1")
        + &part("empty", "")
        + "--XyZ \t\r\ncontent-disposition: form-data; name=f; filename=\"x.txt\"\r\n\
           Content-Type: text/plain\r\n\r\n\r\n--Xy\r\r\n-\r\n--XyZ--\r\nafter";
    let wanted = vec![
        ("a".to_owned(), None, "1".to_owned()),
        ("empty".to_owned(), None, String::new()),
        ("f".to_owned(), Some("x.txt".to_owned()), "\r\n--Xy\r\r\n-".to_owned()),
    ];
    for step in 1..=text.len() {
        assert_eq!(read(text.as_bytes(), step), Ok((wanted.clone(), true)), "in steps of {step}");
    }
}

#[test]
fn a_body_that_is_cut_off_has_no_end() {
    let text = part("a", "1") + "--XyZ--";
    for end in 0..text.len() {
        let (_, is_done) = read(&text.as_bytes()[..end], 7).expect("what is there is well formed");
        assert!(!is_done, "{end} bytes");
    }
    assert_eq!(read(text.as_bytes(), 7).map(|read| read.1), Ok(true));
}

#[test]
fn a_form_without_parts_is_one() {
    assert_eq!(read(b"--XyZ--\r\n", 3), Ok((Vec::new(), true)));
}

#[test]
fn what_is_malformed_is_refused_however_it_is_cut() {
    let long = "x".repeat(300);
    let cases = [
        ("--XyZa\r\n".to_owned(), MultipartError::Delimiter),
        ("--XyZ-a".to_owned(), MultipartError::Delimiter),
        ("--XyZ\r\n\r\ndata\r\n--XyZ--".to_owned(), MultipartError::Name),
        ("--XyZ\r\nContent-Type: a/b\r\n\r\n".to_owned(), MultipartError::Name),
        (part("", "x").replace("form-data", "attachment"), MultipartError::Name),
        ("--XyZ\r\nno field\r\n\r\n".to_owned(), MultipartError::Field),
        ("--XyZ\r\nA: b\nC: d\r\n\r\n".to_owned(), MultipartError::Field),
        ("--XyZ\r\nA: ".to_owned() + &long, MultipartError::HeadTooLarge { limit_bytes: 200 }),
        (long, MultipartError::NoBoundary),
        (part("a", "x").repeat(5), MultipartError::TooManyParts { limit: 4 }),
    ];
    for (text, error) in cases {
        for step in [1, 5, text.len()] {
            assert_eq!(read(text.as_bytes(), step), Err(error), "{text:?} in steps of {step}");
        }
    }
}

#[test]
fn a_boundary_has_1_to_70_visible_bytes() {
    let long = "x".repeat(71);
    for boundary in ["", "a\r\nb", "a ", long.as_str()] {
        let made = MultipartDecoder::new(boundary.as_bytes(), LIMITS).map(drop);
        assert_eq!(made, Err(MultipartError::Boundary), "{boundary:?}");
    }
    for boundary in ["a", "a b", "'()+_,-./:=?", &long[..70]] {
        assert!(MultipartDecoder::new(boundary.as_bytes(), LIMITS).is_ok(), "{boundary:?}");
    }
}
