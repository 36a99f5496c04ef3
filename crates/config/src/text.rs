//! Checks of texts that settings take, and forms in which texts are written.

use std::fmt::Write;

/// Returns an address without the brackets that URLs put around IPv6.
pub(super) fn bare(text: &str) -> &str {
    text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text)
}

pub(super) fn is_host(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:%".contains(&byte);
    let host = bare(text);
    !host.is_empty() && host.len() <= 253 && host.bytes().all(letter)
}

/// Returns whether a text is `host:port`, or `unix:` and a path.
pub(super) fn is_address(text: &str) -> bool {
    if let Some(path) = text.strip_prefix("unix:") {
        return !path.is_empty();
    }
    text.rsplit_once(':').is_some_and(|(host, port)| {
        let is_bracketed = host.starts_with('[') && host.ends_with(']');
        let is_port = port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
        is_port && is_host(host) && (is_bracketed || !host.contains(':'))
    })
}

/// Returns whether a text is empty, a user, or a user and a group: names, or numbers.
pub(super) fn is_user(text: &str) -> bool {
    let is_name = |name: &str| {
        let letter = |byte: u8| byte.is_ascii_graphic() && !b":,/".contains(&byte);
        !name.is_empty() && name.len() <= 64 && name.bytes().all(letter)
    };
    let (user, group) = text.split_once(':').unwrap_or((text, "root"));
    text.is_empty() || is_name(user) && is_name(group)
}

/// Returns whether a text is safe as a field value (RFC 9110 §5.5).
pub(super) fn is_field_text(text: &str) -> bool {
    text.len() <= 64 && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
}

/// Returns a number of things in words: `1 route`, `2 routes`.
pub(super) fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Returns a text in quotes, as JSON and TOML take it.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(letter);
            }
            letter if letter.is_control() => {
                write!(quoted, "\\u{:04X}", u32::from(letter)).expect("a string takes all text");
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}
