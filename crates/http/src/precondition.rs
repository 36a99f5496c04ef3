//! Conditional requests (RFC 9110 §13): whether a request may be performed, in the order of
//! precedence of §13.2.2, and whether its `Range` counts (§13.1.5).
//!
//! The caller first makes sure that the answer without conditions would be a 2xx: §13.2.1 demands
//! that a 404 or a redirect ignores every condition.

use crate::date;
use crate::etag::{self, Comparison, EntityTag};

/// The condition fields of one request; several lines of a list field are passed joined by commas.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conditions<'a> {
    /// Value of `If-Match`.
    pub if_match: Option<&'a [u8]>,
    /// Value of `If-Unmodified-Since`.
    pub if_unmodified_since: Option<&'a [u8]>,
    /// Value of `If-None-Match`.
    pub if_none_match: Option<&'a [u8]>,
    /// Value of `If-Modified-Since`.
    pub if_modified_since: Option<&'a [u8]>,
}

/// What the conditions are compared with: the current representation.
#[derive(Clone, Copy, Debug)]
pub struct Validators {
    /// Its entity tag; ours are always strong.
    pub tag: EntityTag,
    /// Its `Last-Modified` date in seconds since 1970.
    pub modified_secs: u64,
}

/// What the conditions say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Go on: perform the method.
    Perform,
    /// Respond with 304: the client has the current representation.
    NotModified,
    /// Respond with 412.
    Failed,
}

/// Judges the conditions in the order of RFC 9110 §13.2.2, steps 1 to 4.
///
/// - `reads`: the method is GET or HEAD.
/// - A date that is not valid is ignored, as §13.1.3 and §13.1.4 demand.
pub fn judge(conditions: &Conditions<'_>, reads: bool, current: &Validators) -> Verdict {
    if !may_go_on(conditions, current) {
        return Verdict::Failed;
    }
    if !is_held_already(conditions, reads, current) {
        return Verdict::Perform;
    }
    if reads { Verdict::NotModified } else { Verdict::Failed }
}

/// Steps 1 and 2: guards against changing what another client has changed.
fn may_go_on(conditions: &Conditions<'_>, current: &Validators) -> bool {
    if let Some(list) = conditions.if_match {
        return etag::list_names(list, &current.tag, Comparison::Strong);
    }
    match conditions.if_unmodified_since.and_then(date::parse_date) {
        Some(since) => current.modified_secs <= since,
        None => true,
    }
}

/// Steps 3 and 4: spares what the client holds already.
fn is_held_already(conditions: &Conditions<'_>, reads: bool, current: &Validators) -> bool {
    if let Some(list) = conditions.if_none_match {
        return etag::list_names(list, &current.tag, Comparison::Weak);
    }
    match conditions.if_modified_since.and_then(date::parse_date) {
        Some(since) => reads && current.modified_secs <= since,
        None => false,
    }
}

/// Step 5: whether the `Range` field of a GET counts, given the value of `If-Range`.
///
/// - `now_secs`: seconds since 1970. A date is a strong validator only when the second it names
///   has passed for good (§8.8.2.2): a file could still change within it.
/// - The date must be equal to ours, not merely later (§13.1.5).
pub fn range_counts(if_range: Option<&[u8]>, current: &Validators, now_secs: u64) -> bool {
    let Some(value) = if_range else {
        return true;
    };
    if etag::looks_like_tag(value) {
        return etag::is_exactly(value, &current.tag);
    }
    let is_strong = current.modified_secs.saturating_add(1) < now_secs;
    is_strong && date::parse_date(value) == Some(current.modified_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 784_111_900;
    const MODIFIED: u64 = 784_111_777; // Sun, 06 Nov 1994 08:49:37 GMT
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const EQUAL: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

    fn current() -> Validators {
        Validators { tag: EntityTag::strong(&[7]), modified_secs: MODIFIED }
    }

    fn tag() -> String {
        String::from_utf8_lossy(current().tag.as_bytes()).into_owned()
    }

    /// Fields in the order of the RFC's steps; `T` stands for the current tag, "" for no field.
    fn verdict(fields: [&str; 4], reads: bool) -> Verdict {
        let values = fields.map(|field| field.replace('T', &tag()));
        let dated = |at: usize| {
            if fields[at].ends_with("GMT") { fields[at] } else { &values[at] }
        };
        let field = |at: usize| (!fields[at].is_empty()).then(|| dated(at).as_bytes());
        let conditions = Conditions {
            if_match: field(0),
            if_unmodified_since: field(1),
            if_none_match: field(2),
            if_modified_since: field(3),
        };
        judge(&conditions, reads, &current())
    }

    #[test]
    fn each_condition_alone() {
        use Verdict::{Failed, NotModified, Perform};
        let cases: [([&str; 4], Verdict, Verdict); 18] = [
            (["", "", "", ""], Perform, Perform),
            (["T", "", "", ""], Perform, Perform),
            (["*", "", "", ""], Perform, Perform),
            (["\"x\", T", "", "", ""], Perform, Perform),
            (["W/T", "", "", ""], Failed, Failed),
            (["\"x\"", "", "", ""], Failed, Failed),
            (["", BEFORE, "", ""], Failed, Failed),
            (["", EQUAL, "", ""], Perform, Perform),
            (["", AFTER, "", ""], Perform, Perform),
            (["", "yesterday", "", ""], Perform, Perform),
            (["", "", "T", ""], NotModified, Failed),
            (["", "", "W/T", ""], NotModified, Failed),
            (["", "", "*", ""], NotModified, Failed),
            (["", "", "\"x\"", ""], Perform, Perform),
            (["", "", "", BEFORE], Perform, Perform),
            (["", "", "", EQUAL], NotModified, Perform),
            (["", "", "", AFTER], NotModified, Perform),
            (["", "", "", "yesterday"], Perform, Perform),
        ];
        for (fields, reading, writing) in cases {
            assert_eq!(verdict(fields, true), reading, "{fields:?} for GET");
            assert_eq!(verdict(fields, false), writing, "{fields:?} for PUT");
        }
    }

    #[test]
    fn tags_take_precedence_over_dates_and_guards_over_savings() {
        use Verdict::{Failed, NotModified, Perform};
        let cases: [([&str; 4], Verdict); 9] = [
            (["T", BEFORE, "", ""], Perform),
            (["\"x\"", AFTER, "", ""], Failed),
            (["", "", "\"x\"", AFTER], Perform),
            (["", "", "T", BEFORE], NotModified),
            (["\"x\"", "", "T", ""], Failed),
            (["T", "", "T", ""], NotModified),
            (["", BEFORE, "T", ""], Failed),
            (["", AFTER, "", AFTER], NotModified),
            (["T", "", "", BEFORE], Perform),
        ];
        for (fields, expected) in cases {
            assert_eq!(verdict(fields, true), expected, "{fields:?}");
        }
    }

    #[test]
    fn if_range_needs_the_very_same_strong_validator() {
        let quoted = tag();
        let weak = format!("W/{quoted}");
        let cases: [(Option<&str>, bool); 9] = [
            (None, true),
            (Some(&quoted), true),
            (Some(&weak), false),
            (Some("\"x\""), false),
            (Some("*"), false),
            (Some(EQUAL), true),
            (Some(BEFORE), false),
            (Some(AFTER), false),
            (Some("yesterday"), false),
        ];
        for (value, expected) in cases {
            let value = value.map(str::as_bytes);
            assert_eq!(range_counts(value, &current(), NOW), expected, "{value:?}");
        }
    }

    #[test]
    fn a_date_within_the_running_second_is_no_strong_validator() {
        let value = Some(EQUAL.as_bytes());
        assert!(!range_counts(value, &current(), MODIFIED));
        assert!(!range_counts(value, &current(), MODIFIED + 1));
        assert!(range_counts(value, &current(), MODIFIED + 2));
    }
}
