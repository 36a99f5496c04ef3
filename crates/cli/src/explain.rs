//! `gustnado check --explain`: what happens with a request, and why.

mod facts;

use std::fmt::Write;

use crate::arguments::{ExplainOptions, ServeOptions};
use crate::exit;
use crate::output::{Console, Paint, page, page_paint};
use facts::Fact;

/// Explains a request. The exit code says whether the server could answer it at all; any status of
/// the response is an answer.
pub(crate) fn run(options: &ServeOptions, explain: &ExplainOptions) -> u8 {
    let output = Console::new(false);
    for warning in &options.settings.warnings {
        output.warn(warning);
    }
    // What is logged to a terminal is for servers.
    let explanation = match options.server().explain(&explain.asked) {
        Ok(explanation) => explanation,
        Err(gustnado::ExplainError::Start(error)) => {
            output.error(&options.line(&error));
            return exit::CONFIG;
        }
        Err(error) => {
            output.error(&error.to_string());
            return exit::FAILED;
        }
    };
    let facts = facts::of(options, &explain.asked, &explanation);
    let shown: Vec<Fact> =
        facts.into_iter().map(|(name, text)| (name, options.shown(&text))).collect();
    if explain.is_json {
        page(&json(&shown, &explanation))
    } else {
        page(&text(&shown, &explanation, page_paint()))
    }
}

/// Formats one line for each fact, then the response.
fn text(facts: &[Fact], explanation: &gustnado::Explanation, paint: Paint) -> String {
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let mut lines = String::new();
    let mut before = "";
    for (name, value) in facts {
        let shown = if *name == before { "" } else { name };
        before = name;
        // Writing to a string cannot fail.
        _ = writeln!(lines, "{}  {value}", paint.bold(&format!("{shown:width$}")));
    }
    let indent = " ".repeat(width + 2);
    for (name, value) in &explanation.fields {
        _ = writeln!(lines, "{indent}{name}: {}", legible(value));
    }
    lines
}

/// Formats the same for programs.
fn json(facts: &[Fact], explanation: &gustnado::Explanation) -> String {
    let pair = |name: &str, value: &str| format!("[{},{}]", quoted(name), quoted(value));
    let all: Vec<String> = facts.iter().map(|(name, value)| pair(name, value)).collect();
    let fields = explanation.fields.iter();
    let fields: Vec<String> = fields.map(|(name, value)| pair(name, &legible(value))).collect();
    format!(
        "{{\"status\":{},\"fields\":[{}],\"facts\":[{}]}}\n",
        explanation.status,
        fields.join(","),
        all.join(",")
    )
}

/// Returns the value of a field without what a terminal would take for a command.
fn legible(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    text.chars()
        .map(|one| if one.is_control() { char::REPLACEMENT_CHARACTER } else { one })
        .collect()
}

/// Returns a text as JSON has it (RFC 8259 §7).
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => {
                _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_json_would_misread_is_escaped() {
        assert_eq!(quoted("a \"b\"\\\n\u{fc}"), "\"a \\\"b\\\"\\\\\\u000a\u{fc}\"");
    }
}
