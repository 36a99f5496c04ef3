//! CPU and memory that control groups allow. The text of the kernel's files is an argument: only
//! [`read`] touches the file system.

use std::path::{Path, PathBuf};

/// Limits of the control groups around this process; the tightest counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Allowance {
    /// Thousandths of a CPU.
    pub(super) cpu_milli: Option<u64>,
    /// Bytes.
    pub(super) memory_bytes: Option<u64>,
}

/// More memory than any machine has: what version 1 writes when there is no limit.
const UNLIMITED: u64 = 1 << 60;

/// Reads the groups named by the text of `/proc/self/cgroup`, under `mount` (`/sys/fs/cgroup`).
pub(super) fn read(own_groups: &str, mount: &Path) -> Allowance {
    let mut allowance = Allowance::default();
    for line in own_groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        if controllers.is_empty() {
            for base in [mount.to_owned(), mount.join("unified")] {
                for group in upwards(&base, path) {
                    allowance.tighten(text(&group, "cpu.max").as_deref().and_then(cpu_max));
                    allowance.tighten_memory(text(&group, "memory.max").as_deref());
                }
            }
        }
        for controller in controllers.split(',') {
            for group in upwards(&mount.join(controller), path) {
                let quota = text(&group, "cpu.cfs_quota_us");
                let period = text(&group, "cpu.cfs_period_us");
                allowance.tighten(quota.zip(period).and_then(|(q, p)| cpu_share(&q, &p)));
                allowance.tighten_memory(text(&group, "memory.limit_in_bytes").as_deref());
            }
        }
    }
    allowance
}

/// Returns the bytes that this group's sockets hold in the kernel, if the group accounts for them.
pub(super) fn socket_bytes(own_groups: &str, mount: &Path) -> Option<u64> {
    own_groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        if controllers.is_empty() {
            let bases = [mount.to_owned(), mount.join("unified")];
            let stat =
                bases.iter().find_map(|base| text(upwards(base, path).first()?, "memory.stat"))?;
            return stat.lines().find_map(|line| line.strip_prefix("sock ")?.trim().parse().ok());
        }
        let is_memory = controllers.split(',').any(|name| name == "memory");
        let group =
            upwards(&mount.join("memory"), path).into_iter().next().filter(|_| is_memory)?;
        text(&group, "memory.kmem.tcp.usage_in_bytes")?.trim().parse().ok()
    })
}

impl Allowance {
    fn tighten(&mut self, cpu_milli: Option<u64>) {
        self.cpu_milli = [self.cpu_milli, cpu_milli].into_iter().flatten().min();
    }

    fn tighten_memory(&mut self, limit: Option<&str>) {
        let bytes = limit.and_then(|text| text.trim().parse().ok()).filter(|n| *n < UNLIMITED);
        self.memory_bytes = [self.memory_bytes, bytes].into_iter().flatten().min();
    }
}

/// Returns the group's folder and all those above it, up to `base`. Inside a container the path may
/// name folders that only the host sees; those are simply not there to be read.
fn upwards(base: &Path, path: &str) -> Vec<PathBuf> {
    let path = Path::new(path.trim_start_matches('/'));
    path.ancestors().map(|ancestor| base.join(ancestor)).collect()
}

fn text(group: &Path, file: &str) -> Option<String> {
    std::fs::read_to_string(group.join(file)).ok()
}

/// Returns the share of `cpu.max` of version 2: `50000 100000`, or `max 100000`.
fn cpu_max(text: &str) -> Option<u64> {
    let (quota, period) = text.trim().split_once(' ')?;
    cpu_share(quota, period)
}

fn cpu_share(quota_us: &str, period_us: &str) -> Option<u64> {
    // No limit is `max` in version 2 and -1 in version 1: neither is an unsigned number.
    let quota: u64 = quota_us.trim().parse().ok()?;
    let period: u64 = period_us.trim().parse().ok().filter(|period| *period > 0)?;
    Some(quota.saturating_mul(1_000) / period)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let mount = tempfile::tempdir().expect("a folder for the tree");
        for (path, text) in files {
            let path = mount.path().join(path);
            fs::create_dir_all(path.parent().expect("inside the tree")).expect("made");
            fs::write(path, text).expect("written");
        }
        mount
    }

    #[test]
    fn the_tightest_group_of_version_2_counts() {
        let mount = tree(&[
            ("a/cpu.max", "150000 100000\n"),
            ("a/b/cpu.max", "max 100000\n"),
            ("a/b/memory.max", "max\n"),
            ("a/memory.max", "67108864\n"),
        ]);
        let allowance = read("0::/a/b\n", mount.path());
        assert_eq!(allowance.cpu_milli, Some(1_500));
        assert_eq!(allowance.memory_bytes, Some(64 << 20));
    }

    #[test]
    fn a_container_sees_its_own_group_at_the_top() {
        let mount = tree(&[("cpu.max", "50000 100000\n")]);
        assert_eq!(read("0::/kubepods/x\n", mount.path()).cpu_milli, Some(500));
    }

    #[test]
    fn version_1_has_a_tree_per_controller() {
        let mount = tree(&[
            ("cpu/box/cpu.cfs_quota_us", "200000\n"),
            ("cpu/box/cpu.cfs_period_us", "100000\n"),
            ("memory/box/memory.limit_in_bytes", "1073741824\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        let allowance = read("4:memory:/box\n3:cpu,cpuacct:/box\n", mount.path());
        assert_eq!(allowance.cpu_milli, Some(2_000));
        assert_eq!(allowance.memory_bytes, Some(1 << 30));
    }

    #[test]
    fn no_limit_and_nonsense_are_no_limit() {
        let mount = tree(&[
            ("cpu/cpu.cfs_quota_us", "-1\n"),
            ("cpu/cpu.cfs_period_us", "100000\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        let text = "1:cpu:/\n2:memory:/\nnonsense\n\n::\n";
        assert_eq!(read(text, mount.path()), Allowance::default());
        assert_eq!(cpu_max("50000 0"), None);
        assert_eq!(cpu_max(""), None);
    }

    #[test]
    fn the_memory_of_sockets_is_found_in_both_versions() {
        let second = tree(&[("a/memory.stat", "anon 1\nsock 4096\nshmem 2\n")]);
        assert_eq!(socket_bytes("0::/a\n", second.path()), Some(4_096));
        let first = tree(&[("memory/a/memory.kmem.tcp.usage_in_bytes", "8192\n")]);
        assert_eq!(socket_bytes("5:cpu:/\n4:memory:/a\n0::/\n", first.path()), Some(8_192));
        assert_eq!(socket_bytes("4:cpu:/a\n", first.path()), None);
    }
}
