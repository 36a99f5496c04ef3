//! Runs what the documents show: configuration files are checked, servers are started, loads are
//! made. Rust programs are documentation tests (`crates/server/src/documents.rs`), and Python's are
//! in `python/tests/test_documents.py`.

mod gustnado;

use std::fs;
use std::path::{Path, PathBuf};

use gustnado::{Ended, Server, command, ended, shell};

/// The pages of the program; those of Python are run from there.
const PAGES: &[&str] = &[
    "README.md",
    "docs/access-log.md",
    "docs/limits.md",
    "docs/bench.md",
    "docs/configuration.md",
    "docs/contest.md",
    "docs/deployment.md",
    "docs/embedding.md",
    "docs/proxies.md",
    "docs/tower.md",
];

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
    ("gustnado run", "python/tests/test_documents.py"),
    ("sudo gustnado", "crates/cli/tests/privileges.rs does the same, where it is root"),
    ("twistd", "python/tests/test_documents.py"),
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
    ("gustnado contest examples/c10k.toml --check", "a contest takes minutes and other servers"),
    ("gustnado contest --compare", "it compares what two contests have left"),
];

struct Block {
    page: &'static str,
    language: String,
    lines: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn blocks() -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for page in PAGES {
        let text = fs::read_to_string(root().join(page)).expect("a page");
        let mut open = false;
        for line in text.lines() {
            if let Some(language) = line.strip_prefix("```") {
                if !open {
                    let (language, lines) = (language.to_owned(), Vec::new());
                    blocks.push(Block { page, language, lines });
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
        ("site.toml", "root = \"./public\"\nport = 0\n"),
    ] {
        fs::write(folder.path().join(name), text).expect("a file");
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
    let load = Server::start(&[public.to_str().expect("UTF-8")]);
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
