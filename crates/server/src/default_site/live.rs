//! The numbers that the built-in page shows, and their JSON.

use std::fs;

/// What this process takes from the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// CPU time so far, user and system together, over all threads.
    pub cpu_ms: u64,
    /// Resident memory.
    pub memory_bytes: u64,
}

impl Process {
    /// Reads both from `/proc/self`; what cannot be read is 0.
    pub fn read() -> Self {
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        Self {
            cpu_ms: cpu_ms(&stat),
            memory_bytes: resident_pages(&statm).unwrap_or(0) * rustix::param::page_size() as u64,
        }
    }
}

/// CPU time of a process or a thread, from its `stat` file.
pub(crate) fn cpu_ms(stat: &str) -> u64 {
    let ticks = rustix::param::clock_ticks_per_second().max(1);
    cpu_ticks(stat).unwrap_or(0).saturating_mul(1_000) / ticks
}

/// Fields 14 and 15, counted behind the name, which may itself hold spaces and brackets.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

fn resident_pages(statm: &str) -> Option<u64> {
    statm.split(' ').nth(1)?.parse().ok()
}

/// One look at the server. Totals only grow; rates are the reader's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    /// Milliseconds since the server started to listen.
    pub uptime_ms: u64,
    /// Connections open now.
    pub connections_open: u64,
    /// Connections accepted so far.
    pub connections_accepted: u64,
    /// Requests answered so far.
    pub requests: u64,
    /// Bytes sent so far.
    pub bytes_sent: u64,
    /// CPU time and memory.
    pub process: Process,
    /// Worker threads.
    pub workers: u64,
    /// `io_uring` or `epoll`.
    pub backend: &'static str,
    /// The scheduler's name.
    pub scheduler: &'static str,
}

impl Live {
    /// The text of `/stats.json`: one flat object. The names are part of the interface.
    pub fn json(&self) -> String {
        let Process { cpu_ms, memory_bytes } = self.process;
        let numbers = [
            ("uptime_ms", self.uptime_ms),
            ("connections_open", self.connections_open),
            ("connections_accepted", self.connections_accepted),
            ("requests", self.requests),
            ("bytes_sent", self.bytes_sent),
            ("cpu_ms", cpu_ms),
            ("memory_bytes", memory_bytes),
            ("workers", self.workers),
        ];
        // The words below are constants of ours without anything that JSON would need escaped.
        let mut text = format!(
            "{{\"version\":\"{}\",\"backend\":\"{}\",\"scheduler\":\"{}\"",
            env!("CARGO_PKG_VERSION"),
            self.backend,
            self.scheduler
        );
        for (name, number) in numbers {
            text.push_str(",\"");
            text.push_str(name);
            text.push_str("\":");
            text.push_str(itoa::Buffer::new().format(number));
        }
        text.push_str("}\n");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_is_one_flat_object() {
        let live = Live {
            uptime_ms: 1,
            connections_open: 2,
            connections_accepted: 3,
            requests: 4,
            bytes_sent: u64::MAX,
            process: Process { cpu_ms: 6, memory_bytes: 7 },
            workers: 8,
            backend: "io_uring",
            scheduler: "pool",
        };
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            live.json(),
            format!(
                "{{\"version\":\"{version}\",\"backend\":\"io_uring\",\"scheduler\":\"pool\",\
                 \"uptime_ms\":1,\"connections_open\":2,\"connections_accepted\":3,\"requests\":4,\
                 \"bytes_sent\":18446744073709551615,\"cpu_ms\":6,\"memory_bytes\":7,\
                 \"workers\":8}}\n"
            )
        );
    }

    #[test]
    fn the_kernels_line_is_read_behind_the_name() {
        let stat = "42 (a ) b) S 1 2 3 4 5 6 7 8 9 10 110 22 0 0 20 0 1 0";
        assert_eq!(cpu_ticks(stat), Some(132));
        assert_eq!(cpu_ticks("nonsense"), None);
        assert_eq!(resident_pages("900 300 200 1 0 2 0\n"), Some(300));
        assert_eq!(resident_pages(""), None);
    }

    #[test]
    fn this_process_takes_memory() {
        assert!(Process::read().memory_bytes > 100_000);
    }
}
