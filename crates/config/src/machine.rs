//! Limits of this machine, and the values that `auto` has on it.

use super::text::counted;
use super::{Config, SchedulerKind, cgroup};
use gustnado_tasks::descriptors_for_connections;
use rustix::process::{Resource, getrlimit};
use std::path::Path;

/// The facts that `auto` depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// CPUs that this process may run on.
    pub cpus: usize,
    /// CPU time that the control groups allow, in thousandths of a CPU.
    pub cpu_quota_milli: Option<u64>,
    /// Memory that the control groups allow, in bytes.
    pub memory_max_bytes: Option<u64>,
    /// Memory of the machine, in bytes.
    pub memory_bytes: u64,
    /// Open files per process without asking (`ulimit -Sn`).
    pub files_soft: u64,
    /// Open files per process at most (`ulimit -Hn`).
    pub files_hard: u64,
}

/// A computed value, and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The value.
    pub value: usize,
    /// The reason, as half a sentence.
    pub because: String,
}

/// The engine's own ceiling, where the kernel has none.
const FILES_MAX: u64 = 1 << 22;

impl Machine {
    /// Reads the facts from the kernel. What cannot be read counts as not limited.
    pub fn read() -> Self {
        let own_groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let allowance = cgroup::read(&own_groups, Path::new("/sys/fs/cgroup"));
        let cpus = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count() as usize);
        let files = getrlimit(Resource::Nofile);
        Self {
            cpus: cpus.max(1),
            cpu_quota_milli: allowance.cpu_milli,
            memory_max_bytes: allowance.memory_bytes,
            memory_bytes: memory_bytes(),
            files_soft: files.current.unwrap_or(u64::MAX),
            files_hard: files.maximum.unwrap_or(u64::MAX),
        }
    }

    /// Returns the number of workers: as set, or as many as there are CPUs to run them.
    ///
    /// A quota is rounded down, because a worker beyond it would only be throttled.
    pub fn workers(&self, config: &Config) -> Resolved {
        if config.workers > 0 {
            return Resolved { value: config.workers, because: "as set".to_owned() };
        }
        let cpus = format!("{} by affinity", counted(self.cpus, "CPU"));
        let Some(milli) = self.cpu_quota_milli else {
            return Resolved { value: self.cpus, because: format!("{cpus}, no cgroup quota") };
        };
        let quota = usize::try_from(milli / 1_000).unwrap_or(usize::MAX).max(1);
        let text = format!("{}.{:02}", milli / 1_000, milli % 1_000 / 10);
        let because = format!("{cpus}, cgroup quota of {text} CPU");
        Resolved { value: quota.min(self.cpus), because }
    }

    /// Returns the connections that may be open at once: as set, or what the descriptor limit
    /// allows.
    ///
    /// - `uring`: whether `io_uring` carries the connections. Its descriptor tables are limited one
    ///   by one, so that each worker has the whole limit to itself.
    ///
    /// The engine computes the same; a test compares both.
    pub fn connections_max(&self, config: &Config, uring: bool) -> Resolved {
        if config.connections_max > 0 {
            return Resolved { value: config.connections_max, because: "as set".to_owned() };
        }
        let files = self.files_hard.min(FILES_MAX);
        // The shared schedulers live on epoll whatever carries the others.
        let (allowed, because) = if uring && !config.scheduler.is_shared() {
            // Each worker that may be added brings a table of its own.
            let workers = self.workers(config).value.max(config.workers_max) as u64;
            let margin = u64::from(config.backlog).min(files / 20);
            let tables = if workers == 1 { "table" } else { "tables" };
            let because =
                format!("{workers} io_uring {tables} of {files} less {margin} in reserve");
            ((files - margin).saturating_mul(workers), because)
        } else {
            let limit = usize::try_from(files).unwrap_or(usize::MAX);
            let allowed = descriptors_for_connections(limit) as u64;
            let reserve = files.saturating_sub(allowed);
            (allowed, format!("{files} descriptors (ulimit -Hn) less {reserve} in reserve"))
        };
        Resolved { value: usize::try_from(allowed.max(1)).unwrap_or(usize::MAX), because }
    }

    /// Returns the connection slots per worker: as set, or as many as `connections_max`.
    pub fn slots(&self, config: &Config, uring: bool) -> Resolved {
        if config.slots > 0 {
            return Resolved { value: config.slots, because: "as set".to_owned() };
        }
        let value = self.connections_max(config, uring).value;
        let because = match config.scheduler {
            SchedulerKind::Pool | SchedulerKind::PoolShared => {
                "as connections-max; memory is taken as slots are used"
            }
            SchedulerKind::Queue | SchedulerKind::QueueShared => {
                "as connections-max; a queue grows up to it"
            }
        };
        Resolved { value, because: because.to_owned() }
    }
}

/// Returns the memory of the machine in bytes.
fn memory_bytes() -> u64 {
    let known = rustix::system::sysinfo();
    (known.totalram as u64).saturating_mul(u64::from(known.mem_unit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gustnado_tasks::BackendKind;

    fn machine() -> Machine {
        Machine {
            cpus: 4,
            cpu_quota_milli: None,
            memory_max_bytes: None,
            memory_bytes: 8 << 30,
            files_soft: 1_024,
            files_hard: 20_000,
        }
    }

    #[test]
    fn workers_follow_affinity_and_quota() {
        let config = Config::default();
        for (quota, workers, because) in [
            (None, 4, "4 CPUs by affinity, no cgroup quota"),
            (Some(500), 1, "4 CPUs by affinity, cgroup quota of 0.50 CPU"),
            (Some(2_500), 2, "4 CPUs by affinity, cgroup quota of 2.50 CPU"),
            (Some(64_000), 4, "4 CPUs by affinity, cgroup quota of 64.00 CPU"),
        ] {
            let resolved = Machine { cpu_quota_milli: quota, ..machine() }.workers(&config);
            assert_eq!((resolved.value, resolved.because.as_str()), (workers, because));
        }
        let set = Config { workers: 7, ..config };
        assert_eq!(machine().workers(&set).value, 7);
    }

    #[test]
    fn connections_follow_descriptors() {
        let config = Config::default();
        assert_eq!(machine().connections_max(&config, false).value, 19_872);
        assert_eq!(machine().connections_max(&config, true).value, 76_000);
        let shared = Config { scheduler: SchedulerKind::PoolShared, ..config.clone() };
        assert_eq!(machine().connections_max(&shared, true).value, 19_872);
        let unlimited = Machine { files_hard: u64::MAX, ..machine() };
        assert_eq!(unlimited.connections_max(&config, false).value, (1 << 22) - 128);
        // Where there are few, three of four are for files and the rest.
        for (limit, most) in [(1_024, 896), (171, 43), (170, 42), (64, 16), (20, 5), (3, 1)] {
            let few = Machine { files_hard: limit, ..machine() };
            assert_eq!(few.connections_max(&config, false).value, most, "of {limit}");
        }
        let nothing = Machine { files_hard: 0, ..machine() };
        assert_eq!(nothing.connections_max(&config, false).value, 1);
        let set = Config { connections_max: 5, ..config };
        assert_eq!(machine().slots(&set, true).value, 5);
    }

    #[test]
    fn what_is_told_is_what_the_engine_takes() {
        let config = Config::default();
        let machine = Machine::read();
        let plan = config.worker_plan(machine.workers(&config).value);
        for (backend, uring) in [(BackendKind::Epoll, false), (BackendKind::Uring, true)] {
            let found = machine.connections_max(&config, uring).value;
            assert_eq!(found, plan.capacity(backend).total, "{backend:?}");
        }
    }

    #[test]
    fn this_machine_can_be_read() {
        let machine = Machine::read();
        assert!(machine.cpus >= 1);
        assert!(machine.files_hard >= machine.files_soft);
    }
}
