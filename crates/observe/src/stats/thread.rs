//! The kernel's counts for one thread, which the server need not count again.

use std::fs;

use crate::process::cpu_ms;

/// The counts of a thread of this process.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Thread {
    /// Times that it gave up its CPU voluntarily, mostly to wait for events.
    pub waits: u64,
    /// CPU time, user and system together.
    pub cpu_ms: u64,
}

impl Thread {
    /// Reads the counts of a thread by its kernel id. Unreadable ones are 0.
    pub fn read(thread: u32) -> Self {
        let folder = format!("/proc/self/task/{thread}");
        let read = |name| fs::read_to_string(format!("{folder}/{name}")).unwrap_or_default();
        Self { waits: waits(&read("status")).unwrap_or(0), cpu_ms: cpu_ms(&read("stat")) }
    }
}

fn waits(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_count_is_found_by_its_name() {
        let status = "Name:\tgust-0\nvoluntary_ctxt_switches:\t321\n\
                      nonvoluntary_ctxt_switches:\t7\n";
        assert_eq!(waits(status), Some(321));
        assert_eq!(waits("Name:\tgust-0\n"), None);
        assert_eq!(Thread::read(0), Thread::default());
    }

    #[test]
    fn a_thread_that_sleeps_has_waited() {
        std::thread::sleep(std::time::Duration::from_millis(1));
        let number = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        assert!(Thread::read(number).waits > 0);
    }
}
