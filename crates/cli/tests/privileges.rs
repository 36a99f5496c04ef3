//! `--user`: every thread of the server has lost root's privileges once it listens, and what its
//! user cannot do later is printed. Most of it can only be tried by root.

mod gustnado;

use gustnado::{Server, command, ended};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Reports a test that only root can run as skipped.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("skipped: only root can change to another user");
    }
    is_root
}

fn folder(mode: u32) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).expect("its own");
    folder
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Returns a field of each thread's status.
fn of_threads(server: u32, field: &str) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{server}/task")).expect("it runs");
    let value = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("a field");
        line.trim_start_matches(':').split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let read = |task: std::io::Result<fs::DirEntry>| {
        fs::read_to_string(task.expect("a thread").path().join("status")).ok()
    };
    tasks.filter_map(read).map(value).collect()
}

#[test]
fn every_thread_loses_roots_privileges() {
    if !is_root() {
        return;
    }
    let site = folder(0o755);
    fs::write(site.path().join("page.txt"), "a page").expect("written");
    for io in ["epoll", "uring"] {
        for scheduler in ["pool", "queue", "pool-shared", "queue-shared"] {
            let settings = ["--io", io, "--scheduler", scheduler, "--workers", "2"];
            let more = ["--workers-max", "3", "--user", "nobody:daemon"];
            let mut server =
                Server::start(&[&["serve", text(site.path())], &settings[..], &more].concat());
            assert!(server.get("/page.txt").ends_with("a page"));
            let ids = |field| of_threads(server.id(), field);
            assert!(ids("Uid").len() > 2, "workers are threads");
            assert!(
                ids("Uid").iter().all(|ids| ids == "65534 65534 65534 65534"),
                "{:?}",
                ids("Uid")
            );
            assert!(ids("Gid").iter().all(|ids| ids == "1 1 1 1"), "{:?}", ids("Gid"));
            assert!(ids("Groups").iter().all(|groups| groups == "1"), "{:?}", ids("Groups"));
            assert!(ids("NoNewPrivs").iter().all(|is_set| is_set == "1"));
            for set in ["CapEff", "CapPrm", "CapBnd", "CapAmb"] {
                let sets = of_threads(server.id(), set);
                assert!(sets.iter().all(|set| set == "0000000000000000"), "{set} {sets:?}");
            }
            server.line_with("stop");
            assert!(!server.seen.iter().any(|line| line.contains("root")), "{:?}", server.seen);
        }
    }
}

#[test]
fn a_port_and_a_log_of_root_are_opened_before() {
    if !is_root() {
        return;
    }
    let place = folder(0o755);
    let log = place.path().join("access.log");
    let flags = ["--user", "nobody", "--access-log", text(&log), "--host", "127.0.0.1"];
    let mut server = Server::start_by(command(&["serve", "--port", "83"]).args(flags));
    assert!(server.get("/").starts_with("HTTP/1.1 200 "));
    let line = server.line_with("USR1");
    assert!(line.contains("--user nobody: expected to open the access log"), "{line}");
    server.signal(rustix::process::Signal::TERM);
    assert_eq!(server.wait(), Some(0));
    assert!(fs::read_to_string(&log).expect("root's").contains("GET / "));
}

#[test]
fn root_without_it_gets_one_line_and_quiet_none() {
    if !is_root() {
        return;
    }
    let mut server = Server::start(&["serve"]);
    assert!(server.line_with("runs as root").contains("--user NAME"));
}

#[test]
fn check_says_what_cannot_work_afterwards() {
    if !is_root() {
        return;
    }
    let place = folder(0o755);
    let (site, logs) = (place.path().join("site"), place.path().join("logs"));
    let spool = place.path().join("spool");
    let file = place.path().join("site.toml");
    for path in [&site, &logs, &spool] {
        fs::create_dir(path).expect("made");
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).expect("its own");
    }
    let listen = format!("unix:{}", text(&place.path().join("socket")));
    fs::write(
        &file,
        format!(
            "root = \"site\"\naccess-log = \"logs/access.log\"\nlisten = \"{listen}\"\n\
             body-spool = \"spool\"\nuser = \"nobody\"\n"
        ),
    )
    .expect("written");
    let checked = |file: &Path| ended(&mut command(&["check", "--config", text(file)]));
    let found = checked(&file);
    assert_eq!(found.code, Some(0), "{found:?}");
    for part in [
        "expected to read the folder",
        "expected to open the access log",
        "expected to write long request bodies",
        "expected to remove",
    ] {
        assert!(found.stderr.contains(part), "{part}: {found:?}");
    }
    for path in [&site, &logs, &spool, &place.path().to_owned()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("its own");
    }
    let found = checked(&file);
    assert!(!found.stderr.contains("warning"), "{found:?}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("its own");
    assert!(checked(&file).stderr.contains("at HUP, found"), "a file that only root reads");
}

#[test]
fn a_user_that_is_none_says_so() {
    let found = ended(&mut command(&["serve", "--port", "0", "--user", "no-such-user"]));
    assert_eq!(found.code, Some(78), "{found:?}");
    assert!(found.stderr.contains("expected a user of this machine"), "{found:?}");
    let found = ended(&mut command(&["serve", "--port", "0", "--user", "a b"]));
    assert!(found.stderr.contains("a user such as www-data"), "{found:?}");
}
