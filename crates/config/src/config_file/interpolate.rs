//! Values of the environment in the texts of a file: `${NAME}` and `${NAME:-default}`.
//!
//! They are put in after the file was parsed, and in values alone: a variable can neither add a key
//! nor end a text.

use std::ffi::OsString;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::secrets::{HiddenValues, is_secret};
use super::value::ValueReader;

/// How a variable of the environment is found by its name.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The most bytes that all texts with values of the environment may have.
const BYTES_MAX: usize = 4 << 20;

/// Puts values of the environment into every text of a file.
pub(super) fn interpolate(
    reader: &mut ValueReader<'_>,
    table: &mut DeTable<'_>,
    variables: Variables<'_>,
    secrets: &mut HiddenValues,
) {
    for (_, value) in table.iter_mut() {
        interpolate_value(reader, value, variables, secrets);
    }
}

/// The depth is bounded by that of the parser.
fn interpolate_value(
    reader: &mut ValueReader<'_>,
    value: &mut Spanned<DeValue<'_>>,
    variables: Variables<'_>,
    secrets: &mut HiddenValues,
) {
    let start = value.span().start;
    let text = match value.get_mut() {
        DeValue::Table(table) => return interpolate(reader, table, variables, secrets),
        DeValue::Array(items) => {
            for item in items.iter_mut() {
                interpolate_value(reader, item, variables, secrets);
            }
            return;
        }
        DeValue::String(text) if text.contains("${") => text,
        _ => return,
    };
    let line = reader.line(start);
    match expand(text, variables) {
        Ok(expanded) => {
            for (name, value) in expanded.used.iter().filter(|(name, _)| is_secret(name)) {
                secrets.add(name, value, text, &expanded.text);
            }
            let names = expanded.used.into_iter().map(|(name, _)| name).collect();
            if reader.interpolated.add(start, names, expanded.text.len()) > BYTES_MAX {
                let most = BYTES_MAX >> 20;
                reader.problem(
                    line,
                    format!(
                        "expected at most {most} MiB of texts with values of the environment, \
                         found more; shorten the values"
                    ),
                );
                return;
            }
            *text = expanded.text.into();
        }
        Err(problem) => reader.problem(line, problem),
    }
}

/// A text with the values that are in it now.
struct Expanded {
    text: String,
    /// Variables of the environment that were there, each with its value.
    used: Vec<(String, String)>,
}

fn expand(text: &str, variables: Variables<'_>) -> Result<Expanded, String> {
    let mut expanded = Expanded { text: String::with_capacity(text.len()), used: Vec::new() };
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if let Some(before) = rest[..at].strip_suffix('$') {
            expanded.text.push_str(before);
            expanded.text.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        expanded.text.push_str(&rest[..at]);
        let behind = &rest[at + 2..];
        let Some(end) = behind.find('}') else {
            return Err("expected } behind ${; close it, or write $${ for ${ itself".to_owned());
        };
        let (inner, after) = (&behind[..end], &behind[end + 1..]);
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        if !is_name(name) {
            let found: String = inner.chars().take(60).collect();
            return Err(format!(
                "expected ${{NAME}} or ${{NAME:-default}}, found ${{{found}}}; write $${{ for \
                 ${{ itself"
            ));
        }
        if default.is_some_and(|default| default.contains("${")) {
            return Err(format!(
                "expected a text as the default of {name}, found another ${{ in it; write what it \
                 stands for"
            ));
        }
        let value = match variables(name).map(OsString::into_string) {
            Some(Ok(value)) => Some(value),
            Some(Err(_)) => {
                return Err(format!("the variable {name} is not UTF-8; set it to text"));
            }
            None => None,
        };
        match (value, default) {
            // As in a shell: what is empty has the default, too.
            (Some(value), None) => expanded.put(name, value),
            (Some(value), Some(_)) if !value.is_empty() => expanded.put(name, value),
            (_, Some(default)) => expanded.text.push_str(default),
            (None, None) => {
                return Err(format!(
                    "the variable {name} is not set; set it, or write ${{{name}:-default}}"
                ));
            }
        }
        rest = after;
        if expanded.text.len() > BYTES_MAX {
            break;
        }
    }
    expanded.text.push_str(rest);
    Ok(expanded)
}

impl Expanded {
    fn put(&mut self, name: &str, value: String) {
        self.text.push_str(&value);
        self.used.push((name.to_owned(), value));
    }
}

fn is_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    begins && name.len() <= 255 && name.bytes().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of_test(name: &str) -> Option<OsString> {
        match name {
            "A" => Some("one".into()),
            "EMPTY" => Some("".into()),
            "ODD" => Some("${A}\"\n".into()),
            _ => None,
        }
    }

    fn expanded(text: &str) -> Result<String, String> {
        expand(text, &of_test).map(|expanded| expanded.text)
    }

    #[test]
    fn a_variable_is_its_value_or_its_default() {
        for (text, value) in [
            ("${A}", "one"),
            ("<${A}-${A}>", "<one-one>"),
            ("${A:-two}", "one"),
            ("${NONE:-two}", "two"),
            ("${NONE:-}", ""),
            ("${EMPTY}", ""),
            ("${EMPTY:-two}", "two"),
            ("$${A} $$ $A ${A}", "${A} $$ $A one"),
            ("$$${A}", "$${A}"),
            ("${NONE:-a:-b}", "a:-b"),
            // A value is not read again.
            ("${ODD}", "${A}\"\n"),
        ] {
            assert_eq!(expanded(text).as_deref(), Ok(value), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_says_so_with_a_remedy() {
        for (text, part) in [
            ("${NONE}", "the variable NONE is not set; set it, or write ${NONE:-default}"),
            ("${A", "expected } behind ${"),
            ("${}", "found ${}"),
            ("${1A}", "found ${1A}"),
            ("${A B}", "write $${ for ${ itself"),
            ("${A-b}", "expected ${NAME} or ${NAME:-default}"),
            ("${NONE:-${A}/www}", "expected a text as the default of NONE, found another ${ in it"),
        ] {
            let found = expanded(text).expect_err(text);
            assert!(found.contains(part), "{text}: {found}");
        }
    }

    proptest! {
        #[test]
        fn what_is_escaped_is_read_as_it_was(text in "[${}A:a-]{0,24}") {
            let escaped = HiddenValues::default().written(&text);
            prop_assert_eq!(expanded(&escaped), Ok(text));
        }

        #[test]
        fn any_text_is_expanded_or_refused(text in any::<String>()) {
            let _ = expanded(&text);
        }
    }
}
