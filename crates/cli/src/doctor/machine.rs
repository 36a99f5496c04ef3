//! Kernel, processors and memory.

use super::facts::Facts;
use super::finding::Finding;
use crate::figures::{counted, grouped};

/// Memory of a connection in bytes: mostly its socket in the kernel.
const CONNECTION_BYTES: u64 = 4_200;
/// Memory of the engine without connections, and per worker.
const ENGINE_BYTES: u64 = 4 << 20;
const WORKER_BYTES: u64 = 1 << 20;
/// Connections that should fit into memory.
const CONNECTIONS_GOAL: u64 = 10_000;

/// The first kernel whose `io_uring` has all used features.
const URING_SINCE: (u32, u32) = (6, 1);

pub(super) fn kernel(facts: &Facts) -> Finding {
    let subject = "kernel";
    let Some(release) = &facts.kernel else {
        return Finding::unknown(subject, "/proc/sys/kernel/osrelease");
    };
    match version(release) {
        Some(version) if version < URING_SINCE => {
            Finding::change(subject, release.clone(), "io_uring is used from 6.1 on")
                .by("sudo apt-get install linux-image-amd64 && sudo reboot")
                .by("# or your distribution's way to a kernel of 6.1 or later")
                .or_else("epoll is used; every feature is there, at the same speed for most work")
        }
        Some(_) => Finding::good(subject, release.clone(), "new enough for all that is used"),
        None => Finding::unknown(subject, "the version in /proc/sys/kernel/osrelease"),
    }
}

/// Returns whether the kernel is known to be too old for `io_uring`.
pub(super) fn is_old(facts: &Facts) -> bool {
    facts.kernel.as_deref().and_then(version).is_some_and(|version| version < URING_SINCE)
}

/// `6.1.0-18-amd64` is (6, 1).
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

pub(super) fn processors(facts: &Facts) -> Finding {
    let cpus = facts.machine.cpus as u64;
    let meaning = "this process may run on them; `taskset -c LIST gustnado …` chooses others";
    Finding::good("CPUs (affinity)", grouped(cpus), meaning)
}

pub(super) fn quota(facts: &Facts) -> Finding {
    let subject = "CPU quota (cgroup)";
    let workers = counted(facts.machine.workers(&facts.config).value as u64, "worker");
    let Some(milli) = facts.machine.cpu_quota_milli else {
        let meaning = format!("auto comes to {workers}");
        return Finding::good(subject, "none".to_owned(), &meaning);
    };
    let value = format!("{}.{:02} CPU", milli / 1_000, milli % 1_000 / 10);
    if milli >= 1_000 {
        return Finding::good(subject, value, &format!("auto comes to {workers}"));
    }
    Finding::change(subject, value, "less than one CPU; auto comes to 1 worker")
        .by("docker update --cpus 1 CONTAINER")
        .by("# Kubernetes: resources.limits.cpu: \"1\", or no CPU limit at all")
        .or_else("under load the kernel stops the server for a part of every 100 ms")
}

pub(super) fn memory(facts: &Facts) -> Finding {
    let subject = "memory (cgroup)";
    let Some(limit) = facts.machine.memory_max_bytes else {
        return Finding::good(
            subject,
            "no limit".to_owned(),
            "connections may take what they need",
        );
    };
    let workers = facts.machine.workers(&facts.config).value as u64;
    let fixed = ENGINE_BYTES + workers * WORKER_BYTES + facts.config.cache_bytes;
    let fits = limit.saturating_sub(fixed) / CONNECTION_BYTES;
    let value = format!("{} MB", grouped(limit >> 20));
    let meaning = match fits {
        0 => "the file cache alone may fill it".to_owned(),
        _ => format!("enough for about {} and the file cache", counted(fits, "connection")),
    };
    if fits >= CONNECTIONS_GOAL {
        return Finding::good(subject, value, &meaning);
    }
    let goal_mb = ((fixed + CONNECTIONS_GOAL * CONNECTION_BYTES) >> 20).next_multiple_of(64);
    Finding::change(subject, value, &meaning)
        .by(format!("docker update --memory {goal_mb}m --memory-swap {goal_mb}m CONTAINER"))
        .by(format!("# Kubernetes: resources.limits.memory: {goal_mb}Mi"))
        .by("gustnado serve --cache-bytes 4m --connections-max 1000  # or take less")
        .or_else("when the memory is used up, the kernel kills the server")
}
