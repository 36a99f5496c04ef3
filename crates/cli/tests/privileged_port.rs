//! A port that only root may take. In a file of its own: a program that was just copied cannot be
//! run while another thread of this process starts a child.

mod gustnado;

use gustnado::ended;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

/// Needs to be root to become the user `nobody`, or not to be root at all.
#[test]
fn a_privileged_port_suggests_another() {
    let first_free = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    let first_free: u16 =
        first_free.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(1_024);
    if first_free <= 81 {
        return; // this machine lets every user have port 81
    }
    // The user `nobody` may have no access to the build folder: a copy in a public place can be
    // run.
    let place = tempfile::tempdir().expect("a folder");
    let copy = place.path().join("gustnado");
    std::fs::copy(env!("CARGO_BIN_EXE_gustnado"), &copy).expect("copied");
    let all = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.path(), all).expect("opened to all");
    let mut command = std::process::Command::new(copy);
    command.args(["serve", "--port", "81"]).env("NO_COLOR", "1").current_dir("/");
    if rustix::process::geteuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
    let found = ended(&mut command);
    assert_eq!(found.code, Some(1), "{found:?}");
    assert_eq!(found.stderr.lines().count(), 1, "{found:?}");
    assert!(found.stderr.contains("127.0.0.1:81"), "{found:?}");
    assert!(found.stderr.contains("--port"), "{found:?}");
}
