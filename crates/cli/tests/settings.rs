//! `gustnado check` and `gustnado tuning`: settings, their sources, and the page made from them.

mod gustnado;

use std::fs;
use std::process::Command;

use ::gustnado::config::TUNABLES;
use gustnado::{command, ended};

/// The cells of the line for `name`.
fn line(page: &str, name: &str) -> Vec<String> {
    let start = format!("  {name} ");
    let line = page.lines().find(|line| line.starts_with(&start));
    let line = line.unwrap_or_else(|| panic!("no line for {name} in\n{page}"));
    let cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
    cells.map(str::to_owned).collect()
}

#[test]
fn check_prints_each_value_with_its_source() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().to_str().expect("UTF-8");
    let found = ended(
        command(&["check", root, "--io", "epoll", "--limit-body-bytes=10m", "--hidden"])
            .env("GUSTNADO_WORKERS", "3")
            .env("GUSTNADO_LIMIT_BODY_BYTES", "20m")
            .env("GUSTNADO_TIMEOUT_KEEP_ALIVE", "90")
            .env("PORT", "3000"),
    );
    assert_eq!(found.code, Some(0), "{found:?}");
    assert_eq!(found.stderr, "", "{found:?}");
    for cells in [
        ["root", root, "argument DIR"],
        ["io", "epoll", "flag --io"],
        ["limit-body-bytes", "10m", "flag --limit-body-bytes"],
        ["hidden", "true", "flag --hidden"],
        ["workers", "3", "environment GUSTNADO_WORKERS"],
        ["timeout-keep-alive", "90s", "environment GUSTNADO_TIMEOUT_KEEP_ALIVE"],
        ["port", "3000", "environment PORT"],
        ["host", "127.0.0.1", "default"],
        ["header-timeout", "10s", "default"],
    ] {
        assert_eq!(line(&found.stdout, cells[0]), cells, "{}", found.stdout);
    }
}

#[test]
fn check_says_what_auto_comes_to_and_why() {
    let found = ended(&mut command(&["check"]));
    assert_eq!(found.code, Some(0), "{found:?}");
    for name in ["workers", "connections-max", "slots", "io"] {
        let cells = line(&found.stdout, name);
        assert!(cells[1].starts_with("auto -> "), "{cells:?}");
        assert_eq!(cells.len(), 4, "a reason: {cells:?}");
    }
}

#[test]
fn check_tells_of_a_missing_folder_after_the_settings() {
    let found = ended(&mut command(&["check", "/no/such/folder"]));
    assert_eq!(found.code, Some(78), "{found:?}");
    assert!(found.stdout.contains("/no/such/folder"), "{found:?}");
    assert!(found.stderr.contains("no such folder"), "{found:?}");
}

#[test]
fn a_stray_variable_is_a_warning_with_the_nearest_name() {
    let found = ended(command(&["check"]).env("GUSTNADO_WORKER", "2"));
    assert_eq!(found.code, Some(0), "{found:?}");
    let line = "warning: GUSTNADO_WORKER is no setting: ignored; did you mean GUSTNADO_WORKERS?\n";
    assert_eq!(found.stderr, line);
}

#[test]
fn the_documentation_is_the_table() {
    for (page, arguments) in [("tuning", &["tuning"][..]), ("counters", &["tuning", "--counters"])]
    {
        let found = ended(&mut command(arguments));
        assert_eq!(found.code, Some(0), "{found:?}");
        let path = format!("{}/../../docs/{page}.md", env!("CARGO_MANIFEST_DIR"));
        let written = std::fs::read_to_string(path).expect("it is there");
        assert_eq!(written, found.stdout, "run `gustnado {arguments:?} > docs/{page}.md`");
    }
}

#[test]
fn help_and_version_go_to_standard_output() {
    for (args, part) in [
        (&["--help"][..], "doctor"),
        (&["serve", "--help"], "GUSTNADO_HEADER_TIMEOUT"),
        (&["--version"], "io_uring and epoll"),
    ] {
        let found = ended(&mut command(args));
        assert_eq!((found.code, found.stderr.as_str()), (Some(0), ""), "{found:?}");
        assert!(found.stdout.contains(part), "{found:?}");
        assert!(!found.stdout.contains('\x1b'), "no colours: {found:?}");
    }
}

#[test]
fn completions_and_manual_pages_name_every_setting() {
    let printed = |args: &[&str]| {
        let found = ended(&mut command(args));
        assert_eq!((found.code, found.stderr.as_str()), (Some(0), ""), "{args:?}");
        found.stdout
    };
    let page = printed(&["man", "serve"]).replace('\\', "");
    assert!(printed(&["man"]).contains("gustnado") && page.starts_with(".ie"), "{page}");
    let shells = ["bash", "elvish", "fish", "powershell", "zsh"];
    let texts = shells.map(|shell| printed(&["completions", shell]));
    for tunable in TUNABLES.iter().filter(|tunable| !tunable.is_argument()) {
        assert!(page.contains(&tunable.flag()), "{}", tunable.name);
        assert!(texts.iter().all(|text| text.contains(tunable.name)), "{}", tunable.name);
    }
    // Elvish and PowerShell are given flags only.
    for text in [&texts[0], &texts[2], &texts[4]] {
        assert!(text.contains("pool-shared"), "the names of a choice: {text}");
    }
}

#[test]
fn bash_completes_a_flag_and_the_names_of_a_choice() {
    let script = ended(&mut command(&["completions", "bash"])).stdout;
    let folder = tempfile::tempdir().expect("a folder");
    let asked = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let last = words.len() - 1;
        let ask = format!(
            "{script}\nCOMP_WORDS=({line}); COMP_CWORD={last}; _gustnado gustnado '{}' '{}'; \
             echo \"${{COMPREPLY[@]}}\"",
            words[last],
            words[last - 1],
        );
        // By a file: the script is longer than one argument may be.
        let file = folder.path().join("script");
        fs::write(&file, ask).expect("a file");
        let output = Command::new("bash").arg("--norc").arg(file).output().expect("bash");
        String::from_utf8(output.stdout).expect("text")
    };
    assert_eq!(asked("gustnado serve --scheduler pool-"), "pool-shared\n");
    assert_eq!(asked("gustnado serve --header-t"), "--header-timeout\n");
}

#[test]
fn doctor_looks_at_everything_and_exits_0() {
    let found = ended(&mut command(&["doctor"]));
    assert_eq!((found.code, found.stderr.as_str()), (Some(0), ""), "{found:?}");
    for subject in [
        "kernel",
        "io_uring",
        "CPUs (affinity)",
        "CPU quota (cgroup)",
        "memory (cgroup)",
        "open files (ulimit -n)",
        "fs.file-max",
        "net.core.somaxconn",
        "net.ipv4.tcp_max_syn_backlog",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_tw_reuse",
        "net.ipv4.tcp_mem",
        "net.netfilter.nf_conntrack_max",
        "clock",
        "time",
    ] {
        assert!(found.stdout.contains(subject), "{subject}: {}", found.stdout);
    }
    let lines = |start: &str| found.stdout.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!(lines("ok ") + lines("change ") + lines("? "), 17, "{}", found.stdout);
}
