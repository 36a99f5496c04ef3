//! The files of the code base, and what documents say about them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders that are made, not written, or hold bytes that are not text.
const SKIPPED: &[&str] =
    &[".git", ".hypothesis", ".pytest_cache", "__pycache__", "artifacts", "corpus", "target"];

/// One text file: its path from the root of the code base, and its content.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn is_rust(&self) -> bool {
        self.has_extension("rs")
    }

    pub(crate) fn is_document(&self) -> bool {
        self.has_extension("md")
    }

    /// Returns whether the limits on code hold for it.
    pub(crate) fn is_code(&self) -> bool {
        ["rs", "py", "c", "h"].iter().any(|extension| self.has_extension(extension))
    }

    /// Returns whether the limit on lines holds for it, though it is no code.
    pub(crate) fn is_script(&self) -> bool {
        self.has_extension("lua")
            || ["Makefile", ".ci/run", ".ci/test", "fuzz/run"].contains(&&*self.path)
    }

    /// Lines with their numbers, from 1.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }

    fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|found| found == extension)
    }
}

/// The root of the code base.
pub(crate) fn root() -> PathBuf {
    let cli = Path::new(env!("CARGO_MANIFEST_DIR"));
    cli.ancestors().nth(2).expect("crates/cli/ lies in the code base").to_path_buf()
}

/// Every file of the code base that git knows, with its bytes.
pub(crate) fn sizes() -> Vec<(String, u64)> {
    let listed = Command::new("git").arg("ls-files").current_dir(root()).output();
    // (Without git there are only sources that were packed, which were looked at before.)
    let Ok(listed) = listed else { return Vec::new() };
    let bytes = |path: &str| fs::metadata(root().join(path)).map(|about| about.len());
    let names = String::from_utf8_lossy(&listed.stdout);
    names.lines().filter_map(|path| Some((path.to_owned(), bytes(path).ok()?))).collect()
}

/// Every text file of the code base.
pub(crate) fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    gather(&root(), "", &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(found.len() > 10, "the code base is not where the tidy test looks for it");
    found
}

fn gather(folder: &Path, prefix: &str, found: &mut Vec<Source>) {
    let entries = fs::read_dir(folder).expect("a folder of the code base can be read");
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type().expect("an entry has a type");
        if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
            gather(&entry.path(), &format!("{path}/"), found);
        } else if kind.is_file() {
            // What is not UTF-8 is no text, and has no style.
            if let Ok(text) = fs::read_to_string(entry.path()) {
                found.push(Source { path, text });
            }
        }
    }
}

/// Paths that a document names and that do not exist: in code marks when they start with one of the
/// code base's folders, and in links whatever they start with.
pub(crate) fn paths_named_in(document: &Source) -> Vec<String> {
    let beside = Path::new(&document.path).parent().unwrap_or(Path::new("")).to_path_buf();
    let mut missing = Vec::new();
    for span in code_spans(&document.text) {
        if is_path_of_the_code_base(span) && !root().join(without_line(span)).exists() {
            missing.push(span.to_owned());
        }
    }
    for link in links(&document.text) {
        let target = link.split('#').next().unwrap_or("");
        let outside = target.contains("://") || target.starts_with("mailto:");
        let here = root().join(&beside).join(target);
        if !target.is_empty() && !outside && !here.exists() {
            missing.push(link.to_owned());
        }
    }
    missing
}

/// Tests that a document names behind their file, as "`crates/server/tests/a.rs`: `one`", and that
/// are not in it; and how many it names in all.
pub(crate) fn tests_named_in(document: &Source) -> (Vec<String>, usize) {
    let (mut missing, mut named) = (Vec::new(), 0);
    for line in document.text.lines() {
        let mut file = None;
        for span in code_spans(line) {
            if span.contains("/tests/") && is_path_of_the_code_base(span) {
                file = Some((span, fs::read_to_string(root().join(span)).unwrap_or_default()));
                continue;
            }
            let Some((path, text)) = &file else { continue };
            if is_name_of_a_function(span) {
                named += 1;
                if !["fn", "def"].iter().any(|word| text.contains(&format!("{word} {span}("))) {
                    missing.push(format!("{path}: {span}"));
                }
            }
        }
    }
    (missing, named)
}

fn is_name_of_a_function(span: &str) -> bool {
    span.contains('_') && span.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_numeric())
}

/// Returns the text between single back quotes, outside of fenced blocks.
pub(crate) fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    let prose = text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    });
    prose.flat_map(|line| line.split('`').skip(1).step_by(2))
}

fn is_path_of_the_code_base(span: &str) -> bool {
    let first = span.split('/').next().unwrap_or("");
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/:".contains(c);
    span.contains('/')
        && span.chars().all(plain)
        && !SKIPPED.contains(&first)
        && !first.is_empty()
        && (root().join(first).is_dir() || is_file_of_a_crate(first, span))
}

/// A file by the folder of its crate alone, which is no path from the root.
fn is_file_of_a_crate(first: &str, span: &str) -> bool {
    let is_rust = Path::new(without_line(span)).extension().is_some_and(|end| end == "rs");
    is_rust && root().join("crates").join(first).is_dir()
}

/// `a/b.rs:12` without its line number.
fn without_line(path: &str) -> &str {
    path.split(':').next().unwrap_or(path)
}

/// The targets of all links.
pub(crate) fn links(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("](").filter_map(|(at, mark)| {
        let rest = &text[at + mark.len()..];
        let end = rest.find([')', ' ', '\n'])?;
        Some(&rest[..end])
    })
}

/// Returns whether a line names a place as an absolute path, not as the middle of some other word.
pub(crate) fn names_place(line: &str, place: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || "_-.*".contains(c);
    line.match_indices(place).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + place.len()..].chars().next();
        let open = place.ends_with('/') || !after.is_some_and(word);
        open && !before.is_some_and(|c| word(c) || c == '/')
    })
}

#[test]
fn a_place_is_found_as_a_whole_path_only() {
    assert!(names_place("see /place/x", "/place"));
    assert!(names_place("`/place`", "/place"));
    assert!(!names_place("http/place/x", "/place"));
    assert!(!names_place("/places", "/place"));
}

#[test]
fn a_document_that_names_a_missing_file_is_found() {
    let text =
        "`crates/cli/Cargo.toml`, `crates/no.rs`, `crates/cli/tests/tidy.rs:3`, [x](no.md), \
                `a/b`, `cli/src/lib.rs`\n\
                ```\n`crates/fenced.rs`\n```\n[y](https://example.org/)\n"
            .to_owned();
    let document = Source { path: "docs/x.md".to_owned(), text };
    assert_eq!(paths_named_in(&document), ["crates/no.rs", "cli/src/lib.rs", "no.md"]);
}

#[test]
fn a_document_that_names_a_missing_test_is_found() {
    let text = "| `crates/cli/tests/tidy.rs`: `lines_are_short`, `no_such_test`, `--flag_x` |\n\
                `not_behind_a_file`\n"
        .to_owned();
    let document = Source { path: "docs/x.md".to_owned(), text };
    let missing = vec!["crates/cli/tests/tidy.rs: no_such_test".to_owned()];
    assert_eq!(tests_named_in(&document), (missing, 2));
}
