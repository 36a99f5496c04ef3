//! The kernel's memory for sockets: what it holds now, and what TCP may take.

use std::fs;
use std::path::Path;

use super::cgroup;

/// Memory that the kernel holds for sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketMemory {
    /// Bytes.
    pub bytes: u64,
    /// Whose sockets these are, for people.
    pub of: &'static str,
}

const OF_GROUP: &str = "this cgroup's sockets";
const OF_MACHINE: &str = "all TCP sockets of the machine";

impl SocketMemory {
    /// Reads the share of this process's control group, or that of the machine's TCP sockets where
    /// the group has no account: version 1 keeps one only if a limit was set.
    pub fn read() -> Option<Self> {
        let own_groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let of_group = cgroup::socket_bytes(&own_groups, Path::new("/sys/fs/cgroup"));
        if let Some(bytes) = of_group.filter(|bytes| *bytes > 0) {
            return Some(Self { bytes, of: OF_GROUP });
        }
        let pages = tcp_pages(&fs::read_to_string("/proc/net/sockstat").ok()?)?;
        Some(Self { bytes: pages * page_bytes(), of: OF_MACHINE })
    }

    /// Returns the bytes that TCP may take on the whole machine (`net.ipv4.tcp_mem`).
    pub fn tcp_max_bytes() -> Option<u64> {
        third("/proc/sys/net/ipv4/tcp_mem").map(|pages| pages.saturating_mul(page_bytes()))
    }

    /// Returns the largest send buffer that the kernel makes for a connection by itself
    /// (`net.ipv4.tcp_wmem`).
    pub fn send_buffer_max_bytes() -> Option<u64> {
        third("/proc/sys/net/ipv4/tcp_wmem")
    }
}

fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

fn third(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.split_whitespace().nth(2)?.parse().ok()
}

/// Returns the pages in the line `TCP: inuse 4 orphan 0 tw 1 alloc 6 mem 791`.
fn tcp_pages(sockstat: &str) -> Option<u64> {
    let line = sockstat.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let mut words = line.split_whitespace().skip_while(|word| *word != "mem").skip(1);
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_of_tcp_are_found() {
        let text = "sockets: used 83\nTCP: inuse 68 orphan 0 tw 646 alloc 68 mem 791\nUDP: mem 9\n";
        assert_eq!(tcp_pages(text), Some(791));
        assert_eq!(tcp_pages("UDP: inuse 0 mem 0\n"), None);
    }

    #[test]
    fn every_machine_says_something() {
        assert!(SocketMemory::read().is_some());
        assert!(SocketMemory::tcp_max_bytes() > SocketMemory::send_buffer_max_bytes());
    }
}
