//! As much of Rust as the tidy test must read. The code is formatted: indentation can be trusted.

use super::tree::Source;

/// A function with a body.
pub(crate) struct Function {
    pub(crate) name: String,
    /// Its first line, from 1.
    pub(crate) line: usize,
    /// From its signature to its closing brace.
    pub(crate) lines: usize,
}

/// All functions, those inside of others too.
pub(crate) fn functions(text: &str) -> Vec<Function> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else {
            continue;
        };
        let indent = &line[..line.len() - line.trim_start().len()];
        let one_line = line.ends_with(';') || line.ends_with('}');
        let last = if one_line { Some(at) } else { body_end(&lines, at + 1, indent) };
        if let Some(last) = last {
            found.push(Function { name, line: at + 1, lines: last - at + 1 });
        }
    }
    found
}

fn function_name(line: &str) -> Option<String> {
    let mut words = line.trim_start().split([' ', '(']);
    let mut word = words.next()?;
    while ["pub", "async", "const", "unsafe", "extern", "crate)", "super)", "\"C\""].contains(&word)
    {
        word = words.next()?;
    }
    if word != "fn" {
        return None;
    }
    let name = words.next()?;
    Some(name.split('<').next().unwrap_or(name).to_owned())
}

/// The line that closes the body, or none for a declaration without one.
fn body_end(lines: &[&str], from: usize, indent: &str) -> Option<usize> {
    for (at, line) in lines.iter().enumerate().skip(from) {
        let Some(rest) = line.strip_prefix(indent) else {
            continue;
        };
        if rest == "}" || rest.starts_with("})") {
            return Some(at);
        }
        if rest.starts_with(')') && rest.ends_with(';') {
            return None;
        }
    }
    None
}

/// Lines up to the unit tests, which stand last.
pub(crate) fn lines_without_tests(source: &Source) -> usize {
    if !source.is_rust() {
        return source.text.lines().count();
    }
    if is_unit_test(&source.path) {
        return 0;
    }
    let mut before = "";
    for (number, line) in source.numbered() {
        if before.starts_with("#[cfg(") && before.contains("test") && line.starts_with("mod ") {
            return number - 2;
        }
        before = line;
    }
    source.text.lines().count()
}

/// A file of unit tests that was moved out of its module: `head/tests.rs` or `files/tests/*.rs`.
fn is_unit_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/src/") && path.contains("/tests/")
}

/// Returns the numbers of the lines that have a word in code, without comments.
pub(crate) fn lines_with_word(text: &str, word: &str) -> Vec<usize> {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let holds = |line: &str| {
        let code = line.split("//").next().unwrap_or("");
        code.match_indices(word).any(|(at, _)| {
            let before = code[..at].chars().next_back();
            let after = code[at + word.len()..].chars().next();
            let quoted = before.is_some_and(|c| "\"'`".contains(c));
            !quoted && !before.is_some_and(part) && !after.is_some_and(part)
        })
    };
    (1..).zip(text.lines()).filter(|(_, line)| holds(line)).map(|(number, _)| number).collect()
}

/// Returns whether a test file has `mod` for another one, or names it in a `path` attribute.
pub(crate) fn declares_module(source: &Source, path: &str) -> bool {
    let stem = path.trim_end_matches("/mod.rs").trim_end_matches(".rs");
    let name = stem.rsplit('/').next().unwrap_or(stem);
    let declared = [format!("mod {name};"), format!("mod {name} {{")];
    let file = path.rsplit('/').next().unwrap_or(path);
    declared.iter().any(|text| source.text.contains(text.as_str()))
        || source.text.contains(&format!("{file}\"]"))
}

#[test]
fn the_length_of_a_function_is_counted_to_its_brace() {
    let text = "impl X {\n    pub(crate) async fn one(\n        a: u8,\n    ) -> u8 {\n        \
                a\n    }\n    fn two() {}\n    fn three(\n        b: u8,\n    ) -> u8;\n}\n";
    let found = functions(text);
    let lengths: Vec<(&str, usize)> =
        found.iter().map(|function| (function.name.as_str(), function.lines)).collect();
    assert_eq!(lengths, [("one", 5), ("two", 1)]);
}

#[test]
fn a_word_counts_in_code_and_as_a_whole() {
    let text = "// danger here\ndanger {\n#![forbid(danger_code)]\nlet s = \"danger\";\n";
    assert_eq!(lines_with_word(text, "danger"), [2]);
}

#[test]
fn unit_tests_do_not_count_as_lines_of_a_file() {
    let text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n}\n".to_owned();
    let source = Source { path: "x/src/a.rs".to_owned(), text };
    assert_eq!(lines_without_tests(&source), 2);
}
