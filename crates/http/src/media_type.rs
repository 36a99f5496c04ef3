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

#[cfg(test)]
mod tests {
    use super::*;

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
