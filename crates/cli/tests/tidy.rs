//! The style of this code base, kept by tests. Each failure says what to do about it.
//!
//! The lists of exceptions only shrink: an entry that is no longer needed fails too.

#[path = "tidy/book.rs"]
mod book;
#[path = "tidy/crates.rs"]
mod crates;
#[path = "tidy/modules.rs"]
mod modules;
#[path = "tidy/names.rs"]
mod names;
#[path = "tidy/rust.rs"]
mod rust;
#[path = "tidy/tree.rs"]
mod tree;
#[path = "tidy/types.rs"]
mod types;

use std::fs;
use std::path::Path;

use tree::{Source, root, sources};

/// Bytes of any file, pictures too: what is larger was made, not written.
const FILE_BYTES_MAX: u64 = 200_000;
const FILE_LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 70;
const LINE_CHARS_MAX: usize = 100;

/// Files that may be longer, with their present length. Empty is the goal.
const LONG_FILES: &[(&str, usize)] = &[];

/// The only files in which `unsafe` may stand.
const UNSAFE_FILES: &[&str] = &[
    "crates/reactor/src/sys.rs",
    // What was in `sys.rs` before, which had become too long.
    "crates/reactor/src/sys/by_number.rs",
    "crates/reactor/src/sys/options.rs",
    // A map of a file of our own, for which no safe constructor exists anywhere.
    "crates/reactor/src/sys/private_file.rs",
    // Pages that are left out of core dumps.
    "crates/reactor/src/sys/secret_memory.rs",
    "crates/reactor/src/provided_bufs.rs",
    "crates/tasks/src/exec/executor/wake.rs",
];

/// Crates without any `unsafe`, by their root file.
const SAFE_CRATES: &[&str] = &[
    "crates/http/src/lib.rs",
    "crates/client/src/lib.rs",
    "crates/config/src/lib.rs",
    "crates/tcp/src/lib.rs",
    "crates/tls/src/lib.rs",
    "crates/observe/src/lib.rs",
    "crates/access/src/lib.rs",
    "crates/acme/src/lib.rs",
    "crates/compress/src/lib.rs",
    "crates/files/src/lib.rs",
    "crates/web/src/lib.rs",
    "crates/app/src/lib.rs",
    "crates/h1/src/lib.rs",
    "crates/h2/src/lib.rs",
    "crates/ws/src/lib.rs",
    "crates/server/src/lib.rs",
    "crates/lab/src/lib.rs",
    "crates/cli/src/lib.rs",
];

/// Names that say nothing about what is inside.
const BANNED_NAMES: &[&str] = &["util", "utils", "common", "helper", "helpers", "manager", "misc"];

/// Words that must not be left in code. In pieces, so that this file does not find itself.
const BANNED_WORDS: &[&str] = &[
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("dbg", "!("),
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
];

/// Each crate, and the crates it may use. Arrows run downwards only.
const ARROWS: &[(&str, &[&str])] = &[
    ("http", &[]),
    ("reactor", &[]),
    ("tasks", &["reactor"]),
    ("config", &["http", "tasks"]),
    ("tls", &["http", "tasks"]),
    ("observe", &["config", "http", "tasks", "tls"]),
    ("access", &["config", "http", "tasks"]),
    ("compress", &["http"]),
    ("files", &["compress", "config", "http", "tasks"]),
    ("client", &["http", "tasks", "tls"]),
    ("tcp", &["config", "tasks", "tls"]),
    ("web", &["access", "compress", "config", "files", "http", "observe", "tasks", "tcp", "tls"]),
    ("app", &["access", "config", "files", "http", "observe", "tasks", "tls", "web"]),
    ("h1", &["app", "config", "files", "http", "observe", "tasks", "tls", "web"]),
    ("h2", &["app", "config", "files", "http", "observe", "tasks", "tls", "web"]),
    ("ws", &["client", "config", "http", "observe", "tasks", "tls", "web"]),
    (
        "server",
        &[
            "access", "acme", "app", "client", "config", "files", "h1", "h2", "http", "observe",
            "tasks", "tcp", "tls", "web", "ws",
        ],
    ),
    ("acme", &["client", "http", "tasks", "tls"]),
    ("lab", &["client", "compress", "http", "tasks", "tls"]),
    ("cli", &["compress", "files", "http", "lab", "server"]),
    // (Not the command: it was nine tenths of the wheel.)
    ("python", &["http", "reactor", "server"]),
];

/// Crates that only the tests of a crate use. (The examples of `web` and `ws` are written for users
/// of the server.)
const TESTS_USE: &[(&str, &str)] = &[("web", "server"), ("ws", "server")];

/// Number of modules of each crate that are in a cycle with siblings. Zero is the goal, and what is
/// not named.
const IN_CYCLES: &[(&str, usize)] = &[];

/// Files that declare the errors that `gustnado` shows.
const ERRORS_OF: &[&str] = &[
    "crates/access/src/",
    "crates/app/src/",
    "crates/client/src/",
    "crates/config/src/",
    "crates/files/src/",
    "crates/observe/src/",
    "crates/server/src/",
    "crates/tcp/src/",
    "crates/web/src/",
    "crates/ws/src/",
];

/// Paths of a particular machine. In pieces, for the same reason.
const MACHINE_PATHS: &[&str] =
    &[concat!("/wo", "rk"), concat!("/tmp/", "gust"), concat!("/fa", "rm")];

/// Crates that may be linked in more than one version. `syn` runs in macros, and in no program. The
/// library ring, which stands in for AWS-LC, has an older `getrandom`.
const DUPLICATES: &[&str] = &["base64", "getrandom", "syn", "untrusted"];

#[test]
fn files_are_short() {
    let mut problems = Vec::new();
    for source in sources().iter().filter(|source| source.is_code()) {
        let lines = rust::lines_without_tests(source);
        let allowed = LONG_FILES.iter().find(|(path, _)| *path == source.path);
        let most = allowed.map_or(FILE_LINES_MAX, |(_, lines)| *lines);
        if lines > most {
            problems.push(format!("{}: {lines} lines, {most} allowed: split it", source.path));
        }
        if allowed.is_some() && lines < most {
            let path = &source.path;
            problems.push(format!("{path}: down to {lines} lines: lower its entry in LONG_FILES"));
        }
    }
    for (path, _) in LONG_FILES {
        if !root().join(path).exists() {
            problems.push(format!("{path}: gone: take it out of LONG_FILES"));
        }
    }
    report(&problems);
}

#[test]
fn files_are_small() {
    let large = tree::sizes().into_iter().filter(|(_, bytes)| *bytes > FILE_BYTES_MAX);
    let problems = large.map(|(path, bytes)| {
        format!("{path}: {} KiB: publish what a program has made, do not commit it", bytes >> 10)
    });
    report(&problems.collect::<Vec<_>>());
}

/// What marks a figure whose sources no commit holds.
const DIRTY_MARKS: &[&str] = &["with local changes", "-dirty"];

#[test]
fn results_name_the_commit_that_they_are_of() {
    let mut problems = Vec::new();
    for source in sources().iter().filter(|source| source.path.starts_with("docs/results/")) {
        if DIRTY_MARKS.iter().any(|mark| source.text.contains(mark)) {
            let path = &source.path;
            problems.push(format!("{path}: measured with local changes: commit, measure again"));
        }
    }
    report(&problems);
}

#[test]
fn lines_are_short() {
    let mut problems = Vec::new();
    for source in sources().iter().filter(|source| source.is_code() || source.is_script()) {
        for (number, line) in source.numbered() {
            let chars = line.chars().count();
            if chars > LINE_CHARS_MAX {
                let path = &source.path;
                problems.push(format!("{path}:{number}: {chars} characters: break the line"));
            }
        }
    }
    report(&problems);
}

#[test]
fn functions_are_short() {
    let mut problems = Vec::new();
    for source in sources().iter().filter(|source| source.is_rust()) {
        for function in rust::functions(&source.text) {
            if function.lines > FUNCTION_LINES_MAX {
                problems.push(format!(
                    "{}:{}: fn {} has {} lines, {FUNCTION_LINES_MAX} allowed: name its parts",
                    source.path, function.line, function.name, function.lines
                ));
            }
        }
    }
    report(&problems);
}

#[test]
fn names_say_what_is_inside() {
    let mut problems = Vec::new();
    for source in sources() {
        let path = Path::new(&source.path);
        for part in path.with_extension("").components() {
            let part = part.as_os_str().to_string_lossy();
            if BANNED_NAMES.contains(&part.as_ref()) {
                let path = &source.path;
                problems
                    .push(format!("{path}: `{part}` says nothing: name it after what it holds"));
            }
        }
    }
    report(&problems);
}

#[test]
fn nothing_is_left_for_later() {
    let mut problems = Vec::new();
    for source in sources().iter().filter(|source| source.is_code()) {
        for (number, line) in source.numbered() {
            for word in BANNED_WORDS.iter().filter(|word| line.contains(**word)) {
                let path = &source.path;
                problems.push(format!("{path}:{number}: `{word}`: do it, or open an issue"));
            }
        }
    }
    report(&problems);
}

#[test]
fn unsafe_stands_only_where_it_may() {
    let mut problems = Vec::new();
    for source in sources().iter().filter(|source| source.is_rust()) {
        if UNSAFE_FILES.contains(&source.path.as_str()) {
            continue;
        }
        for number in rust::lines_with_word(&source.text, "unsafe") {
            problems.push(format!(
                "{}:{number}: `unsafe`: use the safe form, or move it to one of {UNSAFE_FILES:?}",
                source.path
            ));
        }
    }
    for path in SAFE_CRATES {
        let text = fs::read_to_string(root().join(path)).unwrap_or_default();
        if !text.contains("#![forbid(unsafe_code)]") {
            problems.push(format!("{path}: add #![forbid(unsafe_code)] at its top"));
        }
    }
    report(&problems);
}

#[test]
fn arrows_run_downwards() {
    let mut problems = Vec::new();
    for (krate, may_use) in ARROWS {
        let manifest = crates::folder(&root(), krate).join("Cargo.toml");
        let text = fs::read_to_string(&manifest).unwrap_or_default();
        for (used, in_tests) in crates::crates_used(&text) {
            let may_test = in_tests && TESTS_USE.contains(&(*krate, used.as_str()));
            if used != *krate && !may_use.contains(&used.as_str()) && !may_test {
                problems.push(format!(
                    "{krate}/Cargo.toml uses {used}: {krate} may use {may_use:?} (ARCHITECTURE.md)"
                ));
            }
        }
    }
    for member in crates::members(&root()) {
        if !ARROWS.iter().any(|(krate, _)| *krate == member) {
            problems.push(format!("{member}: a new crate: say in ARROWS what it may use"));
        }
    }
    report(&problems);
}

#[test]
fn modules_use_no_sibling_that_uses_them() {
    let mut problems = Vec::new();
    for krate in crates::members(&root()) {
        let file = crates::folder(&root(), &krate).join("src/lib.rs");
        let found = modules::cycles(&modules::Module::of_crate(&file));
        let count: usize = found.values().map(|cyclic| cyclic.siblings.len()).sum();
        let known =
            IN_CYCLES.iter().find(|(name, _)| *name == krate).map_or(0, |(_, count)| *count);
        if count != known {
            problems.push(format!(
                "{krate}: {count} modules are in a cycle, and IN_CYCLES says {known}: {found:#?}"
            ));
        }
    }
    report(&problems);
}

#[test]
fn types_have_names_of_their_own() {
    let names = crates::members(&root());
    let file = |krate: &str| crates::folder(&root(), krate).join("src/lib.rs");
    let modules: Vec<modules::Module> =
        names.iter().map(|krate| modules::Module::of_crate(&file(krate))).collect();
    let found = types::declared_twice(names.iter().map(String::as_str).zip(&modules));
    report(&types::problems(&found, types::DECLARED_TWICE));
}

/// `fn main() -> gustnado::Result<()>` prints what `Debug` writes: `debug_as_display` makes that.
#[test]
fn no_public_error_derives_its_debug() {
    let (mut problems, mut found) = (Vec::new(), 0);
    let is_face = |path: &str| ERRORS_OF.iter().any(|one| path.starts_with(one));
    for source in sources().iter().filter(|source| source.is_rust() && is_face(&source.path)) {
        let lines: Vec<&str> = source.text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let item = line.strip_prefix("pub enum ").or(line.strip_prefix("pub struct "));
            let name = item.and_then(|item| item.split([' ', '(', '<']).next());
            if name.is_some_and(|name| name.ends_with("Error")) {
                found += 1;
                let mut above = lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
                if above.any(|line| line.contains("Debug")) {
                    let path = &source.path;
                    problems.push(format!("{path}: {line}: use debug_as_display! in its place"));
                }
            }
        }
    }
    assert!(found >= 17, "only {found} were found");
    report(&problems);
}

#[test]
fn paths_in_documents_exist() {
    let mut problems = Vec::new();
    for source in sources().iter().filter(|source| source.is_document()) {
        for path in tree::paths_named_in(source) {
            let path = &path;
            let from = &source.path;
            problems.push(format!("{from}: names `{path}`, which does not exist: correct it"));
        }
    }
    report(&problems);
}

#[test]
fn code_that_documents_name_exists() {
    let (mut problems, mut all) = (Vec::new(), 0);
    let sources = sources();
    let code: Vec<Source> =
        sources.iter().filter(|source| source.is_rust() || source.is_script()).cloned().collect();
    let is_ours = |path: &str| path.starts_with("docs/adr/") || !path.contains('/');
    let documents = sources.iter().filter(|source| source.is_document() && is_ours(&source.path));
    for document in documents.filter(|document| document.path != "CHANGELOG.md") {
        let (missing, named) = names::names_missing_in(document, &code);
        let from = &document.path;
        all += named;
        problems.extend(missing.iter().map(|one| format!("{from}: no code is called {one}")));
    }
    assert!(all > 40, "documents name code in a form that is not read: {all}");
    report(&problems);
}

#[test]
fn tests_that_documents_name_exist() {
    let (mut problems, mut all) = (Vec::new(), 0);
    for source in sources().iter().filter(|source| source.is_document()) {
        let (missing, named) = tree::tests_named_in(source);
        let from = &source.path;
        all += named;
        problems.extend(missing.iter().map(|one| format!("{from}: no test {one}: correct it")));
    }
    assert!(all > 50, "docs/threat-model.md names its tests in a form that is not read: {all}");
    report(&problems);
}

#[test]
fn every_test_file_of_the_server_is_used() {
    let mut problems = Vec::new();
    let all = sources();
    let tests: Vec<&Source> =
        all.iter().filter(|s| s.path.starts_with("crates/server/tests/") && s.is_rust()).collect();
    let manifest = fs::read_to_string(root().join("crates/server/Cargo.toml")).unwrap_or_default();
    let automatic = !manifest.contains("autotests = false");
    for test in &tests {
        let path = test.path.trim_start_matches("crates/server/");
        let top_level = !path.trim_start_matches("tests/").contains('/');
        let is_target = (automatic && (top_level || path.ends_with("/main.rs")))
            || manifest.contains(&format!("\"{path}\""));
        if !is_target && !tests.iter().any(|other| rust::declares_module(other, path)) {
            problems.push(format!(
                "crates/server/{path}: no test has `mod` for it: use it or delete it"
            ));
        }
    }
    report(&problems);
}

#[test]
fn no_machine_is_named() {
    let mut problems = Vec::new();
    for source in sources() {
        for (number, line) in source.numbered() {
            for place in MACHINE_PATHS.iter().filter(|place| tree::names_place(line, place)) {
                let path = &source.path;
                problems.push(format!("{path}:{number}: `{place}` is one machine's path: drop it"));
            }
        }
    }
    report(&problems);
}

#[test]
fn every_licence_is_permissive() {
    let allowed = crates::allowed_licences(&root());
    let mut problems = Vec::new();
    for (name, licence) in crates::licences(&root()) {
        if !crates::is_allowed(&licence, &allowed) {
            problems.push(format!(
                "{name} is under `{licence}`, which deny.toml does not allow: replace the crate"
            ));
        }
    }
    report(&problems);
}

#[test]
fn no_crate_comes_twice() {
    let twice = crates::duplicates(&root());
    let mut problems: Vec<String> = twice
        .iter()
        .filter(|name| !DUPLICATES.contains(&name.as_str()))
        .map(|name| format!("{name}: linked in two versions: bring its users to one version"))
        .collect();
    for name in DUPLICATES.iter().filter(|name| !twice.iter().any(|other| other == *name)) {
        problems.push(format!("{name}: comes once now: take it out of DUPLICATES"));
    }
    report(&problems);
}

/// Another runtime comes with the feature `tower` only, which the command does without.
#[test]
fn the_command_has_one_engine() {
    // instant-acme names tokio's timer, in functions that nothing calls, and the types of `http`.
    let command = ["--package", "gustnado-cli"];
    let without_acme = [&command[..], &["--no-default-features", "--features", "lab"]].concat();
    let linked = crates::linked(&root(), &without_acme);
    let second = ["tokio", "http", "tower-service"];
    let found: Vec<_> = linked.iter().filter(|(name, _)| second.contains(&&**name)).collect();
    assert!(found.is_empty(), "in the command: {found:?}: make them optional");
}

#[test]
fn what_the_wheel_contains_is_credited_there() {
    let path = "python/THIRD-PARTY-LICENSES";
    let text = fs::read_to_string(root().join(path)).unwrap_or_default();
    let credited: Vec<_> = text
        .lines()
        .skip_while(|line| !line.is_empty())
        .skip(1)
        .map_while(|line| line.split_once(": ").map(|(name, _)| name.to_owned()))
        .collect();
    let contained = crates::contained(&root(), &["--package", "gustnado-python"]);
    let crates = contained.iter().filter(|(name, _)| !name.starts_with("gustnado"));
    let expected: Vec<_> = crates.map(|(name, version)| format!("{name} {version}")).collect();
    assert_eq!(credited, expected, "{path} is out of date: run python/third_party.py");
}

/// Fails with every problem on its own line.
fn report(problems: &[String]) {
    assert!(problems.is_empty(), "\n{} to tidy:\n{}\n", problems.len(), problems.join("\n"));
}
