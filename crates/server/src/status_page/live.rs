//! The numbers that the built-in page shows, and their JSON.

use gustnado_observe::process::Process;
use gustnado_observe::server_stats::ServerStats;

/// One look at the server. Totals only grow; rates are the reader's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Live {
    /// Milliseconds since the server started to listen.
    pub(crate) uptime_ms: u64,
    /// Connections open now.
    pub(crate) connections_open: u64,
    /// Connections accepted so far.
    pub(crate) connections_accepted: u64,
    /// Requests responded to so far.
    pub(crate) requests: u64,
    /// Bytes sent so far.
    pub(crate) bytes_sent: u64,
    /// CPU time and memory.
    pub(crate) process: Process,
    /// Worker threads.
    pub(crate) workers: u64,
    /// `io_uring` or `epoll`.
    pub(crate) backend: &'static str,
    /// The scheduler's name.
    pub(crate) scheduler: &'static str,
}

impl Live {
    /// Reads the server's counters, and what the process takes.
    pub(super) fn read(server: &dyn ServerStats) -> Self {
        let stats = server.stats();
        Self {
            uptime_ms: stats.uptime_ms,
            connections_open: stats.connections_open,
            connections_accepted: stats.connections_accepted,
            requests: stats.requests,
            bytes_sent: stats.bytes_sent,
            process: Process::read(),
            workers: stats.workers,
            backend: server.backend(),
            scheduler: server.scheduler(),
        }
    }

    /// The text of `/stats.json`: one flat object. The names are part of the interface.
    pub(crate) fn json(&self) -> String {
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
    use gustnado_observe::stats::Stats;

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
    fn counters_are_told_by_their_names() {
        let process = Process { cpu_ms: 1, memory_bytes: 1 };
        let live = Live {
            uptime_ms: 0,
            connections_open: 0,
            connections_accepted: 0,
            requests: 0,
            bytes_sent: 0,
            process,
            workers: 0,
            backend: "",
            scheduler: "",
        };
        let json = live.json();
        let names = json.split('"').filter(|word| word.contains('_') || *word == "requests");
        for name in names {
            let is_of_process = matches!(name, "cpu_ms" | "memory_bytes");
            let is_known = Stats::default().named().into_iter().any(|(known, _)| known == name);
            assert!(is_known || is_of_process, "{name}");
        }
    }
}
