//! Crates: which of them use which, and what comes from outside.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The workspace's crates that a manifest depends on, and whether its tests alone do.
pub(crate) fn crates_used(manifest: &str) -> Vec<(String, bool)> {
    let mut used = Vec::new();
    let (mut in_dependencies, mut in_tests) = (false, false);
    for line in manifest.lines() {
        if line.starts_with('[') {
            in_dependencies = line.trim_end_matches(']').ends_with("dependencies");
            in_tests = line.contains("dev-dependencies");
            continue;
        }
        let name = line.split(['.', '=', ' ']).next().unwrap_or("");
        let krate = match name.strip_prefix("gustnado") {
            Some("") => "server",
            Some(rest) => rest.trim_start_matches('-'),
            None => continue,
        };
        if in_dependencies {
            used.push((krate.to_owned(), in_tests));
        }
    }
    used
}

/// The members of the workspace, each by the name of its folder.
pub(crate) fn members(root: &Path) -> Vec<String> {
    let text = read(&root.join("Cargo.toml"));
    let mut found = Vec::new();
    for member in quoted_after(&text, "members = [") {
        let Some(folder) = member.strip_suffix("/*") else {
            found.push(member);
            continue;
        };
        let entries = fs::read_dir(root.join(folder)).expect("a folder of crates");
        found.extend(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into()));
    }
    assert!(found.len() > 5, "the members of the workspace are named in a new form: {found:?}");
    found
}

/// Returns the folder of a member of the workspace.
pub(crate) fn folder(root: &Path, member: &str) -> PathBuf {
    let among_crates = root.join("crates").join(member);
    if among_crates.exists() { among_crates } else { root.join(member) }
}

/// The licences that deny.toml allows.
pub(crate) fn allowed_licences(root: &Path) -> Vec<String> {
    let text = read(&root.join("deny.toml"));
    let licences = text.split("[licenses]").nth(1).expect("deny.toml has a section [licenses]");
    quoted_after(licences, "allow = [")
}

fn quoted_after(text: &str, start: &str) -> Vec<String> {
    let rest = text.split_once(start).map_or("", |(_, rest)| rest);
    let list = rest.split(']').next().unwrap_or("");
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Every crate that is built here, with its licence as it states it.
pub(crate) fn licences(root: &Path) -> Vec<(String, String)> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform"])
        .arg(concat!("x86_64", "-unknown-linux-gnu"))
        .current_dir(root)
        .output()
        .expect("cargo runs, for it runs this test");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata failed; is Cargo.lock up to date? {said}");
    let text = String::from_utf8_lossy(&output.stdout);
    let mut found = Vec::new();
    for (at, mark) in text.match_indices("\"license\":") {
        let name = text[..at].rsplit("{\"name\":\"").next().expect("a licence has a crate before");
        let name = name.split('"').next().unwrap_or("");
        let licence = text[at + mark.len()..].strip_prefix('"').unwrap_or("nothing\"");
        let licence = licence.split('"').next().unwrap_or("");
        found.push((name.to_owned(), licence.to_owned()));
    }
    assert!(found.len() > 5, "cargo metadata has a new form: adapt the parser");
    found
}

/// Returns whether an SPDX expression can be met with the allowed licences alone: each part joined
/// by AND needs one of its alternatives.
pub(crate) fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    split_outside(expression, " AND ").iter().all(|part| {
        let part = part.trim().trim_start_matches('(').trim_end_matches(')');
        let part = part.replace('/', " OR ");
        part.split(" OR ").any(|one| allowed.iter().any(|licence| licence == one.trim()))
    })
}

/// Splits at a word outside of parentheses.
fn split_outside<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if depth == 0 && text[at..].starts_with(word) => {
                parts.push(&text[from..at]);
                from = at + word.len();
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}

/// The crates that a package is built of, each with its version. What only tests and examples use
/// is not among them.
pub(crate) fn linked(root: &Path, of: &[&str]) -> Vec<(String, String)> {
    tree(root, "normal,build", of)
}

/// The same without what only runs while it is built.
pub(crate) fn contained(root: &Path, of: &[&str]) -> Vec<(String, String)> {
    tree(root, "normal,no-proc-macro", of)
}

fn tree(root: &Path, edges: &str, of: &[&str]) -> Vec<(String, String)> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--edges", edges, "--prefix", "none"])
        .args(["--format", "{p}", "--target", concat!("x86_64", "-unknown-linux-gnu")])
        .args(of)
        .current_dir(root)
        .output()
        .expect("cargo runs, for it runs this test");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo tree failed; is Cargo.lock up to date? {said}");
    let text = String::from_utf8_lossy(&output.stdout);
    let mut found: Vec<(String, String)> = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, rest)| (name.to_owned(), rest.split(' ').next().unwrap_or("").to_owned()))
        .collect();
    found.sort_unstable();
    found.dedup();
    assert!(found.len() > 5, "cargo tree has a new form: adapt the parser");
    found
}

/// Crates that are linked in more than one version.
pub(crate) fn duplicates(root: &Path) -> Vec<String> {
    let linked = linked(root, &["--workspace", "--all-features"]);
    let mut twice: Vec<String> = linked
        .windows(2)
        .filter(|pair| pair[0].0 == pair[1].0)
        .map(|pair| pair[0].0.clone())
        .collect();
    twice.dedup();
    twice
}

fn read(path: &Path) -> String {
    fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

#[test]
fn crates_are_read_from_every_table_of_dependencies() {
    let manifest = "[package]\nname = \"gustnado-x\"\n[dependencies]\ngustnado.workspace = true\n\
                    libc = \"1\"\n[dev-dependencies]\ngustnado-http = { path = \"../http\" }\n";
    let used = [("server".to_owned(), false), ("http".to_owned(), true)];
    assert_eq!(crates_used(manifest), used);
}

#[test]
fn a_licence_needs_one_allowed_alternative_in_each_part() {
    let allowed = ["MIT".to_owned(), "Unicode-3.0".to_owned()];
    assert!(is_allowed("MIT OR GPL-3.0", &allowed));
    assert!(is_allowed("(MIT OR Apache-2.0) AND Unicode-3.0", &allowed));
    assert!(!is_allowed("(MIT OR Apache-2.0) AND GPL-3.0", &allowed));
    assert!(!is_allowed("nothing", &allowed));
}
