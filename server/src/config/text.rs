//! Which texts settings take.

/// An address without the brackets that URLs put around IPv6.
pub(super) fn bare(text: &str) -> &str {
    text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text)
}

pub(super) fn is_host(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:%".contains(&byte);
    let host = bare(text);
    !host.is_empty() && host.len() <= 253 && host.bytes().all(letter)
}

/// What may stand in a field value without any chance of a second field (RFC 9110 §5.5).
pub(super) fn is_field_text(text: &str) -> bool {
    text.len() <= 64 && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
}
