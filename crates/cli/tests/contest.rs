//! `gustnado contest` as a user runs it: real servers, a generator of Python that requests one
//! request after the other, and no claim about speed.

mod gustnado;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use gustnado::{command, ended};

const CONTEST: &str = r#"
title = "Two servers"
rounds = 2
[page]
bytes = 1000
[[contender]]
preset = "gustnado"
[[contender]]
preset = "python"
[[contender]]
name = "nobody"
command = ["no-such-server"]
install = "it cannot be had"
[[scenario]]
name = "page"
connections = 3
duration = "300ms"
"#;

/// Returns whether there is a Python; says so if not.
fn is_possible() -> bool {
    let found = Command::new("python3").arg("--version").stdout(Stdio::null()).status();
    let possible = found.is_ok_and(|status| status.success());
    if !possible {
        println!("skipped: there is no python3");
    }
    possible
}

fn contest(folder: &Path, more: &[&str]) -> Command {
    let file = folder.join("two.toml");
    fs::write(&file, CONTEST).expect("written");
    let mut command = command(&["contest"]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/contest/generator.py");
    command.arg(&file).args(["--generator", "python3", "--generator", script]);
    // A contest that is killed leaves its temporary folder, which then goes with this one.
    command.env("TMPDIR", folder);
    command.arg("--output").arg(folder.join("out")).args(more);
    command
}

#[test]
fn a_check_has_a_row_for_each_contender() {
    if !is_possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let said = ended(&mut contest(folder.path(), &["--check"]));
    assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
    let rows: Vec<&str> = said.stdout.lines().collect();
    assert_eq!(rows.len(), 3, "{}", said.stdout);
    assert!(rows[0].starts_with("gustnado  ok: "), "{}", rows[0]);
    assert!(rows[1].starts_with("python    ok: "), "{}", rows[1]);
    assert!(rows[2].contains("not installed") && rows[2].contains("it cannot be had"));
}

#[test]
fn a_contest_leaves_a_table_a_record_and_a_page_that_can_be_made_again() {
    if !is_possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let said = ended(&mut contest(folder.path(), &[]));
    assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
    assert!(said.stderr.contains("4/4 page (3) round 2, python: "), "{}", said.stderr);
    assert!(said.stdout.contains("µs CPU/request"), "{}", said.stdout);
    let out = folder.path().join("out");
    assert!(out.join("contest.json").exists() && out.join("index.html").exists());
    fs::remove_file(out.join("index.html")).expect("it was there");
    let record = out.join("contest.json").to_string_lossy().into_owned();
    let again = ended(&mut command(&["contest", "--report", &record]));
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert!(out.join("index.html").exists());
    let same = ended(&mut command(&["contest", "--compare", &record, &record]));
    assert!(same.stdout.contains("Nothing changed by more than noise."), "{}", same.stdout);
}

#[test]
fn without_ab_its_scenario_says_so_and_the_others_are_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("ab.toml");
    let text = "rounds = 1\n[[contender]]\npreset = \"gustnado\"\n\
                [[scenario]]\nname = \"by-ab\"\ngenerator = \"ab\"\nrequests = 50\n\
                [[scenario]]\nname = \"own\"\nconnections = 1\nduration = \"200ms\"\n";
    fs::write(&file, text).expect("written");
    let mut command = command(&["contest"]);
    command.arg(&file).arg("--output").arg(folder.path().join("out"));
    command.env("TMPDIR", folder.path()).env("PATH", folder.path());
    let said = ended(&mut command);
    assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.contains("not measured: there is no program ab"), "{}", said.stdout);
    assert!(said.stderr.contains("2/2 own (1) round 1, gustnado: "), "{}", said.stderr);
    assert!(!said.stderr.contains("own (1) round 1, gustnado: no figures"), "{}", said.stderr);
}

#[test]
fn a_server_at_a_unix_socket_takes_part() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("unix.toml");
    let text = "rounds = 1\n[[contender]]\nname = \"unix\"\nunix_socket = \"{work}/s\"\n\
                command = [\"{self}\", \"serve\", \"{root}\", \"--uds\", \"{work}/s\"]\n\
                [[scenario]]\nname = \"own\"\nconnections = 2\nduration = \"200ms\"\n";
    fs::write(&file, text).expect("written");
    let mut command = command(&["contest"]);
    command.arg(&file).arg("--output").arg(folder.path().join("out")).arg("--check");
    command.env("TMPDIR", folder.path());
    let said = ended(&mut command);
    assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.starts_with("unix  ok: 10 of 10 requests succeeded"), "{}", said.stdout);
}

#[test]
fn ctrl_c_ends_the_servers_and_keeps_what_was_measured() {
    if !is_possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = contest(folder.path(), &["--rounds", "100"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
    let record = folder.path().join("out/contest.json");
    let measured = || fs::read_to_string(&record).is_ok_and(|text| text.contains("generator.py"));
    wait_until("a run is kept", measured);
    let id = i32::try_from(child.id()).expect("process ids are small");
    let id = rustix::process::Pid::from_raw(id).expect("never 0");
    rustix::process::kill_process(id, rustix::process::Signal::INT).expect("it runs");
    let status = child.wait().expect("our child");
    assert_eq!(status.code(), Some(130));
    let kept = fs::read_to_string(&record).expect("kept");
    assert!(kept.contains("interrupted") && kept.contains("generator.py"));
    assert!(folder.path().join("out/index.html").exists());
}

/// A contest that is killed can end nothing itself: the kernel does.
#[test]
fn a_killed_contest_leaves_no_server_behind() {
    if !is_possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = contest(folder.path(), &["--rounds", "100", "--only", "python"]);
    let mark = folder.path().to_string_lossy().into_owned();
    command.env("MARK_OF_A_TEST", &mark);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
    let servers = || marked(&mark, "http.server");
    wait_until("a server runs", || !servers().is_empty());
    child.kill().expect("our child");
    child.wait().expect("our child");
    wait_until("the server is gone", || servers().is_empty());
}

#[test]
fn a_slip_in_a_file_is_named_with_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("slip.toml");
    fs::write(&file, "tilte = \"x\"\n").expect("written");
    let said = ended(&mut command(&["contest", &file.to_string_lossy()]));
    assert_eq!(said.code, Some(78));
    assert!(said.stderr.contains(":1: tilte: no such key here; did you mean title?"));
    let said = ended(&mut command(&["contest"]));
    assert_eq!(said.code, Some(2), "{}", said.stderr);
    let line = "contest: expected a file such as contests/c10k.toml, found none; ";
    assert!(said.stderr.contains(line), "{}", said.stderr);
}

#[test]
fn all_mistakes_of_a_file_are_said_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("slips.toml");
    let text = "rounds = \"many\"\n[[contender]]\npreset = \"ngnix\"\n[[scenario]]\n\
                name = \"page\"\nconnections = \"x\"\nmodle = \"closed\"\nduration = \"1s\"\n";
    fs::write(&file, text).expect("written");
    let said = ended(&mut command(&["contest", &file.to_string_lossy()]));
    assert_eq!(said.code, Some(78));
    for line in [
        ":1: rounds: ",
        ":3: preset: ",
        ":6: connections: expected a number such as 1000, or a list",
        ":7: modle: no such key here; did you mean model?",
    ] {
        assert!(said.stderr.contains(line), "{line:?} in\n{}", said.stderr);
    }
    assert_eq!(said.stderr.lines().count(), 4, "{}", said.stderr);
}

#[test]
fn a_figure_that_is_missed_ends_the_contest_with_1() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("reach.toml");
    let run = |rate: &str, more: &[&str]| {
        let text = format!(
            "rounds = 1\n[[contender]]\npreset = \"gustnado\"\n[[scenario]]\nname = \"page\"\n\
             connections = 1\nduration = \"200ms\"\nreach = {{ rate = {rate} }}\n"
        );
        fs::write(&file, text).expect("written");
        let mut command = command(&["contest"]);
        command.arg(&file).arg("--output").arg(folder.path().join("out")).args(more);
        ended(command.env("TMPDIR", folder.path()))
    };
    let reached = run("1", &[]);
    assert_eq!(reached.code, Some(0), "{}{}", reached.stdout, reached.stderr);
    assert!(reached.stdout.contains("reached      page, gustnado: "), "{}", reached.stdout);
    let missed = run("1e9", &[]);
    assert_eq!(missed.code, Some(1), "{}{}", missed.stdout, missed.stderr);
    assert!(missed.stdout.contains("NOT REACHED  page, gustnado: "), "{}", missed.stdout);
    let quick = run("1e9", &["--quick"]);
    assert_eq!(quick.code, Some(0), "a look judges nothing: {}", quick.stdout);
}

#[test]
fn the_keys_of_a_file_can_be_printed() {
    let said = ended(&mut command(&["contest", "--keys"]));
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    for key in ["| `set_up` |", "| `preset` |", "| `generator` |", "| `reach` |", "| `cpu` |"] {
        assert!(said.stdout.contains(key), "{key} in\n{}", said.stdout);
    }
}

#[test]
fn presets_can_be_listed_and_read() {
    let said = ended(&mut command(&["contest", "--presets"]));
    assert!(said.stdout.contains("nginx-tuned"), "{}", said.stdout);
    let said = ended(&mut command(&["contest", "--preset", "nginx"]));
    assert!(said.stdout.contains("worker_connections 768"), "{}", said.stdout);
    let said = ended(&mut command(&["contest", "--preset", "nope"]));
    assert_eq!(said.code, Some(2));
    let line = "--preset: expected the name of a preset, found \"nope\"; there are ";
    assert!(said.stderr.contains(line), "{}", said.stderr);
}

/// The processes with a mark in their environment whose command line has a word.
fn marked(mark: &str, word: &str) -> Vec<i32> {
    let holds = |id: i32, file: &str, what: &str| {
        let text = fs::read(format!("/proc/{id}/{file}")).unwrap_or_default();
        String::from_utf8_lossy(&text).contains(what)
    };
    let entries = fs::read_dir("/proc").expect("it is mounted");
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| holds(*id, "environ", mark) && holds(*id, "cmdline", word)).collect()
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < end, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
