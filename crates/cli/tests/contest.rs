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
    assert!(out.join("contest.jsonl").exists() && out.join("index.html").exists());
    fs::remove_file(out.join("index.html")).expect("it was there");
    let record = out.join("contest.jsonl").to_string_lossy().into_owned();
    let again = ended(&mut command(&["contest", "--report", &record]));
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert!(out.join("index.html").exists());
    let table = ended(&mut command(&["contest", "--report", &record, "--markdown"]));
    assert!(table.stdout.starts_with("## Two servers\n"), "{}", table.stdout);
    let rows = table.stdout.lines().filter(|line| line.starts_with("| ")).count();
    assert_eq!(rows, 2 + 3, "{}", table.stdout);
    let same = ended(&mut command(&["contest", "--compare", &record, &record]));
    assert!(same.stdout.contains("Nothing changed by more than noise."), "{}", same.stdout);
}

#[test]
fn a_contest_goes_on_and_its_table_is_published_once_that_was_said() {
    if !is_possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let only = ["--only", "python", "--rounds"];
    let first = ended(contest(folder.path(), &only).arg("1"));
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let page = folder.path().join("page.md");
    fs::write(&page, "# Page\n\n## Two servers\n\nby hand\n").expect("written");
    let to_page = format!("--markdown={}", page.display());
    let second = ended(contest(folder.path(), &only).args(["2", "--continue", &to_page]));
    assert!(second.stderr.contains("2/2 page (3) round 2, python: "), "{}", second.stderr);
    assert!(!second.stderr.contains("round 1, python: "), "{}", second.stderr);
    // The page says nothing of its machine.
    assert_eq!(second.code, Some(1), "{}", second.stderr);
    assert!(second.stderr.contains("--publish publishes them all the same"), "{}", second.stderr);
    assert!(fs::read_to_string(&page).expect("kept").ends_with("by hand\n"));
    let out = folder.path().join("out").to_string_lossy().into_owned();
    let mut again = command(&["contest", "--report", &out, &to_page, "--publish"]);
    let again = ended(&mut again);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    let text = fs::read_to_string(&page).expect("written");
    assert!(text.contains("; 2 rounds, ") && !text.contains("by hand"), "{text}");
    // Another selection is another contest.
    let other = ended(&mut contest(folder.path(), &["--continue"]));
    assert_eq!(other.code, Some(1), "{}", other.stderr);
    assert!(other.stderr.contains("--continue: the selection of contenders"), "{}", other.stderr);
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
fn a_page_that_is_not_there_can_be_measured_where_its_status_is_accepted() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("absent.toml");
    let text = "rounds = 1\n[page]\npath = \"nothing-here\"\n[[contender]]\n\
                preset = \"gustnado\"\nready_timeout = \"3s\"\n\
                [[scenario]]\nname = \"own\"\nconnections = 2\nduration = \"200ms\"\n";
    let checked = |text: &str| {
        fs::write(&file, text).expect("written");
        let mut command = command(&["contest"]);
        command.arg(&file).arg("--output").arg(folder.path().join("out")).arg("--check");
        ended(command.env("TMPDIR", folder.path()))
    };
    let refused = checked(text);
    assert_eq!(refused.code, Some(1), "{}{}", refused.stdout, refused.stderr);
    assert!(refused.stdout.contains("expected status 200, found 404"), "{}", refused.stdout);
    let taken = checked(&format!("{text}accept_status = \"404\"\n"));
    assert_eq!(taken.code, Some(0), "{}{}", taken.stdout, taken.stderr);
    assert!(taken.stdout.contains("ok: 10 of 10 requests succeeded"), "{}", taken.stdout);
}

/// Servers that do other work than a contest asks for: their names, how many connections they
/// serve, and the begin of the reason.
const TOYS: [(&str, &str, &str); 3] = [
    ("limited", "100", "100 of 300 connections had a response while measuring (connection limit"),
    ("late", "0", "0 of 300 connections had a response while measuring (it answered outside"),
    ("refusing", "100", "failures, 100 of 300 connections had a response while measuring"),
];

/// A contest of the toy `name` and of one that serves everything, which is the reference.
fn toys(folder: &Path, name: &str) -> Command {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/contest/toys.py");
    let contender = |name: &str| {
        format!(
            "[[contender]]\nname = \"{name}\"\n\
             command = [\"python3\", \"{script}\", \"{name}\", \"{{port}}\"]\n"
        )
    };
    let text = format!(
        "reference = \"whole\"\nrounds = 1\n[page]\npath = \"x\"\n{}{}[[scenario]]\n\
         name = \"many\"\nconnections = 300\nduration = \"700ms\"\n\
         arguments = [\"--connect-timeout\", \"500ms\"]\n",
        contender(name),
        contender("whole")
    );
    let file = folder.join("toys.toml");
    fs::write(&file, text).expect("written");
    let mut command = command(&["contest"]);
    command.arg(&file).arg("--output").arg(folder.join("out")).env("TMPDIR", folder);
    command
}

/// Returns the number of lines that begin with a name.
fn lines_of(page: &str, name: &str) -> usize {
    page.lines().filter(|line| line.trim_start().starts_with(name)).count()
}

#[test]
fn who_does_other_work_stands_below_the_line_and_is_compared_with_nothing() {
    if !is_possible() {
        return;
    }
    for (name, served, why) in TOYS {
        let folder = tempfile::tempdir().expect("a folder");
        let said = ended(&mut toys(folder.path(), name));
        assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
        assert!(said.stderr.contains("NOT COMPARABLE: "), "{}", said.stderr);
        let (above, below) = said.stdout.split_once("not comparable:").expect("there is a line");
        assert_eq!((lines_of(above, "whole"), lines_of(above, name)), (1, 0), "{}", said.stdout);
        let reason = format!("{name}: not comparable: ");
        let reasons = below.lines().filter(|line| line.trim_start().starts_with(&reason));
        assert!(reasons.into_iter().all(|line| line.contains(why)), "{}", said.stdout);
        assert_eq!(lines_of(below, &reason), 1, "{}", said.stdout);
        let (table, _) = below.split_once(&reason).expect("it is there");
        assert!(!table.contains(['×', '≈']), "nothing has a ratio: {table}");
        let out = folder.path().join("out");
        let page = fs::read_to_string(out.join("index.html")).expect("there is a page");
        assert!(page.contains("no other contender has a figure to compare"), "it wins nothing");
        let table = fs::read_to_string(out.join("rounds.tsv")).expect("there is a table");
        assert_eq!(cells(&table, name, "connections_served"), served);
        assert_eq!(cells(&table, "whole", "connections_served"), "300");
        assert!(cells(&table, name, "not_comparable").contains(why));
        assert_eq!(cells(&table, "whole", "not_comparable"), "");
    }
}

/// Returns the cell of a contender's only run.
fn cells<'a>(table: &'a str, contender: &str, column: &str) -> &'a str {
    let mut rows = table.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let heading = rows.next().expect("a heading");
    let at = heading.iter().position(|name| *name == column).expect("a column");
    rows.find(|row| row[1] == contender).expect("a row")[at]
}

#[test]
fn ctrl_c_ends_the_servers_and_keeps_what_was_measured() {
    if !is_possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = contest(folder.path(), &["--rounds", "100"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
    let record = folder.path().join("out/contest.jsonl");
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
