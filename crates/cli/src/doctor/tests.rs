//! Whole pages for machines that are not at hand. `GOLDEN=write cargo test doctor` writes them
//! again; review the difference.

use super::clock_facts::{ClockFacts, ClockSync};
use super::state::{SavedState, usual_path};
use super::wanted::changes;
use super::*;
use crate::certificates::{CertificateWarning, SeenCertificate};
use gustnado::config::{Config, Machine};
use std::path::Path;

/// A machine with nothing to complain about.
fn healthy() -> Facts {
    Facts {
        machine: Machine {
            cpus: 8,
            cpu_quota_milli: None,
            memory_max_bytes: None,
            memory_bytes: 8 << 30,
            files_soft: 1_024,
            files_hard: 1_048_576,
        },
        config: Config::default(),
        kernel: Some("6.12.4-amd64".to_owned()),
        in_container: false,
        uring: Ok(()),
        uring_disabled: Some(0),
        file_max: Some(9_223_372_036_854_775_807),
        nr_open: Some(1_048_576),
        somaxconn: Some(4_096),
        syn_backlog: Some(4_096),
        local_ports: Some((32_768, 60_999)),
        tw_reuse: Some(2),
        conntrack_max: Some(2_097_152),
        conntrack_buckets: Some(524_288),
        tcp_mem_pages: Some(575_802),
        abort_on_overflow: Some(0),
        migrate_req: Some(1),
        fin_timeout_s: Some(60),
        clock: ClockFacts {
            now_s: 1_800_000_000,
            sync: ClockSync::Synchronized,
            file_s: Some(1_799_000_000),
        },
        certificates: Vec::new(),
    }
}

/// A certificate with these warnings.
fn certificate(file: &str, warnings: Vec<CertificateWarning>) -> SeenCertificate {
    let summary = Ok("a.test; 60 days left; ECDSA P-256".to_owned());
    SeenCertificate { file: file.to_owned(), summary, details: Vec::new(), warnings }
}

fn small_container() -> Facts {
    let machine = Machine {
        cpus: 4,
        cpu_quota_milli: Some(500),
        memory_max_bytes: Some(64 << 20),
        ..healthy().machine
    };
    Facts {
        machine,
        in_container: true,
        uring: Err("io_uring_setup: operation not permitted (a seccomp filter?)".to_owned()),
        somaxconn: Some(128),
        conntrack_max: Some(32_768),
        clock: ClockFacts { sync: ClockSync::KeptBy("chronyd"), ..healthy().clock },
        certificates: vec![certificate("a.pem", Vec::new())],
        ..healthy()
    }
}

fn old_box() -> Facts {
    Facts {
        machine: Machine { files_hard: 1_024, ..healthy().machine },
        kernel: Some("5.10.0-30-amd64".to_owned()),
        uring: Err("this kernel is older than Linux 6.1".to_owned()),
        uring_disabled: None,
        file_max: Some(98_000),
        nr_open: Some(4_096),
        somaxconn: Some(128),
        syn_backlog: Some(256),
        local_ports: Some((32_768, 40_000)),
        tw_reuse: Some(0),
        conntrack_max: None,
        tcp_mem_pages: Some(16_384),
        abort_on_overflow: Some(1),
        migrate_req: Some(0),
        clock: ClockFacts {
            now_s: 1_500_000_000,
            sync: ClockSync::NotSynchronized,
            ..healthy().clock
        },
        certificates: vec![
            certificate(
                "a.pem",
                vec![CertificateWarning {
                    found: "it ends in 3 days".to_owned(),
                    change: "renew it".to_owned(),
                    otherwise: "clients refuse it from then on",
                }],
            ),
            SeenCertificate {
                summary: Err("b.pem: cannot be read: no such file".to_owned()),
                ..certificate("b.pem", Vec::new())
            },
        ],
        ..healthy()
    }
}

fn switched_off() -> Facts {
    Facts {
        uring: Err("io_uring_setup: not permitted (kernel.io_uring_disabled is 2)".into()),
        uring_disabled: Some(2),
        fin_timeout_s: Some(120),
        conntrack_buckets: Some(65_536),
        ..healthy()
    }
}

fn nothing_readable() -> Facts {
    Facts {
        kernel: None,
        uring_disabled: None,
        file_max: None,
        nr_open: None,
        somaxconn: None,
        syn_backlog: None,
        local_ports: None,
        tw_reuse: None,
        conntrack_max: None,
        conntrack_buckets: None,
        tcp_mem_pages: None,
        abort_on_overflow: None,
        migrate_req: None,
        fin_timeout_s: None,
        clock: ClockFacts { sync: ClockSync::Unknown, file_s: None, ..healthy().clock },
        ..healthy()
    }
}

fn golden(name: &str, facts: &Facts) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/doctor/golden").join(name);
    let found = text(facts, Paint(false));
    if std::env::var_os("GOLDEN").is_some_and(|word| word == "write") {
        std::fs::write(&path, &found).expect("the golden page is written");
    }
    let expected = std::fs::read_to_string(&path).expect("there is a golden page");
    assert_eq!(found, expected, "{name} differs from what is found now");
}

#[test]
fn a_healthy_machine_needs_nothing() {
    golden("healthy.txt", &healthy());
}

#[test]
fn a_container_with_half_a_cpu_a_filter_and_little_memory() {
    golden("small_container.txt", &small_container());
}

#[test]
fn an_old_box_with_small_limits() {
    golden("old_box.txt", &old_box());
}

#[test]
fn a_machine_whose_owner_switched_io_uring_off() {
    golden("switched_off.txt", &switched_off());
}

#[test]
fn what_cannot_be_read_is_said_and_stops_nothing() {
    golden("nothing_readable.txt", &nothing_readable());
    assert!(nothing_readable().is_empty());
    assert!(!healthy().is_empty());
}

#[test]
fn every_change_says_how_and_what_happens_otherwise() {
    for facts in [healthy(), small_container(), old_box(), switched_off()] {
        let page = text(&facts, Paint(false));
        let count = |word: &str| page.matches(word).count();
        let is_change = |line: &&str| line.starts_with("change") || line.starts_with("stops");
        let changes = page.lines().filter(is_change).count();
        assert_eq!(count("to change: "), changes, "{page}");
        assert_eq!(count("otherwise: "), changes, "{page}");
    }
}

#[test]
fn this_machine_can_be_looked_at() {
    let matches = command().get_matches_from(["doctor"]);
    let options = DoctorOptions::read(&matches, Config::default(), None);
    let facts = Facts::read(&KernelSettings("/proc/sys".into()), &options);
    let page = text(&facts, Paint(false));
    assert!(page.contains("io_uring") && page.contains("  time  "), "{page}");
}

/// A folder of settings as a fresh machine has them.
fn fresh() -> (tempfile::TempDir, KernelSettings) {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, value) in [
        ("fs/nr_open", "1048576"),
        ("fs/file-max", "9223372036854775807"),
        ("net/core/somaxconn", "4096"),
        ("net/ipv4/tcp_max_syn_backlog", "512"),
        ("net/ipv4/ip_local_port_range", "32768\t60999"),
        ("net/ipv4/tcp_fin_timeout", "60"),
        ("net/ipv4/tcp_tw_reuse", "2"),
    ] {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("in a folder")).expect("made");
        std::fs::write(path, format!("{value}\n")).expect("written");
    }
    let settings = KernelSettings(folder.path().to_owned());
    (folder, settings)
}

#[test]
fn what_meets_its_goal_is_not_changed_and_afterwards_nothing_is() {
    let (_folder, settings) = fresh();
    let found = changes(&settings);
    let keys: Vec<&str> = found.iter().map(|change| change.key).collect();
    assert_eq!(
        keys,
        [
            "net.core.somaxconn",
            "net.ipv4.tcp_max_syn_backlog",
            "net.ipv4.ip_local_port_range",
            "net.ipv4.tcp_fin_timeout"
        ]
    );
    assert_eq!(found[2].old, "32768 60999");
    for change in &found {
        settings.write(change.key, &change.new).expect("written");
    }
    assert_eq!(changes(&settings), []);
}

#[test]
fn a_setting_that_is_not_there_is_left_alone_and_cannot_be_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = KernelSettings(folder.path().to_owned());
    assert_eq!(changes(&settings), []);
    assert!(settings.write("net.core.somaxconn", "1").is_err());
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn a_state_reads_back_and_an_empty_one_has_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a/b/doctor.json");
    let mut state = SavedState::read(&path).expect("none is empty");
    assert!(state.is_empty());
    state.settings.insert("net.core.somaxconn".to_owned(), "4096".to_owned());
    state.write(&path).expect("written");
    assert_eq!(SavedState::read(&path).expect("a state"), state);
    state.settings.clear();
    state.write(&path).expect("removed");
    assert!(!path.exists());
    state.write(&path).expect("gone already");
    for text in ["", "{}", "{\"format\": 2, \"settings\": {}}"] {
        std::fs::write(&path, text).expect("written");
        let line = SavedState::read(&path).expect_err(text);
        assert!(line.contains("doctor.json: expected the state"), "{line}");
    }
}

#[test]
fn the_state_is_where_such_states_are_kept() {
    let with = |pairs: &'static [(&str, &str)]| {
        let of = |name: &str| pairs.iter().find(|(key, _)| *key == name);
        usual_path(|name| of(name).map(|(_, value)| (*value).to_owned()))
    };
    let path = |text: &str| Some(std::path::PathBuf::from(text));
    assert_eq!(with(&[("HOME", "/h")]), path("/h/.local/state/gustnado/doctor.json"));
    assert_eq!(with(&[("XDG_STATE_HOME", "/s"), ("HOME", "/h")]), path("/s/gustnado/doctor.json"));
    assert_eq!(with(&[("XDG_STATE_HOME", "relative")]), None);
}

#[test]
fn a_load_that_the_table_of_tracked_connections_cannot_hold_is_warned_of() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("net/netfilter");
    std::fs::create_dir_all(&folder).expect("made");
    let settings = KernelSettings(place.path().to_owned());
    assert_eq!(connections::no_room(&settings, 1_000_000), None, "nothing is tracked");
    std::fs::write(folder.join("nf_conntrack_max"), "262144\n").expect("written");
    std::fs::write(folder.join("nf_conntrack_count"), "144\n").expect("written");
    assert_eq!(connections::no_room(&settings, 262_000), None);
    let warning = connections::no_room(&settings, 1_000_000).expect("no room");
    assert!(warning.contains("found 262,000 of 262,144 free"), "{warning}");
    assert!(warning.ends_with("nf_conntrack_max=1048576"), "{warning}");
}
