//! Whether a head that stops anywhere can still become a good one.
//!
//! Only heads that are not whole, or are broken, come here.

use super::{Head, HeadError, Span};
use crate::ends;
use crate::method::Method;
use crate::syntax::trim;
use crate::target;

/// Returns whether a target can begin like that. Of a method without a name here, any can, as long
/// as the version is not known.
///
/// # Errors
/// The one that every target gets that begins like that.
pub(super) fn target(begun: &[u8], method: Method) -> Result<(), HeadError> {
    if method == Method::Other {
        return Ok(());
    }
    let is_good = |target: &[u8]| target::form(target, method).is_some();
    let of_scheme = ends::of_word("http://a").chain(ends::of_word("https://a"));
    let of_authority =
        ends::of_host().flat_map(|[end, close]| [[end, close, ""], [end, close, ":0"]]);
    let can_end = ends::fit(begun, of_authority, is_good)
        || ends::fit(begun, of_scheme.chain([["/"]]), is_good);
    if can_end { Ok(()) } else { Err(HeadError::Target) }
}

/// Returns whether the value of a field can begin like that, or be just that if it `is_ended`.
///
/// # Errors
/// The one that every value gets that begins like that.
pub(super) fn value(
    head: &Head,
    name: &[u8],
    begun: &[u8],
    is_ended: bool,
) -> Result<(), HeadError> {
    let noted = |value: &[u8]| {
        let mut head = *head;
        head.note(name, trim(value), Span::default())
    };
    let is_good = |value: &[u8]| noted(value).is_ok();
    let is = |word: &str| name.eq_ignore_ascii_case(word.as_bytes());
    let can_end = match is_ended {
        true => false,
        _ if is("host") => ends::fit(begun, ends::of_host(), is_good),
        _ if is("content-length") => ends::fit(begun, [["0"]], is_good),
        _ if is("expect") => ends::fit(begun, ends::of_word("100-continue"), is_good),
        _ if is("transfer-encoding") => ends::fit(begun, ends::of_word("chunked"), is_good),
        _ => false, // no other field has a value that could be wrong
    };
    if can_end { Ok(()) } else { noted(begun) }
}
