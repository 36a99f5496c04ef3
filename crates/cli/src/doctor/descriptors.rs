//! Limits on open files, per process and per machine: each connection is one.

use super::facts::Facts;
use super::finding::Finding;
use crate::figures::{counted, grouped};

/// Connections that a server should be able to hold.
const CONNECTIONS_GOAL: u64 = 10_000;
/// The suggested limit.
const FILES_GOAL: u64 = 65_536;
/// The suggested limit of the machine.
const FILE_MAX_GOAL: u64 = 200_000;

pub(super) fn per_process(facts: &Facts) -> Finding {
    let subject = "open files (ulimit -n)";
    let (soft, hard) = (facts.machine.files_soft, facts.machine.files_hard);
    let value = format!("soft {}, hard {}", limit(soft), limit(hard));
    let works = facts.uring.is_ok();
    let allowed = facts.machine.connections_max(&facts.config, works).value as u64;
    // Each worker's ring has its own table, so more connections fit than the limit says.
    let tables = if works && allowed > soft.max(hard) {
        ", as each worker's io_uring has a table of its own"
    } else {
        ""
    };
    let meaning = format!("enough for {}{tables}", counted(allowed, "connection"));
    if allowed >= CONNECTIONS_GOAL {
        let raised = if soft < hard { "; the server raises the soft one itself" } else { "" };
        return Finding::good(subject, value, &format!("{meaning}{raised}"));
    }
    let mut finding = Finding::change(subject, value, &meaning);
    if facts.nr_open.is_some_and(|ceiling| ceiling < FILES_GOAL) {
        finding = finding.by(format!("sudo sysctl -w fs.nr_open={FILES_GOAL}"));
    }
    let finding = if facts.in_container {
        finding.by(format!("docker run --ulimit nofile={FILES_GOAL}:{FILES_GOAL} …"))
    } else {
        finding
            .by(format!("sudo prlimit --pid $$ --nofile={FILES_GOAL}:{FILES_GOAL}  # this shell"))
            .by(format!("# systemd: LimitNOFILE={FILES_GOAL} in the [Service] part of the unit"))
    };
    finding.or_else(&format!(
        "accepting pauses at {}; newcomers wait until others leave",
        counted(allowed, "open connection")
    ))
}

pub(super) fn per_machine(facts: &Facts) -> Finding {
    let subject = "fs.file-max";
    let Some(file_max) = facts.file_max else {
        return Finding::unknown(subject, "/proc/sys/fs/file-max");
    };
    if file_max >= FILE_MAX_GOAL {
        return Finding::good(subject, limit(file_max), "open files on the whole machine");
    }
    let mut finding =
        Finding::change(subject, limit(file_max), "open files on the whole machine, all programs");
    finding.change = facts.sysctl("fs.file-max", "1000000");
    finding
        .or_else("at the limit every program's open and accept fails; gustnado waits and retries")
}

fn limit(number: u64) -> String {
    // The kernel's largest numbers mean "no limit" and would be hard to read.
    if number >= 1 << 40 { "unlimited".to_owned() } else { grouped(number) }
}
