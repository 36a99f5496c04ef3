//! What the kernel keeps for each connection: an entry where connections are tracked, and memory.

use super::facts::{BUCKETS, Facts, OVERFLOW, TCP_MEMORY, TRACKED};
use super::finding::Finding;
use crate::figures::{counted, grouped};

/// Connections that should have an entry, where the server may have that many.
const TRACKED_GOAL: u64 = 100_000;
/// Entries for each bucket of the kernel's table from which on each packet searches a long list.
const ENTRIES_PER_BUCKET: u64 = 8;
/// TCP memory that 10,000 connections with some bytes each fit into.
const TCP_BYTES_GOAL: u64 = 256 << 20;

/// Whether connections are tracked (by a firewall or a container's network), and how many may be.
pub(super) fn tracked(facts: &Facts) -> Finding {
    let Some(most) = facts.conntrack_max else {
        let meaning = "no entry is needed for a connection; it is there with a firewall";
        return Finding::good(TRACKED, "not there".to_owned(), meaning);
    };
    let uring = facts.uring.is_ok();
    let connections = facts.machine.connections_max(&facts.config, uring).value as u64;
    let connections = connections.min(TRACKED_GOAL);
    if most < connections {
        let meaning = format!(
            "of connections that a firewall tracks; the server may have {} and more",
            grouped(connections)
        );
        let mut finding = Finding::change(TRACKED, grouped(most), &meaning);
        finding.change = facts.sysctl(TRACKED, &(2 * connections).to_string());
        return finding
            .by("# or track none: sudo iptables -t raw -A PREROUTING -p tcp --dport 80 -j NOTRACK")
            .or_else("packets of the connections beyond it are dropped without a reply");
    }
    let buckets = facts.conntrack_buckets.unwrap_or(most).max(1);
    if most / buckets > ENTRIES_PER_BUCKET {
        let value = format!("{}, in {} buckets", grouped(most), grouped(buckets));
        let meaning = "each packet searches a list of that ratio when the table is full";
        let mut finding = Finding::change(TRACKED, value, meaning);
        finding.change = facts.sysctl(BUCKETS, &(most / 4).to_string());
        return finding.or_else("packets cost more CPU time the more connections are open");
    }
    Finding::good(TRACKED, grouped(most), "room for every connection that a firewall tracks")
}

/// Memory of the machine's TCP sockets.
pub(super) fn tcp_memory(facts: &Facts) -> Finding {
    let subject = TCP_MEMORY;
    let Some(pages) = facts.tcp_mem_pages else {
        return Finding::unknown(subject, "/proc/sys/net/ipv4/tcp_mem");
    };
    let bytes = pages.saturating_mul(rustix::param::page_size() as u64);
    let value = format!("{} MB", grouped(bytes >> 20));
    let lowat = facts.config.notsent_lowat as u64;
    let readers = bytes / (lowat + lowat / 2).max(1);
    let meaning = format!("as much as {} that take nothing can fill", counted(readers, "client"));
    if bytes >= TCP_BYTES_GOAL {
        return Finding::good(subject, value, &meaning);
    }
    let pages = TCP_BYTES_GOAL / rustix::param::page_size() as u64;
    let mut finding = Finding::change(subject, value, &meaning);
    finding.change = facts.sysctl(subject, &format!("{} {} {}", pages / 2, pages * 3 / 4, pages));
    finding.or_else("then the kernel drops data, and resets connections that nobody reads")
}

/// The fate of a connection that finds the queue for new ones full.
pub(super) fn overflow(facts: &Facts) -> Finding {
    let subject = OVERFLOW;
    let Some(aborts) = facts.abort_on_overflow else {
        return Finding::unknown(subject, "/proc/sys/net/ipv4/tcp_abort_on_overflow");
    };
    if aborts == 0 {
        let meaning = "a newcomer to a full queue tries again after 1 s";
        return Finding::good(subject, grouped(aborts), meaning);
    }
    let mut finding =
        Finding::change(subject, grouped(aborts), "a newcomer to a full queue is reset");
    finding.change = facts.sysctl(subject, "0");
    finding.or_else("a burst of newcomers looks to them like a server that is down")
}

/// Returns a warning before a load of this many connections, if the kernel's table of tracked ones
/// has no room for them: those beyond it stall without an error.
#[cfg(any(feature = "lab", test))]
pub(super) fn no_room(
    settings: &super::settings::KernelSettings,
    connections: u64,
) -> Option<String> {
    let most = settings.number(TRACKED)?;
    let used = settings.number("net.netfilter.nf_conntrack_count").unwrap_or(0);
    let room = most.saturating_sub(used);
    (room < connections).then(|| {
        format!(
            "{TRACKED}: expected room for {}, found {} of {} free; if a firewall tracks them, the \
             rest stall: sudo sysctl -w {TRACKED}={}",
            counted(connections, "connection"),
            grouped(room),
            grouped(most),
            (used + connections).next_multiple_of(1 << 16),
        )
    })
}
