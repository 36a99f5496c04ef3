//! Reads targets: a URL with its weight, and files with a line `[METHOD] [WEIGHT:]URL` for each.

use crate::usage_error::UsageError;
use std::fs::File;
use std::io::Read;

/// Longest file, in bytes.
const BYTES_MAX: u64 = 16 << 20;
/// Most targets; the weights of a plan come to no more.
const TARGETS_MAX: usize = 100_000;

/// One line of the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TargetLine<'a> {
    /// `None`: the method of the flags.
    pub(super) method: Option<&'a str>,
    pub(super) weight: u32,
    pub(super) url: &'a str,
}

/// Reads the text of a file.
///
/// # Errors
/// It cannot be read, is no text, or is too long.
pub(super) fn text(path: &str) -> Result<String, UsageError> {
    let wrong = |why: String| UsageError::of_usage(format!("--targets: {path}{why}"));
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(BYTES_MAX + 1).read_to_string(&mut text))
        .map_err(|error| wrong(format!(" cannot be read: {error}")))?;
    if text.len() as u64 > BYTES_MAX {
        return Err(wrong(format!(" is longer than {BYTES_MAX} bytes; shorten it")));
    }
    Ok(text)
}

/// Parses the lines of a file. Empty lines and those that begin with `#` are left out.
///
/// - `path`: its name in messages.
///
/// # Errors
/// The first wrong line with its number, no target, or too many.
pub(super) fn lines<'a>(path: &str, text: &'a str) -> Result<Vec<TargetLine<'a>>, UsageError> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong =
            |why: &str| UsageError::of_usage(format!("--targets: {path}, line {}: {why}", at + 1));
        let (method, url) = match line.split_once(char::is_whitespace) {
            None => (None, line),
            Some((method, url)) => (Some(method), url.trim_start()),
        };
        if method.is_some_and(|of| !of.bytes().all(|byte| byte.is_ascii_alphabetic()))
            || url.contains(char::is_whitespace)
        {
            return Err(wrong(&format!("expected [METHOD] [WEIGHT:]URL, found {line:?}")));
        }
        let (weight, url) = weighted(url).map_err(|error| wrong(&error.line))?;
        found.push(TargetLine { method, weight, url });
    }
    match found.len() {
        0 => Err(UsageError::of_usage(format!("--targets: {path} has no URL; add one"))),
        count if count > TARGETS_MAX => Err(UsageError::of_usage(format!(
            "--targets: {path} has {count} targets; at most {TARGETS_MAX} are taken"
        ))),
        _ => Ok(found),
    }
}

/// Splits `3:http://host/` into 3 and `http://host/`.
///
/// # Errors
/// What was expected, with what was probably meant.
pub(super) fn weighted(text: &str) -> Result<(u32, &str), UsageError> {
    let wrong = |remedy: &str| {
        let form = "expected a URL such as http://127.0.0.1:8080/ or 3:http://127.0.0.1:8080/";
        UsageError::of_usage(format!("{text}: {form}{remedy}"))
    };
    let schemes = ["http://", "https://", "ws://", "wss://"];
    let at = schemes.iter().filter_map(|scheme| text.find(scheme)).min();
    let Some(at) = at else {
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.trim_start_matches("//");
            let remedy = format!("; did you mean --unix-socket {path} http://localhost/?");
            return Err(wrong(&remedy));
        }
        let near = format!("; did you mean http://{text}?");
        let is_other = text.contains("://");
        return Err(wrong(if is_other {
            "; it loads http:// and https://, and ws:// and wss:// with --ws"
        } else {
            &near
        }));
    };
    match text[..at].strip_suffix(':') {
        None if at == 0 => Ok((1, text)),
        Some(weight) => match weight.parse() {
            Ok(weight) if weight > 0 => Ok((weight, &text[at..])),
            _ => Err(wrong("; a weight is a whole number from 1 on")),
        },
        None => Err(wrong("")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_url_with_or_without_a_method_and_a_weight() {
        let text =
            "# all of it\n\nhttp://a/1\n  3:http://a/2\r\nPOST http://a/3\nput  2:http://a/4";
        let found = lines("t.txt", text).expect("four targets");
        let found: Vec<_> = found.iter().map(|of| (of.method, of.weight, of.url)).collect();
        let expected = [
            (None, 1, "http://a/1"),
            (None, 3, "http://a/2"),
            (Some("POST"), 1, "http://a/3"),
            (Some("put"), 2, "http://a/4"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_wrong_line_is_named_with_its_number() {
        for (text, part) in [
            ("http://a/\nGET\n", "t.txt, line 2: GET: expected a URL"),
            ("G3T http://a/", "line 1: expected [METHOD] [WEIGHT:]URL"),
            ("GET http://a/ b", "line 1: expected [METHOD] [WEIGHT:]URL"),
            ("0:http://a/", "line 1: 0:http://a/: expected a URL"),
            ("# nothing\n", "t.txt has no URL"),
        ] {
            let line = lines("t.txt", text).expect_err(text).line;
            assert!(line.starts_with("--targets: ") && line.contains(part), "{line}");
        }
    }
}
