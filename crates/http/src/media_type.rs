//! Values of the form `name; parameter=value`: Content-Type (RFC 9110 §8.3.1) and
//! Content-Disposition (RFC 7578 §4.2).

use std::borrow::Cow;

/// A value with its parameters, as it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaType<'a> {
    name: &'a [u8],
    parameters: &'a [u8],
}

impl<'a> MediaType<'a> {
    /// Takes a field's value apart. Nothing is checked yet.
    pub fn of(value: &'a [u8]) -> Self {
        let end = value.iter().position(|byte| *byte == b';').unwrap_or(value.len());
        Self { name: value[..end].trim_ascii(), parameters: &value[end..] }
    }

    /// Returns whether it is `name`; case does not matter.
    pub fn is(self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// Returns what stands before the parameters: `text/html`.
    pub fn name(self) -> &'a [u8] {
        self.name
    }

    /// Returns the first value of a parameter, by its name, whose case does not matter, without its
    /// quotes.
    ///
    /// In quotes, a backslash makes `"` and `\` ordinary, and is one itself before anything else:
    /// names of files come with backslashes that were not quoted.
    pub fn parameter(self, name: &str) -> Option<Cow<'a, [u8]>> {
        let mut rest = self.parameters;
        loop {
            let start = rest.iter().position(|byte| !b"; \t".contains(byte))?;
            rest = &rest[start..];
            let end = rest.iter().position(|byte| b";=".contains(byte)).unwrap_or(rest.len());
            let (found, behind) = rest.split_at(end);
            let Some(value) = behind.strip_prefix(b"=") else {
                rest = behind;
                continue;
            };
            let (value, behind) = read_value(value.trim_ascii_start());
            if found.trim_ascii().eq_ignore_ascii_case(name.as_bytes()) {
                return Some(value);
            }
            rest = behind;
        }
    }
}

/// Reads a parameter's value. Returns what stands behind it, too.
fn read_value(input: &[u8]) -> (Cow<'_, [u8]>, &[u8]) {
    let Some(quoted) = input.strip_prefix(b"\"") else {
        let end = input.iter().position(|byte| *byte == b';').unwrap_or(input.len());
        return (Cow::Borrowed(input[..end].trim_ascii_end()), &input[end..]);
    };
    let mut at = 0;
    let mut is_plain = true;
    while at < quoted.len() && quoted[at] != b'"' {
        let is_pair = quoted[at] == b'\\' && matches!(quoted.get(at + 1), Some(b'"' | b'\\'));
        is_plain &= !is_pair;
        at += if is_pair { 2 } else { 1 };
    }
    let (value, behind) = quoted.split_at(at.min(quoted.len()));
    (if is_plain { Cow::Borrowed(value) } else { Cow::Owned(unquoted(value)) }, behind)
}

fn unquoted(value: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(value.len());
    let mut at = 0;
    while at < value.len() {
        if value[at] == b'\\' && matches!(value.get(at + 1), Some(b'"' | b'\\')) {
            at += 1;
        }
        plain.push(value[at]);
        at += 1;
    }
    plain
}

/// Returns whether `pattern` is a media type such as `text/css`, or one with a star for what may
/// stand there: `text/*`, `application/*+json`, `*/*`.
pub fn is_pattern(pattern: &str) -> bool {
    let is_name = |part: &str| {
        let letters = part.replace('*', "");
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
        !part.is_empty() && part.len() - letters.len() <= 1 && letters.bytes().all(is_token)
    };
    pattern.split_once('/').is_some_and(|(kind, rest)| is_name(kind) && is_name(rest))
}

/// Returns whether a content type is one of several, its parameters apart. Case does not matter.
///
/// - `patterns`: [patterns](is_pattern).
pub fn matches_any<'p>(patterns: impl IntoIterator<Item = &'p str>, content_type: &[u8]) -> bool {
    let end = content_type.iter().position(|byte| *byte == b';').unwrap_or(content_type.len());
    let essence = content_type[..end].trim_ascii();
    patterns.into_iter().any(|pattern| matches(pattern.as_bytes(), essence))
}

/// Compares the two halves apart, so that a star does not reach across the slash.
fn matches(pattern: &[u8], essence: &[u8]) -> bool {
    let halves = |text: &[u8]| text.iter().position(|byte| *byte == b'/').map(|at| (at, at + 1));
    let (Some((end, start)), Some((other_end, other_start))) = (halves(pattern), halves(essence))
    else {
        return false;
    };
    is_like(&pattern[..end], &essence[..other_end])
        && is_like(&pattern[start..], &essence[other_start..])
}

fn is_like(pattern: &[u8], text: &[u8]) -> bool {
    let Some(star) = pattern.iter().position(|byte| *byte == b'*') else {
        return pattern.eq_ignore_ascii_case(text);
    };
    let (before, after) = (&pattern[..star], &pattern[star + 1..]);
    text.len() >= before.len() + after.len()
        && text[..before.len()].eq_ignore_ascii_case(before)
        && text[text.len() - after.len()..].eq_ignore_ascii_case(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_types_with_a_star_in_each_half_at_most() {
        for pattern in ["text/*", "*/*", "application/*+json", "a/b"] {
            assert!(is_pattern(pattern), "{pattern}");
        }
        for pattern in ["text", "text/", "/css", "text/**", "te xt/css", "a/b/c", "a/b;c=d", ""] {
            assert!(!is_pattern(pattern), "{pattern}");
        }
    }

    #[test]
    fn a_star_stays_on_its_side_of_the_slash() {
        assert!(matches_any(["*/*"], b"a/b"));
        assert!(matches_any(["application/*+json"], b"application/a+json"));
        assert!(!matches_any(["application/*+json"], b"application/json"));
        assert!(!matches_any(["text/*"], b"texts/plain"));
        assert!(matches_any(["text/*"], b"text/a+b ; charset=x"));
    }

    fn parameter(value: &str, name: &str) -> Option<String> {
        let found = MediaType::of(value.as_bytes()).parameter(name)?;
        Some(String::from_utf8(found.into_owned()).expect("these tests use text"))
    }

    #[test]
    fn a_type_is_found_in_any_case_and_without_its_parameters() {
        let kind = MediaType::of(b" Text/HTML ; charset=utf-8");
        assert!(kind.is("text/html") && !kind.is("text/plain"));
        assert_eq!(kind.name(), b"Text/HTML");
        assert!(MediaType::of(b"text/html").is("text/html"));
    }

    #[test]
    fn parameters_are_found_with_and_without_quotes() {
        let value = "form-data; name=\"a; b=c\"; Filename=x.txt ;flag; empty=; last=\"z";
        assert_eq!(parameter(value, "NAME").as_deref(), Some("a; b=c"));
        assert_eq!(parameter(value, "filename").as_deref(), Some("x.txt"));
        assert_eq!(parameter(value, "empty").as_deref(), Some(""));
        assert_eq!(parameter(value, "last").as_deref(), Some("z"));
        assert_eq!(parameter(value, "flag"), None);
        assert_eq!(parameter("text/plain", "charset"), None);
        assert_eq!(parameter("text/plain; charset", "charset"), None);
    }

    #[test]
    fn quotes_and_backslashes_come_as_they_were_meant() {
        assert_eq!(
            parameter(r#"x; a="say \"hi\" \\ "; b=2"#, "a").as_deref(),
            Some(r#"say "hi" \ "#)
        );
        assert_eq!(parameter(r#"x; a="C:\dir\file""#, "a").as_deref(), Some(r"C:\dir\file"));
        assert_eq!(parameter(r#"x; a="end\"#, "a").as_deref(), Some(r"end\"));
        assert_eq!(parameter(r#"x; a="\"; b=2"; c=3"#, "c").as_deref(), Some("3"));
    }
}
