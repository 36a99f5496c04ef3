//! However few descriptors there are: a server that starts serves files, and one that cannot says
//! why.

mod gustnado;

use gustnado::{Server, ended};
use std::fs;
use std::process::Command;

/// The command under a limit of open files.
fn limited(limit: u32, flags: &[&str]) -> Command {
    let ours = gustnado::command(&[]);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n \"$0\" && exec \"$@\"", &limit.to_string()]);
    command.arg(ours.get_program()).args(flags).env("NO_COLOR", "1");
    command
}

/// Returns whether it starts under this limit. If so, it must serve all its files.
fn starts(limit: u32, io: &str) -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    for number in 0..8 {
        let file = folder.path().join(format!("{number}"));
        fs::write(file, vec![b'x'; 16 << 10]).expect("written");
    }
    let root = folder.path().to_str().expect("UTF-8");
    let flags = [root, "--port", "0", "--workers", "2", "--io", io];
    let mut command = limited(limit, &flags);
    let Some(mut server) = Server::try_start_by(&mut command) else {
        let said = ended(&mut limited(limit, &flags));
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(
            said.stderr.contains("descriptors") || said.stderr.contains("open files"),
            "{said:?}"
        );
        return false;
    };
    for round in 0..2 {
        for number in 0..8 {
            let answer = server.get(&format!("/{number}"));
            let line = answer.lines().next().unwrap_or_default();
            assert_eq!(line, "HTTP/1.1 200 OK", "{limit} descriptors, {io}, round {round}");
        }
    }
    server.signal(rustix::process::Signal::TERM);
    assert_eq!(server.wait(), Some(0));
    true
}

#[test]
fn a_server_that_starts_serves_files_however_few_descriptors_there_are() {
    for io in ["epoll", "uring"] {
        let least = (8..40).find(|limit| starts(*limit, io)).expect("40 are enough");
        println!("{io}: {least} descriptors are enough");
        for limit in least + 1..least + 4 {
            assert!(starts(limit, io), "{least} were enough, and {limit} are not");
        }
    }
}
