//! A head with another target.

use super::{HEAD_BYTES_MAX, Head, Span};

impl Head {
    /// Returns the same head with another path and query, and its bytes; `None` if it would be too
    /// long, or the target is not one of visible ASCII that begins with a slash. A scheme and a
    /// host in front of the path stay.
    ///
    /// - `bytes`: those that it was decoded from.
    pub fn with_target(&self, bytes: &[u8], target: &str) -> Option<(Head, Vec<u8>)> {
        let is_target =
            target.starts_with('/') && target.bytes().all(|byte| byte.is_ascii_graphic());
        let bytes = bytes.get(..self.len()).filter(|_| is_target)?;
        let begin = usize::from(self.path_start);
        let end = usize::from(self.target.end);
        if begin < usize::from(self.target.start) || bytes.len() + target.len() > HEAD_BYTES_MAX {
            return None;
        }
        let whole = [&bytes[..begin], target.as_bytes(), &bytes[end..]].concat();
        let moved = |at: u16| usize::from(at) + begin + target.len() - end;
        // What is absent is at 0, and so in front.
        let moved_span = |span: Span| {
            let is_behind = usize::from(span.start) >= end;
            if is_behind { Span::new(moved(span.start), moved(span.end)) } else { span }
        };
        let mut head = *self;
        head.indexed = self.indexed.map(moved_span);
        head.fields = moved_span(self.fields);
        head.target = Span::new(usize::from(self.target.start), begin + target.len());
        head.query = target.find('?').map_or(0, |at| Span::new(0, begin + at).end);
        Some((head, whole))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Decoded;
    use super::*;
    use crate::fields::HeaderId;
    use crate::limits::Limits;
    use proptest::prelude::*;

    fn decoded(text: &[u8]) -> Head {
        match Head::decode(text, &mut 0, &Limits::default()) {
            Ok(Decoded::Done(head)) => head,
            other => panic!("expected a head, got {other:?}"),
        }
    }

    #[test]
    fn a_head_with_another_target_is_as_if_it_had_come_so() {
        for (from, to) in [
            ("/old?x=1", "/new/longer/one?x=1"),
            ("/a/much/longer/one", "/n"),
            ("http://h/old?x", "/new?y"),
            ("http://h", "/new"),
        ] {
            let fields = "Host: h\r\nRange: bytes=0-1\r\nX: y\r\nIf-Match: *\r\n\r\n";
            let text =
                |target: &str| format!("PURGE {target} HTTP/1.1\r\n{fields}rest").into_bytes();
            let whole = text(from);
            let (head, bytes) = decoded(&whole).with_target(&whole, to).expect("it fits");
            let host = from.strip_prefix("http://h").map_or("", |_| "http://h");
            let wanted = text(&format!("{host}{to}"));
            assert_eq!(bytes, wanted[..wanted.len() - 4]);
            assert_eq!(head, decoded(&wanted), "{from} {to}");
            let view = head.on(&bytes);
            assert_eq!(
                (view.method_token(), view.known(HeaderId::Range)),
                (&b"PURGE"[..], Some(&b"bytes=0-1"[..]))
            );
            assert_eq!(view.path(), to.split('?').next().expect("a part").as_bytes());
        }
    }

    #[test]
    fn what_is_no_target_is_refused() {
        let text = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
        let head = decoded(text);
        for target in
            ["", "x", "/a b", "/a\r\nX: y", "/\u{e9}", &format!("/{}", "x".repeat(65_535))]
        {
            assert!(head.with_target(text, target).is_none());
        }
    }

    proptest! {
        #[test]
        fn any_path_of_any_length(
            from in "/[a-z/]{0,40}(\\?[a-z]{0,9})?",
            to in "/[a-z/]{0,60}(\\?[a-z]{0,9})?",
        ) {
            let text =
                |target: &str| format!("GET {target} HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n");
            let whole = text(&from);
            let head = decoded(whole.as_bytes());
            let (head, bytes) = head.with_target(whole.as_bytes(), &to).expect("it fits");
            let wanted = text(&to);
            prop_assert_eq!(&bytes[..], wanted.as_bytes());
            prop_assert_eq!(head, decoded(wanted.as_bytes()));
        }
    }
}
