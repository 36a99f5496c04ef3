//! Escapes bytes from clients, so that they cannot forge lines or columns.

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Writes a value into a line of text: bytes that do not print as `\xHH`, `"` as `\"` and `\` as
/// `\\`. So no value can end a line or the quotes around it.
pub(super) fn plain(value: &[u8], out: &mut Vec<u8>) {
    escape(value, out, |byte| matches!(byte, b' '..=b'~'));
}

/// Writes a value without quotes around it: a space is escaped too, as it would begin another
/// column.
pub(super) fn word(value: &[u8], out: &mut Vec<u8>) {
    escape(value, out, |byte| matches!(byte, b'!'..=b'~'));
}

fn escape(value: &[u8], out: &mut Vec<u8>, prints: impl Fn(u8) -> bool) {
    let mut rest = value;
    while let Some(at) = rest.iter().position(|byte| !prints(*byte) || matches!(byte, b'"' | b'\\'))
    {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            byte @ (b'"' | b'\\') => out.extend_from_slice(&[b'\\', byte]),
            byte => out.extend_from_slice(&[b'\\', b'x', high(byte), low(byte)]),
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

/// Writes a value as a JSON string (RFC 8259 §7). Invalid UTF-8 becomes U+FFFD. Characters that
/// some readers take for the end of a line are escaped as well.
pub(super) fn json(value: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for chunk in value.utf8_chunks() {
        for one in chunk.valid().chars() {
            match one {
                '"' | '\\' => out.extend_from_slice(&[b'\\', one as u8]),
                '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => {
                    let byte = u8::try_from(one).expect("below U+00A0");
                    out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high(byte), low(byte)]);
                }
                '\u{2028}' => out.extend_from_slice(b"\\u2028"),
                '\u{2029}' => out.extend_from_slice(b"\\u2029"),
                one => out.extend_from_slice(one.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
    out.push(b'"');
}

fn high(byte: u8) -> u8 {
    HEX[usize::from(byte >> 4)]
}

fn low(byte: u8) -> u8 {
    HEX[usize::from(byte & 15)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(write: fn(&[u8], &mut Vec<u8>), value: &[u8]) -> String {
        let mut out = Vec::new();
        write(value, &mut out);
        String::from_utf8(out).expect("what is escaped is UTF-8")
    }

    #[test]
    fn nothing_that_a_client_sends_ends_a_line() {
        let sent = b"a\r\nb \"c\" \\ \x7f\xff\0";
        assert_eq!(written(plain, sent), r#"a\x0d\x0ab \"c\" \\ \x7f\xff\x00"#);
        assert_eq!(written(word, b"a b"), r"a\x20b");
    }

    #[test]
    fn json_is_json() {
        let sent = "é\n\"\\\u{2028}\u{85}".as_bytes();
        assert_eq!(written(json, sent), "\"é\\u000a\\\"\\\\\\u2028\\u0085\"");
        assert_eq!(written(json, b"a\xffb"), "\"a\u{fffd}b\"");
    }

    /// Reverses `plain`.
    fn read(text: &[u8]) -> Vec<u8> {
        let (mut value, mut rest) = (Vec::new(), text);
        while let [first, behind @ ..] = rest {
            let (byte, used) = match (first, behind) {
                (b'\\', [b'x', high, low, ..]) => {
                    let digits = [*high, *low];
                    let digits = std::str::from_utf8(&digits).expect("two digits");
                    (u8::from_str_radix(digits, 16).expect("hexadecimal"), 4)
                }
                (b'\\', [escaped, ..]) => (*escaped, 2),
                (byte, _) => (*byte, 1),
            };
            value.push(byte);
            rest = &rest[used..];
        }
        value
    }

    proptest! {
        #[test]
        fn what_is_escaped_prints_and_reads_back(value: Vec<u8>) {
            for write in [plain, word] {
                let text = written(write, &value).into_bytes();
                prop_assert!(text.iter().all(|byte| matches!(byte, b' '..=b'~')));
                prop_assert_eq!(read(&text), value.clone());
            }
        }

        #[test]
        fn a_string_of_json_ends_where_it_should(value: Vec<u8>) {
            let text = written(json, &value);
            prop_assert!(!text.chars().any(char::is_control));
            let inside = &text[1..text.len() - 1];
            let mut bytes = inside.bytes();
            while let Some(byte) = bytes.next() {
                prop_assert!(byte != b'"', "an unescaped quote: {text}");
                if byte == b'\\' {
                    bytes.next();
                }
            }
        }
    }
}
