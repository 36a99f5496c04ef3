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
    /// Its entity tag, if it has one; ours are always strong.
    pub tag: Option<EntityTag>,
    /// A tag that the very same bytes were sent with before. A client may still name it.
    pub earlier: Option<EntityTag>,
    /// Its `Last-Modified` date in seconds since 1970, if it has one.
    pub modified_secs: Option<u64>,
}

impl Validators {
    /// Returns the tag of a response to a request that names tags in `If-None-Match`, or one in
    /// `If-Range`.
    ///
    /// It is the tag that the client knows the bytes by, if it names only the earlier one: a client
    /// must neither update nor complete what it has with a response that has another strong
    /// validator (RFC 9111 §4.3.4, RFC 9110 §15.3.7.3).
    pub fn tag_for(&self, named: Option<&[u8]>) -> Option<EntityTag> {
        let (Some(tag), Some(earlier), Some(named)) = (self.tag, self.earlier, named) else {
            return self.tag;
        };
        let is_named = |tag: &EntityTag| etag::list_names(named, tag, Comparison::Weak);
        Some(if !is_named(&tag) && is_named(&earlier) { earlier } else { tag })
    }

    /// Returns whether a list of tags names the representation.
    fn are_named(&self, list: &[u8], comparison: Comparison) -> bool {
        let named = |tag: &EntityTag| etag::list_names(list, tag, comparison);
        etag::is_any(list) || self.tags().any(|tag| named(&tag))
    }

    fn tags(&self) -> impl Iterator<Item = EntityTag> {
        self.tag.into_iter().chain(self.earlier)
    }
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
        return current.are_named(list, Comparison::Strong);
    }
    // Without a date of ours, both conditions on dates are ignored (§13.1.3, §13.1.4).
    match (conditions.if_unmodified_since.and_then(date::parse_date), current.modified_secs) {
        (Some(since), Some(modified_secs)) => modified_secs <= since,
        _ => true,
    }
}

/// Steps 3 and 4: spares what the client holds already.
fn is_held_already(conditions: &Conditions<'_>, reads: bool, current: &Validators) -> bool {
    if let Some(list) = conditions.if_none_match {
        return current.are_named(list, Comparison::Weak);
    }
    match (conditions.if_modified_since.and_then(date::parse_date), current.modified_secs) {
        (Some(since), Some(modified_secs)) => reads && modified_secs <= since,
        _ => false,
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
        return current.tags().any(|tag| etag::is_exactly(value, &tag));
    }
    current.modified_secs.is_some_and(|modified_secs| {
        let is_strong = modified_secs.saturating_add(1) < now_secs;
        is_strong && date::parse_date(value) == Some(modified_secs)
    })
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
        let (tag, modified_secs) = (Some(EntityTag::strong(&[7])), Some(MODIFIED));
        Validators { tag, earlier: None, modified_secs }
    }

    fn text(tag: EntityTag) -> String {
        String::from_utf8_lossy(tag.as_bytes()).into_owned()
    }

    fn tag() -> String {
        text(EntityTag::strong(&[7]))
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

    /// Returns the verdict on one condition.
    fn on(current: &Validators, name: &str, value: &str) -> Verdict {
        let value = Some(value.as_bytes());
        let conditions = match name {
            "If-Match" => Conditions { if_match: value, ..Conditions::default() },
            "If-None-Match" => Conditions { if_none_match: value, ..Conditions::default() },
            "If-Modified-Since" => Conditions { if_modified_since: value, ..Conditions::default() },
            _ => Conditions { if_unmodified_since: value, ..Conditions::default() },
        };
        judge(&conditions, true, current)
    }

    #[test]
    fn what_has_no_validators_matches_only_a_star() {
        let none = Validators { tag: None, earlier: None, modified_secs: None };
        for (name, value, verdict) in [
            ("If-Match", tag(), Verdict::Failed),
            ("If-Match", "*".to_owned(), Verdict::Perform),
            ("If-None-Match", tag(), Verdict::Perform),
            ("If-None-Match", "*".to_owned(), Verdict::NotModified),
            ("If-Modified-Since", AFTER.to_owned(), Verdict::Perform),
            ("If-Unmodified-Since", BEFORE.to_owned(), Verdict::Perform),
        ] {
            assert_eq!(on(&none, name, &value), verdict, "{name}: {value}");
        }
        assert_eq!(none.tag_for(Some(b"*")), None);
        for value in [tag(), EQUAL.to_owned()] {
            assert!(!range_counts(Some(value.as_bytes()), &none, NOW), "{value}");
        }
    }

    #[test]
    fn the_earlier_tag_still_counts_and_is_sent_to_those_who_name_it() {
        let earlier = EntityTag::strong(&[8]);
        let both = Validators { earlier: Some(earlier), ..current() };
        let earlier = text(earlier);
        for (name, verdict) in
            [("If-Match", Verdict::Perform), ("If-None-Match", Verdict::NotModified)]
        {
            for value in [tag(), earlier.clone(), format!("\"x\", {earlier}")] {
                assert_eq!(on(&both, name, &value), verdict, "{name}: {value}");
            }
        }
        assert!(range_counts(Some(earlier.as_bytes()), &both, NOW));
        assert!(!range_counts(Some(format!("W/{earlier}").as_bytes()), &both, NOW));
        for (named, expected) in [
            (None, tag()),
            (Some("*".to_owned()), tag()),
            (Some(earlier.clone()), earlier.clone()),
            (Some(format!("W/{earlier}")), earlier.clone()),
            (Some(format!("{earlier}, {}", tag())), tag()),
            (Some(EQUAL.to_owned()), tag()),
        ] {
            let sent = both.tag_for(named.as_deref().map(str::as_bytes)).map(text);
            assert_eq!(sent, Some(expected), "{named:?}");
        }
    }
}
