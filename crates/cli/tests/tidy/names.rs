//! Names of code in documents: each has to be declared somewhere.

use crate::tree::{Source, code_spans};

/// The names of functions, types and variants in a document that no source declares, and how many
/// it has in all.
///
/// A name is what cannot be a plain word: `a_b`, `Ab`, `Ab::c`. Names of the kernel, such as
/// `SO_REUSEPORT`, and words of HTTP are none.
pub(crate) fn names_missing_in(document: &Source, sources: &[Source]) -> (Vec<String>, usize) {
    let (mut missing, mut named) = (Vec::new(), 0);
    for span in code_spans(&document.text).filter(|span| is_name(span)) {
        named += 1;
        let is_there = |word: &str| sources.iter().any(|source| declares(&source.text, word));
        if !span.split("::").all(is_there) {
            missing.push(span.to_owned());
        }
    }
    (missing, named)
}

fn is_name(span: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let begins_well = span.starts_with(|c: char| c.is_ascii_alphabetic());
    let has_small = span.contains(|c: char| c.is_ascii_lowercase());
    let is_type = span.starts_with(|c: char| c.is_ascii_uppercase());
    begins_well
        && span != "io_uring"
        && has_small
        && span.chars().all(is_plain)
        && (span.contains('_') || span.contains("::") || is_type)
}

/// Returns whether a source declares a word: as a function, a type, a module, a constant, a field
/// or a variant.
fn declares(text: &str, word: &str) -> bool {
    let keywords =
        ["fn ", "struct ", "enum ", "trait ", "type ", "mod ", "const ", "static ", "as ", "def "];
    // Most sources lack the word: a search of the whole text is much faster than one of each line.
    let may = text.contains(word);
    may && text.lines().map(str::trim_start).any(|line| {
        let after = |start: &str| {
            let rest = line.split_once(start).map(|(_, rest)| rest);
            rest.is_some_and(|rest| begins_with_word(rest, word))
        };
        let bare = line.strip_prefix("pub ").unwrap_or(line);
        let is_member = begins_with_word(bare, word)
            && bare[word.len()..].starts_with([',', ':', '(', ' ', ';']);
        is_member || keywords.iter().any(|keyword| after(keyword))
    })
}

fn begins_with_word(text: &str, word: &str) -> bool {
    let letter = |c: char| c.is_alphanumeric() || c == '_';
    text.strip_prefix(word).is_some_and(|rest| !rest.starts_with(letter))
}

#[test]
fn a_name_that_nothing_declares_is_found() {
    let text = "`Link::poll_recv`, `Nobody`, `no_such_function`, `GET`, `SO_REUSEPORT`, `pool`";
    let document = Source { path: "docs/x.md".to_owned(), text: text.to_owned() };
    let source = "pub struct Link;\nimpl Link {\n    pub fn poll_recv(&mut self) {}\n}\n";
    let sources = [Source { path: "a.rs".to_owned(), text: source.to_owned() }];
    let missing = vec!["Nobody".to_owned(), "no_such_function".to_owned()];
    assert_eq!(names_missing_in(&document, &sources), (missing, 3));
}
