//! Whole pages for machines that are not at hand. `GOLDEN=write cargo test doctor` writes them
//! anew; the difference is then read by a person.

use super::*;
use gustnado::config::{Config, Machine};
use std::path::Path;

/// A machine with nothing to complain about.
fn healthy() -> Facts {
    Facts {
        machine: Machine {
            cpus: 8,
            cpu_quota_milli: None,
            memory_max_bytes: None,
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
        fin_timeout_s: Some(60),
    }
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
        ..healthy()
    }
}

fn switched_off() -> Facts {
    Facts {
        uring: Err("io_uring_setup: not permitted (kernel.io_uring_disabled is 2)".into()),
        uring_disabled: Some(2),
        fin_timeout_s: Some(120),
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
        fin_timeout_s: None,
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
        let changes = page.lines().filter(|line| line.starts_with("change")).count();
        assert_eq!(count("to change: "), changes, "{page}");
        assert_eq!(count("otherwise: "), changes, "{page}");
    }
}

#[test]
fn this_machine_can_be_looked_at() {
    let page = text(&Facts::read(), Paint(false));
    assert!(page.contains("io_uring"));
}
