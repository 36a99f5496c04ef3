//! Runs what the documents show: configuration files are checked, servers are started, loads are
//! made. Rust programs are documentation tests (`crates/server/src/documents.rs`), and Python's are
//! in `python/tests/test_documents.py`.

mod gustnado;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use gustnado::{Ended, Server, command, ended, shell};
use rcgen::generate_simple_self_signed;

/// Pages that state what was measured and what was decided.
const REPORTS: &[&str] = &["docs/adr/", "docs/results/"];

/// Languages of blocks that are run, or checked by a test; `rust` may have attributes behind it.
const RUN: &[&str] = &["rust", "sh", "toml", "python"];

/// Languages of blocks that are no program of ours.
const SHOWN: &[&str] = &["text", "nginx", "haproxy", "ini"];

/// Commands that something else runs, by how they begin.
const ELSEWHERE: &[(&str, &str)] = &[
    ("make ", "the README's first two commands: `.ci/run` calls the second"),
    ("cargo install --path crates/cli", "this test runs what it installs"),
    ("cargo new hello", "crates/server/tests/embedding/program.rs runs the program in it"),
    ("cargo add gustnado", "crates/server/tests/embedding/program.rs runs the program in it"),
    (
        "cargo run --release -p gustnado",
        "crates/server/tests/embedding/examples.rs and crates/server/tests/embedding/values.rs",
    ),
    ("pip install ./python", "make test-python"),
    ("gustnado reload ", "crates/cli/tests/reloads.rs reloads a server"),
    ("gustnado run", "python/tests/test_documents.py"),
    (
        "gustnado serve ./public --acme",
        "conformance/acme.py does the same with an authority of its own",
    ),
    ("sudo gustnado", "crates/cli/tests/privileges.rs does the same, where it is root"),
    ("twistd", "python/tests/test_twisted.py"),
    ("trial --reactor", "make test-twisted"),
    ("uvicorn ", "another server's command, for comparison"),
    ("gunicorn ", "another server's command, for comparison"),
    ("pip install --no-deps cyclone", "make test-python"),
    ("gustnado bench --ws", "the command serves no WebSocket: crates/lab/tests/load/websocket.rs"),
    ("gustnado contest mine.toml --continue", "crates/cli/tests/contest.rs"),
    ("gustnado contest --report DIR", "crates/cli/tests/contest.rs"),
    (
        "printf 'PROXY",
        "it connects to `gustnado run`; crates/server/tests/operations/proxies.rs sends the same",
    ),
];

/// Blocks that nothing runs, by a command in them, and why.
const SKIPPED: &[(&str, &str)] = &[
    ("git clone", "git, pip and a film; crates/server/tests/files/serving.rs requests the same"),
    ("gustnado contest contests/c10k.toml --check", "a contest takes minutes and other servers"),
    ("gustnado contest --compare", "it compares what two contests have left"),
];

struct Block {
    page: String,
    language: String,
    lines: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The README and every page of the book, by their paths from the root.
fn pages() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned()];
    let mut folders = vec!["docs".to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).expect("a folder").flatten() {
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                folders.push(path);
            } else if entry.path().extension().is_some_and(|end| end == "md") {
                pages.push(path);
            }
        }
    }
    pages.retain(|page| !REPORTS.iter().any(|report| page.starts_with(report)));
    pages.sort();
    assert!(pages.len() > 25, "the book is not where this test looks for it: {pages:?}");
    pages
}

fn blocks() -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(root().join(&page)).expect("a page");
        let mut open = false;
        for line in text.lines() {
            if let Some(language) = line.strip_prefix("```") {
                if !open {
                    let (page, language) = (page.clone(), language.to_owned());
                    blocks.push(Block { page, language, lines: Vec::new() });
                }
                open = !open;
            } else if open {
                blocks.last_mut().expect("an open block").lines.push(line.to_owned());
            }
        }
        assert!(!open, "{page}: the last block has no end");
    }
    blocks
}

/// Nothing escapes the tests by its language: neither a word that none of them knows, nor a page
/// that the documentation tests leave out.
#[test]
fn every_block_is_run_or_no_program() {
    let place = root().join("crates/server/src/documents.rs");
    let compiled = fs::read_to_string(place).expect("the documentation tests");
    for Block { page, language, lines } in blocks() {
        let (word, attributes) = language.split_once(',').unwrap_or((&*language, ""));
        let known = RUN.contains(&word) || SHOWN.contains(&word);
        assert!(known, "{page}: name the language of the block, or call it text: {lines:?}");
        assert!(["", "no_run"].contains(&attributes), "{page}: {attributes}: {lines:?}");
        let is_compiled = compiled.contains(&format!("../../../{page}\""));
        assert!(word != "rust" || is_compiled, "{page} is not in crates/server/src/documents.rs");
    }
}

/// A folder in which every path of the documents is there.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for inner in ["public", "docs", "shop", "example", "archive"] {
        fs::create_dir(folder.path().join(inner)).expect("a folder");
    }
    for (name, text) in [
        ("public/hello.txt", "Hello!\n"),
        ("404.html", "There is no such page.\n"),
        ("oops.html", "Something is wrong.\n"),
        ("50x.html", "Something is wrong.\n"),
        ("public/404.html", "There is no such page.\n"),
        ("public/50x.html", "Something is wrong.\n"),
        ("nginx.conf", "server { location / { return 200 ok; } }\n"),
        ("site.toml", "root = \"./public\"\nport = 0\n"),
        ("keys", "0123456789abcdef0123456789abcdef\n"),
    ] {
        fs::write(folder.path().join(name), text).expect("a file");
    }
    for (cert, key) in [("cert.pem", "key.pem"), ("shop.pem", "shop.key")] {
        let made = generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        fs::write(folder.path().join(cert), made.cert.pem()).expect("a file");
        fs::write(folder.path().join(key), made.signing_key.serialize_pem()).expect("a file");
    }
    folder
}

#[test]
fn configuration_files_are_what_check_takes() {
    let (mut checked, folder) = (0, folder());
    for block in blocks().iter().filter(|block| block.language == "toml") {
        let text = block.lines.join("\n");
        if text.contains("[dependencies]") || text.contains("[[contender]]") {
            continue; // (Cargo's, which cargo reads; and a contest's, in the next test.)
        }
        let file = folder.path().join("checked.toml");
        fs::write(&file, &text).expect("a file");
        let found = ended(command(&["check", "checked.toml"]).current_dir(folder.path()));
        assert_eq!(found.code, Some(0), "{}:\n{text}\n{}", block.page, found.stderr);
        checked += 1;
    }
    assert!(checked >= 8, "only {checked} blocks were found");
}

/// A contest is checked as its page says: each server is started, and gets ten requests.
#[test]
fn contests_are_what_their_check_takes() {
    let (mut checked, folder) = (0, folder());
    for block in blocks().iter().filter(|block| block.language == "toml") {
        let text = block.lines.join("\n");
        if text.contains("[[contender]]") {
            fs::write(folder.path().join("mine.toml"), &text).expect("a file");
            let mut check = command(&["contest", "mine.toml", "--check"]);
            let found = ended(check.current_dir(folder.path()));
            assert_eq!(found.code, Some(0), "{}:\n{}\n{}", block.page, found.stdout, found.stderr);
            checked += 1;
        }
    }
    assert_eq!(checked, 2, "docs/contest.md and docs/start/load.md show one each");
}

/// A command of the documents as it can be run here: on a free port, in a short time.
fn adapted(line: &str, load: &Server) -> String {
    let line = line.replace("127.0.0.1:8080", &load.address);
    let line = line.replace("127.0.0.1:8000", &load.address);
    let mut words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
    for at in 0..words.len().saturating_sub(1) {
        match words[at] {
            "-d" => words[at + 1] = "200ms",
            "--port" => words[at + 1] = "0",
            "--hold" | "-c" => words[at + 1] = "20",
            _ => {}
        }
    }
    let has = |flags: &[&str]| flags.iter().any(|flag| words.contains(flag));
    let more = if words.contains(&"bench") && !has(&["-d", "merge"]) {
        " -d 200ms"
    } else if is_server(&line) && !has(&["--port", "--uds", "--config"]) {
        " --port 0"
    } else {
        ""
    };
    words.join(" ") + more
}

fn is_server(line: &str) -> bool {
    ["gustnado serve", "gustnado ./"].iter().any(|begin| line.contains(begin))
}

/// Runs one line: a server until it says where it listens, anything else to its end.
fn run(line: &str, folder: &Path, load: &Server) {
    let adapted = adapted(line, load);
    if is_server(line) {
        // The shell becomes the server, so that it is ended with its test.
        let server = Server::start_by(
            shell(&adapted.replacen("gustnado ", "exec gustnado ", 1)).current_dir(folder),
        );
        assert!(!server.address.is_empty(), "{line}");
        return;
    }
    let mut command = shell(&adapted);
    command.current_dir(folder).env("PID", load.id().to_string());
    let Ended { code, stdout, stderr } = ended(&mut command);
    // 99 says that a limit of --fail-if was passed, which a busy machine may do.
    let is_right = code == Some(0) || (code == Some(99) && line.contains("--fail-if"));
    assert!(is_right, "{line}: {code:?}\n{stdout}\n{stderr}");
}

#[test]
fn commands_run() {
    let (folder, mut ran) = (folder(), 0);
    let public = folder.path().join("public");
    let load = Server::start(&[public.to_str().expect("UTF-8"), "--h2c"]);
    fs::write(public.join("index.html"), "Hello!\n").expect("a file");
    for block in blocks().iter().filter(|block| block.language == "sh") {
        if is_skipped(block) {
            continue;
        }
        for line in &block.lines {
            let line = line.split("  #").next().unwrap_or_default().trim();
            if line.is_empty() || line.starts_with('#') || is_run_elsewhere(line) {
                continue;
            }
            run(line, folder.path(), &load);
            ran += 1;
        }
    }
    assert!(ran >= 20, "only {ran} commands were run");
}

fn is_run_elsewhere(line: &str) -> bool {
    ELSEWHERE.iter().any(|(begin, _)| line.starts_with(begin))
}

fn is_skipped(block: &Block) -> bool {
    SKIPPED.iter().any(|(part, _)| block.lines.iter().any(|line| line.contains(part)))
}

#[test]
fn at_most_one_block_in_twenty_is_skipped() {
    let (all, pages) = (blocks(), ["rust", "sh", "toml", "python"]);
    let programs: Vec<&Block> = all
        .iter()
        .filter(|block| pages.iter().any(|page| block.language.starts_with(page)))
        .collect();
    let skipped = programs.iter().filter(|block| is_skipped(block)).count();
    assert_eq!(skipped, SKIPPED.len(), "the list names what is not there, or a block twice");
    assert!(skipped * 20 <= programs.len(), "{skipped} of {} are skipped", programs.len());
}

/// The keys that the first column of the tables of a section names.
fn keys_in(section: &str) -> BTreeSet<&str> {
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split_once('`')).map(|(key, _)| key).collect()
}

#[test]
fn the_page_of_keys_has_those_of_the_schema() {
    let schema = fs::read(root().join("docs/site.schema.json")).expect("the schema");
    let schema: serde_json::Value = serde_json::from_slice(&schema).expect("JSON");
    let page = fs::read_to_string(root().join("docs/keys.md")).expect("the page");
    let sections: Vec<(&str, &str)> =
        page.split("\n## ").skip(1).filter_map(|section| section.split_once('\n')).collect();
    let section = |name: &str| sections.iter().find(|(title, _)| *title == name).expect(name).1;
    let settings = fs::read_to_string(root().join("docs/tuning.md")).expect("the settings");
    let is_setting = |key: &str| settings.contains(&format!("| `--{key}` |"));
    // Settings that have a form of tables, too.
    let has_tables = |key: &str| ["listen", "error-page"].contains(&key);
    for name in ["listen", "route", "site", "site.tls", "error-page", "header", "rewrite"] {
        let found = schema["$defs"][name]["properties"].as_object().expect("its keys");
        // The page of settings has those that a site and a route may have.
        let is_own = |key: &str| is_setting(key) && !has_tables(key);
        let is_key = |key: &&str| !(["route", "site"].contains(&name) && is_own(key));
        let wanted: BTreeSet<&str> = found.keys().map(String::as_str).filter(is_key).collect();
        assert_eq!(keys_in(section(name)), wanted, "{name}");
    }
    let found = schema["properties"].as_object().expect("its keys").keys().map(String::as_str);
    // Settings that have a form of tables, too.
    let has_tables = |key: &&str| ["listen", "error-page"].contains(key);
    let wanted: BTreeSet<&str> = found.filter(|key| has_tables(key) || !is_setting(key)).collect();
    assert_eq!(keys_in(section("The top of the file")), wanted);
}
