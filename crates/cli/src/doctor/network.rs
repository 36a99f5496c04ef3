//! The kernel's queues for new connections, and the ephemeral ports of clients on this machine.

use super::facts::Facts;
use super::finding::Finding;
use crate::figures::{counted, grouped};

/// Half-open connections of a burst.
const SYN_BACKLOG_GOAL: u64 = 1_024;
/// The kernel's default: 32768 to 60999.
const LOCAL_PORTS_GOAL: u64 = 28_000;
const FIN_TIMEOUT_GOAL_S: u64 = 60;

pub(super) fn accept_queue(facts: &Facts) -> Finding {
    let subject = "net.core.somaxconn";
    let Some(somaxconn) = facts.somaxconn else {
        return Finding::unknown(subject, "/proc/sys/net/core/somaxconn");
    };
    let backlog = u64::from(facts.config.backlog);
    if somaxconn >= backlog {
        let meaning = format!("holds the whole backlog of {}", grouped(backlog));
        return Finding::good(subject, grouped(somaxconn), &meaning);
    }
    let meaning = format!("the kernel silently cuts the backlog of {} to it", grouped(backlog));
    let mut finding = Finding::change(subject, grouped(somaxconn), &meaning);
    finding.change = facts.sysctl(subject, &backlog.to_string());
    finding.or_else(&format!(
        "of more than {} at once the rest are dropped and try again after 1 s",
        counted(somaxconn, "newcomer")
    ))
}

pub(super) fn handshakes(facts: &Facts) -> Finding {
    let subject = "net.ipv4.tcp_max_syn_backlog";
    let Some(syn_backlog) = facts.syn_backlog else {
        return Finding::unknown(subject, "/proc/sys/net/ipv4/tcp_max_syn_backlog");
    };
    if syn_backlog >= SYN_BACKLOG_GOAL {
        return Finding::good(subject, grouped(syn_backlog), "handshakes under way at once");
    }
    let mut finding =
        Finding::change(subject, grouped(syn_backlog), "handshakes under way at once");
    finding.change = facts.sysctl(subject, "4096");
    finding.or_else("bursts of distant newcomers get SYN cookies, or no reply")
}

pub(super) fn local_ports(facts: &Facts) -> Finding {
    let subject = "net.ipv4.ip_local_port_range";
    let Some((first, last)) = facts.local_ports else {
        return Finding::unknown(subject, "/proc/sys/net/ipv4/ip_local_port_range");
    };
    let ports = (last + 1).saturating_sub(first);
    let value = format!("{first} to {last}");
    let meaning = format!("a client on this machine can hold {}", counted(ports, "connection"));
    if ports >= LOCAL_PORTS_GOAL {
        return Finding::good(subject, value, &format!("{meaning} per source address"));
    }
    let mut finding = Finding::change(subject, value, &meaning);
    finding.change = facts.sysctl(subject, "10240 65535");
    finding.or_else(
        "clients elsewhere notice nothing; a load test from here ends with `Cannot assign \
         requested address`",
    )
}

pub(super) fn closed_ports(facts: &Facts) -> Finding {
    let subject = "net.ipv4.tcp_tw_reuse";
    let (Some(reuse), Some(timeout_s)) = (facts.tw_reuse, facts.fin_timeout_s) else {
        return Finding::unknown(subject, "tcp_tw_reuse or tcp_fin_timeout in /proc/sys/net/ipv4");
    };
    let value = format!("{reuse}, tcp_fin_timeout {timeout_s} s");
    let otherwise = "clients elsewhere notice nothing; a load test from here with a new connection \
                     per request runs out of ports";
    if reuse == 0 {
        let meaning = "ports of closed connections rest for 60 s on this machine";
        let mut finding = Finding::change(subject, value, meaning);
        finding.change = facts.sysctl(subject, "2");
        return finding.or_else(otherwise);
    }
    if timeout_s > FIN_TIMEOUT_GOAL_S {
        let meaning = "half-closed connections stay for long";
        let mut finding = Finding::change(subject, value, meaning);
        finding.change = facts.sysctl("net.ipv4.tcp_fin_timeout", "60");
        return finding.or_else("each keeps about 4 KB of kernel memory for that time");
    }
    Finding::good(subject, value, "ports of closed connections are used again")
}

/// The fate of a queue when one of several listeners on a port closes.
pub(super) fn closed_listeners(facts: &Facts) -> Finding {
    let subject = "net.ipv4.tcp_migrate_req";
    let Some(migrates) = facts.migrate_req else {
        return Finding::unknown(subject, "/proc/sys/net/ipv4/tcp_migrate_req");
    };
    let meaning = match migrates {
        0 => "a server that closes one of its sockets resets its queue; Gustnado serves it first",
        _ => "a server that closes one of its sockets leaves its queue to the others",
    };
    Finding::good(subject, grouped(migrates), meaning)
}
