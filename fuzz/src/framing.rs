//! Framing: the fields that decide where a body ends, put behind a good request line, against a
//! plain reading of the rules that shares no code with the decoder.
#![no_main]

use gustnado_http::head::{Decoded, Framing, Head};
use gustnado_http::limits::Limits;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|fields: &[u8]| {
    for version in ["1.1", "1.0"] {
        let line = format!("POST / HTTP/{version}\r\nHost: h\r\n");
        let bytes = [line.as_bytes(), fields, b"\r\n\r\n"].concat();
        let Ok(Decoded::Done(head)) = Head::decode(&bytes, &mut 0, &Limits::default()) else {
            continue;
        };
        let request = head.on(&bytes);
        let values = |name: &str| -> Vec<String> {
            let of_name =
                request.fields().filter(|field| field.0.eq_ignore_ascii_case(name.as_bytes()));
            of_name.map(|field| String::from_utf8_lossy(field.1).to_ascii_lowercase()).collect()
        };
        let (lengths, codings) = (values("content-length"), values("transfer-encoding"));
        assert!(lengths.is_empty() || codings.is_empty(), "both");
        match head.framing() {
            Framing::None => assert!(lengths.is_empty() && codings.is_empty()),
            Framing::ToEnd => unreachable!("it is of HTTP/2"),
            Framing::Chunked => assert!(version == "1.1" && codings == ["chunked"]),
            Framing::Length(length) => {
                assert!(codings.is_empty() && !lengths.is_empty());
                for part in lengths.iter().flat_map(|value| value.split(',')) {
                    let part = part.trim_matches([' ', '\t']);
                    assert!(part.bytes().all(|byte| byte.is_ascii_digit()));
                    assert_eq!(part.parse(), Ok(length));
                }
            }
        }
        let options = values("connection");
        let says = |word| {
            options
                .iter()
                .flat_map(|value| value.split(','))
                .any(|option| option.trim_matches([' ', '\t']) == word)
        };
        assert_eq!(head.keep_alive(), !says("close") && (version == "1.1" || says("keep-alive")));
        assert_eq!(values("host").len(), 1);
    }
});
