//! `gustnado doctor --apply` and `--restore`, on a picture of a machine.

mod gustnado;

use gustnado::{Ended, command, ended};
use std::fs;
use std::path::{Path, PathBuf};

const FRESH: [(&str, &str); 3] =
    [("net/core/somaxconn", "4096"), ("net/ipv4/tcp_fin_timeout", "60"), ("fs/nr_open", "1048576")];

struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { folder: tempfile::tempdir().expect("a folder") };
        for (path, value) in FRESH {
            let path = machine.path(path);
            fs::create_dir_all(path.parent().expect("in a folder")).expect("made");
            fs::write(path, format!("{value}\n")).expect("written");
        }
        machine
    }

    fn path(&self, setting: &str) -> PathBuf {
        self.folder.path().join("sys").join(setting)
    }

    fn value(&self, setting: &str) -> String {
        fs::read_to_string(self.path(setting)).expect("a setting").trim().to_owned()
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state/doctor.json")
    }

    fn doctor(&self, flags: &[&str]) -> Ended {
        let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
        let (sys, state) = (text(&self.folder.path().join("sys")), text(&self.state()));
        let args = ["doctor", "--proc-sys", &sys, "--state", &state];
        ended(&mut command(&[&args, flags].concat()))
    }
}

#[test]
fn without_yes_and_without_a_terminal_it_only_shows() {
    let machine = Machine::new();
    let found = machine.doctor(&["--apply"]);
    assert_eq!(found.code, Some(0), "{found:?}");
    assert!(found.stdout.contains("net.core.somaxconn"), "{found:?}");
    assert!(found.stdout.contains("4096 -> 65535"), "{found:?}");
    assert!(!found.stdout.contains("fs.nr_open"), "it will do: {found:?}");
    assert!(found.stderr.contains("nothing was changed"), "{found:?}");
    assert_eq!(machine.value("net/core/somaxconn"), "4096");
    assert!(!machine.state().exists());
}

#[test]
fn what_was_applied_is_put_back() {
    let machine = Machine::new();
    let found = machine.doctor(&["--apply", "--yes"]);
    assert_eq!(found.code, Some(0), "{found:?}");
    assert_eq!(machine.value("net/core/somaxconn"), "65535");
    assert_eq!(machine.value("net/ipv4/tcp_fin_timeout"), "15");
    let again = machine.doctor(&["--apply", "--yes"]);
    assert!(again.stdout.contains("Nothing needs to be changed"), "{again:?}");
    // Another program changes it: the values from before the first change are still kept.
    fs::write(machine.path("net/core/somaxconn"), "1000\n").expect("written");
    assert_eq!(machine.doctor(&["--apply", "--yes"]).code, Some(0));
    let found = machine.doctor(&["--restore"]);
    assert_eq!(found.code, Some(0), "{found:?}");
    for (setting, value) in FRESH {
        assert_eq!(machine.value(setting), value, "{setting}");
    }
    assert!(!machine.state().exists(), "it is done with");
    let found = machine.doctor(&["--restore"]);
    assert_eq!(found.code, Some(1), "{found:?}");
    assert!(found.stderr.contains("nothing to put back"), "{found:?}");
}

#[test]
fn a_setting_that_fails_is_named_and_the_others_are_changed_and_put_back() {
    let machine = Machine::new();
    assert_eq!(machine.doctor(&["--apply", "--yes"]).code, Some(0));
    fs::remove_file(machine.path("net/core/somaxconn")).expect("removed");
    let found = machine.doctor(&["--restore"]);
    assert_eq!(found.code, Some(1), "{found:?}");
    assert!(found.stdout.contains("failed  net.core.somaxconn to 4096"), "{found:?}");
    assert!(found.stderr.contains("1 setting could not be put back"), "{found:?}");
    assert_eq!(machine.value("net/ipv4/tcp_fin_timeout"), "60");
    fs::write(machine.path("net/core/somaxconn"), "65535\n").expect("written");
    assert_eq!(machine.doctor(&["--restore"]).code, Some(0), "the rest is still known");
    assert_eq!(machine.value("net/core/somaxconn"), "4096");
    assert!(!machine.state().exists());
}

#[test]
fn a_state_that_is_none_changes_nothing() {
    let machine = Machine::new();
    fs::create_dir_all(machine.state().parent().expect("in a folder")).expect("made");
    fs::write(machine.state(), "not a state").expect("written");
    for flags in [&["--apply", "--yes"][..], &["--restore"]] {
        let found = machine.doctor(flags);
        assert_eq!(found.code, Some(1), "{found:?}");
        assert!(found.stderr.contains("doctor.json: expected the state"), "{found:?}");
    }
    assert_eq!(machine.value("net/core/somaxconn"), "4096");
}
