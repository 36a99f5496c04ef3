use super::*;
use crate::contest::process_tree::ProcStat;

/// Starts a shell script that says `up` when it is ready.
fn start(script: &str, stop_timeout: Duration) -> (ServerProcess, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let command = ["sh", "-c", script].map(str::to_owned);
    let launch = Launch {
        command: &command,
        launcher: &[],
        folder: folder.path(),
        environment: &[("WORD".to_owned(), "up".to_owned())],
        cpus: &[],
        log: folder.path().join("log"),
        stop_timeout,
    };
    let server = ServerProcess::start(&launch).expect("sh is everywhere");
    let said = || std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
    until("it is up", || said().contains("up"));
    (server, folder)
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < end, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns whether a process with this number runs.
fn runs(id: i32) -> bool {
    ProcStat::read(id).is_some() && {
        let text = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        !text.contains(") Z ")
    }
}

/// The numbers that a script has written into a file, a line each.
fn ids(folder: &tempfile::TempDir, count: usize) -> Vec<i32> {
    let read = || {
        let text = std::fs::read_to_string(folder.path().join("ids")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<i32>>()
    };
    until("its processes are there", || read().len() == count);
    read()
}

#[test]
fn a_server_that_ends_at_term_is_ended_by_it() {
    let (mut server, folder) = start(
        "trap 'echo bye > gone; exit' TERM; echo $WORD; while :; do sleep 0.02; done",
        Duration::from_secs(20),
    );
    assert!(server.ended().is_none());
    server.stop();
    assert!(folder.path().join("gone").exists());
    assert!(server.ended().is_some_and(|how| how.contains("exit code 0")));
}

#[test]
fn a_server_that_ignores_term_is_ended_all_the_same() {
    let script = "trap '' TERM; echo $$ > ids; echo $WORD; while :; do sleep 0.05; done";
    let (mut server, folder) = start(script, Duration::from_millis(100));
    let ids = ids(&folder, 1);
    server.stop();
    assert!(!runs(ids[0]));
    assert!(server.ended().is_some_and(|how| how.contains("signal 9")));
}

#[test]
fn workers_go_with_their_server_wherever_they_went() {
    // One worker in the group, one in a session of its own whose parent is gone.
    let script = "sh -c 'trap \"\" TERM; echo $$ >> ids; while :; do sleep 0.05; done' &
        setsid sh -c 'sh -c \"trap : TERM; echo \\$\\$ >> ids; while :; do sleep 0.05; done\" &'
        echo $WORD; wait";
    let (server, folder) = start(script, Duration::from_millis(100));
    let ids = ids(&folder, 2);
    assert!(ids.iter().all(|id| runs(*id)));
    drop(server);
    until("all are gone", || !ids.iter().any(|id| runs(*id)));
}

#[test]
fn a_panic_leaves_no_server_behind() {
    let (server, folder) = start("echo $$ > ids; echo $WORD; exec sleep 60", Duration::ZERO);
    let ids = ids(&folder, 1);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _server = server;
        panic!("on purpose");
    }));
    assert!(caught.is_err());
    assert!(!runs(ids[0]));
}

#[test]
fn a_server_that_dies_says_why_and_its_words_are_kept_within_bounds() {
    let script = "echo $WORD; i=0; while [ $i -lt 9000 ]; do i=$((i+1)); \
        echo \"line $i of a very talkative server that fills disks if nobody stops it\"; done; \
        echo no memory >&2; exit 7";
    let (mut server, folder) = start(script, Duration::from_secs(1));
    until("it has ended", || !runs(server.tree().leader().id) || server.tail().contains("no mem"));
    std::thread::sleep(Duration::from_millis(50));
    let how = server.ended().expect("it has ended");
    assert!(how.contains("exit code 7") && how.contains("no memory"), "{how}");
    let kept = std::fs::metadata(folder.path().join("log")).expect("a log").len();
    assert!(kept > 1_000 && kept <= 256 << 10, "{kept}");
}
