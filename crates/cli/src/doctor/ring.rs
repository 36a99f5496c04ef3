//! Availability of `io_uring`, and the cause if it is missing.

use super::facts::Facts;
use super::finding::Finding;
use super::machine;

const OTHERWISE: &str = "epoll is used: the same speed for most work, and at most `ulimit -n` \
                         connections per process";

pub(super) fn availability(facts: &Facts) -> Finding {
    let subject = "io_uring";
    let Err(why) = &facts.uring else {
        let meaning = "carries connections without a system call for each request";
        return Finding::good(subject, "works".to_owned(), meaning);
    };
    let finding = Finding::change(subject, "not available".to_owned(), why);
    let mut finding = finding.or_else(OTHERWISE);
    finding.change = match facts.uring_disabled {
        _ if machine::is_old(facts) => vec!["# the newer kernel, see above".to_owned()],
        Some(2) => facts.sysctl("kernel.io_uring_disabled", "0"),
        Some(1) => {
            let mut ways = facts.sysctl("kernel.io_uring_disabled", "0");
            ways.push(
                "sudo sysctl -w kernel.io_uring_group=GID  # or for one group only".to_owned(),
            );
            ways
        }
        _ => filtered(facts),
    };
    finding
}

/// No setting forbids it, so a system call filter is the likely cause.
fn filtered(facts: &Facts) -> Vec<String> {
    let calls = "io_uring_setup, io_uring_enter and io_uring_register";
    if facts.in_container {
        return vec![
            "docker run --security-opt seccomp=unconfined …  # allows every call".to_owned(),
            format!("# or a seccomp profile that allows {calls}"),
            "# Kubernetes: securityContext.seccompProfile: {type: Localhost}".to_owned(),
        ];
    }
    vec![
        format!("# the filter that this process was started with must allow {calls}"),
        "# systemd: SystemCallFilter=io_uring_setup io_uring_enter io_uring_register".to_owned(),
    ]
}
