//! Text in a page: escaped, linked, readable.

use std::borrow::Cow;
use std::fmt::Write;

use gustnado_http::date;

/// Escapes text for elements and attributes of a page. Characters that do not print or change the
/// direction of text are replaced by visible ones.
pub(super) fn escaped(text: &str) -> Cow<'_, str> {
    let is_harmless = |one: char| !matches!(one, '&' | '<' | '>' | '"' | '\'') && !is_odd(one);
    if text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for one in text.chars() {
        match one {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            one if is_odd(one) => safe.push(char::REPLACEMENT_CHARACTER),
            one => safe.push(one),
        }
    }
    Cow::Owned(safe)
}

/// Replaces the same characters by visible ones, but for the ends of lines and tabs.
pub(super) fn without_odd(text: &str) -> Cow<'_, str> {
    let is_replaced = |one: char| is_odd(one) && !matches!(one, '\n' | '\r' | '\t');
    if text.chars().any(is_replaced) {
        return Cow::Owned(text.replace(is_replaced, "\u{fffd}"));
    }
    Cow::Borrowed(text)
}

/// Returns whether a character is a control character or sets the direction of text.
fn is_odd(one: char) -> bool {
    one.is_control()
        || matches!(one, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(one, '\u{2066}'..='\u{2069}')
}

/// Appends a name as a relative link. All but the unreserved characters of RFC 3986 §2.3 are
/// escaped, also a colon, which would turn the text before it into a scheme.
pub(super) fn push_link(page: &mut String, name: &[u8]) {
    for byte in name {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                page.push(char::from(*byte));
            }
            _ => write!(page, "%{byte:02X}").expect("a string takes all"),
        }
    }
}

/// Appends a string of JSON (RFC 8259 §7); bytes that are no UTF-8 become U+FFFD.
pub(super) fn push_json(out: &mut String, text: &[u8]) {
    out.push('"');
    for one in String::from_utf8_lossy(text).chars() {
        match one {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            // (`<` as well: the text may be put into a page of somebody else.)
            one if one.is_control() || matches!(one, '<' | '\u{2028}' | '\u{2029}') => {
                write!(out, "\\u{:04x}", u32::from(one)).expect("a string takes all");
            }
            one => out.push(one),
        }
    }
    out.push('"');
}

/// Returns a readable size, in powers of 1,024.
pub(super) fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let (mut rest, mut unit) = (bytes, 0);
    while rest >= 1024 * 1024 {
        rest /= 1024;
        unit += 1;
    }
    let (whole, tenths) = (rest / 1024, rest % 1024 * 10 / 1024);
    if whole < 10 {
        format!("{whole}.{tenths} {}", units[unit])
    } else {
        format!("{whole} {}", units[unit])
    }
}

/// Returns a time as RFC 3339 writes it: `1994-11-06T08:49:37Z`.
pub(super) fn rfc3339(unix_secs: u64) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    // `Sun, 06 Nov 1994 08:49:37 GMT`
    let date = date::imf_fixdate(unix_secs);
    let part = |range: std::ops::Range<usize>| std::str::from_utf8(&date[range]).unwrap_or("");
    let month = MONTHS.iter().position(|month| *month == part(8..11)).map_or(1, |at| at + 1);
    format!("{}-{month:02}-{}T{}Z", part(12..16), part(5..7), part(17..25))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shown::ShownEntries;
    use gustnado_http::path::CanonicalPath;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_short() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (10 * 1024, "10 KiB"),
            (1_048_575, "1023 KiB"),
            (1_048_576, "1.0 MiB"),
            (u64::MAX, "15 EiB"),
        ] {
            assert_eq!(size(bytes), text, "{bytes}");
        }
    }

    #[test]
    fn times_are_written_for_machines() {
        assert_eq!(rfc3339(784_111_777), "1994-11-06T08:49:37Z");
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
    }

    #[test]
    fn text_cannot_leave_its_place_in_the_page() {
        assert_eq!(escaped("a b.txt"), "a b.txt");
        assert_eq!(escaped("<b>\"&'\u{202e}\n"), "&lt;b&gt;&quot;&amp;&#39;\u{fffd}\u{fffd}");
    }

    #[test]
    fn text_cannot_leave_its_string_in_json() {
        let mut out = String::new();
        push_json(&mut out, b"a\"\\\n<\xff\x7f");
        assert_eq!(out, "\"a\\\"\\\\\\u000a\\u003c\u{fffd}\\u007f\"");
    }

    proptest! {
        #[test]
        fn a_link_leads_to_its_name(name in proptest::collection::vec(1..=255_u8, 1..40)) {
            let shown = ShownEntries { hidden: true, ..ShownEntries::default() };
            prop_assume!(!name.contains(&b'/') && shown.has_name(&name));
            let mut link = String::from("/");
            push_link(&mut link, &name);
            let path = CanonicalPath::of(link.as_bytes()).expect("a path that is served");
            prop_assert!(!path.has_stray_percent());
            let found = crate::path::decode(path.as_str().as_bytes(), true);
            prop_assert_eq!(found.expect("a path").relative, name);
            prop_assert!(link.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"'));
        }
    }
}
