//! The resources that this process uses.

use std::fs;

use gustnado_config::SocketMemory;

/// CPU time and memory of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// CPU time so far, user and system together, over all threads.
    pub cpu_ms: u64,
    /// Resident memory.
    pub memory_bytes: u64,
    /// Memory that the kernel holds for sockets: those of the control group, or all of the machine.
    pub socket_memory_bytes: u64,
}

impl Process {
    /// Reads all from `/proc/self`; unreadable values are 0.
    pub fn read() -> Self {
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        Self {
            cpu_ms: cpu_ms(&stat),
            memory_bytes: resident_pages(&statm).unwrap_or(0) * rustix::param::page_size() as u64,
            socket_memory_bytes: SocketMemory::read().map_or(0, |memory| memory.bytes),
        }
    }
}

/// Returns the CPU time in the `stat` file of a process or a thread.
pub fn cpu_ms(stat: &str) -> u64 {
    let ticks = rustix::param::clock_ticks_per_second().max(1);
    cpu_ticks(stat).unwrap_or(0).saturating_mul(1_000) / ticks
}

/// Returns fields 14 and 15, counted from behind the name, which may contain spaces and
/// parentheses.
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

#[cfg(test)]
mod tests {
    use super::*;

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
